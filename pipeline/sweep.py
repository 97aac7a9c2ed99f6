"""Run a whole suite with one of Hydra's launchers: a job for each benchmark and calibrator.

utility-calibration sweep suite=paper hydra/launcher=slurm hydra.launcher.partition=cpu
utility-calibration sweep suite=digits hydra/launcher=queue

It calls the stages with --multirun. If all jobs succeed, it then writes results/scores and the
report on this machine. If some fail, the same command makes what is missing.
"""

import os
import subprocess
import sys

from omegaconf import DictConfig

from .harness.command import FULL_ERROR, SHOW_TRACEBACKS, command
from .harness.units import Request, studied_of
from .harness.workers import UnitsFailed


@command
def main(config: DictConfig) -> None:
    """Run the requested suite; the launcher and all other settings go to the stages."""
    arguments, request = sys.argv[1:], Request.from_hydra(config)
    shared = [text for text in arguments if not text.startswith(("benchmark=", "calibrator="))]
    here = [text for text in arguments if not text.startswith("hydra")]
    benchmarks = f"benchmark={','.join(request.benchmarks)}"
    pairs = [benchmarks, f"calibrator={','.join(request.calibrators)}"]
    jobs = {"logits": [benchmarks], "fit": pairs, "evaluate": pairs}
    for stage in ("dynamics", "users"):
        studied = studied_of(config, stage, request.benchmarks)
        if studied:
            jobs[stage] = [f"benchmark={','.join(studied)}"]
    failed = [stage for stage, pair in jobs.items() if _run(stage, "--multirun", *pair, *shared)]
    if not failed:
        failed = [stage for stage in ("evaluate", "report") if _run(stage, *here)]
    if failed:
        fix = "utility-calibration status says what is missing, and the same command makes it"
        raise UnitsFailed(f"sweep: jobs of {', '.join(failed)} failed; {fix}")


def _run(stage: str, *arguments: str) -> int:
    program = [sys.executable, "-m", "utility_calibration", stage, *arguments]
    environment = os.environ | {FULL_ERROR: str(int(SHOW_TRACEBACKS))}
    return subprocess.run(program, env=environment).returncode
