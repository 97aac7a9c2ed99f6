"""The paper's statements about eCDFs of sampled users and about aligned and misaligned users."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..scoring.choice import PRESENT
from .claims import AGREES, DISAGREES, PARTLY, Claim, tau, verdict
from .names import method_name
from .wording import number

EARLY = 0.2  # the first fifth of the iterations
STABLE = 0.9  # the share of the whole drop that is over by then
INNER = (0.05, 0.95)  # beyond these levels an eCDF shows only a few users
Curves = Mapping[str, pd.DataFrame]


def claims_of_users(curves: Curves, studies: Path, benchmarks: Sequence[str]) -> list[Claim]:
    """The claims that eCDFs and the dynamics of the `benchmarks` decide.

    `curves` has the eCDFs (CURVE_COLUMNS) by title of a benchmark, `studies` is results/dynamics.
    """
    paths = sorted(studies.glob("*/*/history.csv"))
    histories = [path for path in paths if path.parent.parent.name in benchmarks]
    claims = [
        families_differ(curves),
        shifts_right(curves),
        worst_error_settles(histories),
        errors_shift_left(histories),
    ]
    return [claim for claim in claims if claim is not None]


def families_differ(curves: Curves) -> Claim | None:
    """Whether the order of the post-hoc methods by median error differs between the eCDFs."""
    taus = []
    for curve in curves.values():
        inner = curve[curve["calibrator"] != PRESENT]
        medians = inner.groupby(["family", "calibrator"])["error"].median().unstack("family")
        if len(medians) > 1 and {"linear", "rank"} <= set(medians):
            taus.append(tau(medians["linear"], medians["rank"]))
    if not taus:
        return None
    differing = sum(value < 1 for value in taus)
    measured = (
        f"orders by median error differ between U_lin and U_rank in {differing} of {len(taus)} "
        f"benchmarks; Kendall's τ {number(pd.Series(taus).mean(), 2)} in the mean"
    )
    statement = "Some methods gain more on U_lin, others on U_rank."
    return Claim(statement, "section 4, Figure 1", measured, verdict(differing, len(taus)))


def shifts_right(curves: Curves) -> Claim | None:
    """The methods whose eCDF lies to the right of the uncalibrated one at every inner level."""
    right, total = [], 0
    for title, curve in curves.items():
        inner = curve[curve["level"].between(*INNER)]
        for kind, rows in inner.groupby("family"):
            errors = rows.pivot(index="level", columns="calibrator", values="error")
            if PRESENT not in errors:
                continue
            for method in errors.columns.drop(PRESENT):
                total += 1
                if (errors[method] > errors[PRESENT]).all():
                    right.append(f"{method_name(str(method))} for {kind} users of {title}")
    if not total:
        return None
    named = f": {'; '.join(right)}" if right else ""
    measured = f"{len(right)} of {total} eCDFs lie right of the uncalibrated one{named}"
    statement = "In multiple settings post-hoc methods shift the eCDF to the right."
    outcome = AGREES if len(right) > 1 else PARTLY if right else DISAGREES
    return Claim(statement, "appendix", measured, outcome)


def worst_error_settles(histories: Sequence[Path]) -> Claim | None:
    """Whether the worst user's error has most of its drop in the first iterations."""
    settled, parts = 0, []
    for path in histories:
        worst = pd.read_csv(path).groupby("iteration")["worst"].mean()
        early = worst.iloc[round(EARLY * (len(worst) - 1))]
        first, last = worst.iloc[0], worst.iloc[-1]
        settled += bool(last < first and first - early >= STABLE * (first - last))
        parts.append(f"{_study(path)} {first:.4f}, {early:.4f}, {last:.4f}")
    if not parts:
        return None
    measured = f"first, after a fifth of the iterations, last: {'; '.join(parts)}"
    statement = "The worst sampled utility calibration error drops, then stabilises."
    return Claim(statement, "appendix, dynamics", measured, verdict(settled, len(parts)))


def errors_shift_left(histories: Sequence[Path]) -> Claim | None:
    """Whether the median error of the users falls from each snapshot to the next."""
    falls, parts = [], []
    for path in histories:
        snapshots = pd.read_csv(path.with_name("snapshots.csv"))
        medians = snapshots.groupby("iteration")["error"].median()
        falls += list(medians.diff().dropna() < 0)
        parts.append(f"{_study(path)} {', '.join(f'{median:.4f}' for median in medians)}")
    if not falls:
        return None
    measured = f"medians of the snapshots fall in {sum(falls)} of {len(falls)} steps: "
    statement = "Distributions of the errors shift to smaller values over iterations."
    where = "appendix, dynamics"
    return Claim(statement, where, measured + "; ".join(parts), verdict(sum(falls), len(falls)))


def _study(history: Path) -> str:
    """`cifar100_resnet misaligned`, of a file of results/dynamics."""
    return f"{history.parent.parent.name} {history.parent.name}"
