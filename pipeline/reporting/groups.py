"""Groups of points: a section for each, and how far a metric differs between two of them.

Errors grow as a group shrinks, calibrated or not. So of an error with a noise floor the floor's
mean at the group's size is taken off first; what is compared is the part beyond chance. Groups
share no points, so the variances of the bootstrap (or of the corrected t interval) add up; the
p-value of the largest of K (K - 1) / 2 differences is Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from metrics.registry import metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.collect import Scores, Statistics
from pipeline.reporting.intervals import SIZE
from pipeline.reporting.names import method_name
from pipeline.reporting.sections import Section, section_of
from pipeline.reporting.tables import long_form
from pipeline.reporting.uses import Use
from pipeline.reporting.verdict import Verdict
from pipeline.reporting.wording import short
from pipeline.scoring.files import csv_text
from pipeline.scoring.tidy import CONFIDENCE
from pipeline.scoring.worst import SMALLEST_GROUP


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric.

    `larger`, `smaller`: their names; `values`: the metric of both, unscaled; `beyond`: their parts
    beyond chance, whose `difference` is tested; `p_value` of no difference between any two groups,
    None where a group has no interval (a single split).
    """

    method: str
    metric: str
    larger: str
    smaller: str
    values: tuple[float, float]
    beyond: tuple[float, float]
    difference: float
    p_value: float | None

    @property
    def words(self) -> str:
        """One sentence."""
        has_floor = metric(self.metric).has_floor
        larger, smaller = (short(max(value, 0.0) if has_floor else value) for value in self.beyond)
        sure = "a single split cannot test the difference"
        if self.p_value is not None:
            how = "by more than chance" if self.p_value <= SIZE else "perhaps by chance alone"
            sure = f"they differ {how} (p = {short(self.p_value)})"
        return (
            f"{metric(self.metric).text}, {method_name(self.method)}"
            f"{', beyond chance' if has_floor else ''}: "
            f"{self.larger} {larger}, {self.smaller} {smaller}; {sure}."
        )


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

    def write(self, path: Path) -> list[Path]:
        """Write the numbers of all groups as a CSV, where there are any; returns its path."""
        return [] if self.numbers.empty else [write_text(path, csv_text(self.numbers))]

    def added_to(self, verdict: Verdict) -> dict[str, Any]:
        """The verdict on all points as JSON has it, with the groups' where there are any."""
        groups = {
            "sentences": self.sentences,
            "gaps": [asdict(gap) for gap in self.gaps],
            "verdicts": {name: asdict(section.verdict) for name, section in self.sections.items()},
        }
        return asdict(verdict) | ({"groups": groups} if self.sentences else {})


def groups_of(scores: Scores, main: Section) -> Groups:
    """What the report says of the groups of points; empty where the points have none."""
    sections, numbers, sentences = {}, [pd.DataFrame()], []
    for place, (name, points) in enumerate(scores.groups.items()):
        of_group = scores.of_group(name)
        methods = [method for method in main.spec.methods if method in of_group.methods]
        if not methods:
            sentences.append(
                f"Group {name} ({points:,} points) is too small to be scored: some split has "
                f"fewer than {SMALLEST_GROUP} of them in its test part."
            )
            continue
        title = f"{main.spec.title}, group {name} ({points:,} points)"
        stem = f"{main.spec.name}_group_{place}"
        spec = replace(main.spec, title=title, stem=stem, methods=methods)
        sections[name] = section_of(of_group, [spec])
        table = long_form(sections[name].tables[0])
        numbers.append(table.assign(group=name, points=points))
    gaps = []
    if len(sections) > 1:
        statistics = {name: section.statistics for name, section in sections.items()}
        keys = [column.metric.key for column in main.tables[0].columns]
        scored = [set(section.spec.methods) for section in sections.values()]
        in_all = [method for method in main.spec.methods if all(method in s for s in scored)]
        gaps = [largest_gap(statistics, method, key) for key in keys for method in in_all]
    of_uses = [_gap_of_use(gaps, use) for use in main.verdict.uses]
    sentences += [gap.words for gap in of_uses if gap is not None]
    return Groups(sections, pd.concat(numbers), gaps, sentences)


def _gap_of_use(gaps: Sequence[Gap], use: Use) -> Gap | None:
    """The gap of the method that a use's verdict takes; where it takes none, the surest gap."""
    of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
    return min(of_use, key=lambda gap: 1.0 if gap.p_value is None else gap.p_value, default=None)


def largest_gap(groups: Mapping[str, Statistics], method: str, key: str) -> Gap:
    """The largest gap of a method and metric among at least two groups."""
    rows = {name: statistics[method, key] for name, statistics in groups.items()}
    # Bonferroni's bound holds for the pair that is furthest apart, whatever its intervals.
    beyond = {name: row["mean"] - np.nan_to_num(row["floor_mean"]) for name, row in rows.items()}
    smaller, *_, larger = sorted(beyond, key=beyond.__getitem__)
    difference = beyond[larger] - beyond[smaller]
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    error = math.hypot(*(rows[name]["half_width"] / quantile for name in (larger, smaller)))
    p_value = None
    if math.isfinite(error):
        tail = float(special.ndtr(-difference / error)) if error else 0.5
        p_value = min(1.0, math.comb(len(rows), 2) * 2 * tail)
    return Gap(
        method=method,
        metric=key,
        larger=larger,
        smaller=smaller,
        values=(rows[larger]["mean"], rows[smaller]["mean"]),
        beyond=(float(beyond[larger]), float(beyond[smaller])),
        difference=float(difference),
        p_value=p_value,
    )
