"""One benchmark's part of a report: decisions, verdict, tables, curves, worst intervals, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.registry import metric

from ..scoring.decisions import Decisions, decide
from ..scoring.files import Scores
from ..scoring.groups import Gap, Repair, gaps_between, repairs_of
from ..scoring.inference import SIZE
from ..scoring.points import SMALLEST_GROUP, splits_together
from .costs import costs_table
from .names import FLOOR_METHOD, method_name
from .tables import ResultTable, TableSpec, remarks_of
from .verdict import Verdict, verdict_of
from .wording import TextTable, bare, decimals, p_value, short
from .worst import Worst, present_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """One family of utilities on one benchmark: at each of `levels` the error of every method.

    `floor`: 5 % and 95 % quantile of the noise floor of the method `floor_of`, "" without one.
    `count` users were sampled from `prior` (metrics/priors.py). `batch`: points of the batches that
    errors are means over, if any.
    """

    family: str
    levels: Array
    errors: Mapping[str, Array]
    floor: tuple[Array, Array] | None
    floor_of: str
    count: int
    prior: str
    splits: int
    batch: int | None


@dataclass(frozen=True)
class Section:
    """One benchmark, or one group of its points, on the page.

    `worst` utilities by metric and method, `pooled`: what they are over; `costs`: what acting on
    each method's probabilities costs, where losses were given; `facts`: where the logits come from;
    `studies`: images of page.STUDY_CAPTIONS, if any; `study_tables`: tables of the same studies.
    `groups`: sentences on groups of points; the large ones are `parts` of `points` each. `gaps` are
    between two groups by method and metric, `repairs` are what patches of groups changed.
    """

    decisions: Decisions
    tables: Sequence[ResultTable]
    verdict: Verdict
    costs: TextTable | None = None
    curves: Sequence[Curves] = ()
    worst: Mapping[str, Mapping[str, Worst]] = field(default_factory=dict)
    pooled: str = ""
    facts: Sequence[str] = ()
    studies: Mapping[str, Path] = field(default_factory=dict)
    study_tables: Sequence[TextTable] = ()
    points: int = 0
    groups: Sequence[str] = ()
    parts: Mapping[str, Section] = field(default_factory=dict)
    gaps: Sequence[Gap] = ()
    repairs: Sequence[Repair] = ()

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
    costs: Mapping[str, Any] | None = None,
) -> Section:
    """The section of a benchmark, with those of its groups.

    Args:
        specs: its tables, the main one first; the remarks that the scores' facts imply are added.
        shown: the metrics that the verdict rests on; those of the main table if there are none.
        costs: what decisions by the user's losses cost (pipeline/scoring/costs.py).
    """
    needed, logits = [key for spec in specs for key in spec.metrics], scores.facts["logits"]
    decisions = decide(scores, methods, shown or specs[0].metrics, needed)
    pooled = splits_together(logits["n"] * logits["classes"], decisions.splits)
    worst: dict[str, dict[str, Worst]] = {}
    for method in decisions.methods:
        for key, record in scores.worst(method).items():
            if row := decisions.rows.get((method, key)):
                one = Worst(**record, error=row.mean, floor=row.floor_q95)
                worst.setdefault(key, {})[method] = one
    if not scores.group:
        remarks = remarks_of(scores.facts, decisions)
        specs = [replace(spec, remarks=(*remarks, *spec.remarks)) for spec in specs]
    section = Section(
        decisions=decisions,
        tables=[ResultTable.of(decisions, spec) for spec in specs],
        verdict=replace(verdict_of(decisions, costs), present=present_of(decisions, worst)),
        costs=None if costs is None else costs_table(costs),
        curves=all_curves(scores, methods),
        worst=worst,
        pooled=pooled_note(decisions.splits, pooled),
        facts=() if scores.group else _facts_of(logits),
        studies=studies or {},
    )
    return section if scores.group else _with_groups(section, scores)


def _with_groups(section: Section, scores: Scores) -> Section:
    """The section with the sections of its groups, and sentences on how far they differ.

    Per use that is the gap of the method that its verdict takes; where it takes none, the surest
    gap. For patches of groups it is whether their errors came down to the noise floor.
    """
    parts, words = {}, []
    for place, (name, points) in enumerate(scores.facts["logits"].get("groups", {}).items()):
        of_group = scores.of_group(name)
        if methods := [m for m in section.decisions.methods if m in of_group.methods]:
            title = f"{section.spec.title}, group {name} ({points:,} points)"
            spec = replace(section.spec, title=title, name=f"{section.spec.name}_group_{place}")
            parts[name] = replace(section_of(of_group, methods, [spec]), points=points)
        else:
            told = f"some split has fewer than {SMALLEST_GROUP} of them in its test part."
            words.append(f"Group {name} ({points:,} points) is too small to be scored: {told}")
    decided = {name: part.decisions for name, part in parts.items()}
    gaps, repairs = gaps_between(decided), repairs_of(decided)
    for use in section.verdict.uses:
        of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
        if of_use:
            surest = min(of_use, key=lambda gap: 1.0 if gap.p_value is None else gap.p_value)
            words.append(_words_of(surest))
    repaired: dict[str, list[str]] = {}
    for one in repairs:
        before, after = map(short, one.errors)
        patches = scores.facts["calibrators"].get(one.method, {}).get("patches", [])
        none = " without any patch, by its start alone" if patches and not any(patches) else ""
        start = f"Group {one.group}, {method_name(one.plain)} → {method_name(one.method)}{none}: "
        error = f"{metric(one.metric).text} {before} → {after} (noise: {short(one.floor)})"
        repaired.setdefault(start, []).append(f"{error}, {one.outcome}")
    words += [f"{start}{'; '.join(errors)}." for start, errors in repaired.items()]
    return replace(section, groups=words, parts=parts, gaps=gaps, repairs=repairs)


def _words_of(gap: Gap) -> str:
    """The gap in one sentence, both numbers with the decimals of the larger one."""
    column = metric(gap.metric)
    start = f"{column.text}, {method_name(gap.method)}"
    parts = gap.beyond
    if column.has_floor:
        start, parts = f"{start}, beyond chance", (max(parts[0], 0.0), max(parts[1], 0.0))
        if not any(parts):
            return f"{start}: nothing in any group."
    digits = decimals([], [parts[0]], most=9)
    larger, smaller = (bare(part, digits) for part in parts)
    sure = "no interval is known, so the difference is not tested"
    if gap.p_value is not None:
        how = "by more than chance" if gap.p_value <= SIZE else "perhaps by chance alone"
        sure = f"they differ {how} ({p_value(gap.p_value)})"
    return f"{start}: {gap.larger} {larger}, {gap.smaller} {smaller}; {sure}."


def all_curves(scores: Scores, methods: Sequence[str]) -> list[Curves]:
    """The curves of each family of sampled users, if any; the floor is as in ResultTable."""
    facts, curves = scores.facts, []
    for family, rows in scores.own_curves().groupby("family"):
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
                count=facts["evaluation"]["utilities"],
                prior=facts["evaluation"]["prior"],
                splits=facts["splits"]["count"],
                batch=facts["evaluation"]["utility_batch"],
            )
        )
    return curves


def pooled_note(splits: int, pooled: int) -> str:
    """What the numbers of `Worst.words` are over, `pooled` of the `splits`; "" for one split."""
    if splits < 2:
        return ""
    first = "the first split" if pooled == 1 else f"the first {pooled} splits together"
    return (
        "The interval, its share and its gap are of the test points of "
        f"{'all splits together' if pooled == splits else first}. The calibration error is the "
        "table's, a mean over the splits. So it is not the gap times the share."
    )


def _facts_of(logits: Mapping[str, Any]) -> list[str]:
    accuracy = f"accuracy {logits['accuracy']:.2f} %"
    if (published := logits.get("published_accuracy")) is not None:
        accuracy += f" (published {published:.2f} %)"
    about = [f"{logits['n']} points, {logits['classes']} classes, {accuracy}"]
    about += [str(logits[key]) for key in ("source", "model") if logits.get(key)]
    about.append(f"logits sha256 {logits['sha256'][:16]}")
    return ["; ".join(about) + ".", *logits.get("warnings", [])]
