"""Make the study of docs/monitoring.md: how often a look at a stream alarms, and how soon.

python -m utility_calibration.scripts.maintain.monitoring_study

Labels are drawn from softmax(z), and softmax(z / T) is forecast. Written: monitoring.png; the table
is printed. It takes about two core minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from utility_calibration.metrics import ClassWise, StreamingCalibration, TopK
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.style import NOTE_COLOR, titled_figure
from utility_calibration.pipeline.reporting.wording import markdown_table

TEMPERATURES = (1.0, 1.1, 0.9, 0.8)
COLORS = ("#000000", "#0072B2", "#E69F00", "#D55E00")  # Okabe and Ito
CLASSES, BATCHES, POINTS_OF_BATCH = 4, 40, 250
LEVEL = 0.05
DRAWN = 12
"""Streams of a temperature in the figure."""
HEADING = ("T", "Streams", "Evidence of 20 at any look", "Points until then, median")


class Looks(NamedTuple):
    """What is seen after each batch of one stream, [BATCHES] each."""

    log_now: Any
    """Of the evidence."""
    log_largest: Any
    """Of the evidence so far."""
    p_value: Any
    """Of the noise floor; NaN for a forecast that is not calibrated."""


def looks_of(temperature: float, seed: int) -> Looks:
    """Look at one stream after each of its batches."""
    random = np.random.default_rng([seed, round(1000 * temperature)])
    streaming = StreamingCalibration([ClassWise(), TopK()], CLASSES)
    seen = []
    for _ in range(BATCHES):
        logits = 2 * random.normal(size=(POINTS_OF_BATCH, CLASSES))
        labels = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
        streaming.update(softmax(logits / temperature), labels)
        evidence = streaming.evidence()
        is_calibrated = temperature == 1
        p_value = streaming.result().noise_floor().p_value if is_calibrated else np.nan
        seen.append((evidence.log_now, evidence.log_largest, p_value))
    return Looks(*np.transpose(seen))


def rows_of(streams: dict[float, list[Looks]]) -> Iterator[list[str]]:
    """The rows of the table: how often and how soon each look alarms."""
    for temperature, all_looks in streams.items():
        alarms = np.array([looks.log_largest >= np.log(1 / LEVEL) for looks in all_looks])
        batches = np.where(alarms.any(axis=1), alarms.argmax(axis=1) + 1, BATCHES + 1)
        median = np.median(batches) * POINTS_OF_BATCH
        yield [
            f"{temperature:g}",
            f"{len(all_looks):,}",
            f"{alarms.any(axis=1).mean():.3f}",
            f"{median:,.0f}" if median <= BATCHES * POINTS_OF_BATCH else "–",
        ]


def draw(streams: dict[float, list[Looks]], path: Path) -> None:
    """Draw the evidence of some streams over time."""
    points = POINTS_OF_BATCH * np.arange(1, BATCHES + 1)
    with titled_figure(7.2, 3.6) as figure:
        axes = figure.subplots()
        for (temperature, all_looks), color in zip(streams.items(), COLORS, strict=True):
            for looks in all_looks[:DRAWN]:
                axes.plot(points, looks.log_now / np.log(10), color=color, linewidth=0.7)
            label = "calibrated" if temperature == 1 else f"softmax(z / {temperature:g})"
            axes.plot([], [], color=color, label=label)
        axes.axhline(np.log10(1 / LEVEL), color=NOTE_COLOR, linestyle="--", linewidth=1)
        axes.annotate("alarm: 20", (points[-1], np.log10(1 / LEVEL)), xytext=(0, 3),
                      textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
        axes.set(xlabel="points seen", ylabel="log10 of the evidence", ylim=(-3, 10))
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))  # beside the lines
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="png", metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the streams, write the figure, and print the table; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    parser.add_argument("--streams", type=int, default=400, help="of each temperature")
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        streams = {}
        for temperature in TEMPERATURES:
            seeds = range(options.streams)
            streams[temperature] = [looks_of(temperature, seed) for seed in seeds]
        draw(streams, options.output / "monitoring.png")
        say(markdown_table(HEADING, list(rows_of(streams))))
        below = np.array([looks.p_value <= LEVEL for looks in streams[1.0]])
        at_any, at_end = below.any(axis=1).mean(), below[:, -1].mean()
        say(
            f"calibrated, p-value of at most .05: at any look {at_any:.3f}, at the end {at_end:.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
