"""One benchmark's part of a report: decisions, verdict, tables, curves and worst intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import OmegaConf

from pipeline.reporting.names import FLOOR_METHOD
from pipeline.reporting.tables import ResultTable, TableSpec, remarks_of
from pipeline.reporting.verdict import Verdict, verdict_of
from pipeline.reporting.wording import TextTable, interval, short
from pipeline.scoring.across_splits import splits_together
from pipeline.scoring.decisions import Decisions, decide
from pipeline.scoring.files import Scores

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """One family of utilities on one benchmark: at each of `levels` the error of every method.

    `floor`: 5 % and 95 % quantile of the noise floor of the method `floor_of`, "" without one.
    `count` users were sampled. `batch`: points of the batches that errors are means over, if any.
    """

    family: str
    levels: Array
    errors: Mapping[str, Array]
    floor: tuple[Array, Array] | None
    floor_of: str
    count: int
    splits: int
    batch: int | None


@dataclass(frozen=True)
class Worst:
    """The worst utility of one class for one method.

    utility: its number; error, floor: the table's cell and the 95 % quantile of its noise floor;
    low, high: the worst interval of predicted utility over the pooled points; share of the points
    in it; gap: mean of realized minus predicted there.
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
    groups of points, which have sections of their own; `priced`: what acting on each method's
    probabilities costs, where losses were given; `studies`: images of page.STUDY_CAPTIONS, if any.
    """

    decisions: Decisions
    tables: Sequence[ResultTable]
    verdict: Verdict
    priced: TextTable | None = None
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
    methods: Sequence[str],
    specs: Sequence[TableSpec],
    shown: Sequence[str] = (),
    studies: Mapping[str, Path] | None = None,
    priced: Mapping[str, Any] | None = None,
) -> Section:
    """The section of a benchmark.

    Args:
        specs: its tables, the main one first; the remarks that the scores' facts imply are added.
        shown: the metrics that the verdict rests on; those of the main table if there are none.
        studies: images of the appendix study. priced: what decisions by the user's losses cost
            (pipeline.own.decisions).
    """
    needed = [key for spec in specs for key in spec.metrics]
    decisions = decide(scores, methods, shown or specs[0].metrics, needed)
    if not scores.group:
        remarks = remarks_of(scores.facts, decisions)
        specs = [replace(spec, remarks=(*remarks, *spec.remarks)) for spec in specs]
    logits = scores.facts["logits"]
    pooled = splits_together(logits["n"] * logits["classes"], decisions.splits)
    return Section(
        decisions=decisions,
        tables=[ResultTable.of(decisions, spec) for spec in specs],
        verdict=verdict_of(decisions, priced),
        curves=all_curves(scores, methods),
        worst=_worst(scores, decisions),
        pooled=pooled_note(decisions.splits, pooled),
        facts=() if scores.group else _facts_of(logits),
        studies=studies or {},
    )


def all_curves(scores: Scores, methods: Sequence[str]) -> list[Curves]:
    """The curves of each family of sampled users; none where the evaluation sampled none.

    The floor is that of temperature scaling, or of the first method that has one.
    """
    table, evaluation = scores.own_curves(), scores.facts["evaluation"]
    curves = []
    for family, rows in table.groupby("family"):
        of = {method: rows[rows["calibrator"] == method] for method in methods}
        if any(own.empty for own in of.values()):
            return []
        with_floor = [method for method, own in of.items() if own["floor_low"].notna().all()]
        floor_of = min(with_floor, key=lambda method: method != FLOOR_METHOD, default="")
        low, high = (of.get(floor_of, rows)[f"floor_{end}"].to_numpy() for end in ("low", "high"))
        curves.append(
            Curves(
                family=str(family),
                levels=of[methods[0]]["level"].to_numpy(),
                errors={method: own["error"].to_numpy() for method, own in of.items()},
                floor=(low, high) if floor_of else None,
                floor_of=floor_of,
                count=evaluation["utilities"],
                splits=scores.splits,
                batch=evaluation["utility_batch"],
            )
        )
    return curves


def _worst(scores: Scores, decisions: Decisions) -> dict[str, dict[str, Worst]]:
    """By metric and method."""
    by_metric: dict[str, dict[str, Worst]] = {}
    for method in decisions.methods:
        for key, record in scores.worst(method).items():
            row = decisions.rows.get((method, key))
            if row is not None:
                worst = Worst(**record, error=row.mean, floor=row.floor_q95)
                by_metric.setdefault(key, {})[method] = worst
    return by_metric


def pooled_note(splits: int, pooled: int) -> str:
    """What the numbers of `Worst.words` are over; nothing to say of a single split.

    `pooled`: of how many of the `splits` the worst intervals are (scoring.across_splits).
    """
    if splits < 2:
        return ""
    first = "the first split" if pooled == 1 else f"the first {pooled} splits together"
    return (
        "The interval, its share and its gap are of the test points of "
        f"{'all splits together' if pooled == splits else first}. The calibration error is the "
        "table's, a mean over the splits. So it is not the gap times the share."
    )


def _facts_of(logits: Mapping[str, Any]) -> list[str]:
    """Where the logits come from, out of their record."""
    accuracy = f"accuracy {logits['accuracy']:.2f} %"
    if (published := logits.get("published_accuracy")) is not None:
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
