"""What the tables say in plain sentences: which method for which use, how sure, what is unknown.

Everything follows from tests. A method is within noise where its error does not exceed the noise
floor of its own probabilities; methods are as good as each other where no paired test over the
splits tells them apart (the cells marked best). The smallest number alone decides nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from metrics.registry import metric
from pipeline.reporting.names import method_name

USES: Mapping[str, str] = {
    "u_cwe": "single decisions by class",
    "u_topk": "shortlists of the most probable classes",
    "u_dcg": "graded gains by rank",
    "u_w2v": "gains by similarity",
}
SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""


@dataclass(frozen=True)
class Evidence:
    """What is known of one method and metric, unscaled.

    `beyond`: whether the error exceeds the method's own floor (None: no floor); `best`: not
    significantly worse than the best; `floor`: the floor's 95 % quantile; `p_value`: of the floor;
    `upper`: with 95 % confidence the true error is no larger.
    """

    mean: float
    best: bool
    beyond: bool | None
    floor: float = math.nan
    p_value: float = math.nan
    upper: float = math.nan


Table = Mapping[str, Mapping[str, Evidence]]
"""{metric: {method: evidence}}, methods in the order of the table."""


@dataclass(frozen=True)
class UseVerdict:
    """One use: which methods are within noise, which to take, which are as good, how sure."""

    metric: str
    use: str
    within_noise: tuple[str, ...]
    beyond_noise: tuple[str, ...]
    take: str
    as_good: tuple[str, ...]
    sure: str
    not_seen_below: float
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The sentences, in order, and what they were made from."""

    sentences: tuple[str, ...]
    uses: tuple[UseVerdict, ...]
    overall: str | None

    def as_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes null."""
        uses = []
        for use in self.uses:
            values = {k: v for k, v in vars(use).items() if k != "sentences"}
            limit = values["not_seen_below"]
            uses.append({**values, "not_seen_below": None if math.isnan(limit) else limit})
        return {"verdict": list(self.sentences), "uses": uses, "overall": self.overall}


def verdict_of(
    table: Table,
    points: int,
    splits: int,
    certificates: Mapping[str, float] | None = None,
    tested: bool = True,
) -> Verdict:
    """The verdict on one benchmark.

    Args:
        table: evidence by metric and method.
        points: test points of one split. splits: their number; one split compares nothing.
        certificates: per method an upper bound, with 95 % confidence, on the true error of every
            user of the standard classes.
        tested: whether `best` comes from tests; in the paper's look it is the smallest number.
    """
    compared = tested and splits > 1 and any(len(column) > 1 for column in table.values())
    uses = [_use(key, table[key], compared) for key in table if _is_use(key) and table[key]]
    overall = _overall(uses, table) if compared else None
    sentences = [sentence for use in uses for sentence in use.sentences]
    if len(uses) > 1 and compared:
        sentences.append(_overall_sentence(uses, overall, table.get("brier", {})))
    chosen = overall or (uses[0].take if uses else None)
    upper = (certificates or {}).get(chosen or "", math.nan)
    if chosen and math.isfinite(upper):
        sentences.append(
            "With 95 % confidence no user of these classes (U_CWE, U_topK, U_dcg and the like) is "
            f"off by more than {bound(upper)} with {method_name(chosen)}."
        )
    sentences += _unknown(uses, points, splits)
    return Verdict(tuple(sentences), tuple(uses), overall)


def short(value: float, significant: int = 2) -> str:
    """A number in two (or so many) significant digits, without a leading zero: `.0061`."""
    if not math.isfinite(value):
        return "?"
    digits = significant - 1 - math.floor(math.log10(abs(value))) if value else significant
    text = f"{value:.{max(digits, 0)}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


SMALLEST_BOUND = 1e-9
"""Below it, digits of a bound tell nobody anything; a constant utility's are rounding errors."""


def rounded_up(value: float, significant: int = 2) -> float:
    """A positive upper bound in so many significant digits, so that it stays one."""
    if not math.isfinite(value) or value <= 0:
        return value
    # As it is written: .13 is no more than .13.
    exact = Decimal(repr(max(float(value), SMALLEST_BOUND)))
    unit = Decimal(1).scaleb(exact.adjusted() - significant + 1)
    return float(exact.quantize(unit, rounding=ROUND_CEILING))


def bound(value: float) -> str:
    """An upper bound as the verdict and the notes of tables print it; `–` where there is none."""
    return short(rounded_up(value)) if math.isfinite(value) else "–"


def interval(low: float, high: float) -> str:
    """`.00–.15`, `-.37 to -.08`: two decimals, more where it is narrower than a few hundredths."""
    width = abs(high - low)
    digits = 2 if width == 0 or width >= 0.05 else 1 - math.floor(math.log10(width))
    ends = (f"{round(value, digits) + 0.0:.{digits}f}" for value in (low, high))
    return (" to " if low < 0 else "–").join(re.sub(r"^(-?)0\.", r"\1.", end) for end in ends)


