"""What a command line says: the suite, DVC's params.yaml, and the names that exist."""

import difflib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError

from .machine import links

CONF = Path(__file__).resolve().parents[2] / "conf"  # from any working folder
SEARCH_PATH = "hydra.searchpath"


class UsageError(ValueError):
    """A command line that names something that does not exist. One line, exit code 2."""


def names_in(group: str, arguments: Sequence[str] = ()) -> list[str]:
    """The names of the files of a group, wherever Hydra finds them; [] where there is no group.

    That is in conf/, --config-dir and hydra.searchpath. `arguments`: a command line that Hydra has
    not read yet.
    """
    with configured():
        loader = GlobalHydra.instance().config_loader()
        return loader.get_group_options(group, ObjectType.CONFIG, "config", searched(arguments))


def content_of(group: str, name: str) -> DictConfig:
    """What a file of a group says itself, without those of its defaults list."""
    with configured():
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        loaded = loader.repository.load_config(f"{group}/{name}")
    assert loaded is not None and isinstance(loaded.config, DictConfig)
    return loaded.config


def searched(arguments: Sequence[str]) -> list[str]:
    """The overrides that make Hydra search the folders that a command line names."""
    overrides = [text for text in arguments if setting_of(text) == SEARCH_PATH]
    folder = get_args_parser().parse_known_args(list(arguments))[0].config_dir
    if folder is not None:
        overrides.append(f"{SEARCH_PATH}=['file://{Path(folder).resolve()}']")
    return overrides


def configured() -> AbstractContextManager[None]:
    """A block in which Hydra can compose: that of the running program, or else one with conf/."""
    if GlobalHydra.instance().is_initialized():
        return nullcontext()
    return initialize_config_dir(str(CONF), version_base="1.3")


