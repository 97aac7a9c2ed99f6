"""The paper's statements about its tables, each with what we measured and a verdict.

Everything is computed from the cells of suite=paper_closest. A statement without results has no
row. claims_of_users.py has the statements about eCDFs and about aligned and misaligned users.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from scipy.stats import kendalltau

from utility_calibration.metrics.registry import metric

from ..harness.artifacts import write_text
from ..scoring.choice import PRESENT
from ..scoring.files import csv_text
from .names import method_name
from .paired import same_sign
from .wording import escape_markdown, listed, markdown_table, number

AGREES, PARTLY, DISAGREES = "agrees", "agrees in part", "disagrees"
UTILITIES = ("u_cwe", "u_topk", "u_dcg", "u_w2v")
TITLE = "The paper's statements and what we measured"
INTRO = (
    f"A verdict is “{AGREES}” where all that was counted agrees, “{PARTLY}” where more than half "
    f"does, else “{DISAGREES}”. Best means the best mean, as printed in bold; methods whose "
    "printed means are equal share a place. “Some” means at least two. Claims about ImageNet and "
    "Yahoo Answers are decided only where these were scored."
)
HEADING = ("Statement", "Where", "Measured", "Verdict", "Command")


class Claim(NamedTuple):
    """One row: the statement, its place in the paper, what we measured, verdict and command."""

    statement: str
    where: str
    measured: str
    verdict: str
    command: str = "make repro SUITE=paper_closest PRECOMPUTED=/folder/with/logits"


def write_claims(claims: Sequence[Claim], folder: Path) -> list[Path]:
    """Write claims.md and claims.csv."""
    lines = []
    for claim in claims:
        texts = [escape_markdown(text) for text in claim]
        lines.append([*texts[:-1], f"`{claim.command}`"])
    parts = [f"# {TITLE}", INTRO, markdown_table(HEADING, lines, text=len(HEADING))]
    table = pd.DataFrame(claims, columns=Claim._fields)
    files = {"md": "\n\n".join(parts) + "\n", "csv": csv_text(table)}
    return [write_text(folder / f"claims.{kind}", text) for kind, text in files.items()]


def claims_of_tables(cells: pd.DataFrame) -> list[Claim]:
    """The claims that the comparison decides (`paper_cells`, its cells of suite=paper_closest)."""
    counted = cells[cells["preset"]]
    if counted.empty:
        return []
    makers = (best_methods, no_best_method, patching_best, improvements, changing_order)
    claims = [make(counted) for make in makers]
    return [claim for claim in claims if claim is not None]


def verdict(agreeing: int, total: int) -> str:
    """What INTRO says."""
    if agreeing == total:
        return AGREES
    return PARTLY if 2 * agreeing > total else DISAGREES


def columns_of(cells: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    """Of each printed column: the title of its table, the metric, and its rows by method.

    `print_error` and `our_error` are smaller for better methods, whatever the metric's direction.
    """
    for (title, key), rows in cells.groupby(["title", "metric"], sort=False):
        sign = -1 if metric(str(key)).larger_is_better else 1
        column = rows.drop_duplicates("method").set_index("method")
        errors = {"print_error": sign * column["printed"], "our_error": sign * column["ours"]}
        if len(column) > 1:
            yield str(title), str(key), column.assign(**errors)


def best_of(errors: pd.Series) -> set[str]:
    """The methods with the smallest error; several where they are equal."""
    return set(errors.index[errors == errors.min()])


def best_methods(cells: pd.DataFrame) -> Claim | None:
    """The bold method of every printed column, and Kendall's τ of the order of the methods."""
    columns = list(columns_of(cells))
    if not columns:
        return None
    others, of_columns = [], []
    for title, key, column in columns:
        printed, ours = best_of(column["print_error"]), best_of(column["our_error"])
        if not printed & ours:
            others.append(f"{title} {metric(key).text}: {_names(printed)}, ours {_names(ours)}")
        of_columns.append(tau(column["print_error"], column["our_error"]))
    same = len(columns) - len(others)
    taus = pd.Series(of_columns)
    measured = (
        f"the same method in {same} of {len(columns)} columns; Kendall's τ of the methods "
        f"{_text(taus.mean())} in the mean, {_text(taus.median())} in the median"
    )
    apart = f" (other: {'; '.join(others)})" if others else ""
    statement = "The method in bold is the best of its column."
    return Claim(statement, "Tables 1 to 8", measured + apart, verdict(same, len(columns)))


