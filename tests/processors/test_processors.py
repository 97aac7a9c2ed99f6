"""The same printed digits on all processors, which OpenBLAS, NumPy and numba emulate here.

`make test-processors` runs all of it; with PRECOMPUTED=/folder/with/logits on CIFAR-100.
"""

import contextlib
import io
import json
import os
import warnings

import numpy as np
import pytest

from tests.processors import numbers
from tests.processors.emulated import THIS, differences, numbers_on, processors
from utility_calibration.calibrators import IsotonicCalibration
from utility_calibration.metrics import TopK
from utility_calibration.metrics.kernels.grid import CELL, on_grid, power_above

EMULATED = processors()


def without_numba(processor):
    """Compiling all kernels for another processor takes minutes the first time."""
    return {key: value for key, value in processor.items() if key != "NUMBA_CPU_NAME"}


def test_a_few_fits_have_the_same_digits():
    generic = without_numba(EMULATED.get("generic", {}))
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        numbers.main("small")
    one, other = json.loads(printed.getvalue()), numbers_on(generic, 2, "small")
    assert differences(one, other) == []
    assert len(one) > 100


@pytest.mark.slow
def test_all_calibrators_have_the_same_digits():
    folder = os.environ.get("PRECOMPUTED")
    arguments = ("whole", folder) if folder else ("whole",)
    expected = numbers_on({}, 1, *arguments)
    others = {
        f"{name}, {threads} threads": numbers_on(processor, threads, *arguments)
        for name, processor in EMULATED.items()
        for threads in (1, 2)
        if (name, threads) != (THIS, 1)
    }
    found = {name: differences(expected, numbers) for name, numbers in others.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_sums_that_differ_by_rounding_are_tied():
    """The two largest of three probabilities sum to .9 at both points, but for the last bit."""
    p = np.array([[0.1 + 0.2, 0.6, 0.1], [0.3, 0.6, 0.1]] * 2)
    assert p[0, :2].sum() != p[1, :2].sum()
    labels = np.array([2, 0, 2, 0])
    tied = np.abs((labels != 2).mean() - 0.9)
    assert TopK(ks=(2,)).calibration_errors(p, labels)[0] == pytest.approx(tied, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-12])
def test_the_grid_fits_to_the_scale(scale):
    values = np.random.default_rng(0).uniform(-scale, scale, 1000)
    cell = CELL * power_above(np.array(scale))
    rounded = on_grid(values, cell)
    np.testing.assert_array_equal(rounded, np.round(values / cell) * cell)
    assert len(np.unique(rounded)) == 1000


def test_isotonic_maps_do_not_depend_on_the_last_bit():
    random = np.random.default_rng(0)
    logits = random.normal(size=(400, 3)) * 15
    labels = np.where(random.random(400) < 0.8, logits.argmax(axis=1), random.integers(3, size=400))
    moved = logits * (1 + 2.0**-52 * random.integers(-1, 2, logits.shape))
    one, other = (IsotonicCalibration().fit(z, labels) for z in (logits, moved))
    np.testing.assert_allclose(one.predict_proba(logits), other.predict_proba(moved), atol=1e-9)
