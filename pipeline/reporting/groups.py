"""Groups of points: a section for each, and in words how far a metric differs between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.sections import Section, section_of
from pipeline.reporting.wording import p_value, short
from pipeline.scoring.choice import Use
from pipeline.scoring.gaps import Gap, largest_gap
from pipeline.scoring.inference import SIZE
from pipeline.scoring.read import Scores
from pipeline.scoring.worst import SMALLEST_GROUP


@dataclass(frozen=True)
class Groups:
    """A benchmark's groups of points: a section for each that is large enough, and how they differ.

    `sentences`: too small groups, then for each use the gap of the method that the verdict takes;
    `gaps`: of every method and metric; `numbers`: the tables of all groups.
    """

    sections: Mapping[str, Section]
    numbers: pd.DataFrame
    gaps: Sequence[Gap]
    sentences: Sequence[str]

    @property
    def content(self) -> dict[str, Any]:
        """What JSON has beside the verdict on all points; nothing where there are no groups."""
        groups = {
            "sentences": self.sentences,
            "gaps": [asdict(gap) for gap in self.gaps],
            "verdicts": {name: asdict(section.verdict) for name, section in self.sections.items()},
        }
        return {"groups": groups} if self.sentences else {}


def groups_of(scores: Scores, main: Section) -> Groups:
    """What the report says of the groups of points; empty where the points have none."""
    sections, numbers, sentences = {}, [pd.DataFrame()], []
    for place, (name, points) in enumerate(scores.groups.items()):
        of_group = scores.of_group(name)
        methods = [method for method in main.decisions.methods if method in of_group.methods]
        if not methods:
            sentences.append(
                f"Group {name} ({points:,} points) is too small to be scored: some split has "
                f"fewer than {SMALLEST_GROUP} of them in its test part."
            )
            continue
        title = f"{main.spec.title}, group {name} ({points:,} points)"
        spec = replace(main.spec, title=title, name=f"{main.spec.name}_group_{place}")
        sections[name] = section_of(of_group, methods, [spec])
        numbers.append(sections[name].decisions.frame().assign(group=name, points=points))
    gaps = _gaps(sections) if len(sections) > 1 else []
    of_uses = [_gap_of_use(gaps, use) for use in main.verdict.uses]
    sentences += [words_of(gap) for gap in of_uses if gap is not None]
    return Groups(sections, pd.concat(numbers), gaps, sentences)


def _gaps(sections: Mapping[str, Section]) -> list[Gap]:
    """The largest gap of each metric and method that all groups have."""
    of_groups = {name: section.decisions for name, section in sections.items()}
    first = next(iter(of_groups.values()))
    return [
        largest_gap({name: own.rows[method, key] for name, own in of_groups.items()})
        for key in first.shown
        for method in first.methods
        if all((method, key) in own.rows for own in of_groups.values())
    ]


def _gap_of_use(gaps: Sequence[Gap], use: Use) -> Gap | None:
    """The gap of the method that a use's verdict takes; where it takes none, the surest gap."""
    of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
    return min(of_use, key=lambda gap: 1.0 if gap.p_value is None else gap.p_value, default=None)


def words_of(gap: Gap) -> str:
    """One sentence."""
    column = metric(gap.metric)
    larger, smaller = (
        short(max(value, 0.0) if column.has_floor else value) for value in gap.beyond
    )
    sure = "no interval is known, so the difference is not tested"
    if gap.p_value is not None:
        how = "by more than chance" if gap.p_value <= SIZE else "perhaps by chance alone"
        sure = f"they differ {how} ({p_value(gap.p_value)})"
    beyond = ", beyond chance" if column.has_floor else ""
    return (
        f"{column.text}, {method_name(gap.method)}{beyond}: {gap.larger} {larger}, "
        f"{gap.smaller} {smaller}; {sure}."
    )
