"""All that DVC's stages would make of a suite, in one process; DVC records it.

python -m pipeline.record suite=digits

Figures of the study and the report are made where they have no receipt, as after a sweep that did
something; what else may have changed of them, DVC sees itself. It looks at all once more afterwards
(`make repro`), and does what was edited while this ran.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.dynamics import of_suite, run_dynamics
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.command import CONF, command
from pipeline.harness.fingerprint import PACKAGES
from pipeline.harness.progress import say
from pipeline.harness.receipts import receipt_path
from pipeline.harness.units import Request
from pipeline.parameters import PATH, read_parameters, write_parameters
from pipeline.report import run_report
from pipeline.sweep import sweep

LAST = "dynamics", "report"
"""The stages that are not of units."""


class NotRecorded(RuntimeError):
    """DVC could not record stages, for the reason that it gave. One line."""


@command
def main(config: DictConfig) -> None:
    """Do what the stages would; write params.yaml; have DVC record the outputs with all sources."""
    request, before = Request.from_hydra(config), sources()
    sweep(request, config)
    made = finish(request, config)
    folder = request.benchmark_settings()[0]["paths"]["precomputed"]
    parameters = {"suite": request.suite, "precomputed": folder or ""}
    if read_parameters(PATH) != parameters:
        write_parameters(PATH, parameters)
    if sources() == before:
        commit(stages_of(request.calibrators, made))
    else:  # what was loaded before and what after the edit, nobody knows
        say("code or configuration was edited meanwhile: DVC looks at every stage by itself")


def sources() -> dict[str, str]:
    """The checksums of all that results may hang on: code and configuration."""
    folders = [CONF.parent / name for name in (*PACKAGES, CONF.name)]
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path.as_posix(): sha256_of(path) for path in files if path.suffix != ".pyc"}


def finish(request: Request, config: DictConfig) -> list[str]:
    """Make those last stages of a whole suite that have no receipt; return their names."""
    if not request.whole_suite or request.calibrators != tuple(config.suite.calibrators):
        return []
    settings = request.benchmark_settings()[0]
    missing = [name for name in LAST if not receipt_path(settings, request.suite, name).exists()]
    if "dynamics" in missing:
        run_dynamics(of_suite(request, config))
    if "report" in missing:
        run_report(request)
    return missing


def stages_of(calibrators: Sequence[str], made: Sequence[str]) -> list[str]:
    """The names of dvc.yaml's stages that these calibrators have, and of those of LAST in `made`.

    None where that is all: DVC reads its files anew for every name. A suite may have calibrators
    without a stage.
    """
    listed: Any = OmegaConf.load(CONF / "shared" / "calibrators.yaml")
    own = [name for name in listed["calibrators"] if name in calibrators]
    if own == listed["calibrators"]:
        return [] if tuple(made) == LAST else ["logits", "fit", "evaluate", *made]
    units = [f"{stage}@{name}" for stage in ("fit", "evaluate") for name in own]
    return ["logits", *units, *made]


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
