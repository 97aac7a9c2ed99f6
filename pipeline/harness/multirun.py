"""`--multirun`: one job per combination of the overrides, on the engines that `sweep` uses.

Hydra splits the command line. It would also run the jobs, but it ends a sweep with the first that
is lost, and starts as many as there are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipeline.harness.command import run_task
from pipeline.harness.engines import check_failures, failure_lines, run_and_tell
from pipeline.harness.progress import say
from pipeline.harness.units import sweep_settings

FLAGS = ("--multirun", "-m")


@dataclass(frozen=True)
class StageJob:
    """One command line of a stage."""

    module: str
    overrides: tuple[str, ...]
    name: str
    """Those that the jobs differ in."""

    def __call__(self) -> None:
        run_task(import_module(self.module).main.__wrapped__, self.overrides)

    def __str__(self) -> str:
        return f"{self.module} {self.name}".rstrip()


def is_multirun(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for several runs, and not only to print something."""
    others = [text for text in arguments if text.startswith("-") and text not in FLAGS]
    return not others and any(flag in arguments for flag in FLAGS)


def run_multirun(task: Any, arguments: Sequence[str]) -> None:
    """Run `task` once per combination; tell what became of each.

    Raises:
        UnitsFailed: some failed, after all others are done.
    """
    parser = OverridesParser.create()
    parsed = parser.parse_overrides([text for text in arguments if text not in FLAGS])
    of_hydra = [one for one in parsed if one.key_or_group.startswith("hydra")]
    own = [one for one in parsed if one not in of_hydra]
    (combinations,) = BasicSweeper.split_arguments(own, max_batch_size=None)
    launcher, logs = sweep_settings([*(one.input_line or "" for one in of_hydra), *combinations[0]])
    common = set(combinations[0]).intersection(*combinations)
    jobs = [
        StageJob(_module_of(task), tuple(one), " ".join(text for text in one if text not in common))
        for one in combinations
    ]
    ended = list(run_and_tell([(jobs, launcher)], logs))
    for line in failure_lines(ended):
        say(line)
    check_failures(ended)


def _module_of(task: Any) -> str:
    """Where another process finds `task`: `python -m` calls its module __main__."""
    spec = sys.modules["__main__"].__spec__
    return spec.name if task.__module__ == "__main__" and spec else str(task.__module__)
