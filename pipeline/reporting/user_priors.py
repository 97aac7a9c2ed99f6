"""Users of other priors as people read them: eCDFs, and how the order of calibrators changes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from utility_calibration.metrics.plots.drawing import (
    draw_curve,
    draw_floor,
    error_axes,
    floor_handle,
    plain,
)
from utility_calibration.metrics.shown import dkw_band

from ..harness.artifacts import read_json
from ..scoring.inference import CONFIDENCE
from .figures import PANEL_TITLES
from .looks import look
from .names import method_name
from .style import legend_below, titled_figure
from .wording import TextTable, listed, number

Floats = NDArray[np.float64]
PRIOR_TITLES = {
    "uniform": "Uniform, as in the paper",
    "sparse": "Sparse: one to three pay",
    "positive": "Positive: no losses",
    "frequent": "Frequent ones: 1/r",
    "graded": "Graded: log(1 + r)^-γ",
}
FAMILY_NAMES = {"linear": "Paid by class", "rank": "Paid by rank"}


class Priors(NamedTuple):
    """The study of one benchmark: the tables of scoring/user_priors.py, and users.json."""

    curves: pd.DataFrame
    medians: pd.DataFrame
    taus: pd.DataFrame
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """From results/users/<benchmark>."""
        return cls(
            pd.read_csv(folder / "priors.csv"),
            pd.read_csv(folder / "priors_medians.csv"),
            pd.read_csv(folder / "priors_tau.csv"),
            read_json(folder / "users.json"),
        )

    @property
    def priors(self) -> list[str]:
        """In the order of conf/users."""
        return list(self.facts["options"]["priors"])

    @property
    def splits(self) -> int:
        """How many splits were studied."""
        return int(self.medians["split"].nunique())

    def best(self, family: str, prior: str) -> str:
        """The calibrator with the smallest median error, mean over splits."""
        chosen = (self.medians["family"] == family) & (self.medians["prior"] == prior)
        return str(self.medians[chosen].groupby("calibrator")["median"].mean().idxmin())

    def tau(self, family: str, prior: str, other: str) -> float:
        """Kendall's τ between two priors, or between two splits of one prior."""
        ours = self.taus[self.taus["family"] == family]
        pair = ours["prior"].isin([prior, other]) & ours["other"].isin([prior, other])
        is_same = ours["prior"] == ours["other"]
        return float(ours.loc[pair & (is_same == (prior == other)), "tau"].iloc[0])


class Stability(NamedTuple):
    """How far the order of the calibrators depends on who the users of one family are.

    tau: by prior, the mean τ to the first prior; chance: the mean τ between two splits of the same
    prior, of this prior and the first one; best: by prior, the calibrator with the least error.
    one_pair: how much τ changes where two neighbours in the order change places.
    """

    tau: Mapping[str, float]
    chance: Mapping[str, float]
    best: Mapping[str, str]
    one_pair: float

    @property
    def moved(self) -> list[str]:
        """The priors whose order differs from the first one's more than splits do, by a pair."""
        return [
            prior for prior, tau in self.tau.items() if tau < self.chance[prior] - self.one_pair
        ]


def stability_of(priors: Priors, family: str) -> Stability:
    """Compare every prior with the first one, the paper's."""
    first, *others = priors.priors
    at_first = priors.tau(family, first, first)
    count = len(priors.facts["calibrators"])
    return Stability(
        {prior: priors.tau(family, first, prior) for prior in others},
        {prior: (at_first + priors.tau(family, prior, prior)) / 2 for prior in others},
        {prior: priors.best(family, prior) for prior in priors.priors},
        4 / (count * (count - 1)),
    )


def priors_table(priors: Priors, title: str) -> TextTable:
    """Kendall's τ of the order of the calibrators between priors, and the best of each prior."""
    lines = []
    for family, name in FAMILY_NAMES.items():
        for prior in priors.priors:
            taus = [number(priors.tau(family, prior, other), 2) for other in priors.priors]
            lines.append([name, prior, *taus, method_name(priors.best(family, prior))])
    heading = ["Users", "Prior", *(f"τ to {prior}" for prior in priors.priors), "Best"]
    note = (
        f"Kendall's τ of the order of the {len(priors.facts['calibrators'])} methods by the median "
        f"error of {priors.facts['options']['utilities']} users, mean over {priors.splits} splits. "
        "Where both priors are the same, it is the τ between two splits of this prior: what other "
        f"test points change. {lesson_of(priors)}"
    )
    return TextTable(f"{title}: other users than uniform ones", heading, lines, note)


