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
from ..shown import WorstInterval, dkw_band
from ..utilities.base import UtilityClass
from ..utilities.function import Utility, utility_of
from ..utilities.payoffs import TopClass
from . import drawing
from .drawing import Array

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["reliability", "running", "ecdf", "decision_curve"]
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "reliability": ("predicted", "realized", "noise_low", "noise_high"),
    "running": ("predicted", "difference", "noise_low", "noise_high"),
    "ecdf": ("error", "share"),
    "decision_curve": ("threshold", "net_benefit", "act_always"),
}
THRESHOLDS = np.arange(1, 100) / 100


class UtilityDisplay:
    """A reliability diagram of a forecast, or another of four figures.

    Attributes:
        kind: the kind of the figure.
        columns: the numbers of the figure by name (`COLUMNS`), all of one length. 95 % of
            calibrated forecasts lie between `noise_low` and `noise_high`; `difference` is
            D(t) = mean((u - v) · 1{v <= t}) at the `predicted` utility t, whose range is UC.
        name: name of the forecast in the legend.
        worst: the interval of predicted utility with the largest error; None for the last two.
        ax_, figure_: the axes and the figure into which `plot` drew.
    """

    ax_: Axes
    figure_: Any

    def __init__(
        self,
        kind: Kind,
        columns: dict[str, Array],
        name: str = "",
        worst: WorstInterval | None = None,
    ) -> None:
        self.kind, self.columns, self.name, self.worst = kind, columns, name, worst

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
        """Draw realized against predicted utility in bins.

        Args:
            probabilities, labels: [n, C] and [n], as in `accuracy`.
            utility: a utility class, or a function p [n, C] -> u⃗ [n, C]; `TopClass()` by default.
            index: number of the utility in its class; the worst one if not given.
            bins: number of bins.
            repetitions, seed: number and seed of the label vectors redrawn for the noise; 0: none.
            **keywords: `sample_weight`, `classes` and `ignore_index` as in `accuracy`; others are
                arguments of `plot`.
        """
        points, drawn = _sorted_out(keywords)
        found = diagram_of(
            utility_of(utility or TopClass()),
            *_in_order(probabilities, labels),
            index=index,
            repetitions=repetitions,
            seed=seed,
            bins=bins,
            **points,
        )
        return cls._drawn("reliability", found.bins, drawn, found.worst)

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
        points, drawn = _sorted_out(keywords)
        found = diagram_of(
            utility_of(utility or TopClass()),
            *_in_order(probabilities, labels),
            index=index,
            repetitions=repetitions,
            seed=seed,
            **points,
        )
        return cls._drawn("running", found.running, drawn, found.worst)

    @classmethod
    def ecdf(
        cls, probabilities: ArrayLike, labels: ArrayLike, utility: UtilityClass, **keywords: Any
    ) -> UtilityDisplay:
        """Draw the errors of all utilities of a class (section 4) with their 95 % band."""
        points, drawn = _sorted_out(keywords)
        errors = utility.calibration_errors(*_in_order(probabilities, labels), **points)
        return cls._drawn("ecdf", uc.ecdf(errors), drawn)

    @classmethod
    def decision_curve(
        cls, probabilities: ArrayLike, labels: ArrayLike, *, event: int = 1, **keywords: Any
    ) -> UtilityDisplay:
        """Draw the net benefit of acting on the probability of class `event` (Vickers & Elkin)."""
        points, drawn = _sorted_out(keywords)
        forecast, outcomes = checked(*_in_order(probabilities, labels), **points)
        p, y = forecast.probabilities, outcomes.labels[0]
        weights = None if outcomes.weights is None else outcomes.weights[0]
        if not 0 <= event < p.shape[1]:
            raise InputError(f"{event}, expected a class from 0 to {p.shape[1] - 1}", field="event")
        by_forecast, always = (
            net_benefit(acts, y == event, THRESHOLDS, weights)
            for acts in (p[:, event], np.ones(len(p)))
        )
        return cls._drawn("decision_curve", (THRESHOLDS, by_forecast, always), drawn)

    @classmethod
    def _drawn(
        cls,
        kind: Kind,
        numbers: Sequence[Array],
        drawn: dict[str, Any],
        worst: WorstInterval | None = None,
    ) -> UtilityDisplay:
        columns = dict(zip(COLUMNS[kind], numbers, strict=True))
        return cls(kind, columns, drawn.pop("name", ""), worst).plot(**drawn)

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
        line = {"label": label or None} | line
        x, *y = numbers = list(self.columns.values())
        if self.worst is not None:
            drawing.shade_worst(axes, self.worst.low, self.worst.high)
        if self.kind == "reliability":
            drawing.draw_binned(axes, (float(x[0]), float(x[-1])), numbers, **line)
            axes.set(xlabel="Predicted utility", ylabel="Realized utility")
        elif self.kind == "running":
            drawing.draw_running(axes, numbers, **line)
            axes.set(xlabel="Predicted utility", ylabel="Running difference")
        elif self.kind == "ecdf":
            drawn = [*(np.asarray(other.get_xdata(), dtype=float) for other in axes.lines), x]
            drawing.draw_curve(axes, x, y[0], dkw_band(len(x)), **line)
            drawing.error_axes(axes, drawn)
            axes.set_ylabel("Share of utilities with error ≤ $e$")
        else:
            axes.axhline(0, color=drawing.DIAGONAL, lw=0.8)
            axes.plot(x, y[1], color=drawing.DIAGONAL, lw=0.8, ls="--")
            axes.plot(x, y[0], **line)
            top = max(0.05, float(y[0].max()))
            axes.set_ylim(-0.1 * top, 1.1 * top)
            axes.set(xlabel="Threshold", ylabel="Net benefit (dashed: always act)")
        if label:
            axes.legend(frameon=False)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _sorted_out(keywords: dict[str, Any]) -> tuple[PointOptions, dict[str, Any]]:
    """Return what is said of the points, and the arguments of `plot`."""
    names = PointOptions.__annotations__
    points: Any = {name: value for name, value in keywords.items() if name in names}
    return points, {name: value for name, value in keywords.items() if name not in names}


def _in_order(probabilities: ArrayLike, labels: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return both; `InputError` if the labels came first, as scikit-learn takes them."""
    if np.ndim(probabilities) == 1 and np.ndim(labels) == 2:
        message, fix = "a vector, and the labels a matrix", "probabilities come first here"
        raise InputError(message, field="probabilities", fixes=fix)
    return probabilities, labels
