"""Run a whole suite with one of Hydra's launchers: a job for each benchmark and calibrator.

python -m pipeline.sweep suite=paper hydra/launcher=slurm hydra.launcher.partition=cpu
python -m pipeline.sweep suite=digits hydra/launcher=queue

It calls the stages with --multirun. If all jobs succeed, it then writes results/scores and the
report on this machine. If some fail, the same command makes what is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys

from omegaconf import DictConfig

from pipeline.harness.command import FULL_ERROR, SHOW_TRACEBACKS, UnitsFailed, command
from pipeline.harness.units import Request


@command
def main(config: DictConfig) -> None:
    """Run the requested suite; the launcher and all other settings go to the stages."""
    arguments = sys.argv[1:]
    request = Request.from_hydra(config)
    chosen = ("benchmark=", "calibrator=")
    shared = [argument for argument in arguments if not argument.startswith(chosen)]
    here = [argument for argument in arguments if not argument.startswith("hydra")]
    benchmarks = f"benchmark={','.join(request.benchmarks)}"
    pairs = [benchmarks, f"calibrator={','.join(request.calibrators)}"]
    study = [f"benchmark={','.join(config.suite.get('dynamics') or ())}"]
    sweeps = [
        ["logits", "--multirun", benchmarks, *shared],
        ["fit", "--multirun", *pairs, *shared],
        ["evaluate", "--multirun", *pairs, *shared],
    ]
    if study != ["benchmark="]:
        sweeps.append(["dynamics", "--multirun", *study, *shared])
    failed = [call[0] for call in sweeps if _run(call) != 0]
    if not failed:
        failed = [stage for stage in ("evaluate", "report") if _run([stage, *here]) != 0]
    if failed:
        raise UnitsFailed(
            f"sweep: jobs of {', '.join(failed)} failed; python -m pipeline.status says what is "
            "missing, and the same command makes it"
        )


def _run(call: list[str]) -> int:
    program = [sys.executable, "-m", f"{__package__}.{call[0]}", *call[1:]]
    environment = os.environ | {FULL_ERROR: str(int(SHOW_TRACEBACKS))}
    return subprocess.run(program, env=environment).returncode


if __name__ == "__main__":
    main()
