"""One benchmark's part of a report: tables, curves, verdict and worst intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline.own.check import BELOW_CHANCE
from pipeline.reporting.collect import Scores, Statistics, statistics_of, summarise
from pipeline.reporting.curves import Curves, all_curves
from pipeline.reporting.markdown import TextTable
from pipeline.reporting.table_model import ResultTable, TableSpec
from pipeline.reporting.tables import build_table
from pipeline.reporting.uses import refusal
from pipeline.reporting.verdict import Verdict, verdict_of
from pipeline.reporting.wording import interval, short
from pipeline.scoring.worst import splits_together


@dataclass(frozen=True)
class Worst:
    """The worst utility of one class for one method.

    name: of the utility (`class cat`); utility: its number; error, floor: the table's cell and the
    95 % quantile of its own noise floor; low, high: the worst interval of predicted utility over
    the pooled points;
    share of the points in it; gap: mean of realized minus predicted there.
    """

    name: str
    utility: int
    error: float
    floor: float
    low: float
    high: float
    share: float
    gap: float
    diagram: Mapping[str, Any]

    @property
    def words(self) -> str:
        """One sentence in the unit of the utility."""
        more = "more" if self.gap >= 0 else "less"
        floor = f" (floor {short(self.floor)})" if math.isfinite(self.floor) else ""
        if not self.gap:
            return f"{self.name}: realised as predicted"
        return (
            f"{self.name}, predicted {interval(self.low, self.high)} "
            f"({100 * self.share:.0f} % of the points): "
            f"realised {short(abs(self.gap))} {more} than predicted; "
            f"calibration error {short(self.error)}{floor}"
        )

    def drawn(self) -> Mapping[str, Any]:
        """What the page's script draws."""
        heading = f"{self.name}, worst at {interval(self.low, self.high)}"
        return {**self.diagram, "heading": heading, "worst": [self.low, self.high]}


@dataclass(frozen=True)
class Section:
    """One benchmark on the page. `facts` are lines of text on where its logits come from.

    `worst` utilities by metric and method, `pooled`: what they are over; `groups`: sentences on
    groups of points, which have sections of their own; `decisions`: what acting on each method's
    probabilities costs, where losses were given; `studies`: images of pages.STUDY_CAPTIONS, if any.
    """

    tables: Sequence[ResultTable]
    statistics: Statistics
    verdict: Verdict
    decisions: TextTable | None = None
    curves: Sequence[Curves] = ()
    worst: Mapping[str, Mapping[str, Worst]] = field(default_factory=dict)
    pooled: str = ""
    groups: Sequence[str] = ()
    facts: Sequence[str] = ()
    studies: Mapping[str, Path] = field(default_factory=dict)

    @property
    def spec(self) -> TableSpec:
        """What the main table shows, the first of `tables`."""
        return self.tables[0].spec


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


def pooled_note(splits: int, pooled: int) -> str:
    """What the numbers of `Worst.words` are over; nothing to say of a single split.

    `pooled`: of how many of the `splits` the worst intervals are (pipeline.scoring.worst).
    """
    if splits < 2:
        return ""
    first = "the first split" if pooled == 1 else f"the first {pooled} splits together"
    return (
        "The interval, its share and its gap are of the test points of "
        f"{'all splits together' if pooled == splits else first}. The calibration error is the "
        "table's, a mean over the splits. So it is not the gap times the share."
    )


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
