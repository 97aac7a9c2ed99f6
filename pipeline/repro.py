"""One stage of dvc.yaml: which one says DVC, for what says params.yaml.

`make repro` first asks for all units at once (DVC_STAGE=sweep): seventeen stages in a row would
each import torch, and few of them keep all cores busy. DVC then records what is done, in one
process (DVC_STAGE=record), and runs the rest. What the command line of make asks for, SUITE and
PRECOMPUTED, goes before params.yaml, into which it is written after the sweep (DVC_STAGE=params): a
sweep that fails leaves no trace there.

Nothing of either passes through a shell, so that a folder or a name may hold any character.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from omegaconf import OmegaConf
from ruamel.yaml import YAML
from yaml import YAMLError

from calibrators.files import atomic_path
from pipeline.harness.command import override, user_errors_in_one_line
from pipeline.harness.units import SelectionError

STAGES = ("logits", "fit", "evaluate", "dynamics", "report")
AHEAD, RECORD = "sweep", "record"
PARAMETERS = "params"
PATH = Path("params.yaml")


def arguments_of(address: str, parameters: Mapping[str, str]) -> tuple[str, list[str]]:
    """The stage and its command line, from DVC's `fit@vector` and the content of params.yaml."""
    name, _, calibrator = address.rpartition(":")[2].partition("@")
    if name not in (*STAGES, AHEAD, RECORD):
        raise SelectionError(f"DVC_STAGE={address}: expected one of {', '.join(STAGES)}")
    arguments = [override("suite", parameters["suite"])]
    if name == AHEAD:
        arguments.append("sweep.report=false")  # DVC_STAGE=record does
    if calibrator:
        arguments.append(override("calibrator", calibrator))
    if name in ("logits", AHEAD, RECORD) and parameters["precomputed"]:
        arguments.append(override("paths.precomputed", parameters["precomputed"]))
    return name, arguments


def read_parameters(path: Path) -> dict[str, str]:
    """The content of params.yaml, which people edit; `SelectionError` where it is not whole."""
    try:
        found = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except (OSError, YAMLError):
        found = None
    texts = found if isinstance(found, dict) else {}
    read = {key: texts.get(key) or "" for key in ("suite", "precomputed")}
    if not all(isinstance(text, str) for text in read.values()) or not read["suite"]:
        raise SelectionError(
            f"{path}: give `suite` and `precomputed` as texts; back: git checkout {path}"
        )
    return read


def write_parameters(path: Path, asked: Mapping[str, str]) -> None:
    """Replace what `asked` names in params.yaml; comments and all else stay."""
    yaml = YAML()
    yaml.preserve_quotes = True
    content = yaml.load(path)
    content.update(asked)
    with atomic_path(path) as temporary:
        yaml.dump(content, temporary)


def asked_of_make(environment: Mapping[str, str]) -> dict[str, str]:
    """What `make repro SUITE=… PRECOMPUTED=…` will write into params.yaml."""
    asked = {}
    if suite := environment.get("SUITE"):
        asked["suite"] = suite
    if folder := environment.get("PRECOMPUTED"):
        asked["precomputed"] = os.path.abspath(folder)  # noqa: PTH100  (keeps links)
    return asked


def main() -> None:
    """Run the stage that DVC_STAGE names, or write what make was asked for."""
    with user_errors_in_one_line():
        if "DVC_STAGE" not in os.environ:
            raise SelectionError(
                "for `dvc repro` only; by hand: python -m pipeline.fit suite=digits"
            )
        parameters = read_parameters(PATH)
        if os.environ["DVC_STAGE"] == PARAMETERS:
            write_parameters(PATH, asked_of_make(os.environ))
            return
        if os.environ["DVC_STAGE"] == AHEAD:
            parameters |= asked_of_make(os.environ)
        name, sys.argv[1:] = arguments_of(os.environ["DVC_STAGE"], parameters)
    import_module(f"pipeline.{name}").main()


if __name__ == "__main__":
    main()