def no_best_method(cells: pd.DataFrame) -> Claim | None:
    """Whether a method is the best of every column of a table."""
    best: dict[str, list[set[str]]] = {}
    for title, _, column in columns_of(cells):
        best.setdefault(title, []).append(best_of(column["our_error"]))
    if not best:
        return None
    without = [title for title, sets in best.items() if not set.intersection(*sets)]
    measured = f"no method is best in all columns in {len(without)} of {len(best)} tables"
    statement = "No single method performs best in all metrics."
    return Claim(statement, "section 4", measured, verdict(len(without), len(best)))


def patching_best(cells: pd.DataFrame) -> Claim | None:
    """The columns of calibration errors whose best printed method is patching."""
    is_best_here: dict[str, list[bool]] = {}
    for _, key, column in columns_of(cells):
        if metric(key).has_floor and "patching" in best_of(column["print_error"]):
            is_best_here.setdefault(key, []).append("patching" in best_of(column["our_error"]))
    if not is_best_here:
        return None
    total = 0
    n_columns = 0
    parts = []
    for key, results in is_best_here.items():
        total += sum(results)
        n_columns += len(results)
        parts.append(f"{metric(key).text} in {sum(results)} of {len(results)}")
    measured = f"ours too in {total} of {n_columns} columns ({', '.join(parts)})"
    statement = "Patching has the best calibration error where it is printed as the best."
    return Claim(statement, "section 4, Tables 1 to 8", measured, verdict(total, n_columns))


def improvements(cells: pd.DataFrame) -> Claim | None:
    """Whether calibration lowers Brier score and calibration errors, by print and by ours."""
    smaller_is_better = ~cells["metric"].map(lambda key: metric(key).larger_is_better)
    paired = cells[smaller_is_better].dropna(subset=["change", "printed_change"])
    if paired.empty:
        return None
    printed, ours = ((paired[name] < 0).sum() for name in ("printed_change", "change"))
    measured = (
        f"{ours} of {len(paired)} cells are lower than uncalibrated (printed {printed}); the "
        f"same direction in {same_sign(paired).sum()}"
    )
    statement = "Post-hoc methods generally improve Brier score and calibration errors."
    return Claim(statement, "section 4, appendix", measured, verdict(ours, len(paired)))


def changing_order(cells: pd.DataFrame) -> Claim | None:
    """Whether the order of the methods differs between the utility classes of a table."""
    of_utilities = cells[cells["metric"].isin(UTILITIES) & (cells["method"] != PRESENT)]
    columns: dict[str, list[pd.DataFrame]] = {}
    for title, _, column in columns_of(of_utilities):
        columns.setdefault(title, []).append(column)
    printed, ours, differing = [], [], []
    for columns_of_table in columns.values():
        taus = []
        for one, other in combinations(columns_of_table, 2):
            printed.append(tau(one["print_error"], other["print_error"]))
            taus.append(tau(one["our_error"], other["our_error"]))
        if taus:
            differing.append(any(value < 1 for value in taus))
        ours += taus
    if not ours:
        return None
    measured = (
        f"orders differ between utility classes in {sum(differing)} of {len(differing)} tables; "
        f"Kendall's τ between two classes {_text(pd.Series(ours).mean())} in the mean "
        f"(printed {_text(pd.Series(printed).mean())})"
    )
    statement = "The order of post-hoc methods varies with the utility class."
    return Claim(statement, "appendix", measured, verdict(sum(differing), len(differing)))


def tau(errors: pd.Series, others: pd.Series) -> float:
    """Kendall's τ of two orders of the same methods; NaN where all are equal in one of them."""
    return float(kendalltau(errors, others.reindex(errors.index)).statistic)


def _names(methods: Iterable[str]) -> str:
    return listed(sorted(method_name(method) for method in methods))


def _text(value: float) -> str:
    return number(value, 2)
