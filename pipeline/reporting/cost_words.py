"""Sentences on what a person's decisions cost with each method (scoring/costs.py)."""

import math
from collections.abc import Mapping
from typing import Any

from ..scoring.choice import PRESENT, Choice
from ..scoring.cost_gaps import ROUNDING, cheapest, surely_dearer
from ..scoring.decisions import INFINITE
from ..scoring.use_columns import CHEAP
from ..scoring.uses import COST
from .names import method_name
from .wording import MOST_NAMED, counted, names, with_half

RULE = "If you always take the action with the lowest predicted cost, your decisions cost"


def cost_sentences(choice: Choice, costs: Mapping[str, Any]) -> str:
    """Which method to take for the least cost, what that saves, and how sure that is."""
    methods = costs["methods"]
    best = cheapest(methods)
    taken = _taken(choice)
    if not taken:
        which = "" if len(methods) == 1 else f" with {method_name(best)}, the cheapest one here"
        text = f"{RULE} {_price(methods, best)} per case on average{which}."
        if len(methods) > 1:
            text += " This is no recommendation."
        return text + _cheaper_action(costs, best)
    start = f"Repair the probabilities with the method {method_name(taken)}"
    if taken == PRESENT:
        start = "Take the model's probabilities as they are"
    apart = "" if taken == best else f" and have no {INFINITE}"
    signs = choice.uses[-1].signs  # those of the real cost
    reason = ", because decisions were cheapest with it."
    if [*signs.values()].count(CHEAP) > 1 or apart:
        reason = (
            f". Of the methods that no test finds dearer{apart}, this program takes the cheapest."
        )
    text = f"{start}{reason} {RULE} {_price(methods, taken)} per case on average."
    if taken != PRESENT and PRESENT in methods:
        text += f" With the model's own probabilities they cost {_price(methods, PRESENT)}."
    return text + _cheaper_action(costs, taken)


def more_on_costs(choice: Choice, costs: Mapping[str, Any]) -> list[str]:
    """How the costs with other methods compare with those that the advice is about."""
    methods = costs["methods"]
    best = cheapest(methods)
    taken = _taken(choice) or best
    lines = []
    if taken != best:
        lines.append(
            f"With {method_name(best)} decisions cost {_price(methods, best)}, but it gave "
            f"probability 0 to classes that occurred ({INFINITE}), so it is not recommended."
        )
    if len(methods) > 1 and taken == best:
        lines.append(_next_one(methods, best))
    if _taken(choice):
        lines += [_tests(methods, taken), _best_foreseen(choice)]
    return [line for line in lines if line]


def _taken(choice: Choice) -> str:
    """The method that is taken for its cost, "" where none is."""
    pick = choice.pick
    return pick.method if pick is not None and pick.score == COST else ""


def _price(methods: Mapping[str, Any], name: str) -> str:
    return _in_digits(methods, methods[name]["cost"])


def _in_digits(methods: Mapping[str, Any], cost: float) -> str:
    """A cost with as many decimals as give the lowest one three significant digits."""
    lowest = abs(methods[cheapest(methods)]["cost"])
    decimals = 2 - math.floor(math.log10(lowest)) if lowest > ROUNDING else 2
    return f"{cost:.{min(max(decimals, 0), 6)}f}"


def _next_one(methods: Mapping[str, Any], best: str) -> str:
    """How much more decisions cost with the next method."""
    others = {method: record["cost"] for method, record in methods.items() if method != best}
    second = min(others, key=others.__getitem__)
    gap = methods[second]["against"][best]
    text = (
        f"With {method_name(second)}, the next one, decisions cost {with_half(gap, 'difference')} "
        f"more than with {method_name(best)}"
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
        return f"{'A' if dearer else 'No'} paired test finds higher costs with the other method."
    if len(dearer) == len(gaps):
        return "Paired tests find higher costs with every other method."
    if not dearer:
        return "No paired test finds higher costs with another method."
    which = names(dearer)
    if len(dearer) > MOST_NAMED:
        which = f"{counted(len(dearer))} of the {counted(len(gaps))} others"
    tests = "Paired tests, which compare the methods on the same cases,"
    return f"{tests} find higher costs with {which}."


def _cheaper_action(costs: Mapping[str, Any], method: str) -> str:
    """How these decisions compare with the cheapest action that is the same for all points."""
    constant = costs["best_constant"]
    gap = costs["methods"][method]["against"][f"always {constant}"]
    half = gap["difference_half_width"]
    price = _in_digits(costs["methods"], costs["constant"][constant])
    always = f"to take “{constant}” always costs {price}"
    if gap["difference"] > ROUNDING:
        return f" But {always}, which is {with_half(gap, 'difference')} less{_interval(half)}."
    text, more = f" {always[0].upper()}{always[1:]}", with_half(gap, "difference", sign=-1)
    text += f", which is {more} more{_interval(half)}."
    if half is not None and abs(gap["difference"]) <= half:
        text += f" Chance alone can explain that, so always “{constant}” may be as good."
    return text


def _interval(half: float | None) -> str:
    """What a ± is."""
    return "" if half is None else " (95 % interval)"


def _best_foreseen(choice: Choice) -> str:
    """Which methods predict the costs best; "" where no test tells, or too many do."""
    for use in choice.uses:
        if use.metric == "u_losses" and 0 < len(use.named) <= MOST_NAMED:
            apart = f" (methods with {INFINITE} left out)" if use.left_out else ""
            return f"The costs are predicted best by {names(use.named)}{apart}."
    return ""
