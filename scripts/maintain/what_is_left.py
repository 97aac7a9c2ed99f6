"""Draw what acting on a forecast loses, what recalibration could gain, and the two-bin error.

    python -m utility_calibration.scripts.maintain.what_is_left FILE.npz [FILE.npz …]

A file has `labels` [n] and `logits` or `probabilities` [n, C]. Seven tenths of its points calibrate
four methods; the numbers are those of the other points. Written to --output: what_is_left.png.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from utility_calibration.calibrators import (
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    Uncalibrated,
    from_probabilities,
)
from utility_calibration.calibrators.recalibration import recalibration_gain
from utility_calibration.metrics import TopK, two_bin_error
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.plots.drawing import plain
from utility_calibration.metrics.resampling import redrawn_outcomes
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.looks import look
from utility_calibration.pipeline.reporting.style import FLOOR_FILL, titled_figure

METHODS = {
    "uncalibrated": ("Uncalibrated", Uncalibrated),
    "temperature": ("Temp. Scaling", TemperatureScaling),
    "structured_matrix": ("SMS", StructuredMatrixScaling),
    "logit_shift": ("Logit-shift patching", LogitShiftPatching),
}
PANELS: dict[str, dict[str, Any]] = {
    "Lost in a decision on a shortlist": {"value": "linear"},
    "Recalibration could gain, nats": {"value": "symlog", "linthresh": 0.01},
    "Two-bin error $\\times 10^4$": {"value": "log"},
}
"""The panels and how they are scaled: the second one is linear near 0."""
DRAWS = 200


class Number(NamedTuple):
    """A value, half of its 95 % interval (0 without one), and what is usual by chance."""

    value: float
    half_width: float = 0.0
    chance: tuple[float, float] = (0.0, 0.0)


def numbers_of(p: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[Number, ...]:
    """The three numbers of a forecast [n, C], in the order of `PANELS`."""
    acting = TopK().evaluate(p, labels, repetitions=DRAWS).gain
    left = recalibration_gain(p, labels)
    forecast = Forecast(p)
    drawn = redrawn_outcomes(forecast, np.arange(len(p)), DRAWS, 0)
    by_chance = [two_bin_error(p, row) for _, draw in drawn for row in draw.labels]
    low, high = 1e4 * np.quantile(by_chance, (0.05, 0.95))
    return (
        Number(acting.gain, chance=(0.0, acting.floor)),
        Number(left.gain, left.half_width),
        Number(1e4 * two_bin_error(p, labels), chance=(float(low), float(high))),
    )


def methods_of(arrays: Mapping[str, Any]) -> dict[str, tuple[Number, ...]]:
    """The numbers of each method on the points that did not calibrate it."""
    given, labels = arrays.get("logits"), arrays["labels"]
    logits = from_probabilities(arrays["probabilities"]) if given is None else given
    order = np.random.default_rng([0, 0]).permutation(len(labels))
    fitted, held = np.split(order, [round(0.7 * len(labels))])
    found = {}
    for key, (_, method) in METHODS.items():
        with warnings.catch_warnings(action="ignore"):  # a fold may lack a class
            calibrator = method().fit(logits[fitted], labels[fitted])
            found[key] = numbers_of(calibrator.predict_proba(logits[held]), labels[held])
    return found


def panel(axis: Axes, numbers: Mapping[str, Number]) -> None:
    """A line per method: the value and its interval, on a grey bar of what chance alone does."""
    for place, (key, number) in enumerate(numbers.items()):
        low, high = number.chance
        axis.barh(place, high - low, left=low, height=0.55, color=FLOOR_FILL)
        axis.errorbar(number.value, place, xerr=number.half_width or None, fmt="o", ms=5,
                      color=look(key).color, capsize=3)  # fmt: skip
        told = f"{number.value:.4f}" if abs(number.value) < 0.1 else f"{number.value:.3g}"
        right = max(number.value + number.half_width, high)
        axis.annotate(told, (right, place), xytext=(6, 0), textcoords="offset points", va="center")
    axis.set_yticks(range(len(numbers)), [METHODS[key][0] for key in numbers])
    axis.margins(x=0.3)


def figure_of(files: Mapping[str, Mapping[str, tuple[Number, ...]]]) -> Figure:
    """A row of three panels per file."""
    with titled_figure(9.6, 0.8 + 1.75 * len(files)) as figure:
        rows = figure.subplots(len(files), len(PANELS), sharey=True, squeeze=False)
        for row, (name, methods) in zip(rows, files.items(), strict=True):
            row[0].set_ylabel(plain(name), fontweight="bold")
            for column, (axis, scale) in enumerate(zip(row, PANELS.values(), strict=True)):
                axis.set_xscale(**scale)
                panel(axis, {key: numbers[column] for key, numbers in methods.items()})
        for axis, title in zip(rows[0], PANELS, strict=True):
            axis.set_title(title)
        rows[0, 0].invert_yaxis()
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute and draw; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="npz files")
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        found = {path.stem: methods_of(read_arrays(path)) for path in options.files}
        with atomic_path(options.output / "what_is_left.png") as temporary:
            figure_of(found).savefig(temporary, format="png", metadata={"Software": None})
        for name, methods in found.items():
            for key, numbers in methods.items():
                say(f"{name} {key}: " + "; ".join(f"{one.value:.4g}" for one in numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
