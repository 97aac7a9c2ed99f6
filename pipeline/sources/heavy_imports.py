"""Importing the large optional libraries: only when a source needs them, and past one known trap.

A torchvision wheel built for CUDA fails to import beside a CPU-only torch, because its compiled
operators do not load and `torchvision::nms` has no schema. timm and transformers then fail too.
The models, transforms and data sets need no compiled operator, so the schemas alone let them run
(torchvision.ops and torchvision.io stay unusable; PIL decodes images). Beside a matching torch the
first import succeeds and nothing here takes effect.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

import torch

from pipeline.sources.result import MissingResource

NEEDS_TORCHVISION = ("torchvision", "timm", "transformers", "probmetrics")
MISSING_OPERATOR = "operator torchvision::nms does not exist"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

_defined: list[torch.library.Library] = []
"""Schemas live as long as their library object, so it is kept here."""


def require(name: str, install: str = "") -> ModuleType:
    """Import the module `name` (dotted names allowed), or say in one line how to install it.

    `install`: what follows `pip install` in the message; by default the package's name.

    Raises:
        MissingResource: the package is not installed.
    """
    package = name.partition(".")[0]
    if package in NEEDS_TORCHVISION and importlib.util.find_spec("torchvision") is not None:
        _import_torchvision()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingResource(
            f"the package {package} is not installed: pip install {install or package} "
            "(the tested version is pinned in pyproject.toml)"
        ) from error


def _import_torchvision() -> None:
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if MISSING_OPERATOR not in str(error):
            raise
        for module in [module for module in sys.modules if module.startswith("torchvision")]:
            del sys.modules[module]  # it is half imported
        library = torch.library.Library("torchvision", "DEF")
        for schema in SCHEMAS:
            library.define(schema)
        _defined.append(library)
        importlib.import_module("torchvision")
