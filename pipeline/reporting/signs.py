"""The signs of a verdict's grid and what they mean: its legend; what methods do and errors are.

The mark † is that of the table of numbers, so that one sign has one meaning everywhere.
"""

from collections.abc import Iterable, Sequence

from ..scoring.choice import PRESENT
from ..scoring.decisions import INFINITE, Rarest
from ..scoring.recommended import Use
from ..scoring.use_columns import BEYOND, CHEAP, UNKNOWN, UNSEEN, WITHIN, WORSE
from ..scoring.uses import COST, is_own
from .limits import rarest_name
from .names import MARK, SHOWN, family
from .wording import listed
from .worst import LOSSES

SIGNS = {WITHIN: "✓", UNSEEN: "?", BEYOND: MARK, CHEAP: "=", WORSE: "✗", UNKNOWN: "–"}
MEANINGS = {
    WITHIN: "chance alone can explain its errors",
    UNSEEN: "no error larger than chance was seen, but {} has too few cases to be sure",
    BEYOND: "its errors are larger than chance alone explains",
    CHEAP: "no other method is proven to cost less",
    WORSE: "a test shows that another method is better",
    UNKNOWN: "cannot tell: how large errors are by chance alone is not known",
}
ZERO = "gave probability 0 to a class that then occurred: do not take it, whatever its other signs"
"""What INFINITE means."""
PRACTICES = {
    "u_cwe": "you act when one chosen class has a high enough probability",
    "u_topk": "you show only the most probable classes",
    "u_dcg": "you show all classes in order; the higher the true one stands, the better",
    "u_w2v": "a wrong class with a similar name is partly right",
    LOSSES: "you add up predicted costs of decisions, for example for a budget",
    COST: "you want your decisions to cost little",
}
"""What people do in each use, by the metric that measures how far they are misled then."""
VALUED = ("u_dcg", "u_w2v")  # their errors are in parts of the value of a fully right answer
ERROR = (
    "An error of .05 (5 per 100 cases): in the worst range of predictions 5 more or fewer came "
    "true than predicted, per 100 cases of the whole file."
)
OF_VALUES = (
    "For {} it is a difference in value: an error of .05 is 5 % of what a fully right answer is "
    "worth, on average over the whole file."
)
OF_UNITS = "For {} it is in your unit, per case."
OWN_RANGES = (
    "The errors in tables are means over the splits. Each split has its own worst range, so the "
    "error is often larger than that of the range named above."
)
PRESENT_NAME = "Uncalibrated: the model's probabilities as they are"


def legend_of(uses: Iterable[Use], has_infinite: bool, rarest: Rarest | None) -> list[str]:
    """A line for each sign, mark and use that occurs in the grid.

    Args:
        has_infinite: whether some method has the mark of an infinite NLL.
        rarest: the smallest class, if it is known.
    """
    uses = list(uses)
    occurring = {sign for use in uses for sign in use.signs.values()}
    lines = []
    rare_class = "some class" if rarest is None else rarest_name(rarest)
    for sign, meaning in MEANINGS.items():
        if sign in occurring:
            lines.append(f"{SIGNS[sign]}  {meaning.format(rare_class)}")
    if has_infinite:
        lines.append(f"{INFINITE}  {ZERO}")
    for use in uses:
        if use.metric in PRACTICES:
            lines.append(f"{use.label}: {PRACTICES[use.metric]}")
        elif is_own(use.metric):
            lines.append(f"{use.label}: the utility that you gave")
    if any(PRESENT in use.signs for use in uses):
        lines.append(PRESENT_NAME)
    return lines


def methods_of(methods: Iterable[str]) -> list[str]:
    """What each method does, a line each."""
    looks = {root: SHOWN.get(root, {}) for root in map(family, methods)}
    return [f"{look['title']}: {look['full']}." for look in looks.values() if "full" in look]


def errors_of(uses: Sequence[Use], splits: int) -> list[str]:
    """What an error is, in the uses of the grid."""
    of_values = [use.label for use in uses if use.metric in VALUED]
    of_units = [use.label for use in uses if is_own(use.metric)]
    lines = [ERROR]
    if of_values:
        lines.append(OF_VALUES.format(listed(of_values)))
    if of_units:
        lines.append(OF_UNITS.format(listed(of_units)))
    return [*lines, OWN_RANGES] if splits > 1 else lines
