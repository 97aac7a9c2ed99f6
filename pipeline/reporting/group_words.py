"""Sentences on groups of points: how far they differ, and what patches of groups changed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utility_calibration.metrics.registry import metric

from ..scoring.groups import Gap, Repair
from ..scoring.inference import SIZE
from ..scoring.points import SMALLEST_GROUP
from .names import method_name
from .wording import bare, decimals, p_value, short

TOO_SMALL = (
    "Group {} ({:,} points) is too small to be scored: some split has fewer than {} of them in its "
    "test part."
)
NO_PATCH = " without any patch, by its start alone"


def words_of_a_small_group(name: str, points: int) -> str:
    """Why a group has no scores."""
    return TOO_SMALL.format(name, points, SMALLEST_GROUP)


def words_of_gap(gap: Gap) -> str:
    """The gap in one sentence, both numbers with the decimals of the larger one."""
    column = metric(gap.metric)
    start = f"{column.text}, {method_name(gap.method)}"
    parts = gap.beyond
    if column.has_floor:
        start = f"{start}, error beyond chance"
        parts = max(parts[0], 0.0), max(parts[1], 0.0)
        if not any(parts):
            return f"{start}: nothing in any group."
    digits = decimals([], [parts[0]], most=9)
    larger, smaller = (bare(part, digits) for part in parts)
    sure = "no interval is known, so the difference is not tested"
    if gap.p_value is not None:
        how = "by more than chance" if gap.p_value <= SIZE else "perhaps by chance alone"
        sure = f"they differ {how} ({p_value(gap.p_value)})"
    return f"{start}: {gap.larger} {larger}, {gap.smaller} {smaller}; {sure}."


def words_of_repairs(
    repairs: Iterable[Repair], calibrators: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """For each group in one sentence what its patches changed.

    Args:
        calibrators: by method the record of its fits, perhaps with the number of `patches`.
    """
    errors_by_start: dict[str, list[str]] = {}
    for repair in repairs:
        patches: Sequence[int] = calibrators.get(repair.method, {}).get("patches", [])
        none = NO_PATCH if patches and not any(patches) else ""
        change = f"{method_name(repair.plain)} → {method_name(repair.method)}{none}"
        start = f"Group {repair.group}, {change}: "
        before, after = map(short, repair.errors)
        column = metric(repair.metric).text
        error = f"{column} {before} → {after} (by chance: {short(repair.floor)}), {repair.outcome}"
        errors_by_start.setdefault(start, []).append(error)
    return [f"{start}{'; '.join(errors)}." for start, errors in errors_by_start.items()]
