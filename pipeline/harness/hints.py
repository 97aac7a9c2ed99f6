"""Names that a command line has wrong: what to write instead of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

CONF = Path(__file__).resolve().parents[2] / "conf"
"""The configuration's folder, so that stages start from any working folder."""


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
    given = [text.partition("=")[0].lstrip("+") for text in arguments]
    others = [text for text, name in zip(arguments, given) if name != key and "=" in text]
    settings = [*_names(_composed(others)), *(folder.name for folder in CONF.iterdir())]
    group = "calibrator" if key.startswith("calibrator.") else "benchmark"
    # Composing with each file of the group takes seconds.
    is_near = difflib.get_close_matches(key, settings, n=1, cutoff=0.8)
    having = {} if is_near else _in_files(group, others)
    if key in having:
        first, *rest = having[key]
        more = f" (or {', '.join(rest[:4])}{', ...' * (len(rest) > 4)})" if rest else ""
        return f"{key}: no {group} is chosen; choose {group}={first}{more}"
    known = sorted({*settings, *having} - {"shared", "hydra"})
    same = [name for name in known if name.rpartition(".")[2] == key]
    close = same or difflib.get_close_matches(key, known, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    parent = key.rpartition(".")[0]
    while parent and parent not in known:
        parent = parent.rpartition(".")[0]
    beside = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == parent]
    within = f" in {parent}" if parent else ""
    return f"{key}: no such setting{meant}; known{within}: {', '.join(beside)}"


def _names(config: DictConfig, start: str = "") -> Iterator[str]:
    """The full name of each setting."""
    for name, value in config.items_ex(resolve=False):
        yield f"{start}{name!s}"
        if isinstance(value, DictConfig):
            yield from _names(value, f"{start}{name!s}.")


def _in_files(group: str, overrides: Sequence[str]) -> dict[str, list[str]]:
    """Each setting with the files of a group that have it, unless a file is chosen already."""
    found: dict[str, list[str]] = {}
    config = _composed(overrides)
    if isinstance(config.get(group), DictConfig):
        return found
    files = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    of_suite = config.suite[f"{group}s"]
    for file in sorted(files, key=lambda name: name not in of_suite):
        chosen = _composed([*overrides, f"{group}={file}"])[group]
        for name in _names(chosen, f"{group}."):
            found.setdefault(name, []).append(file)
    return found


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
