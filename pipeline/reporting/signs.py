"""The signs of a verdict's grid, the marks of its methods, and what both mean: its legend.

The mark † is that of the table of numbers, so that one sign has one meaning everywhere.
"""

from collections.abc import Collection, Iterable, Sequence

from utility_calibration.metrics.registry import metric

from ..scoring.decisions import HARMED, INFINITE
from ..scoring.recommended import Use
from ..scoring.use_columns import BEYOND, CHEAP, UNKNOWN, UNSEEN, WITHIN, WORSE
from ..scoring.uses import COST, is_own
from .names import BEYOND_CHANCE, MARK, SHOWN, family
from .wording import listed
from .worst import LOSSES

SIGNS = {WITHIN: "✓", UNSEEN: "?", BEYOND: MARK, CHEAP: "=", WORSE: "✗", UNKNOWN: "–"}
MEANINGS = {
    WITHIN: "no error beyond chance was found",
    UNSEEN: "cannot tell: too few points of the smallest class to see an error",
    BEYOND: BEYOND_CHANCE,
    CHEAP: "no test finds another method cheaper",
    WORSE: "a test finds another method better, whether or not the error is beyond chance",
    UNKNOWN: "cannot tell, because no level of chance is known",
}
MARKED = {
    INFINITE: "at least once the method gave probability 0 to a class that then occurred, so its "
    "log loss (NLL) is infinite; it is not recommended",
    HARMED: "at least once tuning did not make it better than Temp. Scaling; by itself no reason "
    "to avoid it",
}
PRACTICES = {
    "u_cwe": "you act when the probability of one chosen class is high enough",
    "u_topk": "you show the most probable classes",
    "u_dcg": "you rank the classes; the higher the true one stands, the better",
    "u_w2v": "a wrong class of a similar name is partly right",
}
"""What people do in each use, by the metric that measures how far they are misled then."""
COUNTING = ("u_cwe", "u_topk")  # their errors count what came true
OF_LOSSES = "you rely on the predicted cost of your decisions"
ERROR = (
    "An error of .05: in the worst range of predictions, 5 more or fewer came true than predicted, "
    "per 100 points of the whole file, not of the range."
)
OF_VALUES = "For {} it is a difference in gain or cost, not a count."


def legend_of(uses: Iterable[Use], marked: Collection[str]) -> list[str]:
    """A line for each sign, mark, use and short name that occurs in the grid.

    Args:
        marked: the marks that some method has.
    """
    uses = list(uses)
    occurring = {sign for use in uses for sign in use.signs.values()}
    lines = [_error_line(uses)] if uses else []
    lines += [f"{SIGNS[sign]}  {MEANINGS[sign]}" for sign in SIGNS if sign in occurring]
    lines += [f"{mark}  {meaning}" for mark, meaning in MARKED.items() if mark in marked]
    for use in uses:
        column = metric(use.metric).text if use.metric != COST else ""
        if use.metric in PRACTICES:
            lines.append(f"{use.label} (column {column}): {PRACTICES[use.metric]}")
        elif use.metric == COST:
            lines.append(f"{use.label}: you want the real cost of your decisions to be low")
        elif use.metric == LOSSES:
            lines.append(f"{use.label} (column {column}): {OF_LOSSES}")
        elif is_own(use.metric):
            lines.append(f"{use.label} (column {column}): the utility that you gave")
    methods = dict.fromkeys(family(method) for use in uses for method in use.signs)
    for root in methods:
        look = SHOWN.get(root, {})
        if "full" in look:
            lines.append(f"{look['title']}: {look['full']}")
    return lines


def _error_line(uses: Sequence[Use]) -> str:
    """What an error is, in the uses of the grid."""
    of_values = [use.label for use in uses if use.metric not in (*COUNTING, COST)]
    return f"{ERROR} {OF_VALUES.format(listed(of_values))}" if of_values else ERROR
