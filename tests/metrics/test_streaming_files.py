"""Streams of several processes add up, and come back from files or are refused."""

import copy
import io
import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from tests.metrics import a_global
from tests.metrics.streams import ROUNDING, points, streamed
from tests.refusals import fails, refuses
from utility_calibration import metrics as m
from utility_calibration.metrics.errors import MissingResource


def test_parts_merge_in_any_order_and_come_back_from_a_file(tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    p, y = rng.dirichlet(np.ones(3), size=600), rng.integers(3, size=600)
    whole = streamed([m.ClassWise(), m.TopK()], p, y, size=600).result()
    for order in (rng.permutation(6) for _ in range(4)):
        parts = [streamed([m.ClassWise(), m.TopK()], p[100 * k :][:100], y[100 * k :][:100])
                 for k in range(6)]  # fmt: skip
        joined = m.StreamingCalibration([m.ClassWise(), m.TopK()], 3)
        for k in order:
            part = parts[k]
            file: Any = io.BytesIO() if k % 2 else tmp_path / "part.npz"
            part.save(file)
            if k % 2:
                file.seek(0)
            again = m.StreamingCalibration([m.ClassWise(), m.TopK()], 3).load(file)
            assert joined.merge(again) is joined
        result = joined.result()
        for name in ("lower", "upper", "equal_width", "equal_mass", "accuracy", "brier", "nll"):
            same = pytest.approx(getattr(whole, name), abs=ROUNDING)
            assert getattr(result, name) == same
    lower = again.result().lower
    m.StreamingCalibration([m.ClassWise(), m.TopK()], 3).merge(again).update(p, y)
    np.testing.assert_array_equal(again.result().lower, lower)  # a merge shares no memory
    with refuses("other"):
        joined.merge(m.StreamingCalibration(m.ClassWise(), 3))
    for others, classes in (([m.ClassWise(), m.TopK()], 4), ([m.TopK(), m.ClassWise()], 3)):
        with refuses("file", fix="arguments"):
            m.StreamingCalibration(others, classes).load(tmp_path / "part.npz")
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("saved", "asked"),
    [
        (m.ClassWise((1,)), m.ClassWise((2,))),
        (m.TopK((1,)), m.TopK((2,))),
        (m.Linear([[1.0, 0.0, -1.0]]), m.Linear([[-1.0, 0.0, 1.0]])),
    ],
)
def test_a_file_of_other_utilities_of_one_class_is_refused(saved: Any, asked: Any) -> None:
    p, y = np.random.default_rng(0).dirichlet(np.ones(3), size=60), np.arange(60) % 3
    file = io.BytesIO()
    streamed([saved], p, y).save(file)
    file.seek(0)
    with refuses("file", fix="arguments"):
        m.StreamingCalibration(asked, 3).load(file)
    file.seek(0)
    assert m.StreamingCalibration(copy.deepcopy(saved), 3).load(file).result().n == 60


def scaled(factor: Any) -> Any:
    return lambda p: p * factor


def of_tensor(factor: float) -> Any:
    tensor = torch.tensor(factor)
    return lambda p: p * tensor.item()


def halved(values: Any) -> Any:
    return values / 2


class Scaled(m.UtilityClass):
    """A class of a person's own, which holds an object that is no array."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def count(self, classes: int) -> int:
        return 1

    def outcome_utilities(self, forecast: Any, index: int) -> Any:
        return self.function(forecast.probabilities)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "code": (lambda p: p / 2, lambda p: p * p),
    "constants": (lambda p: p * 0.5, lambda p: p * 0.25),
    "names": (lambda p: p.cumsum(axis=1) / 2, lambda p: p.cumprod(axis=1) / 2),
    "closure": (scaled(0.5), scaled(0.25)),
    "array in the closure": (scaled(np.full(3, 0.5)), scaled(np.full(3, 0.25))),
    "tensor in the closure": (of_tensor(0.5), of_tensor(0.25)),
    "defaults": (lambda p, k=0.5: p * k, lambda p, k=0.25: p * k),
    "a function inside": (lambda p: (lambda q: q / 2)(p), lambda p: (lambda q: q / 3)(p)),
    "a global": (lambda p: halved(p), a_global.kept),
    "part of a function": (partial(np.multiply, 0.5), partial(np.multiply, 0.25)),
    "own class": (Scaled(lambda p: p / 2), Scaled(lambda p: p / 3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_file_of_another_function_is_refused(name: str) -> None:
    saved, asked = FUNCTIONS[name]
    test_a_file_of_other_utilities_of_one_class_is_refused(saved, asked)


def test_equal_functions_have_equal_files_in_all_programs() -> None:
    made = [m.FunctionUtility(scaled(np.full(3, 0.5))) for _ in range(2)]
    assert made[0] != made[1] and made[0].digest() == made[1].digest()
    program = (
        "from tests.metrics import a_global; from utility_calibration import metrics as m; "
        "print(m.FunctionUtility(a_global.kept).digest())"
    )
    command = [sys.executable, "-c", program]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        answer = subprocess.run(command, env=environment, check=True, capture_output=True)
        assert answer.stdout.split()[-1].decode() == m.FunctionUtility(a_global.kept).digest()


@pytest.mark.parametrize("name", ["sums", "ends", "moments", "totals", "log_wealth", "log_largest"])
@pytest.mark.parametrize("kind", ["nan", "complex", "text"])
def test_a_file_whose_numbers_cannot_come_from_points_is_refused(name: str, kind: str) -> None:
    p, y = np.random.default_rng(0).dirichlet(np.ones(3), size=60), np.arange(60) % 3
    file, damaged = io.BytesIO(), io.BytesIO()
    streamed([m.TopK()], p, y).save(file)
    file.seek(0)
    arrays = dict(np.load(file))
    changes = {"nan": arrays[name] * np.nan, "complex": arrays[name] + 0j}
    arrays[name] = changes.get(kind, arrays[name].astype(np.str_))
    np.savez(damaged, **arrays)
    damaged.seek(0)
    with refuses("file", fix="begin anew"):
        m.StreamingCalibration([m.TopK()], 3).load(damaged)


def test_a_file_with_a_negative_sum_is_refused() -> None:
    p, y = np.random.default_rng(0).dirichlet(np.ones(3), size=60), np.arange(60) % 3
    file, damaged = io.BytesIO(), io.BytesIO()
    streamed([m.TopK()], p, y).save(file)
    file.seek(0)
    arrays = dict(np.load(file))
    arrays["sums"] = -arrays["sums"] - 1
    np.savez(damaged, **arrays)
    damaged.seek(0)
    with refuses("file", fix="begin anew"):
        m.StreamingCalibration([m.TopK()], 3).load(damaged)


def test_a_file_that_is_not_there_and_one_of_another_function_are_refused(tmp_path: Any) -> None:
    p, y, _ = points(4)

    def made(payoffs: list[float]) -> Any:
        return streamed([lambda q: q * 0 + np.resize(payoffs, q.shape[1])], p, y)

    one, other = made([1.0, 0.0]), made([0.0, 1.0])
    with fails(MissingResource, "none.npz", "save"):
        one.load(tmp_path / "none.npz")
    one.save(tmp_path / "one.npz")
    with refuses("file", fix="functions"):
        other.load(tmp_path / "one.npz")
