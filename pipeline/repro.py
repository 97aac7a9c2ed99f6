"""One stage of dvc.yaml: which one says DVC, for what says params.yaml.

`make repro` first has all of them done at once and recorded (DVC_STAGE=record, pipeline/record.py):
seventeen stages in a row would each import torch, and few of them keep all cores busy. What its
command line asks for, SUITE and PRECOMPUTED, then goes before params.yaml.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module

from pipeline.harness.command import override, user_errors_in_one_line
from pipeline.harness.units import SelectionError
from pipeline.parameters import PATH, asked_of_make, read_parameters

STAGES = ("logits", "fit", "evaluate", "dynamics", "report")
RECORD = "record"
"""All of them, for make."""


def arguments_of(address: str, parameters: Mapping[str, str]) -> tuple[str, list[str]]:
    """The stage and its command line, from DVC's `fit@vector` and the content of params.yaml."""
    name, _, calibrator = address.rpartition(":")[2].partition("@")
    if name not in (*STAGES, RECORD):
        raise SelectionError(f"DVC_STAGE={address}: expected one of {', '.join(STAGES)}")
    arguments = [override("suite", parameters["suite"])]
    if calibrator:
        arguments.append(override("calibrator", calibrator))
    if name in ("logits", RECORD) and parameters["precomputed"]:
        arguments.append(override("paths.precomputed", parameters["precomputed"]))
    return name, arguments


def main() -> None:
    """Run the stage that DVC_STAGE names."""
    with user_errors_in_one_line():
        if "DVC_STAGE" not in os.environ:
            raise SelectionError(
                "for `dvc repro` only; by hand: python -m pipeline.fit suite=digits"
            )
        parameters = read_parameters(PATH)
        if os.environ["DVC_STAGE"] == RECORD:
            parameters |= asked_of_make(os.environ)
        name, sys.argv[1:] = arguments_of(os.environ["DVC_STAGE"], parameters)
    import_module(f"pipeline.{name}").main()


if __name__ == "__main__":
    main()