def lesson_of(priors: Priors) -> str:
    """What a reader learns, in two sentences per family; nothing of a single split."""
    if priors.splits < 2:
        return "A single split does not say what other test points would change."
    first = priors.priors[0]
    return " ".join(
        _lesson(name.lower(), first, stability_of(priors, family))
        for family, name in FAMILY_NAMES.items()
    )


def _lesson(users: str, first: str, stability: Stability) -> str:
    """Whether the order depends on the prior more than on the split, and who is best."""
    moved = [
        f"{prior} ({number(stability.tau[prior], 2)} against {number(stability.chance[prior], 2)})"
        for prior in stability.moved
    ]
    message = f"no prior changes the order of the {first} one more than another split does"
    if moved:
        message = f"the order differs from the {first} one by more than between splits for "
        message += listed(moved)
    by_method: dict[str, list[str]] = {}
    for prior, method in stability.best.items():
        by_method.setdefault(method_name(method), []).append(prior)
    if len(by_method) == 1:
        best = f"{next(iter(by_method))} is the best for every prior."
    else:
        parts = [f"{name} for {listed(priors)}" for name, priors in by_method.items()]
        best = f"The best method differs: {'; '.join(parts)}."
    return f"For users {users}, {message}. {best}"


def priors_figure(priors: Priors, title: str) -> Figure:
    """eCDFs of users paid by class (above) and by rank (below), a column per prior."""
    methods = priors.facts["calibrators"]
    count, floor_of = priors.facts["options"]["utilities"], priors.facts["floor_of"]
    band = dkw_band(count, CONFIDENCE)
    columns = len(priors.priors)
    with titled_figure(0.6 + 2.5 * columns, 6.0, title) as figure:
        grid = figure.subplots(len(FAMILY_NAMES), columns, sharey=True, squeeze=False)
        for row, family in zip(grid, FAMILY_NAMES, strict=True):
            for axis, prior in zip(row, priors.priors, strict=True):
                ours = (priors.curves["family"] == family) & (priors.curves["prior"] == prior)
                _draw_panel(axis, priors.curves[ours], methods, floor_of, band)
            row[0].set_ylabel(f"{PANEL_TITLES[family]}\nShare of users with error ≤ $e$")
        for axis, prior in zip(grid[0], priors.priors, strict=True):
            axis.set_title(plain(PRIOR_TITLES[prior]))
        for axis in grid[0]:
            axis.set_xlabel("")
        handles: list[Line2D | Patch] = [
            Line2D([], [], label=plain(method_name(method)), **look(method).line)
            for method in methods
        ]
        if priors.curves["floor_low"].notna().any():
            label = f"Noise floor of {plain(method_name(floor_of))}, 5–95%"
            handles.append(floor_handle(label))
        over = f"mean over {priors.splits} splits" if priors.splits > 1 else "one split"
        note = (
            f"{count} sampled users per panel, {over}; faint bands: 95% DKW band "
            f"(±{100 * band:.1f} points). Curves further left are better."
        )
        legend_below(figure, handles, note)
    return figure


def _draw_panel(
    axis: Axes, curves: pd.DataFrame, methods: Sequence[str], floor_of: str, band: float
) -> None:
    """The eCDF of every method, over the noise floor of one of them."""
    drawn: list[Floats] = []
    for method in methods:
        curve = curves[curves["calibrator"] == method]
        errors, levels = curve["error"].to_numpy(), curve["level"].to_numpy()
        if method == floor_of and curve["floor_low"].notna().all():
            ends = curve["floor_low"].to_numpy(), curve["floor_high"].to_numpy()
            draw_floor(axis, *ends, levels)
            drawn += ends
        draw_curve(axis, errors, levels, band, marker="", **look(method).line)
        drawn.append(errors)
    error_axes(axis, drawn)
    axis.set_xlabel("Error $e$")
