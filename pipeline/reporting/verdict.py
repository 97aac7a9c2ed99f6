"""The verdict on one benchmark: headline, grid of signs, three sentences, and the same in prose.

Everything follows from tests. A method is within noise if its error does not exceed the noise floor
of its own probabilities. Methods are equally good if no paired test over the splits finds a
difference (the cells marked best). The smallest number alone decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.registry import metric
from pipeline.reporting.headline import (
    BEYOND,
    SIGNS,
    UNKNOWN,
    WITHIN,
    WORSE,
    UseVerdict,
    bound_sentence,
    choice_sentence,
    headline_of,
    unknown_sentence,
)
from pipeline.reporting.names import method_name
from pipeline.reporting.table_model import Cell, ResultTable
from pipeline.reporting.wording import bound, names, short

USES: Mapping[str, tuple[str, str]] = {
    "u_cwe": ("single decisions by class", "single decisions"),
    "u_topk": ("shortlists of the most probable classes", "shortlists"),
    "u_dcg": ("graded gains by rank", "graded gains"),
    "u_w2v": ("gains by similarity", "similarity"),
}
"""What a metric is for, and the same in a word or two."""
SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""


Cells = Mapping[str, Cell]
"""One metric's cells by method, in the order of the table."""


@dataclass(frozen=True)
class Verdict:
    """`headline`, `summary` and the signs of `uses` are read in ten seconds.

    `sentences`: the same in prose, method by method. `overall`: the method to take for all uses.
    `refused`: the sample is too small, so nothing is recommended.
    """

    headline: str
    summary: tuple[str, ...]
    sentences: tuple[str, ...]
    uses: tuple[UseVerdict, ...]
    overall: str | None
    refused: bool = False

    def take(self, key: str) -> str:
        """The method to take for a metric's use; "" where none is recommended."""
        return next((use.take for use in self.uses if use.metric == key), "")

    def as_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes null."""
        uses = []
        for use in self.uses:
            values = {k: v for k, v in vars(use).items() if k != "sentence"}
            limit = values["not_seen_below"]
            uses.append({**values, "not_seen_below": None if math.isnan(limit) else limit})
        return {
            "headline": self.headline,
            "summary": list(self.summary),
            "verdict": list(self.sentences),
            "uses": uses,
            "overall": self.overall,
        }


def sign_rows(verdict: Verdict) -> list[list[str]]:
    """The grid: per method its name and a sign for each of the verdict's uses."""
    methods = dict.fromkeys(method for use in verdict.uses for method in use.signs)
    return [
        [method_name(method), *(SIGNS[use.signs[method]] for use in verdict.uses)]
        for method in methods
    ]


def verdict_of(table: ResultTable, refused: str = "") -> Verdict:
    """The verdict on one benchmark.

    One split compares nothing, and neither does the paper's look, whose best is the smallest mean.

    Args:
        refused: why nothing is recommended (headline.refusal), if so.
    """
    columns = {column.metric.key: column.cells for column in table.columns}
    splits, methods = table.splits, table.spec.methods
    compared = table.spec.look == "default" and splits > 1 and len(methods) > 1
    barred = _barred(columns.get("nll", {}))
    uses = [
        _use(key, cells, compared, barred, bool(refused))
        for key, cells in columns.items()
        if is_use(key)
    ]
    overall = None
    if compared and not refused:
        overall = _overall(uses, columns.get("brier", {}), barred)
    chosen = overall or (uses[0].take if uses else "")
    headline = refused or (headline_of(uses, compared) if uses else "")
    sentences = (
        choice_sentence(uses, overall, barred),
        bound_sentence(table.certificates.get(chosen, math.nan), chosen, splits),
        unknown_sentence(uses, table.test_points, splits),
    )
    summary = tuple(filter(None, sentences))
    prose = (*(use.sentence for use in uses), *summary)
    return Verdict(headline, summary, prose, tuple(uses), overall, bool(refused))


def _barred(likelihoods: Cells) -> list[str]:
    """The methods that are not recommended for their infinite NLL, unless that is all of them."""
    infinite = [m for m, cell in likelihoods.items() if cell.row["zero_likelihood"] > 0]
    return infinite if len(infinite) < len(likelihoods) else []


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and key not in USES and key not in SHARED


