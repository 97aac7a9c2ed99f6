"""Calibrate new points with a saved calibrator; they need no labels.

python scripts/score.py my.npz --output out/ --method patching --save calibrator.npz
python scripts/apply.py calibrator.npz new.npz --output calibrated.npz

new.npz holds `logits` or `probabilities` [n, C], whichever the calibrator was fitted on. A CSV or
parquet file has a column per class. For a calibrator with patches of groups, a column or
array of the same name as for score.py has each point's group. The name of the output says its
format: an npz with `probabilities` float64 [n, C] (and `class_names`, if they are known), a CSV or
a parquet file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # started as a file of a clone
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import pipeline  # noqa: F401  (before NumPy and torch: it says how their threads wait)

# isort: split

import numpy as np
import pandas as pd

from calibrators.base import Calibrator
from calibrators.files import atomic_path
from metrics.validation import InputError
from pipeline.harness.artifacts import write_npz
from pipeline.harness.command import Parser, user_errors_in_one_line
from pipeline.harness.progress import say
from pipeline.own.assign import Choices
from pipeline.own.deployed import read_points
from pipeline.own.folder import check_replaceable
from pipeline.own.options import add_options
from pipeline.own.read import check_is_file

ROWS_AT_ONCE = 100_000


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("calibrator", type=Path, help="as saved by score.py or `.save()`")
    parser.add_argument("file", type=Path, help="npz, CSV, … with the new points, as for score.py")
    parser.add_argument("--output", type=Path, required=True, help="npz, CSV or parquet to write")
    parser.add_argument(
        "--values",
        choices=("auto", "logits"),
        default="auto",
        help="logits: take what looks like probabilities or votes for logits",
    )
    add_options(parser, ["classes", "ignore"])
    return parser.parse_args(arguments)


def apply(options: argparse.Namespace) -> None:
    """Write the calibrated probabilities.

    Raises:
        InputError: a file that is missing, damaged or does not fit the calibrator; one line.
    """
    ending = options.output.suffix.lower()
    if ending not in (".npz", ".csv", ".parquet"):
        raise InputError(f"--output {options.output}: end its name with .npz, .csv or .parquet")
    check_is_file(options.calibrator, "a saved calibrator")
    for path in (options.calibrator, options.file):
        if options.output.exists() and path.exists() and options.output.samefile(path):
            raise InputError(f"--output {options.output}: would replace what is read; name another")
    calibrator = Calibrator.load(options.calibrator)
    names = [str(name) for name in getattr(calibrator, "class_names_", ())]
    columns = names or [f"c{number}" for number in range(calibrator.n_features_in_)]
    check_replaceable(options.output, "--output", columns)
    choices = Choices(options.values, classes=options.classes, ignore=options.ignore)
    points, groups = read_points(options.file, calibrator, choices)
    parts = []
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        named = {} if groups is None else {"groups": groups[rows]}
        parts.append(calibrator.predict_proba(points[rows], **named))
    probabilities = np.concatenate(parts)
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


if __name__ == "__main__":
    with user_errors_in_one_line():
        apply(parse())
