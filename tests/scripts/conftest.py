"""scripts/score.py as a module, and how the tests run it."""

import importlib.util

import pytest

from pipeline.harness.artifacts import read_json
from pipeline.harness.command import CONF


@pytest.fixture(scope="module")
def score():
    """The script as a module."""
    path = CONF.parent / "scripts" / "score.py"
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FEW_DRAWS = (
    "evaluation.utilities=20",
    "evaluation.floor_repetitions=20",
    "evaluation.bootstrap_repetitions=20",
)


def run(score, path, out, *arguments):
    """Score `path` as the command line does, with few draws; return metrics.json."""
    options = score.parse([str(path), "--output", str(out), "--jobs", "1", *arguments])
    options.evaluation = FEW_DRAWS
    score.score(options)
    return read_json(out / "metrics.json")


def quick(score, path, out, *arguments):
    """Without images, whose drawing is most of a small run."""
    return run(score, path, out, "--quick", *arguments)
