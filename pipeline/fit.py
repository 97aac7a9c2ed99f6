"""Stage 2 of 6: fit each calibrator on the calibration points of every split.

utility-calibration fit benchmark=cifar10_resnet calibrator=temperature split=3
utility-calibration fit suite=cifar calibrator=vector

The fitted parameters of one split are data/fits/<benchmark>/<calibrator>/<split>.npz.
"""

from omegaconf import DictConfig

from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.progress import say
from .harness.units import Request
from .logits import require_logits, with_logits
from .plan import Plan


@command
def main(config: DictConfig) -> None:
    """Fit the requested units."""
    run_fit(with_logits(Plan(Request.from_hydra(config).units())))


def run_fit(plan: Plan) -> None:
    """Fit what is not up to date; UnitsFailed names what failed, after all others are done."""
    require_logits(plan)
    said: set[str] = set()
    for unit in plan.units:
        record, seed = record_of(unit.fit_path), unit.settings.splits.seed
        old_seed = record["splits"]["seed"] if record else seed
        if old_seed != seed and unit.benchmark not in said:
            said.add(unit.benchmark)
            message = (
                f"{unit.benchmark}: fits of seed {old_seed} are replaced by those of seed {seed}"
            )
            say(f"{message}; give each seed its own paths.data and paths.results to keep both")
    run_tasks("fit", [plan.fit(unit) for unit in plan.units])
