"""The record of pipeline.own.decisions as text, and the decision curve as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.reporting.names import method_name
from pipeline.reporting.style import NOTE_COLOR, house_style, legend_below, look
from pipeline.reporting.wording import TextTable, with_half
from pipeline.scoring.choice import ROUNDING, cheapest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def decisions_table(record: Mapping[str, Any]) -> TextTable:
    """One line per method: costs, differences, and the action that is misjudged most."""
    methods: Mapping[str, Any] = record["methods"]
    always = f"always {record['best_constant']}"
    best = cheapest(methods)
    heading = [
        "Method", "mean loss", "foreseen", f"against {always}",
        f"against {method_name(best)}", "most misjudged action", "another action would save",
    ]  # fmt: skip
    rows = [
        [
            method_name(method),
            with_half(priced, "cost"),
            f"{priced['expected']:.3g}",
            with_half(priced["against"][always], "difference"),
            "–" if method == best else with_half(priced["against"][best], "difference"),
            _misjudged(priced["actions"]),
            _saved_otherwise(priced["otherwise"]),
        ]
        for method, priced in methods.items()
    ]
    constants = ", ".join(f"{name} {cost:.3g}" for name, cost in record["constant"].items())
    note = (
        "At each test point the action of least expected loss is taken. Mean loss: what this costs"
        f"{_over(record['splits'])}. Foreseen: what the probabilities expect it to cost. Against: "
        "the difference; negative is cheaper. Most misjudged action: the one with the largest sum "
        "of realized minus expected loss, divided by all points (decision calibration, Zhao et al. "
        "2021), and how often it is taken. Another action would save: one action instead of "
        "another, wherever that one is taken (swap regret). The table has the change that saves "
        "most, found with the labels known, and what chance alone saves at most in 95 % of cases. "
        f"One action for all points costs: {constants}; the best of these is the reference. "
        "decisions.json has all pairs of methods."
    )
    return TextTable("Decisions", heading, rows, note)


def _over(splits: int) -> str:
    return f", mean over {splits} splits ± half of a 95 % interval" if splits > 1 else ""


def _misjudged(actions: Mapping[str, Mapping[str, float]]) -> str:
    name = max(actions, key=lambda action: abs(actions[action]["gap"]))
    return f"{name} {actions[name]['gap']:+.2g} ({100 * actions[name]['share']:.0f} %)"


def _saved_otherwise(otherwise: Mapping[str, Any]) -> str:
    if otherwise["saved"] <= ROUNDING:
        return "nothing"
    floor = otherwise["floor_q95"]
    chance = "unknown" if floor is None else f"{floor:.2g}"
    return (
        f"{otherwise['instead']} instead of {otherwise['action']}: {otherwise['saved']:.2g} "
        f"(chance {chance})"
    )


def decision_curve_figure(curve: Mapping[str, Any]) -> Figure:
    """Net benefit over thresholds per method, with acting always and never (Vickers & Elkin 2006).

    A vertical line marks the threshold of the user's losses, if they have one.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from metrics.plots.drawing import plain

    thresholds, handles = curve["thresholds"], []
    with house_style():
        figure = Figure(figsize=(5.2, 3.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(thresholds, curve["always"], color=NOTE_COLOR, linewidth=1)
        axes.axhline(0, color=NOTE_COLOR, linewidth=1, linestyle=(0, (4, 2)))
        for method, values in curve["methods"].items():
            style = look(method)
            axes.plot(thresholds, values, **style.line)
            handles.append(Line2D([], [], label=plain(method_name(method)), **style.line))
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1, label="act always"))
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1, ls=(0, (4, 2)), label="never act"))
        if curve["own_threshold"] is not None:
            axes.axvline(curve["own_threshold"], color=NOTE_COLOR, linewidth=0.8, linestyle=":")
            axes.annotate(
                "these losses", (curve["own_threshold"], 0.98), xycoords=("data", "axes fraction"),
                xytext=(3, 0), textcoords="offset points", va="top", color=NOTE_COLOR,
            )  # fmt: skip
        best = max(max(values) for values in [curve["always"], *curve["methods"].values()])
        axes.set(xlim=(0, 1), ylim=(-0.25 * max(best, 0.01), 1.08 * max(best, 0.01)))
        axes.set_xlabel(f"Threshold: act on {plain(curve['event'])} where its probability exceeds")
        axes.set_ylabel("Net benefit, share of points")
        legend_below(figure, handles, "Higher is better.")
    return figure
