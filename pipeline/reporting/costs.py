"""What decisions cost with each method (pipeline/scoring/costs.py), as a table: decisions.md."""

from collections.abc import Mapping
from typing import Any

from ..scoring.choice import ROUNDING, cheapest
from .names import method_name
from .wording import TextTable, with_half


def costs_table(record: Mapping[str, Any]) -> TextTable:
    """One line per method: costs, differences, and the action that is misjudged most."""
    methods: Mapping[str, Any] = record["methods"]
    always, best, splits = f"always {record['best_constant']}", cheapest(methods), record["splits"]
    heading = [
        "Method", "mean loss", "foreseen", f"against {always}",
        f"against {method_name(best)}", "most misjudged action", "another action would save",
    ]  # fmt: skip
    rows = []
    for method, own in methods.items():
        name, action = max(own["actions"].items(), key=lambda of: abs(of[1]["gap"]))
        saves, other = "nothing", own["otherwise"]
        if (saved := other["saved"]) > ROUNDING:
            floor = other["floor_q95"]
            chance = "unknown" if floor is None else f"{floor:.2g}"
            change = f"{other['instead']} instead of {other['action']}"
            saves = f"{change}: {saved:.2g} (chance {chance})"
        to_best = "–" if method == best else with_half(own["against"][best], "difference")
        rows.append(
            [
                method_name(method),
                with_half(own, "cost"),
                f"{own['expected']:.3g}",
                with_half(own["against"][always], "difference"),
                to_best,
                f"{name} {action['gap']:+.2g} ({100 * action['share']:.0f} %)",
                saves,
            ]
        )
    constants = ", ".join(f"{name} {cost:.3g}" for name, cost in record["constant"].items())
    over = f", mean over {splits} splits ± half of a 95 % interval" if splits > 1 else ""
    note = (
        f"At each test point the action of least expected loss is taken. Mean loss: what this costs"
        f"{over}. Foreseen: what the probabilities expect it to cost. Against: "
        "the difference; negative is cheaper. Most misjudged action: the one with the largest sum "
        "of realized minus expected loss, divided by all points (decision calibration, Zhao et al. "
        "2021), and how often it is taken. Another action would save: one action instead of "
        "another, wherever that one is taken (swap regret). The table has the change that saves "
        "most, found with the labels known, and what chance alone saves at most in 95 % of cases. "
        f"One action for all points costs: {constants}; the best of these is the reference. "
        "decisions.json has all pairs of methods."
    )
    return TextTable("Decisions", heading, rows, note)
