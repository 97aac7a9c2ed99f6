"""Stage 1 of 6: the logits of each benchmark, from its source to data/logits/<benchmark>.npz.

utility-calibration logits benchmark=cifar10_resnet
utility-calibration logits suite=cifar paths.precomputed=/folder/with/npz/files
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

from omegaconf import DictConfig, OmegaConf

from utility_calibration.metrics.atomic import atomic_path

from .harness.artifacts import CorruptFile
from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.parameters import CONF
from .harness.progress import say
from .harness.settings import Paths, Settings
from .harness.units import Request
from .harness.workers import UnitsFailed
from .plan import Plan
from .scoring.points import logits_path
from .sources.input_digests import ready_made
from .tasks import logits_task


@command
def main(config: DictConfig) -> None:
    """Make the logits of the requested benchmarks."""
    run_logits(Plan(Request.from_hydra(config).units()))


def run_logits(plan: Plan) -> None:
    """Make the logits that are not up to date; UnitsFailed names those that failed, at the end."""
    for settings in plan.settings.values():
        _check_word_vectors(settings)
    if not skips_absent(plan):
        run_tasks("logits", list(plan.logits.values()), one_by_one=True)
        return
    failures = []
    for name, task in plan.logits.items():
        try:
            run_tasks("logits", [task], one_by_one=True)
        except UnitsFailed as error:
            if ready_made(plan.settings[name]):
                raise  # a file that is there and cannot be read is no absent one
            failures.append(f"{name}: {error}")
            say(f"{name} is left out: {error}")
    if len(failures) == len(plan.logits):
        raise UnitsFailed("; ".join(failures))


def _check_word_vectors(settings: Settings) -> None:
    """Check a file of word vectors at once, before images are counted and large files are read.

    One that went away after the logits were made is not missed.
    """
    name = (settings.benchmark.similarity or {}).get("vectors_path")
    if not name:
        return
    path = Path(name).expanduser()
    is_needed = settings.force or record_of(logits_path(settings)) is None
    if path.exists() or is_needed:
        from .sources.similarity import check_vectors

        check_vectors(path)


def skips_absent(plan: Plan) -> bool:
    """Whether the plan's suite leaves out benchmarks without logits; a single one always stays."""
    suite = next(iter(plan.settings.values())).suite
    return suite.skip_absent and len(plan.settings) > 1


def with_logits(plan: Plan) -> Plan:
    """The plan without the benchmarks that have no logits, if its suite leaves them out."""
    if not skips_absent(plan):
        return plan
    absent = []
    for name, settings in plan.settings.items():
        if not _has_logits(plan, name, settings):
            absent.append(name)
    return left_out(plan, absent, "no logits")


def left_out(plan: Plan, absent: Collection[str], why: str) -> Plan:
    """The plan without the benchmarks `absent`, which are named; all of it, if none would stay."""
    if not absent or len(absent) == len(plan.settings):
        return plan
    say(f"left out, because there are {why}: {', '.join(absent)}")
    return Plan([unit for unit in plan.units if unit.benchmark not in absent])


def _has_logits(plan: Plan, name: str, settings: Settings) -> bool:
    """Whether a later stage finds logits of a benchmark, or takes them from another folder."""
    with suppress(CorruptFile):
        plan.found(name)
        return True
    usual = replace(settings, paths=_usual(settings))
    return ready_made(settings) is not None or logits_task(usual).is_up_to_date()


def require_logits(plan: Plan) -> None:
    """Check that each benchmark has logits, as they lie; take ready-made ones where it has none.

    Those are of a folder paths.precomputed, or in the usual folder, if `paths.data` is another one.
    No later stage runs a source: it needs neither the images nor their settings.

    Raises:
        InputError: a benchmark's metric does not exist.
        UnitsFailed: which logits are absent, and how to make them.
    """
    absent = []
    for name, settings in plan.settings.items():
        if settings.benchmark.metrics is not None:
            from .scoring.files import columns_of  # with pandas

            columns_of(settings)
        with suppress(CorruptFile):
            _say_differences(plan, name, settings)
            continue
        if ready_made(settings):
            # `force` is for the later stage's units.
            task = logits_task(replace(settings, force=False))
            run_tasks("logits", [task], one_by_one=True)
            continue
        usual = logits_task(replace(settings, paths=_usual(settings)))
        if usual.is_up_to_date():
            say(f"{name}: logits copied from {usual.path}")
            with atomic_path(logits_path(settings)) as temporary:
                copyfile(usual.path, temporary)
        else:
            absent.append(name)
    if absent:
        fix = "run utility-calibration logits with the same arguments first"
        raise UnitsFailed(f"no logits, or damaged ones, of {', '.join(absent)}; {fix}")


def _say_differences(plan: Plan, name: str, settings: Settings) -> None:
    """Say which settings of the source the logits were not made with; CorruptFile without any."""
    logits = plan.found(name)
    source = settings.benchmark.source
    other = [key for key, value in logits.options.items() if source.get(key) != value]
    if logits.details.get("rows") != settings.benchmark.rows:
        other.append("benchmark.rows")
    if other:
        say(
            f"{name}: the logits lie there with other settings of the source "
            f"({', '.join(other)}); utility-calibration logits makes them again"
        )


def _usual(settings: Settings) -> Paths:
    """The paths of a command line that names none."""
    return replace(settings.paths, data=Path(OmegaConf.load(CONF / "paths/default.yaml").data))
