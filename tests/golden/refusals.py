"""Typical refusals, each made by a file or a command that a person may well have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.pipeline.own.files import LOGITS, N, P, Y, table, written
from utility_calibration.metrics.errors import InputError, MissingResource
from utility_calibration.pipeline.harness.command import one_line
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.sources.file import file_logits
from utility_calibration.scripts import score

FIRST = np.arange(N) == 0
IMPOSSIBLE = np.where(FIRST[:, None] & (np.arange(3) == Y[0]), -np.inf, LOGITS)
LOSSES = "class,wait,treat\n0,0,1\n1,3,1\n"


def _npz(labels: Any = Y, **arrays: Any) -> dict[str, Any]:
    return {**arrays, "labels": labels}


FILES: dict[str, tuple[str, Any]] = {
    "no labels": ("my.csv", table().drop(columns="label")),
    "a label without a column": ("my.csv", table(y=np.where(FIRST, "horse", Y))),
    "a label lacks": ("my.npz", _npz(np.where(FIRST, np.nan, Y), logits=LOGITS)),
    "only one class": ("my.npz", _npz(0 * Y, logits=LOGITS)),
    "probabilities called logits": ("my.npz", _npz(logits=P)),
    "scores that do not sum to one": ("my.npz", _npz(probabilities=P**0.5)),
    "cumulative probabilities": ("my.npz", _npz(probabilities=P.cumsum(axis=1))),
    "two matrices": ("my.npz", _npz(logits=LOGITS, probabilities=P)),
    "a number lacks": ("my.npz", _npz(logits=np.where(FIRST[:, None], np.nan, LOGITS))),
    "the right class is impossible": ("my.npz", _npz(logits=IMPOSSIBLE)),
}
"""Contents that cannot be scored, by what is wrong with them."""
COMMANDS = {
    "no such file": ["gone.csv"],
    "a method of another name": ["my.csv", "--methods", "temprature"],
    "losses that lack a class": ["my.csv", "--losses", "losses.csv", "--output", "out"],
    "one pass cannot do it": ["my.csv", "--stream", "--splits", "5"],
}
"""Options of `utility-calibration score` that cannot be used."""


def refusals(printed: Callable[[], str]) -> Iterator[tuple[str, str]]:
    """What is wrong, and the line that says so; files are written to the working folder.

    Args:
        printed: what the programs wrote to the error output since the last call.
    """
    for case, (name, content) in FILES.items():
        path = Path(name)
        written(path, content)
        yield case, line_of(lambda path=path: file_logits(path=path))
        path.unlink()
    written(Path("my.csv"), table())
    Path("losses.csv").write_text(LOSSES, encoding="utf-8")
    for case, words in COMMANDS.items():
        printed()
        line = line_of(lambda words=words: score.score(score.parse(words)))
        yield case, line or printed().strip().splitlines()[-1].removeprefix("error: ")


def line_of(call: Callable[[], object]) -> str:
    """What a call refuses; "" if it was refused by the parser, which prints."""
    try:
        call()
    except (InputError, MissingResource, UsageError) as error:
        return one_line(error)
    except SystemExit:
        return ""
    raise AssertionError("this was not refused")
