"""A small benchmark of known shape, and requests as a command line would make them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig

from utility_calibration.pipeline.evaluate import run_evaluate
from utility_calibration.pipeline.fit import run_fit
from utility_calibration.pipeline.harness.artifacts import write_npz
from utility_calibration.pipeline.harness.parameters import CONF
from utility_calibration.pipeline.harness.settings import Settings
from utility_calibration.pipeline.harness.units import Request, units_of
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan

MakeRequest = Callable[..., Request]


def write_example(path: Path, n: int = 200, classes: int = 3, seed: int = 0) -> Path:
    """Over-confident logits with labels drawn from their tempered softmax."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3.0, size=(n, classes))
    odds = np.exp(logits / 2)
    cumulated = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    labels = (random.random((n, 1)) > cumulated).sum(axis=1).clip(max=classes - 1)
    write_npz(path, logits=logits.astype(np.float32), labels=labels)
    return path


def request_of(*overrides: str) -> Request:
    """What a stage reads off its command line."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", list(overrides), return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    return Request.from_hydra(config)


def plan_of(settings: Settings) -> Plan:
    """The plan of one benchmark's logits."""
    return Plan(units_of(settings, "uncalibrated", [0]))


def run_all(request: Request) -> None:
    """Logits, fits and scores."""
    run_logits(Plan(request.units()))
    run_fit(Plan(request.units()))
    run_evaluate(Plan(request.units()))


def times(folder: Path) -> dict[Path, int]:
    """When each file was written; locks, the log of runs and the note of scores are left out."""
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*.*")
        if path.is_file() and path.suffix not in (".lock", ".jsonl", ".json")
    }


def files_below(folder: Path) -> dict[str, bytes]:
    """The content of each file."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def tiny_overrides(source: Path, folder: Path) -> list[str]:
    """The settings of a benchmark `tiny` of 3 splits, whose results lie in `folder`."""
    return [
        "benchmark=file",
        "benchmark.name=tiny",
        f"benchmark.source.path={source}",
        f"paths.data={folder / 'data'}",
        f"paths.results={folder / 'results'}",
        "splits.count=3",
        "evaluation.utilities=20",
        "evaluation.floor_repetitions=4",
        "jobs=1",
    ]


def request_maker(fixed: list[str]) -> MakeRequest:
    """Requests with the settings in `fixed` and those given; the given ones win."""

    def make(*overrides: str) -> Request:
        keys = {text.partition("=")[0] for text in overrides}
        kept = [text for text in fixed if text.partition("=")[0] not in keys]
        return request_of(*kept, *overrides)

    return make


@pytest.fixture
def request_tiny(tmp_path: Path) -> MakeRequest:
    """Requests on a benchmark `tiny` of 200 points and 3 classes, of which nothing is made."""
    source = write_example(tmp_path / "tiny.npz")
    return request_maker(tiny_overrides(source, tmp_path))


@pytest.fixture(scope="session")
def evaluated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which temperature and vector scaling of `tiny` are fitted and evaluated."""
    folder = tmp_path_factory.mktemp("evaluated")
    source = write_example(folder / "tiny.npz")
    make = request_maker(tiny_overrides(source, folder))
    run_all(make("suite.calibrators=[temperature,vector]"))
    return folder


@pytest.fixture
def request_made(evaluated_once: Path, tmp_path: Path) -> MakeRequest:
    """Requests on a copy of what `evaluated_once` made, both calibrators unless one is chosen."""
    for name in ("data", "results"):
        shutil.copytree(evaluated_once / name, tmp_path / name)
    fixed = tiny_overrides(evaluated_once / "tiny.npz", tmp_path)
    return request_maker([*fixed, "suite.calibrators=[temperature,vector]"])
