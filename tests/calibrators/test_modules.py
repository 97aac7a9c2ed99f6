"""Calibrators as torch modules: the same answers, exportable, in float32 too."""

import numpy as np
import pytest
import torch

from tests.calibrators import test_conventions
from tests.refusals import refuses
from utility_calibration.calibrators import IsotonicCalibration, LogitShiftPatching, UtilityPatching
from utility_calibration.metrics import FunctionUtility

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


def test_in_float32_at_most_two_rows_of_a_thousand_are_off(fitted, new_logits):
    module = fitted.to_module()
    assert dict(module.named_buffers()), "fixed arrays are buffers, which follow .to(device)"
    found = module(torch.from_numpy(new_logits))
    assert found.dtype == torch.float32
    off = np.abs(found.numpy() - fitted.predict_proba(new_logits)).max(axis=1)
    assert (off > 1e-4).sum() <= 2


def test_gradients_flow_to_the_logits(fitted, new_logits):
    logits = torch.from_numpy(new_logits[:50]).requires_grad_()
    fitted.to_module()(logits)[:, 0].sum().backward()
    assert bool(torch.isfinite(logits.grad).all())
    # One isotonic curve for all classes has so many steps that these points lie on flat ones; all
    # other maps have a slope somewhere.
    assert bool(logits.grad.any()) == (getattr(fitted, "mode", "") != "global")


# Of each kind of module one: export depends on the operations, not on the numbers.
@pytest.mark.parametrize("name", ["DirichletCalibration", "UtilityPatching", "LogitShiftPatching"])
def test_exported_programs_give_the_same_for_any_batch_size(name, new_logits, tmp_path):
    module = METHODS[name].fit(*problem(1500, 0)).to_module()
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
        return np.broadcast_to(np.arange(CLASSES) % 2, p.shape)

    fitted = LogitShiftPatching(steps=2, utilities=[FunctionUtility(even)], standard=False)
    fitted.fit(*problem(500, 0))
    with refuses("to_module", fix="utilities=None"):
        fitted.to_module()
