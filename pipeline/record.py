"""All that DVC's stages would make of a suite, in one process; DVC records it.

DVC_STAGE=record python -m pipeline.repro     # as `make repro` does, for what params.yaml says

Figures of the study and the report are made where they have no receipt, as after a sweep that did
something; what else may have changed of them, DVC sees itself. It looks at all once more afterwards
(`make repro`), and does what was edited while this ran.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipeline.dynamics import of_suite, run_dynamics
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.command import CONF, command
from pipeline.harness.fingerprint import PACKAGES
from pipeline.harness.progress import say
from pipeline.harness.receipts import receipt_path
from pipeline.harness.units import Request, SelectionError
from pipeline.parameters import PATH, asked_of_make, read_parameters, write_parameters
from pipeline.repro import RECORD, arguments_of
from pipeline.sweep import sweep

LAST = "dynamics", "report"
"""The stages that are not of units."""


class NotRecorded(RuntimeError):
    """DVC could not record stages, for the reason that it gave. One line."""


@command
def main(config: DictConfig) -> None:
    """Do what the stages would; write params.yaml; have DVC record the outputs with all sources."""
    request, before = Request.from_hydra(config), sources()
    asked = asked_of_make(os.environ)
    parameters = read_parameters(PATH) | asked
    check_is_what_stages_do(parameters, HydraConfig.get().overrides.task)
    sweep(request, config)
    made = finish(request, config)
    if asked:
        write_parameters(PATH, asked)
    if (sources(), read_parameters(PATH)) == (before, parameters):
        commit(stages_of(request.calibrators, made))
    else:  # what was loaded before and what after the edit, nobody knows
        say("code or configuration was edited meanwhile: DVC looks at every stage by itself")


def check_is_what_stages_do(parameters: Mapping[str, str], overrides: Sequence[str]) -> None:
    """Raise `SelectionError` for what DVC would record as results of other settings."""
    _, expected = arguments_of(RECORD, parameters)
    if missing := [text for text in expected if text not in overrides]:
        raise SelectionError(f"{PATH} says {' '.join(missing)}; make repro SUITE=… changes it")
    for text in overrides:
        if text not in expected and not text.lstrip("+").startswith(("jobs=", "device=", "sweep.")):
            raise SelectionError(f"{text}: DVC's stages know nothing of it; use pipeline.sweep")


def sources() -> dict[str, str]:
    """The checksums of all that results may hang on: code and configuration."""
    folders = [CONF.parent / name for name in (*PACKAGES, CONF.name)]
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path.as_posix(): _sha256(path) for path in files if not _is_scratch(path)}


def _is_scratch(path: Path) -> bool:
    """Compiled code, which a run adds to, and what editors leave."""
    parts = path.relative_to(CONF.parent).parts
    return any(part.startswith((".", "#", "__pycache__")) or part.endswith("~") for part in parts)


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except FileNotFoundError:  # just renamed
        return ""


def finish(request: Request, config: DictConfig) -> bool:
    """Make the study's figures and the report if one lacks its receipt; return whether it did.

    Both, as figures of the study stand in the report.
    """
    settings = request.benchmark_settings()[0]
    receipts = [receipt_path(settings, request.suite, name) for name in LAST]
    if all(path.exists() for path in receipts):
        return False
    from pipeline.report import run_report  # imports torch, for nothing where all is done

    run_dynamics(of_suite(request, config))
    run_report(request)
    return True


def stages_of(calibrators: Sequence[str], last: bool) -> list[str]:
    """The names of dvc.yaml's stages that these calibrators have, and with `last` those of LAST.

    None where that is all: DVC reads its files anew for every name. A suite may have calibrators
    without a stage.
    """
    listed: Any = OmegaConf.load(CONF / "shared" / "calibrators.yaml")
    own = [name for name in listed["calibrators"] if name in calibrators]
    if own == listed["calibrators"]:
        return [] if last else ["logits", "fit", "evaluate"]
    units = [f"{stage}@{name}" for stage in ("fit", "evaluate") for name in own]
    return ["logits", *units, *(LAST if last else ())]


def commit(stages: Sequence[str]) -> None:
    """Have DVC record stages, by default all, as they lie here; the stages' files stay links.

    Raises:
        NotRecorded: an output is missing, or another DVC is at work.
    """
    asked = [sys.executable, "-m", "dvc", "commit", "--force", "--no-relink", *stages]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = reasons[0].removeprefix("ERROR: ") if reasons else done.stderr.strip()
        raise NotRecorded(f"dvc commit: {reason}")


if __name__ == "__main__":
    main()
