"""What a stage takes from params.yaml, and where a person says that data lie.

dvc.yaml calls each stage with `params=params.yaml`. So no value of that file passes through a shell
or through Hydra's grammar, and each value that DVC knows has an effect in every stage.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import OmegaConf

from pipeline.harness.hints import CONF, UsageError, known_instead
from pipeline.harness.machine import links

LOCAL = CONF.parent / "sources.yaml"
"""Where data lie on this machine, one `name: path` a line. Git ignores this file."""
CHOICES = {"suite", "preset", "benchmark"}


def expanded(arguments: Sequence[str]) -> list[str]:
    """The command line with `params=FILE` replaced by the settings in that file.

    What stands on the command line has priority over the file.

    Raises:
        UsageError: the file is absent or not a params.yaml; or DVC runs this stage although a
            folder of its outputs is a symbolic link.
    """
    files = [text.partition("=")[2] for text in arguments if text.startswith("params=")]
    others = [text for text in arguments if not text.startswith("params=")]
    if not files:
        return others
    if "DVC_STAGE" in os.environ and (linked := links()):
        raise UsageError("; ".join(linked))
    given = {text.partition("=")[0].lstrip("+~") for text in others}
    held = settings_in(Path(files[-1]))
    if given & CHOICES - {"benchmark"}:
        held = {key: value for key, value in held.items() if not key.startswith("suite")}
    settings = [f"{key}={value}" for key, value in held.items() if key not in given]
    at = arguments.index(f"params={files[0]}")  # argparse wants all settings side by side
    return [*others[:at], *settings, *others[at:]]


def settings_in(path: Path) -> dict[str, str]:
    """The settings of a params.yaml, as values in Hydra's grammar."""
    if not path.is_file():
        raise UsageError(f"params={path}: no such file; dvc.yaml's commands start from its folder")
    held = _loaded(path)
    try:
        suite, sources = held["suite"], held.get("sources") or {}
        values = {"suite": suite["name"], "seed": held["seed"], "tuning": held["tuning"]}
        lists = {key: suite[key] for key in ("benchmarks", "calibrators", "dynamics")}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path}: not the parameters of dvc.yaml ({error}); git checkout {path.name} brings "
            "them back"
        ) from error
    file = CONF / "suite" / f"{suite['name']}.yaml"
    usual = _loaded(CONF / "shared/calibrators.yaml") | (_loaded(file) if file.is_file() else {})
    for key, chosen in lists.items():
        if chosen != usual.get(key):
            values[f"suite.{key}"] = f"[{','.join(map(quoted, chosen))}]"
    places = {"paths.precomputed": held.get("precomputed")}
    places |= {f"sources.{name}": place for name, place in sources.items()}
    named = {key: Path(value).expanduser() for key, value in places.items() if value}
    return values | {key: quoted(value) for key, value in named.items()}


def quoted(text: Any) -> str:
    """Return `text` quoted for the grammar of Hydra, which then takes every character as it is."""
    return QuotedString(text=str(text), quote=Quote.single).with_quotes()


def place(name: str, default: str | None = None) -> str | None:
    """Where the data `name` lie: the variable of this name in capitals, or LOCAL, or `default`.

    It is the resolver `place` of the configuration.
    """
    held = _loaded(LOCAL) if LOCAL.is_file() else {}
    known = [*_loaded(CONF / "config.yaml")["sources"], "precomputed"] if held else []
    if unknown := [key for key in held if key not in known]:
        raise UsageError(f"{LOCAL}: {unknown[0]}: no such name{known_instead(unknown[0], known)}")
    found = os.environ.get(name.upper()) or held.get(name) or default
    return str(Path(found).expanduser()) if found else None


def _loaded(path: Path) -> dict[str, Any]:
    held = OmegaConf.to_container(OmegaConf.load(path))
    if not isinstance(held, dict):
        raise UsageError(f"{path}: not lines of `name: value`")
    return {str(key): value for key, value in held.items()}
