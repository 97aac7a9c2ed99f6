"""Names that a command line has wrong: what to write instead of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

CONF = Path(__file__).resolve().parents[2] / "conf"
"""The configuration's folder, so that stages start from any working folder."""
LEFT_OPEN = ("benchmark", "calibrator")
"""Groups of which a command line need not choose a file."""


class UsageError(ValueError):
    """A command line that names something that does not exist. One line, exit code 2."""


def known_instead(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known name, and all known names."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"{hint}; known: {', '.join(known)}"


def instead_of(key: str, arguments: Sequence[str]) -> str:
    """One line about `key`, which no chosen file of the configuration has.

    Args:
        key: the setting, such as benchmark.source.data.
        arguments: the whole command line.
    """
    *path, last = key.split(".")
    names = [text.partition("=")[0].lstrip("+") for text in arguments]
    others = [text for text, name in zip(arguments, names) if name != key and "=" in text]
    if path and path[0] in LEFT_OPEN and path[0] not in names:
        group = path[0]
        of_suite = OmegaConf.select(_composed(others), f"suite.{group}s") or []
        files = sorted(file.stem for file in (CONF / group).glob("*.yaml"))
        composed = {name: _composed([f"{group}={name}", *others]) for name in files}
        having = [name for name in files if last in _node(composed[name], path)]
        if not having:
            return f"{key}: no {group} is chosen, and no {group} has this setting"
        first, *rest = sorted(having, key=lambda name: name not in of_suite)
        more = f" (or {', '.join(rest[:4])}{', ...' * (len(rest) > 4)})" if rest else ""
        return f"{key}: no {group} is chosen; choose {group}={first}{more}"
    place = _node(_composed(others), path)
    if not place:  # a misspelt part on the way
        return instead_of(".".join(path), [".".join(path), *others])
    groups = [folder.name for folder in CONF.iterdir() if folder.is_dir() and not path]
    known = sorted({*map(str, place), *groups} - {"shared", "hydra"})
    close = difflib.get_close_matches(last, known, n=1, cutoff=0.5)
    within = f" in {'.'.join(path)}" if path else ""
    below = [".".join([*path, name]) for name in _places_of(last, place)]
    if not below and not path:  # composing all benchmarks would take seconds
        configs = [*(CONF / "benchmark").glob("*.yaml"), *(CONF / "shared").glob("*.yaml")]
        held = (name for file in configs for name in _places_of(last, OmegaConf.load(file)))
        below = [f"benchmark.{name}" for name in held if "." in name][:1]
    likely = [*below, *(".".join([*path, name]) for name in close)]
    meant = f" (did you mean {likely[0]}?)" if likely else ""
    return f"{key}: no such setting{meant}; known{within}: {', '.join(known)}"


def _places_of(key: str, place: Any) -> Iterator[str]:
    """Where a setting of this name stands below `place`: source.batch_size."""
    for name, value in place.items_ex(resolve=False):
        if str(name) == key:
            yield key
        elif isinstance(value, DictConfig):
            yield from (f"{name!s}.{found}" for found in _places_of(key, value))


def _node(config: DictConfig, path: Sequence[str]) -> DictConfig:
    """The settings at `path`, none if there are none."""
    found = OmegaConf.select(config, ".".join(path)) if path else config
    return found if isinstance(found, DictConfig) else DictConfig({})


def _composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration of these overrides; where they have a mistake, of the chosen files."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            return compose("config", list(overrides))
        except (HydraException, OmegaConfBaseException):
            pairs = [text.split("=", 1) for text in overrides]
            files = [f"{k}={v}" for k, v in pairs if (CONF / k / f"{v}.yaml").is_file()]
            return compose("config", files)
