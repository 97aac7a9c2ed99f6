"""From the command line to units of work: benchmark x calibrator x split, each fully configured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from pipeline.harness.command import CONF, UsageError

Settings = dict[str, Any]
"""A configuration composed for one benchmark (and calibrator), resolved to plain values."""


LARGEST_SEED = 2**32 - 1
"""What scikit-learn takes; the tuning hands it the seed."""


MOST_SPLITS = 1000
"""Each is a folder and a fit per calibrator."""


class SelectionError(UsageError):
    """A selection of units that does not exist. One line."""


@dataclass(frozen=True)
class Unit:
    """One fit and its evaluation. `settings` is shared by the splits of a pair."""

    benchmark: str
    calibrator: str
    split: int
    settings: Settings

    @property
    def fit_path(self) -> Path:
        """The fitted calibrator, data/fits/<benchmark>/<calibrator>/<split>.npz."""
        return self._path("fits")

    @property
    def scores_path(self) -> Path:
        """The scores; those of a named evaluation lie in a folder of their own."""
        name = self.settings["evaluation"]["name"]
        return self._path("scores" if name == "default" else f"scores-{name}")

    def _path(self, stage: str) -> Path:
        folder = Path(self.settings["paths"]["data"]) / stage / self.benchmark
        return folder / self.calibrator / f"{self.split}.npz"

    def __str__(self) -> str:
        return f"{self.benchmark} {self.calibrator} split {self.split}"


@dataclass(frozen=True)
class Request:
    """What a command line asks for: which benchmarks, calibrators, splits, with which overrides."""

    suite: str
    benchmarks: tuple[str, ...]
    calibrators: tuple[str, ...]
    splits: tuple[int, ...]
    overrides: tuple[str, ...]

    @classmethod
    def from_hydra(cls, config: DictConfig) -> Request:
        """Read the request off a running Hydra program."""
        hydra = HydraConfig.get()
        return cls.of(config, hydra.runtime.choices, list(hydra.overrides.task))

    @classmethod
    def of(cls, config: DictConfig, choices: Any, overrides: Sequence[str]) -> Request:
        """A composed `config`, the options chosen for its groups, the overrides it came from."""
        benchmark, calibrator = choices.get("benchmark"), choices.get("calibrator")
        kept = [
            text for text in overrides if _key(text) not in ("benchmark", "calibrator", "split")
        ]
        return cls(
            suite=config.suite.name,
            benchmarks=(benchmark,) if benchmark else _once(config.suite.benchmarks),
            calibrators=(calibrator,) if calibrator else _once(config.suite.calibrators),
            splits=_splits(config),
            overrides=tuple(kept),
        )

    def settings(self, benchmark: str, calibrator: str | None = None) -> Settings:
        """The configuration of one benchmark, and calibrator if given, with all overrides."""
        if calibrator is None:
            return resolved(composed([*self._without_calibrator(), f"benchmark={benchmark}"]))
        chosen = [f"benchmark={benchmark}", f"calibrator={calibrator}"]
        return resolved(composed([*self.overrides, *chosen]))

    def benchmark_settings(self) -> list[Settings]:
        """One configuration per benchmark."""
        return [self.settings(benchmark) for benchmark in self.benchmarks]

    def units(self) -> list[Unit]:
        """All units asked for: benchmarks, in them calibrators, in them splits."""
        # Composing takes a sixth of a second: not once per pair.
        calibrators = self._calibrators([*self.overrides, f"benchmark={self.benchmarks[0]}"])
        units = []
        for benchmark in self.benchmarks:
            config = composed([*self._without_calibrator(), f"benchmark={benchmark}"])
            for name, chosen in calibrators.items():
                config.calibrator = chosen
                units += units_of(resolved(config), name, self.splits)
        return units

    def _calibrators(self, overrides: list[str]) -> dict[str, DictConfig]:
        """The calibrators' configurations by name."""
        return {
            name: composed([*overrides, f"calibrator={name}"]).calibrator
            for name in self.calibrators
        }

    def _without_calibrator(self) -> list[str]:
        return [text for text in self.overrides if not _key(text).startswith("calibrator.")]


