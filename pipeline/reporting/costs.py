"""What decisions cost with each method (pipeline/scoring/costs.py), as a table: decisions.md."""

from collections.abc import Mapping
from typing import Any

from ..scoring.cost_gaps import cheapest
from .names import method_name
from .wording import TextTable, with_half


def costs_table(record: Mapping[str, Any]) -> TextTable:
    """One line per method: costs and differences."""
    methods: Mapping[str, Any] = record["methods"]
    always, best, splits = f"always {record['best_constant']}", cheapest(methods), record["splits"]
    heading = [
        "Method",
        "cost per case",
        "predicted cost",
        f"cheaper than {always} by",
        f"costlier than {method_name(best)} by",
    ]
    rows = []
    for method, costs in methods.items():
        to_best = "–" if method == best else with_half(costs["against"][best], "difference")
        rows.append(
            [
                method_name(method),
                with_half(costs, "cost"),
                f"{costs['expected']:.3g}",
                with_half(costs["against"][always], "difference", sign=-1),
                to_best,
            ]
        )
    constants = ", ".join(f"{name} {cost:.3g}" for name, cost in record["constant"].items())
    over = f", mean over {splits} splits (±: 95 % confidence interval)" if splits > 1 else ""
    note = (
        "In each test case the action with the lowest predicted cost is taken. Cost per case: "
        f"what these actions really cost on average{over}. Predicted cost: what the probabilities "
        f"predict for it. One action for all cases costs per case: {constants}. "
        "decisions.json has all pairs of methods, and how often each action is taken and by how "
        "much its cost is misjudged."
    )
    return TextTable("Decisions", heading, rows, note)
