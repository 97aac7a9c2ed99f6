"""Calibrate a person's new points with a saved calibrator, and write their probabilities."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.calibrators.prior import estimate_prior, reweight
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError

from ..harness.artifacts import write_npz
from ..harness.progress import say
from .choices import Choices
from .deployed import calibrated, class_names_of, loaded, unlabelled
from .folder import check_replaceable
from .forms import check_is_file

Write = Callable[[NDArray[np.float64]], None]


def write_calibrated(options: argparse.Namespace) -> None:
    """Write the calibrated probabilities.

    Raises:
        InputError: a file that is missing, damaged or does not fit the calibrator; one line.
        MissingResource: pyarrow, which writes parquet, is not installed.
    """
    ending = options.output.suffix.lower()
    if ending not in (".npz", ".csv", ".parquet"):
        fix = "end its name with .npz, .csv or .parquet"
        raise InputError(options.output, field="--output", fixes=fix)
    if ending == ".parquet":
        require("pyarrow")
    check_is_file(options.calibrator, "a saved calibrator")
    for path in (options.calibrator, options.file):
        if options.output.exists() and path.exists() and options.output.samefile(path):
            message = f"{options.output} would replace what is read"
            raise InputError(message, field="--output", fixes="name another")
    calibrator = loaded(options.calibrator)
    names = class_names_of(calibrator) or []
    columns = names or [f"c{number}" for number in range(calibrator.n_features_in_)]
    check_replaceable(options.output, "--output", columns)
    choices = Choices.of(options)
    prior = None
    if options.prior is not None:
        prior = prior_of(options.prior, calibrator, options.file, choices, columns)
    n_points = 0
    with _written(options.output, columns, names) as write:
        for points in unlabelled(options.file, calibrator, choices):
            probabilities = calibrated(calibrator, points)
            if prior is not None:
                probabilities = reweight(probabilities, prior, calibrator.shares_)
            n_points += len(probabilities)
            write(probabilities)
    kind = type(calibrator).__name__
    say(f"wrote {options.output}: {n_points} points, {len(columns)} classes, {kind}")


@contextmanager
def _written(path: Path, columns: Sequence[str], names: Sequence[str]) -> Iterator[Write]:
    """Write probabilities [n, C] as they come; the file appears under its name when complete.

    `columns` are those of a table, with all digits, so that reading it gives the same numbers. An
    npz has `names` of the classes, if they are known.
    """
    ending = path.suffix.lower()
    if ending == ".npz":
        parts = list[NDArray[np.float64]]()
        yield parts.append
        arrays: dict[str, Any] = {"class_names": np.array(names)} if names else {}
        write_npz(path, probabilities=np.concatenate(parts), **arrays)
        return
    with atomic_path(path) as temporary:
        if ending == ".csv":
            with temporary.open("x", encoding="utf-8", newline="") as file:
                header = pd.DataFrame(columns=pd.Index(columns))
                header.to_csv(file, index=False, lineterminator="\n")
                yield lambda p: pd.DataFrame(p).to_csv(
                    file, index=False, header=False, lineterminator="\n"
                )
            return
        pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
        schema = pyarrow.schema([(name, pyarrow.float64()) for name in columns])
        with parquet.ParquetWriter(temporary, schema) as writer:
            yield lambda p: writer.write_table(pyarrow.table(list(p.T), schema=schema))


def prior_of(
    text: str, calibrator: Calibrator, path: Path, choices: Choices, names: Sequence[str]
) -> list[float]:
    """The shares of the classes that --prior names, or their estimate, which is printed.

    `path` is the file of the points from which shares are estimated.

    Raises:
        InputError: a part of the text is no share, or names no class.
    """
    if text == "estimate":
        parts = [calibrated(calibrator, rows) for rows in unlabelled(path, calibrator, choices)]
        p = np.concatenate(parts)
        estimate = estimate_prior(p, calibrator.shares_, calibrator.n_points_)
        for name, share, low, high in zip(names, estimate.shares, estimate.lower, estimate.upper):
            say(f"share of {name}: {share:.4f}, from {low:.4f} to {high:.4f} with 95 % confidence")
        return estimate.shares.tolist()
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        shares = {name.strip(): float(share) for name, _, share in pairs}
    except ValueError as error:
        message, fix = f"{text}: {error}", "write .9,.1 or sick=.1,healthy=.9"
        raise InputError(message, field="--prior", fixes=fix) from error
    if not any(name.strip() for name, _, _ in pairs):
        return [float(share) for _, _, share in pairs]
    if shares.keys() != set(names) or len(pairs) != len(names):
        fix = f"name each class once: {', '.join(names)}"
        raise InputError(text, field="--prior", fixes=fix)
    return [shares[name] for name in names]
