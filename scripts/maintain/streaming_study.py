"""Make the study of docs/streaming.md: how many points a fit needs, and what chance does to bounds.

python -m utility_calibration.scripts.maintain.streaming_study CIFAR.npz

CIFAR.npz has logits and labels. Written: docs/figures/calibration_points.png; the tables are
printed. It takes about six core minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.calibrators import TemperatureScaling, VectorScaling
from utility_calibration.metrics import ClassWise, StreamingCalibration, negative_log_likelihood
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.looks import look
from utility_calibration.pipeline.reporting.names import method_name
from utility_calibration.pipeline.reporting.style import NOTE_COLOR, titled_figure
from utility_calibration.pipeline.reporting.wording import markdown_table

FIGURE = Path("docs/figures/calibration_points.png")
SPLITS, TEST = 5, 3000
METHODS = {"temperature": TemperatureScaling, "vector": VectorScaling}
COVERED = {10**3: 1000, 10**4: 1000, 10**5: 400, 10**6: 40}
"""Points of a data set and how many of these are drawn."""
CLASSES, TRUTH = 4, 2_000_000
Arrays = tuple[Any, Any]


def losses(logits: Any, labels: Any) -> tuple[list[int], dict[str, Any]]:
    """Return numbers of points, and by method the NLL [splits, numbers] on fresh points."""
    numbers = [int(n) for n in np.geomspace(100, len(labels) - TEST, 8)]
    found = {name: np.zeros((SPLITS, len(numbers))) for name in METHODS}
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(labels))
        test, rest = order[:TEST], order[TEST:]
        for name, method in METHODS.items():
            for place, n in enumerate(numbers):
                fitted = method().fit(logits[rest[:n]], labels[rest[:n]])
                p = fitted.predict_proba(logits[test])
                found[name][split, place] = negative_log_likelihood(p, labels[test])
    return numbers, found


def draw(numbers: Sequence[int], found: dict[str, Any]) -> list[list[str]]:
    """Draw the loss above that of all points, write the figure, and return the table's rows."""
    rows = []
    with titled_figure(5.2, 3.2) as figure:
        axes = figure.subplots()
        for name, values in found.items():
            excess = values - values[:, -1:]
            mean, error = excess.mean(axis=0), 2 * excess.std(axis=0, ddof=1) / SPLITS**0.5
            how: dict[str, Any] = {**look(name).line, "label": method_name(name)}
            axes.errorbar(numbers, mean, error, capsize=2, marker="o", markersize=3, **how)
            for n, one, two in zip(numbers, mean, error, strict=True):
                rows.append([name, f"{n:,}", f"{one:.5f}", f"{two:.5f}"])
        axes.axhline(0, color=NOTE_COLOR, linewidth=0.8, zorder=0)
        axes.set(xscale="log", xlabel="Calibration points", ylabel="NLL above that of all points")
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.legend()
        with atomic_path(FIGURE) as temporary:
            figure.savefig(temporary, format="png", metadata={"Software": None})
    return rows


def drawn(n: int, seed: int, sharpness: float) -> Iterator[Arrays]:
    """Yield forecasts of `CLASSES` classes and labels; with sharpness 1 these are calibrated."""
    rng = np.random.default_rng([seed, n])
    for start in range(0, n, 100_000):
        true = rng.dirichlet(np.full(CLASSES, 0.7), size=min(100_000, n - start))
        labels = (true.cumsum(axis=1) < rng.random((len(true), 1))).sum(axis=1)
        p = (true + 1e-9) ** sharpness
        yield p / p.sum(axis=1, keepdims=True), labels.clip(max=CLASSES - 1)


def measured(n: int, seed: int, sharpness: float) -> Any:
    """Return the result of one pass over n drawn points."""
    streaming = StreamingCalibration(ClassWise(), CLASSES)
    for p, labels in drawn(n, seed, sharpness):
        streaming.update(p, labels)
    return streaming.result()


def coverage() -> list[list[str]]:
    """Return the rows of the table: false alarms of the floor, coverage of the interval."""
    far = measured(TRUTH, 10**6, 1.3)
    truth, rows = float(far.upper.max() + far.lower.max()) / 2, []
    for n, times in COVERED.items():
        alarms = covered = 0
        widths = []
        for seed in range(times):
            alarms += measured(n, seed, 1.0).noise_floor().p_value <= 0.05
            bounds = measured(n, seed, 1.3).calibration_interval()
            covered += bounds.lower <= truth <= bounds.upper
            widths.append(bounds.upper - bounds.lower)
        shares = [f"{100 * count / times:.1f} %" for count in (alarms, covered)]
        rows.append([f"{n:,}", f"{times}", *shares, f"{np.mean(widths):.4f}"])
        say("  ".join(rows[-1]))
    return rows


def main() -> int:
    """Measure, draw, print."""
    parser = Parser(__doc__)
    parser.add_argument("file", type=Path, help="npz file")
    options = parser.parse_args()
    with user_errors_in_one_line():
        held = read_arrays(options.file)
        numbers, found = losses(held["logits"], held["labels"])
        rows = draw(numbers, found)
        say(markdown_table(("Method", "Points", "NLL above", "Two standard errors"), rows, text=1))
        headings = ("Points", "Data sets", "False alarms", "Covered", "Width")
        say(markdown_table(headings, coverage(), text=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
