"""From the command line to units of work: benchmark x calibrator x split, each fully configured."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from hydra import compose
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, ValidationError

from utility_calibration.metrics.registry import check_keys

from .parameters import UsageError, configured, names_of, searched, with_params
from .settings import Settings, suffix_of

FILE_NAME = (r"[\w-][\w .+-]*", "letters, digits, - _ . + and spaces; it becomes a file's name")
COUNT = (r"[1-9]\d{0,2}|1000", "a whole number from 1 to 1000, such as 10")
AT_LEAST_1 = (r"[1-9]\d*", "a whole number of at least 1, such as 15")
COUNT_OR_0 = (r"\d+", "a whole number, such as 200")
SEED = (r"\d{1,9}", "a whole number from 0 to 999999999")
SHARE = (r"0(\.\d+)?|1(\.0+)?|\d(\.\d+)?e-\d+", "a number from 0 to 1, such as 0.1")
ABOVE_0 = (r"(?!0(\.0+)?$)\d+(\.\d+)?(e[+-]?\d+)?", "a number above 0, such as 1.0")
ALLOWED_VALUES = {
    "benchmark.name": FILE_NAME,
    "benchmark.rows": AT_LEAST_1,
    "evaluation.name": FILE_NAME,
    "splits.count": COUNT,
    "dynamics.name": FILE_NAME,
    "dynamics.splits": COUNT,
    "dynamics.iterations": COUNT_OR_0,
    "dynamics.utilities": AT_LEAST_1,
    "dynamics.aligned.high": SHARE,
    "dynamics.misaligned.subsets": AT_LEAST_1,
    "dynamics.misaligned.partition_seed": SEED,
    "dynamics.misaligned.gain": SHARE,
    "dynamics.step_size": ABOVE_0,
    "dynamics.floor_draws": COUNT_OR_0,
    "dynamics.seed": SEED,
    "users.name": FILE_NAME,
    "users.risk_splits": COUNT,
    "users.shortlists": AT_LEAST_1,
    "users.sampled": AT_LEAST_1,
    "users.risk_floor_draws": COUNT_OR_0,
    "users.prior_splits": COUNT,
    "users.utilities": AT_LEAST_1,
    "users.prior_floor_draws": COUNT_OR_0,
    "users.seed": SEED,
    "splits.calibration_fraction": (r"0\.0*[1-9]\d*", "a number between 0 and 1, such as 0.7"),
    "split": (r"\d+", "a whole number, such as 3"),
    "seed": SEED,
    "splits.seed": SEED,
    "jobs": (r"auto|[1-9]\d*", "auto, or a whole number of at least 1, such as 4"),
    "evaluation.bins": AT_LEAST_1,
    "evaluation.class_weights": ("uniform|prior", "uniform or prior"),
    "evaluation.utilities": COUNT_OR_0,
    "evaluation.floor_utilities": AT_LEAST_1,
    "evaluation.bootstrap_utilities": AT_LEAST_1,
    "evaluation.floor_repetitions": COUNT_OR_0,
    "evaluation.bootstrap_repetitions": COUNT_OR_0,
    "evaluation.utility_batch": AT_LEAST_1,
    "evaluation.utility_seed": SEED,
    "evaluation.prior": (
        "uniform|sparse|positive|frequent|graded",
        "uniform, sparse, positive, frequent or graded",
    ),
    "evaluation.noise_seed": SEED,
    "sources.device": (r"auto|cpu|cuda(:\d+)?", "auto, cpu, cuda or cuda:<k>"),
}
"""For each setting of all stages: the pattern of its text, and the words for messages."""
LISTS = {
    "dynamics.families": ("aligned", "misaligned"),
    "users.priors": ("uniform", "sparse", "positive", "frequent", "graded"),
}
"""For each setting that is a list: what its entries may be, each once."""
PARTS = ("benchmark", "calibrator", "split")
"""The settings that choose units."""


@dataclass(frozen=True)
class Unit:
    """One fit and its evaluation. Units with the same files are equal."""

    benchmark: str
    calibrator: str
    split: int
    settings: Settings = field(compare=False)
    """Shared by the splits of a benchmark and calibrator."""

    @property
    def fit_path(self) -> Path:
        """The fitted calibrator, data/fits/<benchmark>/<calibrator>/<split>.npz."""
        return self._path("fits")

    @property
    def scores_path(self) -> Path:
        """The scores; those of a named evaluation have a folder of their own."""
        return self._path(f"scores{self.settings.evaluation.suffix}")

    @property
    def users_path(self) -> Path:
        """The studies of users on the test points."""
        return self._path("users")

    def _path(self, stage: str) -> Path:
        folder = self.settings.paths.data / stage / self.benchmark
        return folder / self.calibrator / f"{self.split}.npz"

    def __str__(self) -> str:
        return f"{self.benchmark} {self.calibrator} split {self.split}"


@dataclass(frozen=True)
class Request:
    """The request of a command line: benchmarks, calibrators, splits and overrides."""

    suite: str
    benchmarks: tuple[str, ...]
    calibrators: tuple[str, ...]
    splits: tuple[int, ...]
    overrides: tuple[str, ...]  # all but those of benchmark, calibrator and split

    @classmethod
    def from_hydra(cls, config: DictConfig) -> Self:
        """The request of the running Hydra program."""
        _check(config)
        count = config.splits.count
        splits = tuple(range(count))
        if config.split is not None:
            if config.split not in splits:
                fix = f"expected a number from 0 to {count - 1} (splits.count={count})"
                raise UsageError(f"split={config.split}: {fix}, or leave it out for all")
            splits = (config.split,)
        parser = OverridesParser.create()
        others = []
        for text in HydraConfig.get().overrides.task:  # perhaps with + or ~ before them
            if parser.parse_override(text).key_or_group not in PARTS:
                others.append(text)  # noqa: PERF401
        benchmarks = tuple(names_of(config, "benchmark"))
        calibrators = tuple(names_of(config, "calibrator"))
        return cls(config.suite.name, benchmarks, calibrators, splits, tuple(others))

    @classmethod
    def for_study(cls, config: DictConfig, study: str) -> Self:
        """The request, on its benchmarks that the suite names for a study, unless one is chosen."""
        request = cls.from_hydra(config)
        if HydraConfig.get().runtime.choices.get("benchmark"):
            return request
        return replace(request, benchmarks=studied_of(config, study, request.benchmarks))

    def units(self) -> list[Unit]:
        """All requested units, in the order of benchmarks, then calibrators, then splits."""
        names = self.calibrators
        first, *others = self.benchmarks
        at_first, entries = composed_with(names, [*self.overrides, f"benchmark={first}"])
        if any(text.lstrip("+~").startswith("calibrator") for text in self.overrides):
            # `calibrator.on=logits` is for the chosen calibrator, so each is chosen once.
            entries = {name: self._composed(first, name).calibrator for name in names}
        configurations = [at_first]
        configurations += [self._composed(benchmark, names[0]) for benchmark in others]
        units = []
        for config in configurations:
            for name, settings in resolved_with(entries, config).items():
                units += units_of(settings, name, self.splits)
        return units

    def _composed(self, benchmark: str, calibrator: str) -> DictConfig:
        pair = f"benchmark={benchmark}", f"calibrator={calibrator}"
        return composed([*self.overrides, *pair])


def studied_of(config: DictConfig, study: str, benchmarks: Sequence[str]) -> tuple[str, ...]:
    """The benchmarks that the suite names for `study` and that are among those of this run.

    A part of a suite (suite.benchmarks=[…]) has no logits of the others.
    """
    return tuple(name for name in config.suite.get(study) or () if name in benchmarks)


def units_of(settings: Settings, calibrator: str, splits: Sequence[int]) -> list[Unit]:
    """The units of one composed pair."""
    name = settings.benchmark.name
    return [Unit(name, calibrator, split, settings) for split in splits]


def composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration under conf/ with `overrides`, and with the values of their `params`."""
    # Hydra keeps its own overrides apart from those of the task.
    of_hydra = HydraConfig.get().overrides.hydra if HydraConfig.initialized() else ()
    with configured():
        config = compose("config", [*searched(of_hydra), *overrides])
    return with_params(config, overrides)


