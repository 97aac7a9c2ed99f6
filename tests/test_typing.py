"""Public functions say what they take and return. mypy reads this file, too (`make types`)."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, assert_type, get_overloads, get_type_hints

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from utility_calibration import calibrators, metrics
from utility_calibration.calibrators import TemperatureScaling, from_probabilities
from utility_calibration.metrics import (
    Decision,
    TopK,
    accuracy,
    plots,
    scorecard,
    utility_calibration,
)
from utility_calibration.metrics.result import CalibrationResult
from utility_calibration.metrics.utilities.function import Utility

Array = NDArray[np.float64]
LATER = {**vars(import_module("utility_calibration.metrics.measurement")), "pd": pd, "torch": torch}
LATER |= {"CalibrationResult": CalibrationResult, "Utility": Utility}
"""Names of types that modules import for mypy alone, because their packages take long."""


def functions_of(public: object) -> Iterator[Callable[..., Any]]:
    """A public function, or the public methods that a public class has from this package."""
    if not inspect.isclass(public):
        yield from [public] if inspect.isfunction(public) else []
        return
    for kind in public.__mro__:
        if kind.__module__.startswith("utility_calibration"):
            for name, held in vars(kind).items():
                held = getattr(held, "__func__", getattr(held, "fget", held))
                if inspect.isfunction(held) and (name == "__init__" or not name.startswith("_")):
                    yield held


@pytest.mark.parametrize("package", [metrics, plots, calibrators], ids=lambda each: each.__name__)
def test_no_public_argument_or_answer_is_of_any_type(package: ModuleType) -> None:
    """Apart from arguments by name that are passed on, such as those of matplotlib."""
    found = []
    for name in package.__all__:
        for function in functions_of(getattr(package, name)):
            for form in get_overloads(function) or [function]:
                passed_on = inspect.getfullargspec(form).varkw
                hints = get_type_hints(form, localns=LATER).items()
                found += [
                    (name, form, what) for what, kind in hints if kind is Any and what != passed_on
                ]
    assert not found


def test_the_answer_has_the_type_of_the_forecast() -> None:
    p, y = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]]), [0, 1, 1]
    tensor, frame = torch.from_numpy(p), pd.DataFrame(p)
    assert_type(TopK().calibration_errors(p, y), Array)
    assert_type(TopK().calibration_errors(frame, pd.Series(y)), Array)
    assert_type(TopK().calibration_errors(tensor, y), Tensor)
    assert_type(utility_calibration(tensor[:, 1], torch.tensor(y)), Tensor)
    assert_type(TopK().evaluate(p, y).errors, Array)
    assert_type(TopK().evaluate(tensor, y).errors, Tensor)
    assert_type(TopK().evaluate(tensor, y).floor.q95, float)
    assert_type(Decision(1 - np.eye(2)).net_benefit(p, y), Array)
    assert_type(Decision(1 - np.eye(2)).decide(tensor), Tensor)
    assert_type(accuracy(p.tolist(), y), float)
    assert_type(scorecard(p, y, utilities=0).to_dict(), dict[str, float])
    assert_type(scorecard(p, y, utilities=0)["u_topk"].worst.utility, int)
    fitted = TemperatureScaling().fit(from_probabilities(p), y)
    assert_type(fitted, TemperatureScaling)
    assert_type(fitted.predict_proba(from_probabilities(p)), Array)
    assert_type(fitted.predict_log_proba(from_probabilities(tensor)), Tensor)
