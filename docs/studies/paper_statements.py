"""Draw Lemma 3.3, of which the paper has no figure.

    python docs/studies/paper_statements.py

Written to --output: sample_bound.png, how far UC of n points is from UC of the law, beside the
paper's bound. The points are drawn from a law of known UC (claims_of_bounds.py).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.plots.drawing import plain_log_axis
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.claims_of_bounds import (
    REPETITIONS,
    SHARE,
    deviations,
    sample_bound,
)
from utility_calibration.pipeline.reporting.style import legend_below, titled_figure

COLOR = "#0072B2"
BOUND: dict[str, Any] = {"color": "#333333", "lw": 1.2}
SIZES = [100 * 4**k for k in range(5)]


def bound_figure(distances: dict[int, float]) -> Figure:
    """The quantile of the deviations over n, the paper's bound, and a line of slope -1/2."""
    with titled_figure(5.2, 4.2, "Lemma 3.3 by simulation") as figure:
        axis = figure.subplots()
        sizes = np.array(list(distances))
        values = np.array(list(distances.values()))
        label = f"{1 - SHARE:.0%} quantile of {REPETITIONS} samples"
        axis.plot(sizes, values, color=COLOR, marker="o", ms=4, label=label)
        bounds = [sample_bound(n) for n in distances]
        axis.plot(sizes, bounds, label="The paper's bound", **BOUND)
        root = values[0] * np.sqrt(sizes[0] / sizes)
        axis.plot(sizes, root, ls=":", label=r"Proportional to $1/\sqrt{n}$", **BOUND)
        axis.set(xlabel="Points n", ylabel="Distance of UC to that of the law")
        axis.set(xscale="log", yscale="log")
        for drawn, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            plain_log_axis(drawn, limits, 6)
        legend_below(figure, axis.get_legend_handles_labels()[0], "")
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute and draw; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/figures"))
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        distances = {n: float(np.quantile(deviations(n), 1 - SHARE)) for n in SIZES}
        with atomic_path(options.output / "sample_bound.png") as temporary:
            metadata = {"Software": None}
            bound_figure(distances).savefig(temporary, format="png", metadata=metadata)
        say(f"deviations: {distances}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
