"""params.yaml: the suite that DVC's stages run, and the folder with its logits if there is one.

People edit it; `make repro SUITE=… PRECOMPUTED=…` has it written when all is made, and DVC then
records it. Nothing of it passes through a shell: a folder or a name may hold any character.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from omegaconf import OmegaConf
from ruamel.yaml import YAML
from yaml import YAMLError

from calibrators.files import atomic_path
from pipeline.harness.units import SelectionError

PATH = Path("params.yaml")


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
