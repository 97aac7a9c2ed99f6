"""Print the table of docs/choosing.md on groups: what patches of groups repair on generated data.

    python -m utility_calibration.scripts.maintain.groups_study [--seeds 5]

Ten classes and eight groups. With drift, four groups have other class frequencies and another
temperature. A group is "beyond" if its error is above the 95 % noise floor of its own points.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import log_softmax

from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling
from utility_calibration.metrics import ClassWise, TopK, negative_log_likelihood
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.wording import markdown_table

N, C, GROUPS, DRIFTING = 5000, 10, 8, 4
ERRORS = {"U_CWE": ClassWise(), "U_topK": TopK()}
FLOOR = 200


class Points(NamedTuple):
    """Logits [N, C], labels [N] and the names of groups [N]."""

    logits: NDArray[np.float64]
    labels: NDArray[np.int64]
    groups: NDArray[np.str_]

    def of(self, rows: NDArray[np.bool_]) -> Points:
        """Only these rows."""
        return Points(self.logits[rows], self.labels[rows], self.groups[rows])


def drawn(seed: int, drift: bool) -> tuple[Points, Points]:
    """Calibration and test points of a seed; the logits are 1.4 times too large."""
    random = np.random.default_rng([seed, drift])
    logits = 1.5 * random.normal(size=(2 * N, C))
    groups = random.integers(0, GROUPS, 2 * N)
    drifts = drift * (np.arange(GROUPS) < DRIFTING)
    shifts = drifts[:, None] * random.normal(size=(GROUPS, C))
    scales = np.where(drifts, random.uniform(0.5, 1.5, GROUPS), 1)
    truth = log_softmax(logits * scales[groups, None] + shifts[groups], axis=1)
    labels = (truth + random.gumbel(size=truth.shape)).argmax(axis=1)
    points = Points(1.4 * logits, labels, groups.astype(str))
    first = np.arange(2 * N) < N
    return points.of(first), points.of(~first)


def temperature(fitted: Points, held: Points) -> NDArray[np.float64]:
    return TemperatureScaling().fit(fitted.logits, fitted.labels).predict_proba(held.logits)


def temperature_per_group(fitted: Points, held: Points) -> NDArray[np.float64]:
    p = np.empty_like(held.logits)
    for name in np.unique(held.groups):
        rows = held.groups == name
        p[rows] = temperature(fitted.of(fitted.groups == name), held.of(rows))
    return p


def logit_shift(fitted: Points, held: Points) -> NDArray[np.float64]:
    return LogitShiftPatching().fit(fitted.logits, fitted.labels).predict_proba(held.logits)


def logit_shift_groups(fitted: Points, held: Points) -> NDArray[np.float64]:
    calibrator = LogitShiftPatching().fit(fitted.logits, fitted.labels, groups=fitted.groups)
    return calibrator.predict_proba(held.logits, groups=held.groups)


METHODS: dict[str, Callable[[Points, Points], NDArray[np.float64]]] = {
    "Temperature scaling": temperature,
    "Temperature per group": temperature_per_group,
    "Logit-shift patching": logit_shift,
    "Logit-shift patching (by group)": logit_shift_groups,
}


def numbers(p: NDArray[np.float64], held: Points) -> dict[str, float]:
    """NLL, and per error the largest of a group, how many are beyond, and the floors' range."""
    found = {"NLL": float(negative_log_likelihood(p, held.labels))}
    for name, utility in ERRORS.items():
        errors, floors = [], []
        for group in np.unique(held.groups):
            rows = held.groups == group
            result = utility.evaluate(p[rows], held.labels[rows], repetitions=FLOOR)
            errors.append(result.error)
            floors.append(result.floor.q95)
        beyond = float(np.greater(errors, floors).sum())
        found |= {f"worst group's {name}": max(errors), f"{name}: beyond": beyond}
        found |= {f"{name}: smallest floor": min(floors), f"{name}: largest floor": max(floors)}
    return found


def results(seeds: int) -> Iterator[dict[str, object]]:
    """A record per seed, with and without drift, and method."""
    for seed in range(seeds):
        for drift in (True, False):
            fitted, held = drawn(seed, drift)
            for name, method in METHODS.items():
                begin = time.process_time()
                p = method(fitted, held)
                seconds = time.process_time() - begin
                yield {"method": name, "drift": drift, "seconds": seconds, **numbers(p, held)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        frame = pd.DataFrame(results(options.seeds))
        by = frame.groupby(["drift", "method"], sort=False)
        means = by.mean()
        shown = [
            "NLL",
            *(told for name in ERRORS for told in (f"worst group's {name}", f"{name}: beyond")),
        ]
        for drift in (True, False):
            table = means.loc[drift][shown].map("{:.3f}".format)
            say(markdown_table([f"drift: {drift}", *shown], table.reset_index().to_numpy()))
        say(means.filter(like="floor").agg(["min", "max"]).round(3).T.to_string())
        say(by["seconds"].agg(["min", "max"]).round(1).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main())
