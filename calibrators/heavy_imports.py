"""Import large optional libraries when they are needed, silently, and work around one failure.

A torchvision built for CUDA cannot be imported with a CPU-only torch, because its compiled
operators do not load and `torchvision::nms` has no schema. timm and transformers then fail, too.
What we use of them needs no compiled operator, so it runs once the schemas are defined.
"""

import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from utility_calibration.metrics.errors import MissingResource

NEEDS_TORCHVISION = ("torchvision", "timm", "transformers", "probmetrics")
MISSING_OPERATOR = "operator torchvision::nms does not exist"

_defined: list[Any] = []  # a schema lives as long as its object


def require(name: str, install: str = "") -> ModuleType:
    """Import the module `name`, of which `MissingResource` says how to install it if it is absent.

    `install`: the words after `pip install` in the message; by default the package's name.
    """
    package = name.partition(".")[0]
    if package in NEEDS_TORCHVISION and find_spec("torchvision") is not None:
        _import_torchvision()
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingResource(
            f"the package {package} is not installed: pip install {install or package} "
            "(requirements.lock has the tested version)"
        ) from error
    # timm and gensim report each step of a load, and a failure's traceback. We say it in one line.
    logging.getLogger(package).setLevel(logging.CRITICAL)
    return module


def _import_torchvision() -> None:
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if MISSING_OPERATOR not in str(error):
            raise
        for module in [module for module in sys.modules if module.startswith("torchvision")]:
            del sys.modules[module]  # it is half imported
        import torch

        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _defined.append(library)
        import_module("torchvision")