def units_of(settings: Settings, calibrator: str, splits: Sequence[int]) -> list[Unit]:
    """The units of one composed pair."""
    name = settings["benchmark"]["name"]
    return [Unit(name, calibrator, split, settings) for split in splits]


def composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration under conf/ with `overrides`, inside or outside a Hydra program."""
    with _hydra_ready():
        return deepcopy(_composed(GlobalHydra.instance().config_loader(), tuple(overrides)))


@lru_cache(maxsize=64)
def _composed(loader: ConfigLoader, overrides: tuple[str, ...]) -> DictConfig:
    """Once per program, which has one loader: it takes a sixth of a second."""
    return compose("config", list(overrides))


def resolved(config: DictConfig) -> Settings:
    """`config` as plain values; a value left open (`???`) is an error that names it.

    What all stages use of it is checked here, before anything is done.
    """
    _check_splits(config)
    _check_names(config)
    _check_values(config)
    settings = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(settings, dict)
    return {str(key): value for key, value in settings.items()}


@contextmanager
def _hydra_ready() -> Iterator[None]:
    if GlobalHydra.instance().is_initialized():
        yield
        return
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def _key(override: str) -> str:
    """`calibrator.on` of `calibrator.on=logits`, without the leading + or ~."""
    key = OverridesParser.create().parse_override(override).key_or_group
    return str(key)


def _once(names: Sequence[str]) -> tuple[str, ...]:
    """`names` in their order, each once: a unit has one folder."""
    return tuple(dict.fromkeys(names))


def _check_names(config: DictConfig) -> None:
    """`SelectionError` where a name that becomes a folder's would lead out of its place."""
    named = {"evaluation.name": config.evaluation.name}
    if config.benchmark is not None:
        named["benchmark.name"] = config.benchmark.name
    for key, name in named.items():
        if not re.fullmatch(r"[\w-][\w .+-]*", str(name)):
            raise SelectionError(
                f"{key}={name}: becomes part of a file's name; letters, digits, - _ . + and spaces"
            )


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return re.fullmatch(r"0*[1-9]\d*", str(value), re.ASCII) is not None  # a text from oc.env, too


KNOWN_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "force": (_is_switch, "true or false"),
    "jobs": (
        lambda jobs: jobs == "auto" or _is_count(jobs),
        "auto, or a whole number of at least 1, such as 4",
    ),
    "device": (
        lambda name: re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)) is not None,
        "auto, cpu, cuda or cuda:<k>",
    ),
    "tables": (lambda look: look in ("default", "paper"), "default or paper"),
}
"""What settings of all stages may be: the value's test, and what a message says of it."""


def _check_values(config: DictConfig) -> None:
    """`SelectionError` where such a setting has a value that no stage knows."""
    for key, (fits, expected) in KNOWN_VALUES.items():
        value = OmegaConf.select(config, key)
        if not fits(value):
            raise SelectionError(f"{key}={value}: expected {expected}")


def _check_splits(config: DictConfig) -> None:
    """`SelectionError` where the number of splits, their fraction or a seed makes no split."""
    splits = config.splits
    if type(splits.count) is not int or splits.count < 1:
        raise SelectionError(
            f"splits.count={splits.count}: expected a whole number of at least 1, such as 10"
        )
    if splits.count > MOST_SPLITS:
        raise SelectionError(f"splits.count={splits.count}: expected at most {MOST_SPLITS}")
    fraction = splits.calibration_fraction
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
        raise SelectionError(
            f"splits.calibration_fraction={fraction}: expected a number above 0 and below 1, "
            "such as 0.7"
        )
    for name, seed in (("seed", config.seed), ("splits.seed", splits.seed)):
        if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
            raise SelectionError(
                f"{name}={seed}: expected a whole number from 0 to {LARGEST_SEED}, such as 0"
            )


def _splits(config: DictConfig) -> tuple[int, ...]:
    _check_splits(config)
    count = config.splits.count
    if config.split is None:
        return tuple(range(count))
    if type(config.split) is not int or not 0 <= config.split < count:
        raise SelectionError(
            f"split={config.split}: expected a number from 0 to {count - 1} "
            f"(splits.count={count}), or leave it out for all"
        )
    return (config.split,)
