"""Measure how the time of our metrics and calibrators grows with the points and the classes.

python -m utility_calibration.scripts.speed.growth
python -m utility_calibration.scripts.speed.growth --points 1000 --classes 10 --words TopK

Each one runs with n points and C classes, with n doubled twice, and with C doubled twice. The
exponent e is the slope of the logarithms: the time grows as n^e or C^e there. Writes
<output>/growth.{csv,md}. On one thread; a run that does not count comes first.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from utility_calibration import calibrators, metrics
from utility_calibration.metrics.kernels.threads import set_threads
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.command import Parser
from utility_calibration.pipeline.harness.progress import Bar, say
from utility_calibration.pipeline.reporting.wording import markdown_table

from .__main__ import machine, shown_time
from .cases import SEED, Data, Size, data

DOUBLINGS = 2
USERS = 100
"""Sampled utilities of a class that has any number of them."""
RUNS, MIN_SECONDS = 3, 0.2
"""A piece of work runs so often, and until its runs together take this long."""
HEADING = ("Work", "Time", "Exponent of n", "Exponent of C")
TEXT = """\
Core seconds on one thread, of the median run, with {size}. The exponents are slopes of the
logarithm of the time over two doublings of the points, and of the classes: 1 is proportional, 2
means four times the time for twice as many. Fits of calibrators end when they have converged, so
their exponents also hold the number of their steps."""
Work = Callable[[Data], object]


def _errors(make: Callable[[int], metrics.UtilityClass], inputs: Data) -> object:
    return make(inputs.size.classes).calibration_errors(inputs.p, inputs.labels)


def _streamed(inputs: Data) -> object:
    utilities = [metrics.ClassWise(), metrics.TopK()]
    streaming = metrics.StreamingCalibration(utilities, inputs.size.classes)
    streaming.update(inputs.p, inputs.labels)
    return streaming.result()


def _score(score: Callable[..., object], inputs: Data) -> object:
    return score(inputs.p, inputs.labels)


def _fit(make: Callable[[], calibrators.Calibrator], inputs: Data) -> object:
    return make().fit(inputs.logits, inputs.labels)


def _scorecard(inputs: Data) -> object:
    return metrics.scorecard(inputs.p, inputs.labels, utilities=USERS)


def works() -> dict[str, Work]:
    """Every metric and calibrator of ours by its name, on its default settings."""
    utilities: dict[str, Callable[[int], metrics.UtilityClass]] = {
        "ClassWise": lambda classes: metrics.ClassWise(),
        "TopClass": lambda classes: metrics.TopClass(),
        "TopK": lambda classes: metrics.TopK(),
        "DiscountedCumulativeGain": lambda classes: metrics.DiscountedCumulativeGain(),
        f"Linear, {USERS} users": lambda classes: metrics.Linear.sample(USERS, classes, SEED),
        f"Rank, {USERS} users": lambda classes: metrics.Rank.sample(USERS, classes, SEED),
    }
    scores = {
        "accuracy": metrics.accuracy,
        "Brier score": metrics.brier_score,
        "NLL": metrics.negative_log_likelihood,
        "ECE by class": metrics.binned_class_wise_error,
        "ECE of the top class": metrics.binned_top_class_error,
    }
    names = ("TemperatureScaling", "VectorScaling", "StructuredVectorScaling",
             "StructuredMatrixScaling", "IsotonicCalibration", "DirichletCalibration",
             "PooledScaling", "UtilityPatching", "LogitShiftPatching")  # fmt: skip
    found: dict[str, Work] = {name: partial(_errors, make) for name, make in utilities.items()}
    found |= {name: partial(_score, score) for name, score in scores.items()}
    found |= {"StreamingCalibration": _streamed, f"scorecard, {USERS} users": _scorecard}
    return found | {name: partial(_fit, getattr(calibrators, name)) for name in names}


def sizes(points: int, classes: int) -> list[Size]:
    """The base size, then n doubled, then C doubled."""
    factors = [2**step for step in range(1, DOUBLINGS + 1)]
    more_points = [Size(points * factor, classes) for factor in factors]
    return [Size(points, classes), *more_points, *(Size(points, classes * f) for f in factors)]


def core_seconds(work: Work, inputs: Data) -> float:
    """The median over the runs on the same points."""
    spent: list[float] = []
    while len(spent) < RUNS or sum(spent) < MIN_SECONDS:
        began = time.process_time()
        work(inputs)
        spent.append(time.process_time() - began)
    return median(spent)


def exponent(factors: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log(seconds) over log(factors), by least squares."""
    return float(np.polyfit(np.log(factors), np.log(seconds), 1)[0])


def measured(wanted: dict[str, Work], points: int, classes: int) -> Iterator[dict[str, Any]]:
    """The times of each piece of work by `n` and `classes`, a row for each size."""
    every = sizes(points, classes)
    with Bar("growth", len(wanted)) as bar:
        for name, work in wanted.items():
            work(data(every[0]))  # imports and compiles
            for size in every:
                seconds = core_seconds(work, data(size))
                yield {"work": name, "n": size.n, "classes": size.classes, "seconds": seconds}
            bar.advance(name)


def lines_of(table: pd.DataFrame) -> Iterator[list[str]]:
    """The rows of HEADING."""
    for name, rows in table.groupby("work", sort=False):
        base = rows.iloc[0]
        by_points = rows[rows["classes"] == base["classes"]]
        by_classes = rows[rows["n"] == base["n"]]
        of_points = exponent(by_points["n"] / base["n"], by_points["seconds"])
        of_classes = exponent(by_classes["classes"] / base["classes"], by_classes["seconds"])
        yield [f"{name}", shown_time(base["seconds"]), f"{of_points:.2f}", f"{of_classes:.2f}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--points", type=int, default=4000, help="n (default: 4000)")
    parser.add_argument("--classes", type=int, default=25, help="C (default: 25)")
    parser.add_argument("--words", nargs="+", default=[""], help="only names with such a word")
    parser.add_argument("--output", type=Path, default=Path("results/speed"))
    options = parser.parse_args(arguments)
    words = [word.lower() for word in options.words]
    wanted = {k: v for k, v in works().items() if any(word in k.lower() for word in words)}
    if not wanted:
        parser.error(f"--words: none of {', '.join(works())} has such a word")
    warnings.simplefilter("ignore")  # some fits keep temperature scaling, and say so
    set_threads(1)
    table = pd.DataFrame(measured(wanted, options.points, options.classes))
    path = options.output / "growth.csv"
    write_text(path, table.assign(machine=machine()).to_csv(index=False, float_format="%.4g"))
    size = Size(options.points, options.classes)
    rows = markdown_table(HEADING, list(lines_of(table)))
    text = ["# How time grows", TEXT.format(size=size), machine(), rows]
    write_text(path.with_suffix(".md"), "\n\n".join(text) + "\n")
    say(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