def is_use(key: str) -> bool:
    """Whether the verdict rests on a metric: it has a use of its own."""
    return key in USES or is_own(key)


def _names_of_use(key: str) -> tuple[str, str]:
    if key == "u_utility":
        return "your own utility", "your utility"
    name = key.removeprefix("u_")
    return USES.get(key, (f"your own utility {name}", name))


def _use(
    key: str, column: Cells, compared: bool, barred: Collection[str], refused: bool
) -> UseVerdict:
    within = tuple(m for m, cell in column.items() if cell.beyond is False)
    beyond = tuple(m for m, cell in column.items() if cell.beyond)
    best = [m for m, cell in column.items() if cell.best]
    allowed = [m for m in best if m not in barred]
    if not compared:  # the smallest error of those that may be taken
        allowed = allowed or [m for m in column if m not in barred]
    # Among equals those that nothing speaks against come first, then the smaller error.
    pool = [] if refused else [m for m in allowed if m in within] or allowed
    take = min(pool, key=lambda m: column[m].row["mean"], default="")
    as_good = () if refused else tuple(m for m in best if m != take)
    sure = "too few points" if refused else "alone" if len(column) < 2 else ""
    sure = sure or ("not tested" if not compared else "as good as others" if as_good else "clearly")
    sentence = _noise_sentence(key, column, within, beyond)
    if not refused:
        sentence += f" {_take(column, take, as_good, sure)}"
    if take and is_own(key) and math.isfinite(upper := column[take].row["upper"]):
        over = ", on average over the splits" if compared else ""
        sentence += f" The 95 % upper bound on its error is {bound(upper)}{over}."
    use, label = _names_of_use(key)
    return UseVerdict(
        metric=key,
        use=use,
        label=label,
        within_noise=within,
        beyond_noise=beyond,
        take=take,
        will_do=tuple(pool) if compared else (),
        as_good=as_good,
        sure=sure,
        not_seen_below=column[take or next(iter(column))].row["floor_q95"],
        signs={m: _sign(cell, compared) for m, cell in column.items()},
        sentence=sentence,
    )


def _sign(cell: Cell, compared: bool) -> str:
    if compared and not cell.best:
        return WORSE
    return UNKNOWN if cell.beyond is None else BEYOND if cell.beyond else WITHIN


def _noise_sentence(key: str, column: Cells, within: Sequence[str], beyond: Sequence[str]) -> str:
    use = _names_of_use(key)[0]
    start = f"{use[0].upper()}{use[1:]} ({metric(key).text}):"
    if not within and not beyond:
        return f"{start} no noise floor was computed."
    if not beyond:
        return f"{start} every method is within noise of perfectly calibrated."
    if not within:
        return f"{start} no method is within noise of perfectly calibrated."
    verb = "is" if len(within) == 1 else "are"
    return (
        f"{start} {names(within)} {verb} within noise of perfectly calibrated{_p(column, within)}, "
        f"{names(beyond)} {'is' if len(beyond) == 1 else 'are'} not."
    )


def _p(column: Cells, methods: Sequence[str]) -> str:
    values = [column[m].row["p_value"] for m in methods]
    least, most = short(min(values)), short(max(values))
    return f" (p = {least})" if least == most else f" (p = {least} to {most})"


def _take(column: Cells, take: str, as_good: Sequence[str], sure: str) -> str:
    if not take:
        return f"None is recommended: the NLL of the best ({names(as_good)}) is infinite."
    cell, name = column[take], method_name(take)
    if sure == "alone":
        text = f"{name} is the only method here."
    elif sure == "not tested":
        text = f"{name} has the smallest error of those, but no test compares the methods."
    elif as_good:
        text = f"Take {name}; no test tells {names(as_good, 'or')} from it."
    else:
        text = f"Take {name}: every other method's error is significantly larger."
    if cell.beyond:
        text += f" It is off by more than chance, too (p = {short(cell.row['p_value'])})."
    return text


def _overall(uses: Sequence[UseVerdict], brier: Cells, barred: Collection[str]) -> str | None:
    """The method that is among the best for every use; of several, that of the best Brier score."""
    if not uses:
        return None
    good = [{use.take, *use.as_good}.difference(barred) for use in uses]
    return min(
        (method for method in uses[0].signs if all(method in best for best in good)),
        key=lambda method: brier[method].row["mean"] if method in brier else math.inf,
        default=None,
    )
