"""dvc.yaml is a valid pipeline with one fit and one evaluation stage per calibrator."""

import subprocess
import sys

import pytest
import yaml

from pipeline.harness.command import CONF, override
from pipeline.harness.units import SelectionError, composed, resolved
from pipeline.repro import arguments_of


def test_stages_are_listed():
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "stage", "list", "--name-only"],
        cwd=CONF.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    names = set(result.stdout.split())
    assert {"logits", "fit@vector", "evaluate@patching", "dynamics", "report"} <= names
    assert len(names) == 17


NASTY = ["a'b", 'a"b', "a${b}c", "${oc.env:HOME}", "a b,c[1]{x}=(y)", "end\\", "'; touch x; echo '"]


@pytest.mark.parametrize("text", NASTY)
def test_a_folder_of_any_name_reaches_its_stage_as_it_is(text):
    name, arguments = arguments_of("logits", {"suite": "digits", "precomputed": text})
    settings = resolved(composed(arguments))
    assert (name, settings["paths"]["precomputed"]) == ("logits", text)


def test_no_text_of_params_yaml_stands_in_a_command():
    stages = yaml.safe_load((CONF.parent / "dvc.yaml").read_text())["stages"].values()
    assert {stage.get("do", stage)["cmd"] for stage in stages} == {"python -m pipeline.repro"}


def test_the_stage_and_its_calibrator_come_from_dvc():
    arguments = arguments_of("fit@vector", {"suite": "cifar", "precomputed": "/x"})
    assert arguments == ("fit", ["suite=cifar", "calibrator=vector"])
    with pytest.raises(SelectionError, match=r"DVC_STAGE=nothing: expected one of logits"):
        arguments_of("nothing", {})


@pytest.mark.parametrize("name", ["../../x", "/x", "a/b", ".hidden", ""])
def test_a_benchmark_keeps_to_its_folder(name):
    arguments = ["benchmark=file", override("benchmark.name", name)]
    with pytest.raises(SelectionError, match="becomes part of a file's name"):
        resolved(composed([*arguments, "benchmark.source.path=x.npz"]))
