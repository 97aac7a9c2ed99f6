"""One benchmark's part of a report: tables, curves, verdict and where each method fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.failures import size_of, splits_together
from pipeline.groups import LEAST, GroupResult
from pipeline.harness.artifacts import write_text
from pipeline.harness.units import Settings
from pipeline.reporting.collect import UnitResult, certificates, summarise
from pipeline.reporting.curves import Curves, pooled_curves
from pipeline.reporting.evidence import Statistics, evidence_of, number_of, statistics_of
from pipeline.reporting.failures import Failure, pooled_note
from pipeline.reporting.groups import Gap, largest_gaps
from pipeline.reporting.provenance import facts_of
from pipeline.reporting.report_page import Section
from pipeline.reporting.tables import TableSpec, build_table, long_form
from pipeline.reporting.verdict import Verdict, verdict_of

Records = Mapping[str, Mapping[str, Any]]
"""What pipeline.failures found, by method and metric."""


def section_of(
    settings: Settings,
    units: Sequence[UnitResult],
    specs: Sequence[TableSpec],
    curves: Sequence[Curves],
    records: Records,
    studies: Mapping[str, Path] | None = None,
) -> Section:
    """The section of a benchmark; the verdict reads the first of `specs`, its main table."""
    summary, bounds = summarise(units), certificates(units)
    tables = [build_table(summary, spec, bounds) for spec in specs]
    statistics = statistics_of(summary, specs[0].benchmark)
    main = tables[0]
    return Section(
        key=specs[0].name,
        title=specs[0].title,
        specs=specs,
        tables=tables,
        statistics=statistics,
        verdict=verdict_of(
            evidence_of(main),
            main.test_points,
            main.splits,
            main.certificates,
            tested=main.look == "default",
        ),
        curves=curves,
        failures=_failures(specs[0].methods, statistics, records),
        pooled=pooled_note(main.splits, splits_together(size_of(settings), main.splits)),
        facts=facts_of(settings),
        study_svgs=studies or {},
    )


@dataclass(frozen=True)
class Groups:
    """A benchmark's groups of points: a section for each that is large enough, and how they differ.

    `sentences`: too small groups, then for each use the gap of the method that the verdict takes;
    `gaps`: of every method and metric.
    """

    sections: dict[str, Section] = field(default_factory=dict)
    tables: pd.DataFrame = field(default_factory=pd.DataFrame)
    gaps: Sequence[Gap] = ()
    sentences: Sequence[str] = ()

    def write(self, path: Path) -> list[Path]:
        """Write the numbers of all groups as a CSV, where there are any; returns its path."""
        if self.tables.empty:
            return []
        return [write_text(path, self.tables.to_csv(index=False, lineterminator="\n"))]

    def added_to(self, verdict: Verdict) -> dict[str, Any]:
        """The verdict on all points as JSON has it, with the groups' where there are any."""
        content = verdict.as_json()
        if self.sentences:
            content["groups"] = {
                "sentences": list(self.sentences),
                "gaps": [gap.as_json() for gap in self.gaps],
                "verdicts": {name: one.verdict.as_json() for name, one in self.sections.items()},
            }
        return content


def groups_of(settings: Settings, main: Section, found: Sequence[GroupResult]) -> Groups:
    """What the report says of the groups that pipeline.groups found; empty without any."""
    spec, sections, tables = main.specs[0], {}, []
    scored = {unit.method for group in found for unit in group.units}
    spec = replace(spec, methods=[method for method in spec.methods if method in scored])
    for place, group in enumerate(found):
        if group.units:
            named = f"{spec.title}, group {group.name} ({group.points:,} points)"
            own = replace(spec, title=named, stem=f"{spec.name}_group_{place}")
            drawn = [(curves.family, curves.batch) for curves in main.curves]
            curves = [pooled_curves(group.units, spec.methods, *panel) for panel in drawn]
            section = section_of(settings, group.units, [own], curves, group.worst)
            sections[group.name] = replace(section, facts=())
            rows = long_form(section.tables[0])
            tables.append(rows.assign(group=group.name, points=group.points))
    statistics = {name: section.statistics for name, section in sections.items()}
    gaps = largest_gaps(statistics, spec.methods, [m.key for m in main.tables[0].metrics])
    taken = [(use.take, use.metric) for use in main.verdict.uses]
    return Groups(
        sections,
        pd.concat(tables) if tables else pd.DataFrame(),
        gaps,
        [_too_small(group) for group in found if not group.units]
        + [f"{gap.words}." for gap in gaps if (gap.method, gap.metric) in taken],
    )


def _too_small(group: GroupResult) -> str:
    return (
        f"Group {group.name} ({group.points:,} points) is too small to be scored: some split has "
        f"fewer than {LEAST} of them in its test part."
    )


def _failures(
    methods: Sequence[str], statistics: Statistics, records: Records
) -> dict[str, dict[str, Failure]]:
    found: dict[str, dict[str, Failure]] = {}
    for method in methods:
        for metric, record in records.get(method, {}).items():
            row = statistics.get((method, metric), {})
            found.setdefault(metric, {})[method] = Failure(
                name=record["name"],
                error=number_of(row, "mean"),
                floor=number_of(row, "floor_q95"),
                diagram=record["diagram"],
                **{key: record[key] for key in ("low", "high", "share", "gap")},
            )
    return found
