"""One benchmark's part of a report: decisions, verdict, tables, curves, worst intervals, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scoring.choice import PRESENT
from ..scoring.deciding import decide
from ..scoring.decisions import Decisions
from ..scoring.files import Scores
from ..scoring.groups import Gap, Repair, gaps_between, repairs_of
from ..scoring.inference import SIZE
from ..scoring.points import splits_together
from ..scoring.uses import is_use
from .costs import costs_table
from .group_words import words_of_a_small_group, words_of_gap, words_of_repairs
from .names import FLOOR_METHOD
from .table_notes import patch_counts, remarks_of
from .tables import ResultTable, TableSpec
from .verdict import Verdict, verdict_of
from .wording import TextTable
from .worst import LOSSES, Worst

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """One family of utilities on one benchmark: at each of `levels` the error of every method.

    Attributes:
        floor: 5 % and 95 % quantile of the noise floor of the method `floor_of`, "" without one.
        count: number of users, sampled from `prior` (metrics/priors.py).
        batch: points of the batches that errors are means over, if any.
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

    Attributes:
        worst: the worst utilities by metric and method.
        pooled: what these are over.
        costs: what acting on each method's probabilities costs, where losses were given.
        facts: where the logits come from.
        studies: images of page.STUDY_CAPTIONS, if any.
        study_tables: tables of the same studies.
        groups: sentences on groups of points; the large ones are `parts` of `points` each.
        main_groups: those on differences that are larger than chance explains.
        gaps: between two groups, by method and metric.
        repairs: what patches of groups changed.
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
    main_groups: Sequence[str] = ()
    parts: Mapping[str, Section] = field(default_factory=dict)
    gaps: Sequence[Gap] = ()
    repairs: Sequence[Repair] = ()

    @property
    def main_places(self) -> dict[str, dict[str, Worst]]:
        """The worst utilities of the present forecast and of the methods that are to be taken.

        Where there is neither, those of all methods; figures and files have these in any case.
        """
        main = {PRESENT, self.verdict.overall, *(use.take for use in self.verdict.uses)}
        places = {}
        for key, group in self.worst.items():
            of_main = {method: worst for method, worst in group.items() if method in main}
            places[key] = of_main or dict(group)
        return places

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
            row = decisions.rows.get((method, key))
            if row is not None and (key in needed or is_use(key)):
                one = Worst(**record, error=row.mean, is_beyond=row.beyond_floor)
                if key == LOSSES:
                    one = one.as_cost()
                worst.setdefault(key, {})[method] = one
    if not scores.group:
        remarks = remarks_of(scores.facts, decisions)
        counts = patch_counts(scores.facts["calibrators"], decisions.methods)
        specs = [replace(spec, remarks=(*spec.remarks, *remarks), counts=counts) for spec in specs]
    section = Section(
        decisions=decisions,
        tables=[ResultTable.of(decisions, spec) for spec in specs],
        verdict=verdict_of(decisions, costs, worst),
        costs=None if costs is None else costs_table(costs),
        curves=all_curves(scores, methods),
        worst=worst,
        pooled=" ".join(
            filter(None, [pooled_note(decisions.splits, pooled), discount_note(worst)])
        ),
        facts=() if scores.group else _facts_of(logits),
        studies=studies or {},
    )
    return section if scores.group else _with_groups(section, scores)


def _with_groups(section: Section, scores: Scores) -> Section:
    """The section with the sections of its groups, and sentences on how far they differ.

    Per use that is the gap of the method that its verdict takes; where it takes none, the surest
    gap. For patches of groups it is whether their errors came down to the noise floor.
    """
    parts: dict[str, Section] = {}
    words: list[str] = []
    main: list[str] = []
    spec = section.spec
    for place, (name, points) in enumerate(scores.facts["logits"].get("groups", {}).items()):
        of_group = scores.of_group(name)
        methods = [m for m in section.decisions.methods if m in of_group.methods]
        if not methods:
            words.append(words_of_a_small_group(name, points))
            continue
        title = f"{spec.title}, group {name} ({points:,} cases)"
        of_this = replace(spec, title=title, name=f"{spec.name}_group_{place}")
        parts[name] = replace(section_of(of_group, methods, [of_this]), points=points)
    decided = {name: part.decisions for name, part in parts.items()}
    gaps, repairs = gaps_between(decided), repairs_of(decided)
    for use in section.verdict.uses:
        of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
        if of_use:
            surest = min(of_use, key=lambda gap: 1.0 if gap.p_value is None else gap.p_value)
            words.append(words_of_gap(surest))
            if surest.p_value is not None and surest.p_value <= SIZE:
                main.append(words[-1])
    words += words_of_repairs(repairs, scores.facts["calibrators"])
    return replace(section, groups=words, main_groups=main, parts=parts, gaps=gaps, repairs=repairs)


def all_curves(scores: Scores, methods: Sequence[str]) -> list[Curves]:
    """The curves of each family of sampled users, if any; the floor is as in ResultTable."""
    facts, curves = scores.facts, []
    for family, rows in scores.own_curves().groupby("family"):
        tables = {method: rows[rows["calibrator"] == method] for method in methods}
        if any(table.empty for table in tables.values()):
            return []
        with_floor = [m for m, table in tables.items() if table["floor_low"].notna().all()]
        floor_of = min(with_floor, key=lambda method: method != FLOOR_METHOD, default="")
        low, high = (
            tables.get(floor_of, rows)[f"floor_{end}"].to_numpy() for end in ("low", "high")
        )
        curves.append(
            Curves(
                family=str(family),
                levels=tables[methods[0]]["level"].to_numpy(),
                errors={method: table["error"].to_numpy() for method, table in tables.items()},
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
        "The range, its share and the difference in it are of the test cases of "
        f"{'all splits together' if pooled == splits else first}. The calibration error is the "
        "table's: the mean over the splits, each with its own worst range. So it is often "
        "larger than the difference times the share."
    )


def discount_note(worst: Mapping[str, Mapping[str, Worst]]) -> str:
    """What a discount exponent is; "" where no utility has one."""
    if "u_dcg" not in worst:
        return ""
    return "With discount exponent g the true class at place r is worth 1 / (log2(1 + r))^g."


def _facts_of(logits: Mapping[str, Any]) -> list[str]:
    accuracy = f"accuracy {logits['accuracy']:.2f} %"
    published = logits.get("published_accuracy")
    if published is not None:
        accuracy += f" (published {published:.2f} %)"
    about = [f"{logits['n']} cases, {logits['classes']} classes, {accuracy}"]
    about += [str(logits[key]) for key in ("source", "model") if logits.get(key)]
    about.append(f"logits sha256 {logits['sha256'][:16]}")
    return ["; ".join(about) + ".", *logits.get("warnings", [])]
