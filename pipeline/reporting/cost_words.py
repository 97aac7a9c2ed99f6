"""Sentences on what a person's decisions cost with each method (scoring/costs.py)."""

from collections.abc import Mapping
from typing import Any

from ..scoring.choice import Choice
from ..scoring.cost_gaps import ROUNDING, cheapest, surely_dearer
from ..scoring.decisions import INFINITE, Decisions
from ..scoring.uses import COST
from .names import method_name
from .wording import MOST_NAMED, counted, names, with_half


def cost_sentences(decisions: Decisions, choice: Choice, costs: Mapping[str, Any]) -> str:
    """Which method to take for the least cost, by how much, and how sure that is.

    The method of the least cost and the one to take are named together, because they may differ.
    """
    methods = costs["methods"]
    best = cheapest(methods)
    pick = choice.pick
    taken = pick.method if pick is not None and pick.score == COST else ""
    lowest = f"{methods[best]['cost']:.3g}"
    if len(methods) == 1:
        text = f"Your decisions cost {lowest} per point on average."
        return text + _cheaper_action(costs, best)
    if not taken:
        text = (
            f"On these test points your decisions cost least with {method_name(best)}, {lowest} "
            "per point on average, but this is no recommendation."
        )
        return text + _next_one(methods, best) + _cheaper_action(costs, best)
    if taken == best:
        text = (
            f"Take {method_name(best)}: if you always take the action with the lowest predicted "
            f"cost, your decisions cost least with it, {lowest} per point on average."
        )
        text += _next_one(methods, best)
    else:
        text = (
            f"Take {method_name(taken)}: of the methods without {INFINITE} your decisions cost "
            f"least with it, {methods[taken]['cost']:.3g} per point on average. With "
            f"{method_name(best)} they cost {lowest}, but it is not recommended, because it gave "
            f"probability 0 to classes that occurred ({INFINITE})."
        )
    text += _tests(methods, taken)
    return text + _cheaper_action(costs, taken) + _best_foreseen(choice)


def _next_one(methods: Mapping[str, Any], best: str) -> str:
    """How much more decisions cost with the next method."""
    others = {method: record["cost"] for method, record in methods.items() if method != best}
    second = min(others, key=others.__getitem__)
    gap = methods[second]["against"][best]
    text = (
        f" With {method_name(second)}, the next one, they cost {with_half(gap, 'difference')} more"
    )
    half = gap["difference_half_width"]
    is_chance = half is not None and gap["difference"] - half <= ROUNDING
    return f"{text}, which chance can explain." if is_chance else f"{text}."


def _tests(methods: Mapping[str, Any], taken: str) -> str:
    """For how many other methods a test finds higher costs; "" without tests."""
    gaps = [record["against"][taken] for name, record in methods.items() if name != taken]
    if any(gap["difference_half_width"] is None for gap in gaps):
        return ""
    dearer = surely_dearer(methods, taken)
    if len(gaps) == 1:
        return f" {'A' if dearer else 'No'} test finds higher costs with the other method."
    if len(dearer) == len(gaps):
        return " Tests find higher costs with every other method."
    if not dearer:
        return " No test finds higher costs with another method."
    if len(dearer) <= MOST_NAMED:
        one_or_more = "A test finds" if len(dearer) == 1 else "Tests find"
        return f" {one_or_more} higher costs with {names(dearer)}."
    return (
        f" Tests find higher costs with {counted(len(dearer))} of the {counted(len(gaps))} others."
    )


def _cheaper_action(costs: Mapping[str, Any], method: str) -> str:
    """How these decisions compare with the cheapest action that is the same for all points."""
    constant = costs["best_constant"]
    gap = costs["methods"][method]["against"][f"always {constant}"]
    half = gap["difference_half_width"]
    price = f"{costs['constant'][constant]:#.4g}".rstrip(".")
    action = f"Always “{constant}” costs {price}."
    if gap["difference"] > ROUNDING:
        return f" But: {action} That is {with_half(gap, 'difference')} less."
    text = f" {action} That is {with_half(gap, 'difference', sign=-1)} more"
    is_chance = half is not None and abs(gap["difference"]) <= half
    return (
        f"{text}, so it is not proven that the model saves anything." if is_chance else f"{text}."
    )


def _best_foreseen(choice: Choice) -> str:
    """Which methods predict the costs best; "" where no test tells, or too many do."""
    for use in choice.uses:
        if use.metric == "u_losses" and 0 < len(use.named) <= MOST_NAMED:
            apart = f" (methods with {INFINITE} left out)" if use.left_out else ""
            return f" The costs are predicted best by {names(use.named)}{apart}."
    return ""
