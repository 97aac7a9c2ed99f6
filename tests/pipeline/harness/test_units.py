"""From a command line to units: which ones, with which settings."""

import pytest
from hydra import initialize_config_dir

from pipeline.harness import units
from pipeline.harness.command import CONF
from pipeline.harness.units import SelectionError, composed, resolved
from tests.pipeline.conftest import request_of

SEVEN = (
    *("uncalibrated", "dirichlet", "isotonic", "temperature", "vector", "patching"),
    "logit_shift",
)


def test_a_program_composes_once_and_a_change_of_what_it_got_is_its_own(monkeypatch):
    times = []
    compose = units.compose
    monkeypatch.setattr(units, "compose", lambda *some: times.append(some) or compose(*some))
    with initialize_config_dir(str(CONF), version_base="1.3"):
        first = composed(["benchmark=digits"])
        first.benchmark.title = "changed"
        assert composed(["benchmark=digits"]).benchmark.title != "changed"
        assert len(times) == 1
        composed(["benchmark=digits", "seed=1"])
        assert len(times) == 2


def test_nothing_chosen_is_the_whole_default_suite():
    request = request_of()
    assert (request.suite, request.benchmarks) == ("digits", ("digits",))
    assert (request.calibrators, request.splits) == (SEVEN, tuple(range(10)))
    assert len(request.units()) == 70


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


@pytest.mark.parametrize("name", ["../../x", "/x", "a/b", ".hidden", ""])
def test_a_benchmark_and_an_evaluation_keep_to_their_folders(name):
    for key in ("benchmark.name", "evaluation.name"):
        arguments = ["benchmark=file", "benchmark.source.path=x.npz", f"{key}='{name}'"]
        with pytest.raises(SelectionError, match=rf"^{key}=.*becomes part of a file's name"):
            resolved(composed(arguments))


@pytest.mark.parametrize(
    ("override", "wanted"),
    [
        ("splits.count=0", "at least 1"),
        ("splits.count=2.5", "at least 1"),
        ("splits.count=all", "at least 1"),
        ("splits.calibration_fraction=2", "above 0 and below 1"),
        ("splits.calibration_fraction=0", "above 0 and below 1"),
        ("splits.calibration_fraction=1.0", "above 0 and below 1"),
        ("splits.calibration_fraction=nan", "above 0 and below 1"),
        ("splits.calibration_fraction=most", "above 0 and below 1"),
        ("seed=-1", "from 0"),
        ("seed=1.5", "from 0"),
        ("seed=4294967296", "to 4294967295"),
        ("splits.seed=true", "from 0"),
    ],
)
def test_splits_that_cannot_be_made(override, wanted):
    name = override.partition("=")[0]
    with pytest.raises(SelectionError, match=rf"^{name}=.*: expected .*{wanted}"):
        request_of(override)
    with pytest.raises(SelectionError, match=rf"^{name}="):
        resolved(composed([override]))


@pytest.mark.parametrize(
    ("override", "wanted"),
    [
        ("force=maybe", "true or false"),
        ("jobs=many", "auto"),
        ("jobs=0", "auto"),
        ("jobs=true", "auto"),
        ("jobs=1.5", "at least 1"),
        ("device=gpu", "cuda"),
        ("tables=small", "default or paper"),
    ],
)
def test_settings_of_all_stages_with_values_that_none_knows(override, wanted):
    name, _, value = override.partition("=")
    with pytest.raises(SelectionError, match=rf"(?i)^{name}={value}: expected .*{wanted}"):
        resolved(composed([override]))


@pytest.mark.parametrize(
    "override",
    [
        "jobs=2",
        "jobs='2'",
        "jobs=auto",
        "device=cpu",
        "device=cuda:1",
        "force=true",
        "tables=paper",
    ],
)
def test_settings_of_all_stages_with_known_values(override):
    name, _, value = override.partition("=")
    assert str(resolved(composed([override]))[name]).lower() == value.strip("'")


def test_what_is_named_twice_is_done_once():
    request = request_of(
        "suite.benchmarks=[digits,digits]", "suite.calibrators=[vector,isotonic,vector]", "split=0"
    )
    assert [str(unit) for unit in request.units()] == [
        "digits vector split 0",
        "digits isotonic split 0",
    ]


@pytest.mark.parametrize("split", ["10", "-1", "first", "1.5", "true"])
def test_a_split_that_does_not_exist(split):
    with pytest.raises(SelectionError, match=r"0 to 9"):
        request_of(f"split={split}")


def test_the_name_of_a_file_benchmark_is_the_users():
    request = request_of(
        "benchmark=file", "benchmark.name=mine", "benchmark.source.path=a.npz", "split=0"
    )
    assert {unit.benchmark for unit in request.units()} == {"mine"}


def test_units_have_the_settings_of_their_pair():
    """Composed once per benchmark and calibrator, they are what each pair composes to."""
    request = request_of(
        "suite.benchmarks=[digits,cifar100_resnet]", "split=0", "seed=3",
        "suite.calibrators=[dirichlet_logits,isotonic_raw,patching]",
    )  # fmt: skip
    for unit in request.units():
        assert unit.settings == request.settings(unit.benchmark, unit.calibrator)
