"""Arrays of every library are read, and answers are of the same kind, type and device."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.refusals import refuses
from utility_calibration import metrics as m

RANDOM = np.random.default_rng(0)
P = RANDOM.dirichlet(np.ones(3), size=40)
Y = RANDOM.integers(3, size=40)
WEIGHTS = RANDOM.random(40)
ERRORS = m.TopK().calibration_errors(P, Y, sample_weight=WEIGHTS)


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


def answers(p, y, weights):
    """One answer of every public function that gives an array back."""
    return [
        m.TopK().calibration_errors(p, y, sample_weight=weights),
        m.utility_calibration(p[:, 0], y == 0, sample_weight=weights),
        m.Decision(1 - np.eye(3)).decide(p),
        m.TopK().evaluate(p, y, sample_weight=weights).errors,
    ]


NUMPYS = answers(P, Y, WEIGHTS)


# ---- torch ---------------------------------------------------------------------------------------


def test_torch_tensors_are_answered_by_tensors():
    torch = library("torch")
    given = answers(*map(torch.from_numpy, (P, Y, WEIGHTS)))
    for answer, expected in zip(given, NUMPYS, strict=True):
        assert isinstance(answer, torch.Tensor) and answer.device.type == "cpu"
        assert np.array_equal(answer.numpy(), expected) and answer.shape == np.shape(expected)
        assert answer.numpy().dtype == expected.dtype


@pytest.mark.parametrize("form", ["grad", "transposed", "sparse", "negative", "labels in float"])
def test_tensors_in_any_memory_are_read(form):
    torch = library("torch")
    p, y = torch.from_numpy(P), torch.from_numpy(Y)
    forms = {
        "grad": lambda: p.clone().requires_grad_(),
        "transposed": lambda: p.T.contiguous().T,
        "sparse": lambda: p.to_sparse(),
        "negative": lambda: torch.complex(0 * p, -p).conj().imag,  # only a flag says the sign
        "labels in float": lambda: p,
    }
    y = y.double() if form == "labels in float" else y
    errors = m.TopK().calibration_errors(forms[form](), y, sample_weight=torch.from_numpy(WEIGHTS))
    assert np.array_equal(errors.numpy(), ERRORS) and not errors.requires_grad
    result = m.TopK().evaluate(forms[form](), y, sample_weight=torch.from_numpy(WEIGHTS))
    assert np.array_equal(result.errors.numpy(), ERRORS)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_short_types_are_read_and_answered_in_float64(name):
    torch = library("torch")
    p = torch.eye(3)[torch.from_numpy(Y)].to(getattr(torch, name))
    errors = m.TopK().calibration_errors(p, (Y + 1) % 3)
    assert errors.dtype == torch.float64 and float(errors[0]) == 1 and float(errors[2]) == 0


def test_a_tensor_without_numbers_is_refused():
    torch = library("torch")
    empty = torch.empty(40, 3, device="meta")
    with refuses("probabilities", fix="CPU"):
        m.TopK().calibration_errors(empty, Y)
    labels = torch.empty(40, dtype=torch.int64, device="meta")
    with refuses("labels", fix="CPU"):
        m.TopK().calibration_errors(P, labels)
    with refuses("labels", fix="CPU"):
        m.accuracy(P, labels, ignore_index=-100)
    with refuses("labels", fix="CPU"):
        m.accuracy(P, labels, classes=["a", "b", "c"])
    with refuses("sample_weight", fix="CPU"):
        m.scorecard(P, Y, sample_weight=torch.empty(40, device="meta"))
    with refuses("clusters", fix="CPU"):
        m.scorecard(P, Y, clusters=labels)


# ---- JAX, frames, memory of NumPy ----------------------------------------------------------------


def test_arrays_of_jax_are_answered_by_those_of_jax():
    jax = library("jax")
    p, y, weights = map(jax.numpy.asarray, (P, Y, WEIGHTS))
    for answer, expected in zip(answers(p, y, weights), NUMPYS, strict=True):
        assert isinstance(answer, jax.Array) and answer.devices() == p.devices()
        assert answer.dtype == ("int32" if expected.dtype == np.int64 else "float32")
        np.testing.assert_allclose(answer, expected, atol=1e-6)
    short = jax.numpy.eye(3)[y].astype("bfloat16")
    assert float(m.TopK().calibration_errors(short, (y + 1) % 3)[0]) == 1
    with jax.enable_x64(True):
        errors = m.TopK().calibration_errors(jax.numpy.asarray(P), y, sample_weight=WEIGHTS)
        assert np.array_equal(errors, ERRORS) and errors.dtype == np.float64


def test_an_array_inside_jit_is_refused():
    jax = library("jax")
    with refuses("probabilities", fix="jax.jit"):
        jax.jit(lambda p: m.TopK().calibration_errors(p, Y))(P)
    with refuses("labels", fix="jax.jit"):
        jax.jit(lambda y: m.accuracy(P, y, ignore_index=-100))(Y)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_frames_are_read_and_answered_by_numpy(name):
    module = library(name)
    columns = dict(zip("abc", P.T, strict=True))
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[name]
    column = {"pandas": "Series", "polars": "Series", "pyarrow": "array"}[name]
    frame = getattr(module, make)(columns)
    y, weights = (getattr(module, column)(values) for values in (Y, WEIGHTS))
    errors = m.TopK().calibration_errors(frame, y, sample_weight=weights)
    assert type(errors) is np.ndarray and np.array_equal(errors, ERRORS)
    text = getattr(module, column)(["abc"[label] for label in Y])
    assert m.accuracy(frame, text, sample_weight=weights) == m.accuracy(P, Y, sample_weight=WEIGHTS)


def test_nullable_columns_of_pandas_are_read():
    frame = pd.DataFrame(P).convert_dtypes()
    y = pd.Series(Y).astype("Int64")
    assert np.array_equal(m.TopK().calibration_errors(frame, y, sample_weight=WEIGHTS), ERRORS)


@pytest.mark.parametrize("form", ["read-only", "by column", "backwards", "other bytes", "lists"])
def test_any_memory_of_numpy_is_read_and_left_as_it_is(form):
    read_only = P.copy()
    read_only.flags.writeable = False
    forms = {
        "read-only": read_only,
        "by column": np.asfortranarray(P),
        "backwards": P[::-1].copy()[::-1],
        "other bytes": P.astype(P.dtype.newbyteorder()),
        "lists": P.tolist(),
    }
    assert np.array_equal(
        m.TopK().calibration_errors(forms[form], Y, sample_weight=WEIGHTS), ERRORS
    )
    assert np.array_equal(np.asarray(forms[form]), P)


# ---- Functions of a person's own -----------------------------------------------------------------


def test_a_function_may_return_what_another_library_gives():
    torch = library("torch")
    by_torch = m.FunctionUtility(lambda p: torch.from_numpy(p).clamp(0.2, 0.8))
    by_numpy = m.FunctionUtility(lambda p: p.clip(0.2, 0.8))
    assert by_torch.calibration_errors(P, Y) == by_numpy.calibration_errors(P, Y) > 0


FOR_TENSORS = ("method", "argument", "function", "where", "size", "sorted", "squeeze", "dtype")


@pytest.mark.parametrize("case", FOR_TENSORS)
def test_a_function_for_tensors_is_told_what_it_gets(case):
    torch = library("torch")
    for_tensors = {
        "method": lambda p: p.clamp(0, 1),
        "argument": lambda p: p.max(dim=1, keepdim=True),
        "function": lambda p: torch.softmax(p, dim=1),
        "where": lambda p: torch.where(p > 0.5, p, 0),
        # These say nothing of tensors where they fail, or are methods of both.
        "size": lambda p: p / p.size(1),
        "sorted": lambda p: p.sort(descending=True)[0],
        "squeeze": lambda p: p.squeeze(1),
        "dtype": lambda p: torch.zeros(p.shape, dtype=p.dtype),
    }
    with refuses("utility function", fix="torch.from_numpy"):
        m.FunctionUtility(for_tensors[case]).calibration_errors(P, Y)


def test_a_function_may_change_its_array():
    def in_place(p):
        p -= 0.5
        return p

    p = P.copy()
    expected = m.FunctionUtility(lambda p: p - 0.5).calibration_errors(P, Y)
    assert m.FunctionUtility(in_place).calibration_errors(p, Y) == expected
    np.testing.assert_array_equal(p, P)


def test_other_mistakes_of_a_function_stay_what_they_are():
    with pytest.raises(AttributeError):
        m.FunctionUtility(lambda p: m.TopK().nothing).calibration_errors(P, Y)
    with pytest.raises(TypeError):
        m.FunctionUtility(lambda p: len(3)).calibration_errors(P, Y)


def test_a_class_of_ones_own_may_return_tensors():
    torch = library("torch")

    class Mine(m.UtilityClass):
        def count(self, classes):
            return 1

        def outcome_utilities(self, forecast, index):
            return torch.from_numpy(forecast.probabilities).clamp(0.2, 0.8)

    expected = m.FunctionUtility(lambda p: p.clip(0.2, 0.8)).calibration_errors(P, Y)
    assert np.array_equal(Mine().calibration_errors(P, Y), expected)


def test_an_error_is_computed_where_torch_cannot_be_imported():
    program = """
import sys
sys.modules["torch"] = None  # `import torch` raises
from utility_calibration.metrics import TopK
print(TopK(ks=(1,)).calibration_errors([[0.75, 0.25], [0.5, 0.5]], [0, 1])[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["0.25"]), done.stderr
