"""Sentences on groups of points: how far they differ, and what patches of groups changed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utility_calibration.metrics.registry import metric

from ..scoring.groups import Gap, Repair
from ..scoring.inference import SIZE
from ..scoring.points import SMALLEST_GROUP
from .names import heading_of, method_name
from .wording import bare, decimals, p_value, short

TOO_SMALL = (
    "Group {} ({:,} cases) is too small to be scored: the test of some split has fewer than {} of "
    "them."
)
NO_PATCH = " (which found nothing to patch)"


def words_of_a_small_group(name: str, points: int) -> str:
    """Why a group has no scores."""
    return TOO_SMALL.format(name, points, SMALLEST_GROUP)


def words_of_gap(gap: Gap) -> str:
    """The gap in one sentence, both numbers with the decimals of the larger one."""
    column, name = metric(gap.metric), method_name(gap.method)
    parts, what = gap.beyond, "it is"
    start = f"{heading_of(gap.metric)}, with {name}"
    if column.has_floor:
        parts, what = (max(parts[0], 0.0), max(parts[1], 0.0)), "beyond chance the error is"
        if not any(parts):
            return f"{start}: chance alone can explain the errors in all groups."
    digits = decimals([], [parts[0]], most=9)
    larger, smaller = (bare(part, digits) for part in parts)
    sure = "Without an interval this difference cannot be tested."
    if gap.p_value is not None:
        sure = f"Chance alone can explain this difference ({p_value(gap.p_value)})."
        if gap.p_value <= SIZE:
            sure = f"This difference is larger than chance alone explains ({p_value(gap.p_value)})."
    where = f"{larger} in group {gap.larger} and {smaller} in group {gap.smaller}"
    return f"{start}: {what} {where}. {sure}"


def words_of_repairs(
    repairs: Iterable[Repair], calibrators: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """For each group in one sentence what its patches changed.

    Args:
        calibrators: by method the record of its fits, perhaps with the number of `patches`.
    """
    sentences = []
    for repair in repairs:
        patches: Sequence[int] = calibrators.get(repair.method, {}).get("patches", [])
        none = NO_PATCH if patches and not any(patches) else ""
        before, after = map(short, repair.errors)
        sentences.append(
            f"{heading_of(repair.metric)}, group {repair.group}: the error is {after} with "
            f"{method_name(repair.method)}{none} and {before} with {method_name(repair.plain)}, "
            f"which does not repair groups. {repair.outcome}"
        )
    return sentences
