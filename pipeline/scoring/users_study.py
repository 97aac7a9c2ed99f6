"""The two studies of users on the test points of one fitted unit, and their text.

risk_gap.py has the utility-risk gap of Proposition 3.1, user_priors.py the users of other priors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from utility_calibration.metrics.forecast import Forecast, Outcomes
from utility_calibration.metrics.resampling import redrawn_outcomes
from utility_calibration.metrics.samples import Sample, sample_of

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.settings import Settings, Users
from ..harness.task import Progress
from ..harness.units import Unit
from . import risk_gap, user_priors
from .held_out import class_shares, held_out
from .points import find_logits

Arrays = Mapping[str, NDArray[Any]]
FLOOR_METHOD = "temperature"


def floor_method(calibrators: Sequence[str]) -> str:
    """The calibrator whose forecasts give the noise floor: temperature scaling, or the first."""
    return FLOOR_METHOD if FLOOR_METHOD in calibrators else calibrators[0]


def studied(unit: Unit, progress: Progress) -> tuple[Save, Record]:
    """Run both studies; return what writes their arrays, and the record.

    Arrays: `risk.uc` and `risk.gap` [m]; `prior.<prior>.<family>` [M], sorted; `floor.…` the same
    under drawn labels, [R, …]. A split has those studies whose number of splits reaches it.
    """
    settings, options = unit.settings, unit.settings.users
    test = held_out(unit)
    sample = sample_of(
        test.probabilities,
        test.labels,
        points=test.points,
        sample_weight=test.weights,
        rows_sum_to_one=test.rows_sum_to_one,
    )
    has_floor = test.rows_sum_to_one and unit.calibrator == floor_method(settings.suite.calibrators)
    arrays: dict[str, NDArray[Any]] = {}
    if unit.split < options.risk_splits:
        draws = options.risk_floor_draws if has_floor else 0
        users = risk_gap.risk_users(sample.forecast.classes, options)
        for start, forecast, outcomes in drawn_outcomes(sample, draws, options.seed):
            values = risk_gap.measured(users, forecast, outcomes)._asdict()
            add(arrays, start, {f"risk.{name}": value for name, value in values.items()})
    if unit.split < options.prior_splits:
        draws = options.prior_floor_draws if has_floor else 0
        shares = class_shares(settings)
        for start, forecast, outcomes in drawn_outcomes(sample, draws, options.seed):
            errors = user_priors.errors_of(forecast, outcomes, shares, options)
            named = {f"prior.{prior}.{name}": e for (prior, name), e in errors.items()}
            add(arrays, start, named)
    return partial(save_npz, arrays=arrays), {
        "benchmark": unit.benchmark,
        "calibrator": unit.calibrator,
        "split": unit.split,
        "n": test.population,
        "n_test": len(test.labels),
        "classes": sample.forecast.classes,
        "options": asdict(options),
        "logits_sha256": find_logits(settings).sha256,
    }


def drawn_outcomes(
    sample: Sample, draws: int, seed: int
) -> Iterable[tuple[str, Forecast, Outcomes]]:
    """The observed labels, and then `draws` redrawn ones, with the start of their arrays' names."""
    yield "", sample.forecast, sample.outcomes
    weights = sample.weights, sample.by_label
    for pair in redrawn_outcomes(sample.forecast, sample.points, draws, seed, *weights):
        yield "floor.", *pair


def add(arrays: dict[str, NDArray[Any]], start: str, values: Mapping[str, NDArray[Any]]) -> None:
    """Add what was measured; of drawn labels, which may come in parts, below the earlier draws."""
    for name, value in values.items():
        if not start:
            arrays[name] = value[0]
        elif f"floor.{name}" in arrays:
            arrays[f"floor.{name}"] = np.concatenate([arrays[f"floor.{name}"], value])
        else:
            arrays[f"floor.{name}"] = value


def tables_of(
    by_calibrator: Mapping[str, Sequence[Arrays]], settings: Settings, classes: int
) -> dict[str, pd.DataFrame]:
    """The tables of a benchmark by the names of their files; the splits are in order."""
    options = settings.users
    floor_of = floor_method(list(by_calibrator))
    users = risk_gap.risk_users(classes, options)
    risks = {name: _risks(splits, "") for name, splits in by_calibrator.items()}
    risk_noise = _risks(by_calibrator[floor_of], "floor.")
    errors = {name: _errors(splits, "", options) for name, splits in by_calibrator.items()}
    prior_noise = _errors(by_calibrator[floor_of], "floor.", options)
    medians = user_priors.median_frame(errors)
    return {
        "risk_gap": risk_gap.utility_frame(risks, risk_noise, users, classes),
        "risk_gap_splits": risk_gap.split_frame(risks, risk_noise),
        "priors": user_priors.curve_frame(errors, prior_noise, floor_of),
        "priors_medians": medians,
        "priors_tau": user_priors.tau_frame(medians),
    }


def _risks(splits: Sequence[Arrays], start: str) -> list[risk_gap.Measured]:
    """UC and risk gap of the splits that have them."""
    uc, gap = f"{start}risk.uc", f"{start}risk.gap"
    return [risk_gap.Measured(arrays[uc], arrays[gap]) for arrays in splits if uc in arrays]


def _errors(splits: Sequence[Arrays], start: str, options: Users) -> list[user_priors.Errors]:
    """The errors of users of each prior, of the splits that have them."""
    names = {}
    for prior, family in product(options.priors, user_priors.FAMILIES):
        names[prior, family] = f"{start}prior.{prior}.{family}"
    complete = [arrays for arrays in splits if set(names.values()) <= arrays.keys()]
    return [{key: arrays[name] for key, name in names.items()} for arrays in complete]
