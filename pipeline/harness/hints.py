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
    group = key.partition(".")[0]
    names = [text.partition("=")[0] for text in arguments]
    others = [t for t in arguments if t.partition("=")[0].lstrip("+") != key and "=" in t]
    if group in LEFT_OPEN and "." in key and group not in names:
        of_suite = OmegaConf.select(_composed(others), f"suite.{group}s") or []
        files = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
        having = [name for name in files if _has([f"{group}={name}", *others], key)]
        if having:
            first, *rest = sorted(having, key=lambda name: name not in of_suite)
            more = f" (or {', '.join(rest[:4])}{', ...' * (len(rest) > 4)})" if rest else ""
            return f"{key}: no {group} is chosen; choose {group}={first}{more}"
    found = _composed(others)
    *path, last = key.split(".")
    place = OmegaConf.select(found, ".".join(path)) if path else found
    if not isinstance(place, DictConfig):  # a misspelt part on the way
        return instead_of(".".join(path), [".".join(path), *others])
    known = sorted({*map(str, place), *(_groups() if not path else ())})
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


def _groups() -> Iterator[str]:
    hidden = ("hydra", "shared")
    return (p.name for p in CONF.iterdir() if p.is_dir() and p.name not in hidden)


def _has(overrides: Sequence[str], key: str) -> bool:
    *path, last = key.split(".")
    try:
        place = OmegaConf.select(_composed(overrides), ".".join(path))
    except (HydraException, OmegaConfBaseException):
        return False
    return isinstance(place, DictConfig) and last in place


def _composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration of these overrides; where they have a mistake, of the chosen files."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            return compose("config", list(overrides))
        except (HydraException, OmegaConfBaseException):
            pairs = [text.split("=", 1) for text in overrides]
            return compose(
                "config", [f"{k}={v}" for k, v in pairs if (CONF / k / f"{v}.yaml").is_file()]
            )