def composed_with(
    calibrators: Sequence[str], overrides: Sequence[str]
) -> tuple[DictConfig, dict[str, DictConfig]]:
    """The configuration with the first of `calibrators`, and the entry of each of them.

    Composing takes long, so it is done once for all.
    """
    beside = [f"+calibrator@each.{name}={name}" for name in calibrators]
    config = composed([*overrides, f"calibrator={calibrators[0]}", *beside])
    entries = dict(config.each.items())
    config.each = None
    return config, entries


def resolved_with(entries: Mapping[str, DictConfig], config: DictConfig) -> dict[str, Settings]:
    """`config` as plain values with each calibrator's entry, which interpolates values of it."""
    settings = resolved(config)
    by_method = {}
    for name, entry in entries.items():
        config.calibrator = entry
        plain: Any = OmegaConf.to_container(config.calibrator, resolve=True)
        by_method[name] = replace(settings, calibrator=plain)
    return by_method


def resolved(config: DictConfig) -> Settings:
    """`config` as plain values; UsageError: one is of another kind, or of no known setting."""
    _check(config)
    plain: Any = OmegaConf.to_container(config)
    try:  # `+benchmark.a=1` adds a setting that no class has
        settings = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Settings), plain))
    except (ConfigKeyError, ValidationError) as error:
        is_unknown = isinstance(error, ConfigKeyError)
        reason = "no such setting" if is_unknown else str(error).partition("\n")[0]
        raise UsageError(f"{error.full_key}: {reason}") from error
    assert isinstance(settings, Settings)
    return settings


def _check(config: DictConfig) -> None:
    mistakes = []
    for key, (pattern, expected) in ALLOWED_VALUES.items():
        value = OmegaConf.select(config, key)
        if value is not None and not re.fullmatch(pattern, str(value)):
            mistakes.append(f"{key}={value}: expected {expected}")
    for key, known in LISTS.items():
        entries = OmegaConf.select(config, key)
        is_list = isinstance(entries, ListConfig)
        if (
            not is_list
            or not entries
            or not set(entries) <= {*known}
            or len({*entries}) < len(entries)
        ):
            mistakes.append(f"{key}={entries}: expected a list of {', '.join(known)}, each once")
    if mistakes:
        raise UsageError("; also: ".join(mistakes))
    evaluation = config.evaluation
    if evaluation.suffix != suffix_of(evaluation.name):
        fix = "it follows from evaluation.name, so set that"
        raise UsageError(f"evaluation.suffix={evaluation.suffix}: {fix}")
    if config.objective is not None:
        check_keys([config.objective], config.evaluation.own or {}, "objective")
