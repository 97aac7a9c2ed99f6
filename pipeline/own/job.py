"""A job: what a person said, what their file holds, and all that follows from both, made once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from hydra.utils import get_class

from ..harness.parameters import UsageError
from ..harness.settings import Settings, Splits
from ..harness.units import composed_with, resolved_with, units_of
from ..plan import Plan
from ..scoring.groups import REPAIRS
from ..scoring.points import CachedLogits
from .choices import Choices
from .options import Options
from .utilities import own_utilities

PER_CLASS = ("vector",)  # quick methods with parameters for each class


def settings_of(options: Options, methods: Sequence[str]) -> dict[str, Settings]:
    """The pipeline's configuration of each method, as far as the options say it."""
    if not methods:
        return {}
    # The files of a quick look have the names of any other look: its evaluation is not named.
    quick = ("evaluation=quick", "evaluation.name=default") if options.quick else ()
    overrides = (
        *("benchmark=file", f"tuning={options.tuning}", f"splits.count={options.split_count}"),
        *(f"seed={options.seed}", f"jobs={options.jobs}", *quick, *options.evaluation),
    )
    config, calibrators = composed_with(methods, overrides)
    # What follows is set after composing: it needs no quoting for Hydra's grammar then.
    config.benchmark.name = re.sub(r"[^\w-]+", "_", options.file.stem)[:50] or "file"
    config.benchmark.precomputed = None
    config.benchmark.source.path = "set last"
    if options.similarity is not None:
        sign = {} if options.decimal is None else {"decimal": options.decimal}
        config.benchmark.similarity = {
            "_target_": "utility_calibration.pipeline.own.similarity.file_similarity",
            "path": str(options.similarity),
            **sign,
        }
    settings = resolved_with(calibrators, config)
    # The person's paths and texts are set last: OmegaConf would resolve `${…}` and `???` in them.
    texts: dict[str, Any] = asdict(Choices.of(options))
    texts |= {"path": str(options.file), "test": options.test and str(options.test)}
    files = filter(None, (options.file, options.test))
    title = options.title or ", tested on ".join(path.stem for path in files)
    first = settings[methods[0]]
    source = {**first.benchmark.source, **texts}
    benchmark = replace(first.benchmark, title=title, source=source)
    paths = replace(first.paths, data=options.output / "data", results=options.output)
    return {k: replace(each, benchmark=benchmark, paths=paths) for k, each in settings.items()}


def takes(settings: Settings, what: str) -> bool:
    """Whether the method can be fitted with `weights`, or to own `utilities`."""
    return bool(getattr(get_class(settings.calibrator["_target_"]), f"takes_{what}"))


@dataclass(frozen=True)
class Job:
    """The options, the file's logits, the settings of each method, and the plan that scores them.

    class_names: [C], numbers where the file has no names.
    """

    options: Options
    logits: CachedLogits
    class_names: list[str]
    settings: Mapping[str, Settings]
    plan: Plan

    @classmethod
    def of(cls, options: Options, said: Mapping[str, Settings], logits: CachedLogits) -> Self:
        """The job, from `settings_of` each method that may run.

        Raises:
            InputError, UsageError: an own utility or a method that does not fit the file.
        """
        details = logits.details
        methods = _fitting(options, said, details)
        names = details.get("class_names") or [str(k) for k in range(details["classes"])]
        own = own_utilities(options.own_files, names, options.decimal)
        used = dict.fromkeys([*methods, *filter(None, [options.method])])
        settings = _completed({name: said[name] for name in used}, options, details, own)
        units = [
            unit
            for name in methods
            for unit in units_of(settings[name], name, range(settings[name].splits.count))
        ]
        return cls(options, logits, names, settings, Plan(units))

    @property
    def first(self) -> Settings:
        """The settings of the first method; all but its calibrator are those of every method."""
        return self.plan.units[0].settings


def _completed(
    settings: Mapping[str, Settings],
    options: Options,
    details: Mapping[str, Any],
    own: Mapping[str, Any],
) -> dict[str, Settings]:
    """The settings of each method, with what the file adds: its splits, its size, own utilities."""
    first = next(iter(settings.values()))
    evaluation = replace(first.evaluation, own=dict(own))
    aims = [own[f"u_{kind}"] for kind in options.calibrate_for]
    completed = {
        name: replace(each, evaluation=evaluation, calibrator=_aimed_at(aims, each))
        for name, each in settings.items()
    }
    splits = _splits_of(first.splits, details)
    return {name: replace(each, splits=splits) for name, each in completed.items()}


def _splits_of(splits: Splits, details: Mapping[str, Any]) -> Splits:
    """The splits that the file gives, else random ones as `splits` says."""
    sizes_of_splits = details.get("given_splits")
    if not sizes_of_splits:
        return splits
    shares = [sizes["calibration"] / sum(sizes.values()) for sizes in sizes_of_splits]
    share = sum(shares) / len(shares)
    return replace(splits, count=len(shares), calibration_fraction=share)


def _aimed_at(aims: Sequence[Any], settings: Settings) -> Any:
    """The method's calibrator, which calibrates for the utilities `aims`, if it can and any are."""
    if not aims or not takes(settings, "utilities"):
        return settings.calibrator
    return {**settings.calibrator, "utilities": list(aims), "standard": False}


def _fitting(
    options: Options, said: Mapping[str, Settings], details: Mapping[str, Any]
) -> list[str]:
    """The methods that can be fitted to the points, with the one that repairs groups."""
    methods = list(options.methods)
    # A quick look leaves out what has more parameters than points, and so takes longest.
    if options.quick and options.may_add and 2 * details["classes"] > details["n"]:
        methods = [name for name in methods if name not in PER_CLASS]
    if "groups" not in details:
        for name in options.used:
            if said[name].calibrator.get("needs_groups"):
                raise UsageError(f"{name}: needs groups; name their column: --groups NAME")
    elif options.may_add and not options.calibrate_for:
        methods.append(REPAIRS)
    if "weights" not in details:
        return methods
    saved = options.method
    if saved is not None and not takes(said[saved], "weights"):
        raise UsageError(f"--method {saved}: cannot be fitted with weights; save another one")
    methods = [name for name in methods if takes(said[name], "weights")]
    if not methods:
        raise UsageError(f"{options.file}: weights, which no method takes that --methods names")
    return methods
