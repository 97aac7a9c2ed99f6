"""A job: what a person said, what their file holds, and all that follows from both, made once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from omegaconf import DictConfig

from utility_calibration.calibrators.wrapped import INSTALL
from utility_calibration.metrics.errors import MissingResource

from ...harness.code_digest import targets_in
from ...harness.parameters import UsageError
from ...harness.settings import DEFAULT_EVALUATION, Benchmark, Settings, Splits
from ...harness.units import Unit, composed_with, resolved_with, units_of
from ...plan import Plan
from ...scoring.groups import REPAIRS
from ...scoring.points import CachedLogits
from ..words.file_options import FileOptions
from .options import Options
from .utilities import TRIED, own_utilities, try_utility

PER_CLASS = ("vector",)
"""Quick methods with parameters for each class."""
SIMILARITY = "utility_calibration.pipeline.own.request.similarity.file_similarity"


def settings_of(options: Options, methods: Sequence[str]) -> dict[str, Settings]:
    """The pipeline's configuration of each method, before the file is read.

    Hydra composes it once, from the files of conf/ that the options choose. Values are set after
    composing, because they need no quoting for Hydra's grammar then.
    """
    if not methods:
        return {}
    chosen = (
        "benchmark=file",
        f"tuning={options.tuning}",
        f"evaluation={'quick' if options.quick else DEFAULT_EVALUATION}",
    )
    config, calibrators = composed_with(methods, [*chosen, *options.evaluation])
    _set_values(config, options)
    settings = resolved_with(calibrators, config)
    first = settings[methods[0]]  # all have one benchmark
    benchmark = _with_texts(first.benchmark, options)
    paths = replace(first.paths, data=options.output / "data", results=options.output)
    return {
        method: replace(of_method, benchmark=benchmark, paths=paths)
        for method, of_method in settings.items()
    }


def _set_values(config: DictConfig, options: Options) -> None:
    """Set what a person says, but for their texts (`_with_texts`)."""
    config.seed = options.seed
    config.jobs = options.jobs
    config.splits.count = options.split_count
    # The files of a quick look have the names of any other look.
    config.evaluation.name = DEFAULT_EVALUATION
    config.benchmark.name = re.sub(r"[^\w-]+", "_", options.file.stem)[:50] or "file"
    config.benchmark.precomputed = None
    config.benchmark.source.path = ""
    if options.similarity is not None:
        similarity = {"_target_": SIMILARITY, "path": str(options.similarity)}
        if options.decimal is not None:
            similarity["decimal"] = options.decimal
        config.benchmark.similarity = similarity


def _with_texts(benchmark: Benchmark, options: Options) -> Benchmark:
    """The benchmark with a person's paths and texts, in which nothing like `${…}` is resolved."""
    files = [path for path in (options.file, options.test) if path is not None]
    title = options.title or ", tested on ".join(path.stem for path in files)
    source = {**benchmark.source, **asdict(FileOptions.of(options))}
    source["path"] = str(options.file)
    if options.test is not None:
        source["test"] = str(options.test)
    return replace(benchmark, title=title, source=source)


def takes(settings: Settings, what: str) -> bool:
    """Whether the method can be fitted with `weights`, or to own `utilities`.

    Raises:
        UsageError: its settings name no class.
    """
    target = settings.calibrator["_target_"]
    module, _, name = target.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        fix = "give module.Class, importable from here"
        raise UsageError(f"_target_: {target}: no such class ({error}); {fix}") from error
    return bool(getattr(kind, f"takes_{what}"))


def _check_installed(settings_by_method: Mapping[str, Settings]) -> None:
    """Raise `MissingResource` if a method needs a package that is not there; none is imported."""
    for name, settings in settings_by_method.items():
        for target in targets_in(settings.calibrator):
            package = target.partition(".")[0]
            if find_spec(package) is None:
                message = f"{name}: the package {package} is not installed"
                raise MissingResource(f"{message}: pip install {INSTALL}")


