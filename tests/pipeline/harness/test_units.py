"""From a command line to units: which ones, with which settings."""

import pytest
from omegaconf import OmegaConf

from pipeline.harness.units import SelectionError, composed, resolved
from tests.pipeline.conftest import request_of


def test_nothing_chosen_is_the_whole_default_suite():
    request = request_of()
    assert (request.suite, request.benchmarks) == ("digits", ("digits",))
    assert {"uncalibrated", "dirichlet", "logit_shift"} < set(request.calibrators)
    assert request.splits == tuple(range(10))
    assert len(request.units()) == 10 * len(request.calibrators)


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
        assert unit.settings["calibrator"]["on"] == "logits"
        assert unit.settings["calibrator"]["seed"] == unit.settings["splits"]["seed"] == 5
    assert all("on" not in (s["calibrator"] or {}) for s in request.benchmark_settings())


@pytest.mark.parametrize(
    "override",
    [
        "benchmark.name='../../x'",
        "evaluation.name='.hidden'",
        "splits.count=0",
        "splits.count=2.5",
        "splits.count=1001",
        "splits.calibration_fraction=1.0",
        "splits.calibration_fraction=nan",
        "seed=-1",
        "splits.seed=true",
        "force=maybe",
        "jobs=0",
        "jobs=1.5",
        "device=gpu",
        "tables=small",
    ],
)
def test_a_value_that_no_stage_knows_is_one_line(override):
    name = override.partition("=")[0]
    with pytest.raises(SelectionError, match=rf"^{name}=[^\n]*: expected "):
        resolved(composed(["benchmark=digits", override]))


@pytest.mark.parametrize(
    "override",
    ["jobs=2", "jobs='2'", "jobs=auto", "device=cuda:1", "force=true", "splits.count=1000"],
)
def test_known_values_stay_as_they_are(override):
    name, _, value = override.partition("=")
    settings = composed([override])
    resolved(settings)
    assert str(OmegaConf.select(settings, name)).lower() == value.strip("'")


def test_what_is_named_twice_is_done_once():
    request = request_of(
        "suite.benchmarks=[digits,digits]", "suite.calibrators=[vector,isotonic,vector]", "split=0"
    )
    assert [str(unit) for unit in request.units()] == [
        "digits vector split 0",
        "digits isotonic split 0",
    ]


@pytest.mark.parametrize("split", ["10", "-1", "first"])
def test_a_split_that_does_not_exist(split):
    with pytest.raises(SelectionError, match=r"0 to 9"):
        request_of(f"split={split}")


def test_the_name_of_a_file_benchmark_is_the_users():
    request = request_of(
        "benchmark=file", "benchmark.name=mine", "benchmark.source.path=a.npz", "split=0"
    )
    assert {unit.benchmark for unit in request.units()} == {"mine"}