def entries_of_suite(config: DictConfig, overrides: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The settings of each benchmark and each calibrator of the suite, by group and name.

    A group is absent where the command line chooses one of its files. Each entry is composed as
    that of a unit, so it has the other overrides, too.

    UsageError: the suite lists no names.
    """
    names_in_group = {group: names_of(config, group) for group in EXAMPLES}
    first = {group: names[0] for group, names in names_in_group.items()}

    def entry(group: str, name: str) -> Any:
        # A benchmark is composed with some calibrator, and a calibrator with some benchmark.
        pair = [f"{key}={value}" for key, value in {**first, group: name}.items()]
        return with_params(compose("config", [*overrides, *pair]), overrides)[group]

    entries = {}
    for group, names in names_in_group.items():
        is_chosen = HydraConfig.get().runtime.choices.get(group)
        if not is_chosen:
            entries[group] = {name: entry(group, name) for name in names}
    return entries


def names_of(config: DictConfig, group: str) -> list[str]:
    """The chosen benchmark or calibrator, else those of the suite, each once.

    UsageError: the suite lists no names.
    """
    chosen = HydraConfig.get().runtime.choices.get(group)
    names = [chosen] if chosen else config.suite[f"{group}s"]
    if isinstance(names, str) or not names:
        such = f"expected a list of names, such as [{names or EXAMPLES[group]}]"
        raise UsageError(f"suite.{group}s={names}: {such}")
    return list(dict.fromkeys(names))  # each once: a unit has one file


EXAMPLES = {"benchmark": "digits", "calibrator": "temperature"}
"""The groups of which a suite lists names, each with a name for messages."""


def setting_of(override: str) -> str:
    """The setting that an override names: `++a.b=1` -> `a.b`, `a/b@c=d` -> `a/b`."""
    return override.partition("=")[0].lstrip("+~").partition("@")[0]


def with_suite(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the suite `any` where they choose a benchmark and no suite.

    Else the default suite, digits, would choose its few tuning runs for every benchmark.
    """
    settings = [setting_of(text) for text in arguments]
    if "benchmark" not in settings or {"suite", "params"} & set(settings):
        return list(arguments)
    place = settings.index("benchmark")  # argparse wants settings side by side
    return [*arguments[:place], "suite=any", *arguments[place:]]


def check_sweep(arguments: Sequence[str]) -> None:
    """UsageError: jobs of --multirun would write the same files with different settings.

    A unit's files bear its benchmark, calibrator, split and evaluation. Other settings need folders
    of their own, whose names hold the setting: paths.data='data/${calibrator.loss}'.
    """
    if not {"-m", "--multirun"} & {*arguments}:
        return
    parser = OverridesParser.create()
    overrides = [text for text in arguments if "=" in text]
    values = {setting_of(text): text.partition("=")[2] for text in overrides}
    folders = [values.get("paths.data", ""), values.get("paths.results", "")]
    for text in overrides:
        if not parser.parse_override(text).is_sweep_override():
            continue
        key = setting_of(text)
        if key in IN_NAMES or key.startswith(("paths.", "hydra")):
            continue
        if _is_in_name(key, values.get("benchmark"), arguments):
            continue
        # The value of a setting, or the name of a group's chosen file, as a folder can hold it.
        value = f"${{hydra:runtime.choices.{key}}}" if names_in(key, arguments) else f"${{{key}}}"
        if not all(value in folder for folder in folders):
            fix = f"add 'paths.data=data/{value}' 'paths.results=results/{value}'"
            raise UsageError(f"{key}={values[key]}: all jobs would write the same files; {fix}")


def _is_in_name(key: str, benchmark: str | None, arguments: Sequence[str]) -> bool:
    """Whether the benchmark's name holds the setting, as that of calarena holds its two."""
    group, _, rest = key.partition(".")
    if group != "benchmark" or benchmark not in names_in("benchmark", arguments):
        return False
    written = dict(content_of("benchmark", benchmark).items_ex(resolve=False))
    return f"${{.{rest}}}" in str(written.get("name"))


IN_NAMES = {"benchmark", "calibrator", "split", "evaluation", "jobs"}
"""Settings whose values the names of files hold, or which change none."""
OF_A_RUN = {"params", "benchmark", "calibrator", "split", "jobs", "force", "objective"}
"""The only settings that stand beside `params` on a command line: the file has all others."""


def with_params(config: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """The configuration with the values of the file `params`, which DVC composed from conf/.

    UsageError: the file is absent, has a setting that does not exist, or chooses what DVC's stages
    choose; an override sets what the file says; a folder of DVC's outputs is a symbolic link.
    """
    path = config.get("params")
    if path is None:
        return config
    linked = links() if "DVC_STAGE" in os.environ else []
    if linked:
        raise UsageError("; ".join(linked))
    values = _params(Path(path)).copy()
    keys = {setting_of(text) for text in overrides}
    others = sorted(key for key in keys - OF_A_RUN if not key.startswith("hydra"))
    if others:
        fix = f"dvc exp run -S {others[0]}=... writes it there"
        raise UsageError(f"{others[0]}: {path} has this setting; {fix}")
    for key, instead in (("benchmark", "suite.benchmarks"), ("calibrator", "suite.calibrators")):
        if values.get(key) is not None:
            raise UsageError(f"{path}: {key}: DVC makes all of a suite; set {instead}=[...]")
    for key in keys | OF_A_RUN & {"params", "benchmark", "calibrator"}:
        values.pop(key, None)
    try:
        merged = OmegaConf.merge(config, values)
    except ConfigKeyError as error:
        raise UsageError(f"{path}: {error.full_key}: no such setting; remove it") from error
    assert isinstance(merged, DictConfig)
    return merged


@cache
def _params(path: Path) -> DictConfig:
    if not path.is_file():
        raise UsageError(f"params={path}: no such file; dvc.yaml's commands start from its folder")
    values = OmegaConf.load(path)
    if not isinstance(values, DictConfig) or "suite" not in values:
        fix = f"git checkout {path.name} brings them back"
        raise UsageError(f"{path}: not the parameters of dvc.yaml; {fix}")
    return values


def known_instead(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known name, and all known names."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"{hint}; known: {', '.join(known)}"
