"""Calibrators as torch modules: the same answers, exportable, in float32 too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from calibrators import IsotonicCalibration, LogitShiftPatching, UtilityPatching
from metrics import FunctionUtility, InputError
from tests.calibrators import test_conventions

METHODS = {
    **test_conventions.METHODS,
    "isotonic, global": IsotonicCalibration(mode="global"),
    "patching from temperature": UtilityPatching(0.1, 4, False, start="temperature"),
}
CLASSES = 7


def problem(n: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, n)
    logits = 4.0 * np.eye(CLASSES)[labels] + 3.0 * rng.normal(size=(n, CLASSES)) + 10.0
    return logits.astype(np.float32), labels


@pytest.fixture(params=METHODS, scope="module")
def fitted(request):
    return METHODS[request.param].fit(*problem(1500, 0))


@pytest.fixture(scope="module")
def new_logits():
    return problem(1000, 1)[0]


def rows_off(found, expected, tolerance=1e-4) -> int:
    return int((np.abs(np.asarray(found) - expected).max(axis=1) > tolerance).sum())


def test_in_float64_a_module_says_what_the_calibrator_says(fitted, new_logits):
    module = fitted.to_module(torch.float64)
    expected = fitted.predict_proba(new_logits)
    np.testing.assert_allclose(module(torch.from_numpy(new_logits)), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:labels")
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_to_points_of_one_class_has_a_module(method, new_logits):
    fitted = clone(METHODS[method]).fit(new_logits, np.zeros(len(new_logits), dtype=int))
    found = fitted.to_module(torch.float64)(torch.from_numpy(new_logits))
    np.testing.assert_allclose(found, fitted.predict_proba(new_logits), atol=1e-12)


def test_in_float32_at_most_two_rows_of_a_thousand_are_off(fitted, new_logits):
    found = fitted.to_module()(torch.from_numpy(new_logits))
    assert found.dtype == torch.float32
    assert rows_off(found, fitted.predict_proba(new_logits)) <= 2


@pytest.fixture(
    params=["TemperatureScaling", "DirichletCalibration", "UtilityPatching", "pooled"],
    scope="module",
)
def exported(request):
    """Of each kind of module one: export depends on the operations, not on the numbers."""
    return METHODS[request.param].fit(*problem(1500, 0))


def test_exported_programs_give_the_same_for_any_batch_size(exported, new_logits, tmp_path):
    module = exported.to_module()
    batch = {0: torch.export.Dim("batch", min=1)}
    program = torch.export.export(
        module, (torch.from_numpy(new_logits[:5]),), dynamic_shapes=(batch,)
    )
    torch.export.save(program, tmp_path / "calibrator.pt2")
    loaded = torch.export.load(tmp_path / "calibrator.pt2").module()
    for n in (1, 3, 1000):
        z = torch.from_numpy(new_logits[:n])
        torch.testing.assert_close(loaded(z), module(z), rtol=0, atol=1e-6)


def test_patches_of_functions_have_no_module(new_logits):
    def even(p):
        return (torch.arange(CLASSES) % 2).expand_as(p).double()

    fitted = LogitShiftPatching(steps=2, utilities=[FunctionUtility(even)], standard=False)
    fitted.fit(*problem(500, 0))
    with pytest.raises(InputError, match=r"patches of .utilities. are not arrays"):
        fitted.to_module()


def test_a_module_moves_between_devices_as_any_other(fitted, new_logits):
    module = fitted.to_module()
    assert all(not parameter.requires_grad for parameter in module.parameters())
    names = dict(module.named_buffers())
    assert names, "fixed arrays are buffers: they follow .to(device) and stand in the state_dict"
    assert set(names) == set(module.state_dict())
