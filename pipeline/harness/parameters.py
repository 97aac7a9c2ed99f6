"""The settings that a person names: in params.yaml, in the environment, or in a file of their own.

dvc.yaml calls each stage with `params=params.yaml`. So no value of that file passes through a shell
or through Hydra's grammar, and each value that DVC knows has an effect in every stage. The second
half says what to write instead of a name that does not exist.
"""

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .machine import links

CONF = Path(__file__).resolve().parents[2] / "conf"  # from any working folder
LOCAL = CONF.parent / "sources.yaml"  # `name: path` a line; Git ignores this file
CHOICES = {"suite", "preset", "benchmark"}


class UsageError(ValueError):
    """A command line that names something that does not exist. One line, exit code 2."""


def expanded(arguments: Sequence[str]) -> list[str]:
    """The command line with `params=FILE` replaced by the settings in that file.

    What stands on the command line has priority over the file. UsageError: the file is absent or
    not a params.yaml; or DVC runs this stage although a folder of its outputs is a symbolic link.
    """
    files = [text for text in arguments if text.startswith("params=")]
    others = [text for text in arguments if text not in files]
    if not files:
        return others
    if "DVC_STAGE" in os.environ and (linked := links()):
        raise UsageError("; ".join(linked))
    given = {text.partition("=")[0].lstrip("+~") for text in others}
    held = settings_in(Path(files[-1].removeprefix("params=")))
    if given & {"suite", "preset"}:
        held = {key: value for key, value in held.items() if not key.startswith("suite")}
    settings = [f"{key}={value}" for key, value in held.items() if key not in given]
    at = arguments.index(files[0])  # argparse wants all settings side by side
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
        fix = f"git checkout {path.name} brings them back"
        raise UsageError(f"{path}: not the parameters of dvc.yaml ({error}); {fix}") from error
    file = CONF / "suite" / f"{suite['name']}.yaml"
    usual = _loaded(CONF / "shared/calibrators.yaml") | (_loaded(file) if file.is_file() else {})
    for key, chosen in lists.items():
        if chosen != usual.get(key):
            values[f"suite.{key}"] = f"[{','.join(map(quoted, chosen))}]"
    places = {"paths.precomputed": held.get("precomputed")}
    places |= {f"sources.{name}": place for name, place in sources.items()}
    return values | {key: quoted(Path(v).expanduser()) for key, v in places.items() if v}


def quoted(text: Any) -> str:
    """Return `text` quoted for the grammar of Hydra, which then takes every character as it is."""
    return QuotedString(text=str(text), quote=Quote.single).with_quotes()


def place(name: str, default: str | None = None) -> str | None:
    """A resolver: where the data `name` lie, by the variable NAME, LOCAL or `default`."""
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


def known_instead(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known name, and all known names."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"{hint}; known: {', '.join(known)}"


def instead_of(key: str, arguments: Sequence[str]) -> str:
    """One line about a setting that no chosen file has; `arguments`: the whole command line."""
    others = [t for t in arguments if "=" in t and t.partition("=")[0].lstrip("+") != key]
    config = _composed(others)
    settings = [*_names(config), *(folder.name for folder in CONF.iterdir())]
    group = "calibrator" if key.startswith("calibrator.") else "benchmark"
    having: dict[str, list[str]] = {}
    is_near = difflib.get_close_matches(key, settings, n=1, cutoff=0.8)
    if not is_near and not isinstance(config.get(group), DictConfig):  # no file of it is chosen
        of_suite = config.suite[f"{group}s"]
        files = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
        for file in sorted(files, key=lambda name: name not in of_suite):  # it takes seconds
            for name in _names(_composed([*others, f"{group}={file}"])[group], f"{group}."):
                having.setdefault(name, []).append(file)
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
    for name, value in config.items_ex(resolve=False):
        yield f"{start}{name!s}"
        if isinstance(value, DictConfig):
            yield from _names(value, f"{start}{name!s}.")


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
