"""Every file under conf/ composes and agrees with the code."""

import inspect
import shutil
from dataclasses import fields

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_method, instantiate

from utility_calibration.metrics import METRICS
from utility_calibration.metrics.measurement import Options
from utility_calibration.pipeline.harness.parameters import CONF
from utility_calibration.pipeline.harness.settings import NAMING_FILES
from utility_calibration.pipeline.harness.units import (
    composed,
    composed_with,
    resolved,
    resolved_with,
)
from utility_calibration.pipeline.reporting.names import PEERS, family
from utility_calibration.pipeline.scoring.files import ON_REQUEST, columns_of

SHARED = yaml.safe_load((CONF / "suite" / "_base.yaml").read_text())["suite"]["calibrators"]


def options(group):
    return sorted(path.stem for path in (CONF / group).glob("[!_]*.yaml"))


GROUPS = ["benchmark", "suite", "evaluation", "tuning", "dynamics", "users", "paths", "splits"]
OPTIONS = [(group, option) for group in GROUPS for option in options(group)]
OPEN = {
    "file": ["benchmark.source.path=x.npz"],
    "calarena": ["benchmark.source.dataset=a", "benchmark.source.model=b"],
}
"""Values that these benchmarks leave open."""


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes_and_agrees_with_what_it_is_for(group, option):
    left_open = OPEN.get(option, []) if group == "benchmark" else []
    start = [] if group == "benchmark" else ["benchmark=digits"]
    settings = resolved(composed([*start, "calibrator=vector", f"{group}={option}", *left_open]))
    if group not in ("paths", "splits") and not left_open:
        chosen = getattr(settings, group)
        name = chosen.get("name", option) if isinstance(chosen, dict) else chosen.name
        assert name == option
    if group == "benchmark":
        source = dict(settings.benchmark.source)
        inspect.signature(get_method(source.pop("_target_"))).bind(**source)


@pytest.fixture(scope="module")
def calibrators():
    """The settings with each calibrator, composed at once as for a suite."""
    config, entries = composed_with(options("calibrator"), ["benchmark=digits", "seed=7"])
    return resolved_with(entries, config)


@pytest.mark.parametrize("name", options("calibrator"))
def test_every_calibrator_is_made_with_the_arguments_of_its_file(calibrators, name):
    settings = calibrators[name].calibrator
    calibrator = instantiate(settings, _convert_="all")
    given = {k: value for k, value in settings.items() if not k.startswith("_")}
    assert {key: calibrator.get_params()[key] for key in given} == given
    assert given.get("seed", 7) == 7


def test_suites_name_existing_benchmarks_and_a_variant_of_each_calibrator_in_order():
    for suite in options("suite"):
        content = composed(["benchmark=digits", "calibrator=vector", f"suite={suite}"]).suite
        assert set(content["benchmarks"]) <= set(options("benchmark"))
        # A variant, such as isotonic_raw, counts as its method. The last two methods are not the
        # paper's. Other packages' methods come after them.
        families = list(dict.fromkeys(family(name) for name in content["calibrators"]))
        assert families == [
            name for name in (*SHARED, "structured_vector", *PEERS) if name in families
        ]
        assert set(content["calibrators"]) <= set(options("calibrator"))


def test_a_benchmark_needs_no_more_than_name_title_and_source(tmp_path):
    folder = tmp_path / "conf"
    shutil.copytree(CONF, folder)
    (folder / "benchmark" / "mine.yaml").write_text(
        "defaults: [_base, _self_]\n"
        "name: mine\ntitle: Mine\nsource: {_target_: my.source, samples: 5}\n"
    )
    with initialize_config_dir(str(folder), version_base="1.3"):
        mine = resolved(compose("config", ["benchmark=mine", "calibrator=vector"]))
    assert mine.benchmark.precomputed == "mine"
    assert columns_of(mine) == tuple(key for key in METRICS if key not in ON_REQUEST)


def test_evaluations_are_options_of_scorecard():
    known = {field.name for field in fields(Options)}
    for option in options("evaluation"):
        content = set(composed([f"evaluation={option}"]).evaluation)
        assert content - {*NAMING_FILES} <= known


@pytest.mark.parametrize(
    ("overrides", "suffix"),
    [
        ("", ""),
        ("evaluation=paper_batches", "-paper_batches"),
        ("evaluation=quick evaluation.name=default", ""),
        ("evaluation.name=a.b+c", "-a.b+c"),
        ("evaluation.name=7", "-7"),
    ],
)
def test_the_name_of_an_evaluation_gives_the_suffix_of_its_files(overrides, suffix):
    content = composed(["benchmark=digits", "calibrator=vector", *overrides.split()])
    assert resolved(content).evaluation.suffix == content.evaluation.suffix == suffix


@pytest.mark.parametrize(
    ("overrides", "group", "chosen"),
    [
        ("suite=paper_closest", "evaluation", "paper_batches"),
        ("suite=paper_closest evaluation=default", "evaluation", "default"),
        ("suite=digits", "tuning", "quick"),
        ("suite=any benchmark=cifar10_resnet", "tuning", "paper"),
        ("suite=digits benchmark=digits tuning=paper", "tuning", "paper"),
        ("suite=cifar benchmark=digits", "tuning", "paper"),
        ("suite=cifar benchmark=synthetic", "tuning", "paper"),
        ("suite=cifar benchmark=digits", "dynamics", "default"),
    ],
)
def test_a_suite_chooses_and_the_command_line_wins(overrides, group, chosen):
    assert composed(overrides.split())[group].name == chosen
