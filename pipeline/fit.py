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


def run_fit(plan: Plan, warned: list[str] | None = None) -> None:
    """Fit what is not up to date; UnitsFailed names what failed, after all others are done.

    Args:
        warned: as in `run_tasks`.
    """
    require_logits(plan)
    replaced: set[str] = set()  # benchmarks of which a line was said
    for unit in plan.units:
        record = record_of(unit.fit_path)
        if record is None or unit.benchmark in replaced:
            continue
        seed, old_seed = unit.settings.splits.seed, record["splits"]["seed"]
        if old_seed != seed:
            replaced.add(unit.benchmark)
            say(
                f"{unit.benchmark}: fits of seed {old_seed} are replaced by those of seed {seed}; "
                "give each seed its own paths.data and paths.results to keep both"
            )
    run_tasks("fit", [plan.fit(unit) for unit in plan.units], warned=warned)
