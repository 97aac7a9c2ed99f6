"""From a command line to units, their settings and what these name."""

import pytest
from hydra.errors import InstantiationException
from hydra.utils import instantiate

from pipeline.harness.command import UsageError, is_user_error, one_line
from pipeline.harness.units import composed, resolved
from tests.pipeline.conftest import request_of


def test_one_unit():
    (unit,) = request_of("benchmark=cifar10_resnet", "calibrator=temperature", "split=3").units()
    assert str(unit) == "cifar10_resnet temperature split 3"
    assert unit.fit_path.as_posix() == "data/fits/cifar10_resnet/temperature/3.npz"
    assert unit.scores_path.as_posix() == "data/scores/cifar10_resnet/temperature/3.npz"


def test_overrides_reach_every_unit():
    request = request_of("suite=cifar", "calibrator=dirichlet", "calibrator.on=logits", "seed=5")
    units = request.units()
    assert len(units) == 50
    for unit in units:
        assert unit.settings.calibrator["on"] == "logits"
        assert unit.settings.calibrator["seed"] == unit.settings.splits.seed == 5


@pytest.mark.parametrize(
    "override",
    [
        "benchmark.name='../../x'",
        "splits.count=2.5",
        "splits.calibration_fraction=1.0",
        "device=gpu",
    ],
)
def test_a_value_that_no_stage_knows_is_one_line(override):
    name = override.partition("=")[0]
    with pytest.raises(UsageError, match=rf"^{name}=[^\n]*: expected "):
        resolved(composed(["benchmark=digits", override]))


def test_a_wrong_argument_is_the_users_error():
    with pytest.raises(InstantiationException) as caught:
        instantiate({"_target_": "calibrators.TemperatureScaling", "step": 1})
    assert is_user_error(caught.value)
    assert one_line(caught.value).endswith("got an unexpected keyword argument 'step'")


def test_a_device_without_memory_is_one_line_that_says_what_to_set():
    error = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED\nwhen calling `cublasCreate`")
    assert is_user_error(error)
    assert one_line(error).startswith("out of memory; set jobs=1, or device=cpu")
    assert "\n" not in one_line(error)
