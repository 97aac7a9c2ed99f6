"""How the tests run utility-calibration score."""

from dataclasses import replace

from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.scripts import score

FEW_DRAWS = (
    "evaluation.utilities=20",
    "evaluation.floor_repetitions=20",
    "evaluation.bootstrap_repetitions=20",
)


def run(path, out, *arguments):
    """Score `path` as the command line does, with few draws; return metrics.json."""
    options = score.parse([str(path), "--output", str(out), "--jobs", "1", *arguments])
    score.score(replace(options, evaluation=FEW_DRAWS))
    return read_json(out / "metrics.json")


def quick(path, out, *arguments):
    """Without images, whose drawing is most of a small run."""
    return run(path, out, "--quick", *arguments)
