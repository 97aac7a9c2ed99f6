"""Calibrate a person's new points with a saved calibrator, and write their probabilities."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.calibrators.prior import estimate_prior, reweight
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.validation import InputError

from .harness.artifacts import write_npz
from .harness.progress import say
from .own.choices import Choices
from .own.deployed import read_points
from .own.folder import check_replaceable
from .own.forms import check_is_file

ROWS_AT_ONCE = 100_000


def apply(options: argparse.Namespace) -> None:
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
            told = f"{options.output} would replace what is read"
            raise InputError(told, field="--output", fixes="name another")
    calibrator = Calibrator.load(options.calibrator)
    names = [str(name) for name in getattr(calibrator, "class_names_", ())]
    columns = names or [f"c{number}" for number in range(calibrator.n_features_in_)]
    check_replaceable(options.output, "--output", columns)
    choices = Choices.of(options)
    points, groups = read_points(options.file, calibrator, choices)
    parts = []
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        named = {} if groups is None else {"groups": groups[rows]}
        parts.append(calibrator.predict_proba(points[rows], **named))
    probabilities = np.concatenate(parts)
    if options.prior is not None:
        before = calibrator.shares_  # the classes' shares among the calibration points
        prior = prior_of(options.prior, probabilities, before, columns)
        probabilities = reweight(probabilities, prior, before)
    if ending == ".npz":
        known: dict[str, Any] = {"class_names": np.array(names)} if names else {}
        write_npz(options.output, probabilities=probabilities, **known)
    else:  # with all digits, so that reading it gives the same numbers
        table = pd.DataFrame(probabilities, columns=columns)
        with atomic_path(options.output) as temporary:
            if ending == ".csv":
                table.to_csv(temporary, index=False, lineterminator="\n")
            else:
                table.to_parquet(temporary, index=False)
    n, classes = probabilities.shape
    say(f"wrote {options.output}: {n} points, {classes} classes, {type(calibrator).__name__}")


def prior_of(text: str, probabilities: Any, before: Any, names: Sequence[str]) -> list[float]:
    """The shares of the classes that --prior names, or their estimate, which is printed.

    Raises:
        InputError: a part of the text is no share, or names no class.
    """
    if text == "estimate":
        found = estimate_prior(probabilities, before)
        for name, share, low, high in zip(names, found.shares, found.lower, found.upper):
            say(f"share of {name}: {share:.4f}, from {low:.4f} to {high:.4f} with 95 % confidence")
        return found.shares.tolist()
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        shares = {name.strip(): float(share) for name, _, share in pairs}
    except ValueError as error:
        told, fix = f"{text}: {error}", "write .9,.1 or sick=.1,healthy=.9"
        raise InputError(told, field="--prior", fixes=fix) from error
    if not any(name.strip() for name, _, _ in pairs):
        return [float(share) for _, _, share in pairs]
    if shares.keys() != set(names) or len(pairs) != len(names):
        fix = f"name each class once: {', '.join(names)}"
        raise InputError(text, field="--prior", fixes=fix)
    return [shares[name] for name in names]


if __name__ == "__main__":
    raise SystemExit("error: type: utility-calibration apply")
