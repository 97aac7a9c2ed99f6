"""A figure of a forecast with scikit-learn's methods: `from_estimator`, `from_predictions`, `plot`.

display = UtilityDisplay.reliability(p, y, TopK(ks=(3,)))
display.ax_.set_title("top 3"); display.frame().to_csv("top3.csv")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from .. import uc
from ..class_order import codes_of
from ..decision_losses import net_benefit
from ..diagram import diagram_of
from ..errors import InputError
from ..keywords import PointOptions
from ..scorer import Classifier
from ..scores import checked
from ..shown import UtilityDiagram, WorstInterval
from ..utilities.base import UtilityClass
from ..utilities.function import Utility, utility_of
from ..utilities.standard import TopClass
from . import drawing
from .drawing import Array
from .panels import PANELS

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["reliability", "running", "ecdf", "decision_curve"]
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "reliability": ("predicted", "realized", "noise_low", "noise_high", "share"),
    "running": ("predicted", "difference", "noise_low", "noise_high"),
    "ecdf": ("error", "share"),
    "decision_curve": ("threshold", "net_benefit", "act_always"),
}
THRESHOLDS = np.arange(1, 100) / 100


class UtilityDisplay:
    """A reliability diagram of a forecast (eq. 2.1, 3.2), or another of four figures.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> display = UtilityDisplay.reliability(p, [0, 1, 2, 1], TopK(), name="as it is")
    >>> display.figure_.savefig("topk.png")  # doctest: +SKIP
    >>> display.ax_.get_title()
    'Realized against predicted utility'
    >>> round(display.worst.error, 3), round(display.by_chance, 3)
    (0.15, 0.4)

    Attributes:
        kind: the kind of the figure.
        columns: the numbers of the figure by name (`COLUMNS`), all of one length, in the unit of
            the utility. 95 % of calibrated forecasts lie between `noise_low` and `noise_high`;
            `share` is that of the points in a bin; `difference` is
            D(t) = mean((u - v) · 1{v <= t}) at the `predicted` utility t, whose range is UC.
        name: name of the forecast in the legend.
        worst: the interval of predicted utility with the largest error; None for the last two.
        by_chance: the error that chance alone exceeds in 5 % of calibrated forecasts; NaN if no
            labels were redrawn, and for the last two.
        rug: some of the predicted utilities; for the reliability diagram.
        ax_, figure_: the axes and the figure into which `plot` drew.

    Raises:
        InputError: of its methods, as `accuracy`; and for a kind, an event or axes that are none.
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        kind: Kind,
        columns: dict[str, Array],
        name: str = "",
        worst: WorstInterval | None = None,
        by_chance: float = float("nan"),
        rug: Array | None = None,
    ) -> None:
        self.kind, self.columns, self.name = kind, columns, name
        self.worst, self.by_chance, self.rug = worst, by_chance, rug

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: object,
        y: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> UtilityDisplay:
        """Draw the forecast of a fitted classifier for points X with labels y.

        Args:
            estimator: has `predict_proba` and `classes_`, as scikit-learn's classifiers.
            X: the argument of `predict_proba`.
            y: [n] labels among `classes_`.
            name: name in the legend; the name of the estimator's class if not given.
            **options: arguments of `from_predictions`.
        """
        labels = codes_of(y, np.shape(y)[0], np.asarray(estimator.classes_), name="y")
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(estimator.predict_proba(X), labels, name=name, **options)

    @classmethod
    def from_predictions(
        cls,
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        kind: Kind = "reliability",
        **options: Any,
    ) -> UtilityDisplay:
        """Draw a forecast, as the method named by `kind` does; it takes the `options`.

        The probabilities come first, as everywhere in this package; in scikit-learn the labels do.
        """
        if kind not in COLUMNS:
            raise InputError(f"{kind}, expected one of {', '.join(COLUMNS)}", field="kind")
        display: UtilityDisplay = getattr(cls, kind)(probabilities, labels, **options)
        return display

    @classmethod
    def reliability(
        cls,
        probabilities: ArrayLike,
        labels: ArrayLike,
        utility: Utility | None = None,
        *,
        index: int | None = None,
        bins: int = 15,
        repetitions: int = 200,
        seed: int = 0,
        **keywords: Any,
    ) -> UtilityDisplay:
        """Draw realized against predicted utility in bins, with the error and its floor above.

        A dot is fainter where points are few; the ticks at the bottom are predicted utilities.

        Args:
            probabilities, labels: [n, C] and [n], as in `accuracy`.
            utility: a utility class, or a function p [n, C] -> u⃗ [n, C]; `TopClass()` by default.
            index: number of the utility in its class; the worst one if not given.
            bins: number of bins.
            repetitions, seed: number and seed of the label vectors redrawn for the noise; 0: none.
            **keywords: `sample_weight`, `classes` and `ignore_index` as in `accuracy`; others are
                arguments of `plot`.
        """
        about_points, about_plot = _about_points_and_plot(keywords)
        diagram, by_chance = _diagram(
            utility,
            probabilities,
            labels,
            index=index,
            repetitions=repetitions,
            seed=seed,
            bins=bins,
            **about_points,
        )
        assert diagram.shares is not None
        numbers = (*diagram.bins, diagram.shares)
        return cls._drawn(
            "reliability", numbers, about_plot, diagram.worst, by_chance, diagram.quantiles
        )

    @classmethod
    def running(
        cls,
        probabilities: ArrayLike,
        labels: ArrayLike,
        utility: Utility | None = None,
        *,
        index: int | None = None,
        repetitions: int = 200,
        seed: int = 0,
        **keywords: Any,
    ) -> UtilityDisplay:
        """Draw the running difference, without bins (eq. 3.2). Arguments as `reliability`."""
        about_points, about_plot = _about_points_and_plot(keywords)
        diagram, by_chance = _diagram(
            utility,
            probabilities,
            labels,
            index=index,
            repetitions=repetitions,
            seed=seed,
            **about_points,
        )
        return cls._drawn("running", diagram.running, about_plot, diagram.worst, by_chance)

    @classmethod
    def ecdf(
        cls, probabilities: ArrayLike, labels: ArrayLike, utility: UtilityClass, **keywords: Any
    ) -> UtilityDisplay:
        """Draw the errors of all utilities of a class (section 4) with their 95 % band."""
        about_points, about_plot = _about_points_and_plot(keywords)
        errors = utility.calibration_errors(*_in_order(probabilities, labels), **about_points)
        return cls._drawn("ecdf", uc.ecdf(errors), about_plot)

    @classmethod
    def decision_curve(
        cls, probabilities: ArrayLike, labels: ArrayLike, *, event: int = 1, **keywords: Any
    ) -> UtilityDisplay:
        """Draw the net benefit of acting on the probability of class `event` (Vickers & Elkin)."""
        about_points, about_plot = _about_points_and_plot(keywords)
        forecast, outcomes = checked(*_in_order(probabilities, labels), **about_points)
        p, y = forecast.probabilities, outcomes.labels[0]
        weights = None if outcomes.weights is None else outcomes.weights[0]
        if not 0 <= event < p.shape[1]:
            raise InputError(f"{event}, expected a class from 0 to {p.shape[1] - 1}", field="event")
        by_forecast, always = (
            net_benefit(acts, y == event, THRESHOLDS, weights)
            for acts in (p[:, event], np.ones(len(p)))
        )
        return cls._drawn("decision_curve", (THRESHOLDS, by_forecast, always), about_plot)

    @classmethod
    def _drawn(
        cls,
        kind: Kind,
        numbers: Sequence[Array],
        about_plot: dict[str, Any],
        worst: WorstInterval | None = None,
        by_chance: float = float("nan"),
        rug: Array | None = None,
    ) -> UtilityDisplay:
        columns = dict(zip(COLUMNS[kind], numbers, strict=True))
        name = about_plot.pop("name", "")
        return cls(kind, columns, name, worst, by_chance, rug).plot(**about_plot)

    def frame(self) -> pd.DataFrame:
        """Return the numbers of the figure, one row per dot or step."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def plot(self, ax: Axes | None = None, name: str | None = None, **line: Any) -> UtilityDisplay:
        """Draw into `ax`, or into a new figure; `line` goes to matplotlib's `plot`."""
        axes = Figure(layout="constrained").subplots() if ax is None else ax
        if not isinstance(axes, Axes):
            raise InputError(f"{type(ax).__name__}, expected the axes of one figure", field="ax")
        label = drawing.plain(self.name if name is None else name)
        PANELS[self.kind](self, axes, label, line)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(framealpha=0.85, edgecolor="none", fontsize="small", handlelength=2.6)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _about_points_and_plot(keywords: dict[str, Any]) -> tuple[PointOptions, dict[str, Any]]:
    """Return what is said of the points, and the arguments of `plot`."""
    names = PointOptions.__annotations__
    about_points: Any = {name: value for name, value in keywords.items() if name in names}
    about_plot = {name: value for name, value in keywords.items() if name not in names}
    return about_points, about_plot


def _diagram(
    utility: Utility | None, probabilities: ArrayLike, labels: ArrayLike, **options: Any
) -> tuple[UtilityDiagram, float]:
    """Return `diagram_of` the top class, if no other utility is given; it takes the `options`."""
    points = _in_order(probabilities, labels)
    return diagram_of(utility_of(utility or TopClass()), *points, **options)


def _in_order(probabilities: ArrayLike, labels: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return both; `InputError` if the labels came first, as scikit-learn takes them."""
    if np.ndim(probabilities) == 1 and np.ndim(labels) == 2:
        message, fix = "a vector, and the labels a matrix", "probabilities come first here"
        raise InputError(message, field="probabilities", fixes=fix)
    return probabilities, labels
