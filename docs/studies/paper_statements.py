"""Draw two statements of the paper, which has no figure of them: Proposition 3.1 and Lemma 3.3.

    python docs/studies/paper_statements.py LOGITS.npz [LOGITS.npz …]

The files have arrays `logits` [n, C] and `labels` [n]. Written to --output:

    risk_gap.png      what the best monotone map of a utility would gain, beside twice its UC
    sample_bound.png  how far UC of n points is from UC of the law, beside the paper's bound
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import softmax

from utility_calibration.metrics import utility_calibration
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.plots.drawing import plain_log_axis
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.style import legend_below, titled_figure

Values = NDArray[np.float64]
THRESHOLDS = np.linspace(-0.2, 1.2, 57)
TEMPERATURES = {0.5: "#D55E00", 1.0: "#0072B2", 2.5: "#009E73"}
BOUND: dict[str, Any] = {"color": "#333333", "lw": 1.2}
SHIFT, UC = 0.1, 0.4 * 0.1 + 0.1**2 / 2
"""`draws`: the chance of u = 1 is v plus SHIFT above one half and v minus SHIFT below, cut off at 0
and 1. So the worst interval is one half of [0, 1], which gives UC."""
SHARE = 0.1  # δ
SIZES = [100 * 4**k for k in range(5)]


def risk_gap(v: Values, u: Values) -> float:
    """How much the best monotone h lowers the risk of acting where v >= t, for the worst t.

    The loss is |u - t| for a wrong action. Acting on h(v) is acting on an upper set of v.
    """
    order = np.argsort(v, kind="stable")
    first_of_ties = np.concatenate([[True], np.diff(v[order]) > 0, [True]])
    gaps = []
    for threshold in THRESHOLDS:
        loss = (threshold - u)[order]
        acted_from = np.concatenate([np.cumsum(loss[::-1])[::-1], [0.0]])  # on points k, k + 1, …
        acted = loss[v[order] >= threshold].sum()
        gaps.append(float(acted - acted_from[first_of_ties].min()) / len(v))
    return max(gaps)


def users_of(p: Values, labels: NDArray[np.int64]) -> list[tuple[Values, Values]]:
    """v and u [n] of five single classes, of three shortlists and of the graded gain."""
    order = np.argsort(-p, axis=1, kind="stable")
    rank = np.argmax(order == labels[:, None], axis=1)
    ordered = np.take_along_axis(p, order, axis=1)
    gains = 1 / np.log2(2 + np.arange(p.shape[1]))
    users = [(p[:, k], (labels == k).astype(float)) for k in range(5)]
    users += [(ordered[:, :k].sum(axis=1), (rank < k).astype(float)) for k in (1, 2, 5)]
    return [*users, (ordered @ gains, gains[rank])]


def gaps_of(logits: Values, labels: NDArray[np.int64], temperature: float) -> Values:
    """UC and the risk gap of each user of `users_of`: [users, 2]."""
    users = users_of(softmax(logits / temperature, axis=1), labels)
    return np.array([(float(utility_calibration(v, u)), risk_gap(v, u)) for v, u in users])


def deviations(n: int, repetitions: int = 300) -> Values:
    """|UC of n drawn points - UC of their law|, for every repetition."""
    random = np.random.default_rng(n)
    v = random.random((repetitions, n))
    chance = np.clip(v + np.where(v < 0.5, -SHIFT, SHIFT), 0, 1)
    u = (random.random((repetitions, n)) < chance).astype(float)
    return np.abs(np.asarray(utility_calibration(v, u)) - UC)


def sample_bound(n: int) -> float:
    """Lemma 3.3 with the constants of its proof, which holds with probability 1 - SHARE."""
    return 16 / math.sqrt(n) + 4 * math.sqrt(math.log(1 / SHARE) / (2 * n))


def gap_figure(points: dict[float, Values]) -> Figure:
    """A point per forecast and user, coloured by the temperature of the forecast."""
    with titled_figure(5.2, 4.2, "Proposition 3.1 on real forecasts") as figure:
        axis = figure.subplots()
        for temperature, found in points.items():
            color, label = TEMPERATURES[temperature], f"Logits divided by {temperature:g}"
            axis.scatter(found[:, 0], found[:, 1], s=18, color=color, alpha=0.7, lw=0, label=label)
        errors = np.concatenate([found[:, 0] for found in points.values()])
        ends = np.array([0.7 * errors.min(), 1.4 * errors.max()])
        for factor, line in ((2, "-"), (1, ":")):
            label = "The bound, 2 UC" if factor == 2 else "UC"
            axis.plot(ends, factor * ends, ls=line, label=label, **BOUND)
        axis.set_xlabel("Utility calibration error UC")
        axis.set_ylabel("Risk that the best monotone\nmap would save")
        finish(figure, axis)
    return figure


def bound_figure(found: dict[int, float]) -> Figure:
    """The quantile of the deviations over n, the paper's bound, and a line of slope -1/2."""
    with titled_figure(5.2, 4.2, "Lemma 3.3 by simulation") as figure:
        axis, sizes = figure.subplots(), np.array([*found])
        values = np.array([*found.values()])
        label = f"{1 - SHARE:.0%} quantile of 300 samples"
        axis.plot(sizes, values, color=TEMPERATURES[1.0], marker="o", ms=4, label=label)
        bounds = [sample_bound(n) for n in found]
        axis.plot(sizes, bounds, label="The paper's bound", **BOUND)
        root = values[0] * np.sqrt(sizes[0] / sizes)
        axis.plot(sizes, root, ls=":", label=r"Proportional to $1/\sqrt{n}$", **BOUND)
        axis.set(xlabel="Points n", ylabel="Distance of UC to that of the law")
        finish(figure, axis)
    return figure


def finish(figure: Figure, axis: Axes) -> None:
    """Give both axes a logarithmic scale with plain numbers, and the figure its legend."""
    axis.set(xscale="log", yscale="log")
    for drawn, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        plain_log_axis(drawn, limits, 6)
    legend_below(figure, axis.get_legend_handles_labels()[0], "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute and draw; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("logits", type=Path, nargs="+", help="npz files")
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        files = [read_arrays(path) for path in options.logits]
        gaps = {
            t: np.concatenate([gaps_of(f["logits"].astype(float), f["labels"], t) for f in files])
            for t in TEMPERATURES
        }
        far = {n: float(np.quantile(deviations(n), 1 - SHARE)) for n in SIZES}
        figures = {"risk_gap": gap_figure(gaps), "sample_bound": bound_figure(far)}
        for name, figure in figures.items():
            with atomic_path(options.output / f"{name}.png") as temporary:
                figure.savefig(temporary, format="png", metadata={"Software": None})
        share = max(float((found[:, 1] / found[:, 0]).max()) for found in gaps.values())
        say(f"largest risk gap: {share:.2f} UC; deviations: {far}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