def names(methods: Iterable[str], last: str = "and") -> str:
    """`A, B and C`."""
    shown = [method_name(method) for method in methods]
    return f" {last} ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and key not in USES and key not in SHARED


def _is_use(key: str) -> bool:
    return key in USES or is_own(key)


def _use_name(key: str) -> str:
    own = "" if key == "u_utility" else f" {key.removeprefix('u_')}"
    return USES.get(key, f"your own utility{own}")


def _use(key: str, column: Mapping[str, Evidence], compared: bool) -> UseVerdict:
    within = tuple(m for m, cell in column.items() if cell.beyond is False)
    beyond = tuple(m for m, cell in column.items() if cell.beyond)
    best = [m for m, cell in column.items() if cell.best]
    # Among equals those that nothing speaks against come first, then the smaller error.
    pool = [m for m in best if m in within] or best or list(column)
    take = min(pool, key=lambda m: column[m].mean)
    as_good = tuple(m for m in best if m != take)
    sure = "alone" if len(column) < 2 else "" if compared else "not tested"
    sure = sure or ("as good as others" if as_good else "clearly")
    sentences = [
        _noise_sentence(key, column, within, beyond),
        _take(column[take], take, as_good, sure),
    ]
    if is_own(key) and math.isfinite(upper := column[take].upper):
        sentences.append(f"With 95 % confidence it is off by no more than {bound(upper)}.")
    return UseVerdict(
        key,
        _use_name(key),
        within,
        beyond,
        take,
        as_good,
        sure,
        column[take].floor,
        (" ".join(sentences),),
    )


def _noise_sentence(
    key: str, column: Mapping[str, Evidence], within: Sequence[str], beyond: Sequence[str]
) -> str:
    use = _use_name(key)
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


def _p(column: Mapping[str, Evidence], methods: Sequence[str]) -> str:
    values = [column[m].p_value for m in methods]
    if not all(map(math.isfinite, values)):
        return ""
    least, most = short(min(values)), short(max(values))
    return f" (p = {least})" if least == most else f" (p = {least} to {most})"


def _take(cell: Evidence, take: str, as_good: Sequence[str], sure: str) -> str:
    name = method_name(take)
    if sure == "alone":
        text = f"{name} is the only method here."
    elif sure == "not tested":
        text = f"{name} has the smallest error of those, but no test compares the methods."
    elif as_good:
        text = f"Take {name}; no test tells {names(as_good, 'or')} from it."
    else:
        text = f"Take {name}: every other method's error is significantly larger."
    if cell.beyond:
        error, floor = _told_apart(cell.mean, cell.floor)
        text += f" It is off by more than chance, too: {error}, floor {floor}."
    return text


def _told_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers in as many digits, two to four, as show which is larger."""
    texts = ((short(first, digits), short(second, digits)) for digits in (2, 3, 4))
    *_, most = pairs = list(texts)
    return next((pair for pair in pairs if pair[0] != pair[1]), most)


def _overall(uses: Sequence[UseVerdict], table: Table) -> str | None:
    """A method that is among the best for every use; the one with the best Brier score of those."""
    brier = table.get("brier", {})
    order = list(table[uses[0].metric]) if uses else []
    return min(
        _best_everywhere(uses),
        key=lambda m: (brier[m].mean if m in brier else math.inf, order.index(m)),
        default=None,
    )


def _best_everywhere(uses: Sequence[UseVerdict]) -> set[str]:
    good = [{use.take, *use.as_good} for use in uses]
    return set.intersection(*good) if good else set()


def _overall_sentence(
    uses: Sequence[UseVerdict], overall: str | None, brier: Collection[str]
) -> str:
    if overall is None:
        return "No method is among the best for all of these uses: choose by yours."
    start = f"One method for all of these: {method_name(overall)}"
    if all(use.take == overall and not use.as_good for use in uses):
        return f"{start}, clearly."
    others = _best_everywhere(uses) - {overall}
    if not others or overall not in brier:
        return f"{start}; no test finds a better one."
    return f"{start}; no test finds a better one, and of such methods its Brier score is smallest."


def _unknown(uses: Sequence[UseVerdict], points: int, splits: int) -> list[str]:
    limits = [u for u in uses if math.isfinite(u.not_seen_below)]
    found = []
    if limits:
        parts = ", ".join(f"{short(u.not_seen_below)} ({metric(u.metric).text})" for u in limits)
        found.append(
            f"Not known: with {points:,} test points{' a split' if splits > 1 else ''} an error "
            f"below {parts} could not have been seen."
        )
    return found