@dataclass(frozen=True)
class Job:
    """A person's options and logits, the settings of each method, and the plan that scores them."""

    options: Options
    logits: CachedLogits
    class_names: list[str]
    """[C], numbers where the file has no names."""
    settings: Mapping[str, Settings]
    """By method, also of one that is saved and not scored."""
    plan: Plan

    @classmethod
    def of(cls, options: Options, before: Mapping[str, Settings], logits: CachedLogits) -> Self:
        """The job; `before` has `settings_of` each method that may run, before the file was read.

        Raises:
            InputError, UsageError: an own utility or a method that does not fit the file.
            MissingResource: a method's package is not installed.
        """
        details = logits.details
        numbers = [str(number) for number in range(details["classes"])]
        names = details.get("class_names") or numbers
        methods = _fitting(options, before, details)
        used = list(methods)
        if options.method is not None and options.method not in used:
            used.append(options.method)
        chosen = {name: before[name] for name in used}
        _check_installed(chosen)
        settings = _completed(chosen, options, logits, names)
        units = list[Unit]()
        for name in methods:
            of_method = settings[name]
            units += units_of(of_method, name, range(of_method.splits.count))
        return cls(options, logits, names, settings, Plan(units))

    @property
    def first(self) -> Settings:
        """The settings of the first method; all but its calibrator are those of every method."""
        return self.plan.units[0].settings


def _completed(
    before: Mapping[str, Settings],
    options: Options,
    logits: CachedLogits,
    class_names: Sequence[str],
) -> dict[str, Settings]:
    """The settings of each method, with what the file adds: its splits and own utilities.

    InputError: an own utility cannot be used.
    """
    first = next(iter(before.values()))
    utilities = own_utilities(options.own_utilities, class_names, options.decimal)
    if options.utility is not None:  # a mistake in it would show after the fits only
        try_utility(options.utility, logits.arrays()["logits"][:TRIED])
    evaluation = replace(first.evaluation, own=utilities)
    splits = _splits_of(first.splits, logits.details)
    aims = [utilities[f"u_{kind}"] for kind in options.calibrate_for]
    completed = {}
    for name, settings in before.items():
        calibrator = _aimed_at(aims, settings)
        completed[name] = replace(
            settings, evaluation=evaluation, splits=splits, calibrator=calibrator
        )
    return completed


def _splits_of(splits: Splits, details: Mapping[str, Any]) -> Splits:
    """The splits that the file gives, else random ones as `splits` says."""
    sizes_of_splits = details.get("given_splits")
    if not sizes_of_splits:
        return splits
    # The settings have one share for all splits, so it is the mean of theirs.
    shares = [sizes["calibration"] / sum(sizes.values()) for sizes in sizes_of_splits]
    share = sum(shares) / len(shares)
    return replace(splits, count=len(shares), calibration_fraction=share)


def _aimed_at(aims: Sequence[Any], settings: Settings) -> Any:
    """The method's calibrator, which calibrates for the utilities `aims`, if it can and any are."""
    if not aims or not takes(settings, "utilities"):
        return settings.calibrator
    return {**settings.calibrator, "utilities": list(aims), "standard": False}


def _fitting(
    options: Options, before: Mapping[str, Settings], details: Mapping[str, Any]
) -> list[str]:
    """The methods that can be fitted to the points, with the one that repairs groups."""
    methods = list(options.methods)
    # A quick look leaves out what has more parameters than points, and so takes longest.
    if options.quick and options.may_add and 2 * details["classes"] > details["n"]:
        methods = [name for name in methods if name not in PER_CLASS]
    if "groups" not in details:
        for name in options.used:
            if before[name].calibrator.get("needs_groups"):
                raise UsageError(f"{name}: needs groups; name their column: --groups NAME")
    elif options.may_add and not options.calibrate_for:
        methods.append(REPAIRS)
    if "weights" not in details:
        return methods
    saved = options.method
    if saved is not None and not takes(before[saved], "weights"):
        raise UsageError(f"--method {saved}: cannot be fitted with weights; save another one")
    methods = [name for name in methods if takes(before[name], "weights")]
    if not methods:
        raise UsageError(f"{options.file}: weights, which no method takes that --methods names")
    return methods
