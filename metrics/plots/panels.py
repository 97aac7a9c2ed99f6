"""How each kind of `UtilityDisplay` is drawn into axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..shown import WorstInterval, dkw_band
from . import drawing
from .drawing import Array

Line = dict[str, Any]
"""Arguments of matplotlib's `plot`, which go before those of a panel."""


class Display(Protocol):
    """What a panel is drawn from; `UtilityDisplay` says what each attribute is."""

    columns: dict[str, Array]
    worst: WorstInterval | None
    by_chance: float
    rug: Array | None


def draw_reliability(display: Display, axes: Axes, label: str, line: Line) -> None:
    """Draw realized against predicted utility in bins; `label` is the legend's, or empty."""
    *bins, shares = display.columns.values()
    rug = display.columns["predicted"] if display.rug is None else display.rug
    text = _error_of(display)
    line = {"label": _with_error(label, text, "mean of a bin")} | line
    drawing.draw_reliability(axes, bins, shares, rug, **line)
    _mark_error(axes, display.worst, text, label, "Realized against predicted utility")
    _name_axes(axes, "Realized utility")


def draw_running(display: Display, axes: Axes, label: str, line: Line) -> None:
    """Draw the running difference of realized and predicted utility."""
    text = _error_of(display)
    line = {"label": _with_error(label, text, "running difference")} | line
    drawing.draw_running(axes, list(display.columns.values()), **line)
    _mark_error(axes, display.worst, text, label, "Realized minus predicted utility, summed up")
    _name_axes(axes, "Running difference")


def _name_axes(axes: Axes, ylabel: str) -> None:
    """Name both axes; more numbers than these would touch each other in a small figure."""
    axes.set(xlabel="Predicted utility", ylabel=ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def draw_ecdf(display: Display, axes: Axes, label: str, line: Line) -> None:
    """Draw the share of utilities up to each error, with its band."""
    errors, shares = display.columns.values()
    # The axis has to have room for the curves of other displays, too.
    drawn = [np.asarray(other.get_xdata(), dtype=float) for other in axes.lines]
    line = {"label": label or None} | line
    drawing.draw_curve(axes, errors, shares, dkw_band(len(errors)), **line)
    drawing.error_axes(axes, [*drawn, errors])
    axes.set_ylabel("Share of users with error ≤ $e$")


def draw_decision_curve(display: Display, axes: Axes, label: str, line: Line) -> None:
    """Draw the net benefit by threshold, beside those of acting never and always."""
    thresholds, by_forecast, always = display.columns.values()
    axes.axhline(0, color=drawing.GREY, lw=0.8)
    dashed: Line = {"color": drawing.GREY, "lw": 1, "ls": drawing.DASH}
    axes.plot(thresholds, always, label="always act", **dashed)
    named: Line = {"label": label or "by the forecast"}
    axes.plot(thresholds, by_forecast, **(named | line))
    top = max(0.05, float(by_forecast.max()))
    axes.set_ylim(-0.1 * top, 1.1 * top)
    axes.set(xlabel="Threshold", ylabel="Net benefit")


PANELS: dict[str, Callable[[Display, Axes, str, Line], None]] = {
    "reliability": draw_reliability,
    "running": draw_running,
    "ecdf": draw_ecdf,
    "decision_curve": draw_decision_curve,
}


def _error_of(display: Display) -> str:
    """Return the error with what chance alone makes of it."""
    assert display.worst is not None
    text = f"error {display.worst.error:.3g}"
    if np.isfinite(display.by_chance):
        text += f", by chance below {display.by_chance:.3g} in 95 %"
    return text


def _with_error(label: str, error: str, otherwise: str) -> str:
    """Return the legend's line. Forecasts that have names may share axes, but not a title."""
    return f"{label}: {error}" if label else otherwise


def _mark_error(
    axes: Axes, worst: WorstInterval | None, error: str, label: str, title: str
) -> None:
    """Mark the worst interval, and write above the axes what they show, if nothing is there."""
    assert worst is not None
    if not axes.get_title():
        # One line would be wider than the axes of a figure with several.
        axes.set_title(title if label else f"Utility calibration {error}".replace(", ", ",\n"))
    drawing.mark_worst(axes, worst.low, worst.high)
