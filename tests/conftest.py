"""What all tests share: where the real data lies, and that coverage skips child processes."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# `make test` tries the same examples in every run: a failure is a change of the code, never the
# luck of a draw. `make fuzz` draws others each time, and more of them.
settings.register_profile("repeatable", derandomize=True, max_examples=60, **SLOW)
settings.register_profile("fresh", derandomize=False, max_examples=1000, **SLOW)
settings.load_profile("repeatable")

MEASURING = "COVERAGE_PROCESS_CONFIG"
"""This variable makes coverage measure child processes, too."""
if "PYTEST_XDIST_WORKER" in os.environ:
    # In `make coverage` most child processes run whole stages. Measuring those takes longer and
    # would find few statements that the tests do not run themselves.
    os.environ.pop(MEASURING, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make golden`."""
    parser.addoption("--record", action="store_true", help="write the pages of tests/golden anew")


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_products() -> Iterator[None]:
    """Give each test process one thread of NumPy's BLAS, because several run at once."""
    import numpy  # noqa: F401  (the limit applies to libraries that are loaded)

    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def settings_are_composed_and_read_once() -> Iterator[None]:
    """Give a copy of what Hydra composed before from the same folders and the same overrides.

    It takes a tenth of a second each time, and most tests of a person's file ask for the same.
    Where overrides differ, a third of the time is reading files of conf/ that did not change.
    """
    from hydra._internal.hydra import Hydra
    from omegaconf import OmegaConf

    compose, load = Hydra.compose_config, OmegaConf.load
    composed, loaded = dict[str, Any](), dict[tuple[Path, int], Any]()

    def composed_once(self: Hydra, *arguments: Any, **named: Any) -> Any:
        folders = [each.path for each in self.config_loader.get_search_path().get_path()]
        if any("pytest-of-" in str(folder) for folder in folders):  # a test may change its files
            return compose(self, *arguments, **named)
        key = repr((folders, arguments, named))
        if key not in composed:
            composed[key] = compose(self, *arguments, **named)
        return copy.deepcopy(composed[key])

    def loaded_once(file: Any) -> Any:
        path = Path(getattr(file, "name", file))
        if not path.is_absolute():  # a file of Hydra's package, opened under its bare name
            return load(file)
        key = path, path.stat().st_mtime_ns
        if key not in loaded:
            loaded[key] = load(file)
        return copy.deepcopy(loaded[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hydra, "compose_config", composed_once)
        patch.setattr(OmegaConf, "load", staticmethod(loaded_once))
        yield


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Begin each test with one thread: inputs are tiny, and several tests run at once."""
    from utility_calibration.metrics.kernels.threads import set_threads

    set_threads(1)


@pytest.fixture(autouse=True)
def errors_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo after each test what a stage asks of Hydra; processes that begin later would copy it."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Real logits, checkpoint and word vectors: SHARED_DIR, or `shared/` beside the repository.

    Without them the test is skipped; under CI their absence is a failure.
    """
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SHARED_DIR") or beside)
    if not (folder / "logits").is_dir():
        message = f"no real data in {folder}; set SHARED_DIR to the folder that holds logits/"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
