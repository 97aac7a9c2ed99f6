"""A figure of a forecast with scikit-learn's methods: `from_estimator`, `from_predictions`, `plot`.

display = UtilityDisplay.from_predictions(y, p, utility=TopK(ks=(3,)))
display.ax_.set_title("top 3"); display.frame().to_csv("top3.csv")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from metrics.decisions import net_benefit
from metrics.diagram import diagram_of, utility_of
from metrics.ecdf import ecdf
from metrics.plots.ecdf import error_axes, plain
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import TopClass
from metrics.validation import InputError, check_labels, check_probabilities

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Kind = Literal["reliability", "ecdf", "decision_curve"]
THRESHOLDS = np.arange(1, 100) / 100
GREY = "#8C8C8C"


class UtilityDisplay:
    """A reliability diagram, an eCDF of errors, or a decision curve of one forecast.

    Attributes:
        kind: the kind of the figure.
        name: name of the forecast in the legend.
        columns: the numbers of the figure by name, all of one length:
            "reliability": `predicted` and `realized` utility of bins of equal width, and
            `noise_low`, `noise_high`, which contain 95 % of calibrated forecasts' realized utility;
            "ecdf": `error`, the UC of each utility in ascending order, and `share`, the share of
            utilities with at most this error;
            "decision_curve": `threshold`, `net_benefit` of acting above it, and `act_always`.
        ax_, figure_: the axes and the figure into which `plot` drew.
    """

    ax_: Axes
    figure_: Any

    def __init__(self, kind: Kind, columns: dict[str, Array], name: str = "") -> None:
        self.kind, self.columns, self.name = kind, columns, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any
    ) -> UtilityDisplay:
        """Draw the forecast of a fitted classifier for points X with labels y.

        Args:
            estimator: has `predict_proba` and `classes_`, as scikit-learn's classifiers.
            X: the argument of `predict_proba`; y: [n] labels among `classes_`.
            name: name in the legend; the name of the estimator's class if not given.
            **options: arguments of `from_predictions`.

        Raises:
            InputError: a label that is not among `classes_`, or what `from_predictions` raises.
        """
        numbers = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
        labels = np.asarray(y).tolist()
        if unknown := sorted({str(label) for label in labels if label not in numbers}):
            raise InputError(f"y: {unknown[0]} is not among the estimator's classes")
        probabilities = estimator.predict_proba(X)
        name = type(estimator).__name__ if name is None else name
        y_true = np.array([numbers[label] for label in labels])
        return cls.from_predictions(y_true, probabilities, name=name, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        kind: Kind = "reliability",
        utility: UtilityClass | Callable[[Any], Any] | None = None,
        index: int | None = None,
        event: int = 1,
        bins: int = 15,
        seed: int = 0,
        name: str = "",
        ax: Axes | None = None,
        **line: Any,
    ) -> UtilityDisplay:
        """Draw a forecast.

        Args:
            y_true: [n] class numbers; y_prob: [n, C]. This is scikit-learn's order; the metrics of
                this package take the probabilities first.
            kind: "reliability": realized against predicted utility (eq. 3.2); "ecdf": the errors
                of all utilities of a class (section 4); "decision_curve": the net benefit of acting
                on the probability of class `event` (Vickers & Elkin 2006).
            utility: a utility class, or a function p [n, C] -> u⃗ [n, C]; `TopClass()` by default.
                An eCDF needs a class of several utilities.
            index: number of the utility in a reliability diagram; the worst one if not given.
            bins, seed: number of bins, and seed of the redrawn labels, in a reliability diagram.
            name, ax, **line: arguments of `plot`.

        Raises:
            InputError: the kind is unknown, the event is no class, the arguments are in the other
                order, or shapes, ranges or row sums are wrong.
        """
        if kind not in get_args(Kind):
            raise InputError(f"kind: {kind}, expected one of {', '.join(get_args(Kind))}")
        if np.ndim(y_true) == 2 and np.ndim(y_prob) == 1:
            raise InputError("y_true: a matrix, and y_prob a vector; labels come first here")
        chosen = utility_of(TopClass() if utility is None else utility)
        if kind == "reliability":
            found = diagram_of(chosen, y_prob, y_true, index, seed=seed, bins=bins)[1].bins
            columns = {"predicted": found.predicted, "realized": found.realized}
            columns |= {"noise_low": found.low, "noise_high": found.high}
        elif kind == "ecdf":
            errors, shares = ecdf(chosen.calibration_errors(y_prob, y_true))
            columns = {"error": errors, "share": shares}
        else:
            columns = _decision_curve(y_prob, y_true, event)
        return cls(kind, columns, name).plot(ax, **line)

    def frame(self) -> pd.DataFrame:
        """Return the numbers of the figure, one row per dot or step."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def plot(self, ax: Axes | None = None, name: str | None = None, **line: Any) -> UtilityDisplay:
        """Draw into `ax`, or into a new figure; `line` goes to matplotlib's `plot`."""
        axes = Figure(layout="constrained").subplots() if ax is None else ax
        label = plain(self.name if name is None else name)
        look = {"label": label or None} | line
        {"reliability": self._bins, "ecdf": self._steps, "decision_curve": self._curve}[self.kind](
            axes, look
        )
        if label:
            axes.legend(frameon=False)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _bins(self, axes: Axes, line: dict[str, Any]) -> None:
        x, y = self.columns["predicted"], self.columns["realized"]
        axes.vlines(x, self.columns["noise_low"], self.columns["noise_high"], color="#D0D0D0", lw=5)
        axes.axline((float(x[0]), float(x[0])), slope=1, color=GREY, lw=0.8)
        axes.plot(x, y, **({"marker": "o", "linestyle": ""} | line))
        axes.set(xlabel="Predicted utility", ylabel="Realized utility")

    def _steps(self, axes: Axes, line: dict[str, Any]) -> None:
        error, share = self.columns["error"], self.columns["share"]
        drawn = [*(np.asarray(other.get_xdata(), dtype=float) for other in axes.lines), error]
        axes.plot(error, share, **line)
        error_axes(axes, drawn)
        axes.set_ylabel("Share of utilities with error ≤ $e$")

    def _curve(self, axes: Axes, line: dict[str, Any]) -> None:
        threshold, benefit = self.columns["threshold"], self.columns["net_benefit"]
        always = self.columns["act_always"]
        axes.axhline(0, color=GREY, lw=0.8)
        axes.plot(threshold, always, color=GREY, lw=0.8, ls="--")
        axes.plot(threshold, benefit, **line)
        top = max(0.05, float(benefit.max()))
        axes.set_ylim(-0.1 * top, 1.1 * top)
        axes.set(xlabel="Threshold", ylabel="Net benefit (dashed: always act)")


def _decision_curve(probabilities: Any, labels: Any, event: int) -> dict[str, Array]:
    p = check_probabilities(probabilities).cpu().numpy()
    y = check_labels(labels, *p.shape).cpu().numpy()
    if not 0 <= event < p.shape[1]:
        raise InputError(f"event: {event}, expected a class from 0 to {p.shape[1] - 1}")
    happened = y == event
    return {
        "threshold": THRESHOLDS,
        "net_benefit": np.asarray(net_benefit(p[:, event], happened, THRESHOLDS)),
        "act_always": np.asarray(net_benefit(np.ones(len(p)), happened, THRESHOLDS)),
    }
