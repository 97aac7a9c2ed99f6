"""Stage 2 of 5: fit each calibrator on the calibration points of every split.

utility-calibration fit benchmark=cifar10_resnet calibrator=temperature split=3
utility-calibration fit suite=cifar calibrator=vector

The fitted parameters of one split are data/fits/<benchmark>/<calibrator>/<split>.npz.
"""

from collections.abc import Sequence
from functools import partial

from omegaconf import DictConfig

from .harness.cache import Record, Save, record_of
from .harness.code import code_digest, targets_in
from .harness.command import command
from .harness.parallel import Progress, Task, run_tasks
from .harness.progress import say
from .harness.units import Request, Unit
from .logits import require_logits
from .scoring.points import task_on_split


@command
def main(config: DictConfig) -> None:
    """Fit the requested units."""
    run_fit(Request.from_hydra(config).units())


def run_fit(units: Sequence[Unit]) -> None:
    """Fit what is not up to date; UnitsFailed names what failed, after all others are done."""
    require_logits(unit.settings for unit in units)
    said: set[str] = set()
    for unit in units:
        record, seed = record_of(unit.fit_path), unit.settings.splits.seed
        held = record["splits"]["seed"] if record else seed
        if held != seed and unit.benchmark not in said:
            said.add(unit.benchmark)
            told = f"{unit.benchmark}: fits of seed {held} are replaced by those of seed {seed}"
            say(f"{told}; give each seed its own paths.data and paths.results to keep both")
    run_tasks("fit", [fit_task(unit) for unit in units])


def fit_task(unit: Unit) -> Task:
    """The task of fitting `unit`; its key has configuration, split, logits and code."""
    calibrator, make = unit.settings.calibrator, partial(_fitted, unit)
    code = code_digest("utility_calibration.pipeline.scoring.fitted", *targets_in(calibrator))
    content = {"calibrator": calibrator, "code": code}
    return task_on_split(unit.settings, unit.split, str(unit), unit.fit_path, make, content)


def _fitted(unit: Unit, device: str, progress: Progress) -> tuple[Save, Record]:
    """Fit; what this imports takes seconds, which a run with nothing to do should not."""
    from .scoring.fitted import fitted

    return fitted(unit, device, progress)
