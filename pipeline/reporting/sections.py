"""One benchmark's part of a report: tables, curves, verdict and worst intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from pipeline.harness.artifacts import write_text
from pipeline.reporting.collect import Scores, Statistics, statistics_of, summarise
from pipeline.reporting.curves import all_curves
from pipeline.reporting.gaps import Gap, gap_of_use, largest_gaps
from pipeline.reporting.report_page import Section
from pipeline.reporting.table_model import TableSpec
from pipeline.reporting.tables import build_table, long_form
from pipeline.reporting.uses import refusal
from pipeline.reporting.verdict import Verdict, verdict_of
from pipeline.reporting.worst import Worst, pooled_note
from pipeline.scoring.files import csv_text
from pipeline.scoring.worst import SMALLEST_GROUP, splits_together
from pipeline.sources.file import BELOW_CHANCE


def section_of(
    scores: Scores,
    specs: Sequence[TableSpec],
    studies: Mapping[str, Path] | None = None,
    decisions: Mapping[str, Any] | None = None,
) -> Section:
    """The section of a benchmark.

    Args:
        specs: its tables; the verdict reads the first one.
        studies: images of the appendix study, if any.
        decisions: what decisions by the user's losses cost (pipeline.own.decisions), if given.
    """
    methods, summary = specs[0].methods, summarise(scores)
    tables = [build_table(summary, spec) for spec in specs]
    statistics = statistics_of(summary[summary["method"].isin(methods)])
    main, logits = tables[0], scores.facts["logits"]
    rarest_class = logits.get("rarest_class", math.inf)
    refused = _below_chance(logits) or refusal(main.test_points, rarest_class, scores.test_share)
    pooled = splits_together(logits["n"] * logits["classes"], main.splits)
    return Section(
        tables=tables,
        statistics=statistics,
        verdict=verdict_of(main, refused, decisions),
        curves=all_curves(scores, methods),
        worst=_worst(scores, methods, statistics),
        pooled=pooled_note(main.splits, pooled),
        facts=() if scores.group else facts_of(logits),
        studies=studies or {},
    )


def _below_chance(logits: Mapping[str, Any]) -> str:
    """Why a classifier whose accuracy is below that of guessing gets no recommendation."""
    notes = [note for note in logits.get("warnings", []) if note.startswith(BELOW_CHANCE)]
    return f"No method is recommended. {notes[0]}." if notes else ""


def _worst(
    scores: Scores, methods: Sequence[str], statistics: Statistics
) -> dict[str, dict[str, Worst]]:
    """By metric and method."""
    by_metric: dict[str, dict[str, Worst]] = {}
    for method in methods:
        for metric, record in scores.worst(method).items():
            row = statistics[method, metric]
            worst = Worst(**record, error=row["mean"], floor=row["floor_q95"])
            by_metric.setdefault(metric, {})[method] = worst
    return by_metric


@dataclass(frozen=True)
class Groups:
    """A benchmark's groups of points: a section for each that is large enough, and how they differ.

    `sentences`: too small groups, then for each use the gap of the method that the verdict takes;
    `gaps`: of every method and metric.
    """

    sections: Mapping[str, Section]
    tables: pd.DataFrame
    gaps: Sequence[Gap]
    sentences: Sequence[str]

    def write(self, path: Path) -> list[Path]:
        """Write the numbers of all groups as a CSV, where there are any; returns its path."""
        if self.tables.empty:
            return []
        return [write_text(path, csv_text(self.tables))]

    def added_to(self, verdict: Verdict) -> dict[str, Any]:
        """The verdict on all points as JSON has it, with the groups' where there are any."""
        content = asdict(verdict)
        if self.sentences:
            content["groups"] = {
                "sentences": list(self.sentences),
                "gaps": [gap.as_json() for gap in self.gaps],
                "verdicts": {
                    name: asdict(section.verdict) for name, section in self.sections.items()
                },
            }
        return content


def groups_of(scores: Scores, main: Section) -> Groups:
    """What the report says of the groups of points; empty where the points have none."""
    sections, tables, sentences = {}, [], []
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
        numbers = long_form(sections[name].tables[0])
        tables.append(numbers.assign(group=name, points=points))
    statistics = {name: section.statistics for name, section in sections.items()}
    in_all = [
        method
        for method in main.spec.methods
        if all(method in section.spec.methods for section in sections.values())
    ]
    keys = [column.metric.key for column in main.tables[0].columns]
    gaps = largest_gaps(statistics, in_all, keys)
    of_uses = [gap_of_use(gaps, use) for use in main.verdict.uses]
    sentences += [f"{gap.words}." for gap in of_uses if gap is not None]
    return Groups(sections, pd.concat(tables) if tables else pd.DataFrame(), gaps, sentences)


def facts_of(logits: Mapping[str, Any]) -> list[str]:
    """Where the logits come from, out of their record."""
    published = logits.get("published_accuracy")
    accuracy = f"accuracy {logits['accuracy']:.2f} %"
    if published is not None:
        accuracy += f" (published {published:.2f} %)"
    about = [f"{logits['n']} points, {logits['classes']} classes, {accuracy}"]
    about += [str(logits[key]) for key in ("source", "model") if logits.get(key)]
    about.append(f"logits sha256 {logits['sha256'][:16]}")
    return ["; ".join(about) + ".", *logits.get("warnings", [])]


def provenance_of(what: str, scores: Sequence[Scores], methods: Sequence[str]) -> dict[str, str]:
    """`what` made the numbers, in words, and the `configuration` of the benchmarks' scores."""
    first = scores[0].facts
    configuration = {
        "benchmarks": [of_benchmark.benchmark for of_benchmark in scores],
        "splits": first["splits"],
        "evaluation": first["evaluation"],
        "calibrators": {method: first["calibrators"][method]["config"] for method in methods},
    }
    return {"what": what, "configuration": OmegaConf.to_yaml(OmegaConf.create(configuration))}
