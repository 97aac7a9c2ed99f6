"""Calibrate a person's new points with a saved calibrator, and write the file again with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.calibrators.prior import estimate_prior, reweight
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError, naming

from ...harness.progress import say
from ..points.by_parts import Notes
from ..request.folder import check_replaceable
from ..rows.splits import no_rows
from ..words.file_options import FileOptions
from ..words.forms import LINES, check_is_file, ending_of, is_table
from ..words.message_text import normal, some_of
from .deployed import AnswerColumns, calibrated, class_names_of, loaded, unlabelled
from .rewritten import (
    Parts,
    by_column,
    joined,
    write_arrays,
    write_csv,
    write_lines,
    write_parquet,
)
from .whole_rows import Table, whole_rows

CALIBRATED = "calibrated"
"""The array of calibrated probabilities; in a table calibrated_<class> is the column of a class."""
PREDICTED = "predicted_class"
"""The array or column of the classes with the largest calibrated probability."""
IN_PLACE = "probabilities"
"""The array that takes the place of an npz's old answers."""
CLASS_NAMES = "class_names"
WHERE = f"the calibrated probabilities are called {CALIBRATED}…; the old ones stand beside them"
OUTPUTS = (".npz", ".csv", ".parquet", ".jsonl")


def write_calibrated(options: argparse.Namespace) -> None:
    """Write all that the file holds, the calibrated probabilities, and the predicted classes.

    Raises:
        InputError: a file that is missing, damaged or does not fit the calibrator; one line.
        MissingResource: pyarrow, which writes parquet, is not installed.
    """
    _check_output(options)
    calibrator = loaded(options.calibrator)
    names = class_names_of(calibrator)
    labels = calibrator.classes_ if names is None else np.array(names)
    file_options = FileOptions.of(options)
    prior = None
    if options.prior is not None:
        prior = prior_of(options.prior, calibrator, options.file, file_options, _texts(labels))

    # The file is read twice in step: `unlabelled` reads the answers of some rows as numbers, and
    # then `rows.take` as many rows as they are, to which the probabilities are added.
    notes = Notes()
    batches = unlabelled(options.file, calibrator, file_options, notes)
    first = next(batches, None)
    if first is None:
        raise no_rows().in_file(options.file)
    answers = first.answers
    if options.in_place:
        _check_in_place(options.file, answers, file_options)
    rows = whole_rows(options.file, answers.array, file_options.decimal)
    is_array = bool(answers.array) and not is_table(options.file)
    if is_array:
        labels = labels[answers.order]  # an array stays in the order of its file
    n_points = 0

    def parts() -> Parts:
        nonlocal n_points
        for points in chain([first], batches):
            probabilities = calibrated(calibrator, points.logits, points.groups)
            if prior is not None:
                probabilities = reweight(probabilities, prior, calibrator.shares_)
            if is_array:
                probabilities = probabilities[:, answers.order]
            n_points += len(probabilities)
            with naming(options.file):
                old = rows.take(len(probabilities))
            yield _extended(old, answers, probabilities, labels, options)

    others = {**({} if names is None else {CLASS_NAMES: labels}), **rows.others}
    left_out = _write(options, parts(), others, _texts(labels), rows.decimal)
    left_out = [*rows.left_out, *left_out]
    for note in notes.values():
        say(note)
    if left_out:
        say(f"not written, since they are no columns of plain values: {some_of(left_out)}")
    kind = type(calibrator).__name__
    say(f"wrote {options.output}: {n_points} cases, {len(labels)} classes, {kind}")
    if not options.in_place:
        say(WHERE)


def _texts(labels: NDArray[Any]) -> list[str]:
    """The names of the classes, or their numbers, as text."""
    return [str(label) for label in labels.tolist()]


def _check_output(options: argparse.Namespace) -> None:
    """Raise an error of one line if the output cannot be written, or would replace an input."""
    output = options.output
    if output.suffix.lower() not in OUTPUTS:
        fix = f"end its name with one of {', '.join(OUTPUTS)}"
        raise InputError(output, field="--output", fixes=fix)
    if output.suffix.lower() == ".parquet":
        require("pyarrow")
    check_is_file(options.calibrator, "a saved calibrator")
    for path in (options.calibrator, options.file):
        if output.exists() and path.exists() and output.samefile(path):
            message = f"{output} would replace what is read"
            raise InputError(message, field="--output", fixes="name another")


def _check_in_place(path: Path, answers: AnswerColumns, file_options: FileOptions) -> None:
    """Raise `InputError` if the old answers have no place for probabilities of the classes."""
    message = ""
    if answers.array and is_table(path):
        message = f"`{answers.array}` holds lists"
    elif file_options.predictions is not None:
        message = f"the answers are confidences in `{file_options.predictions}`"
    if message:
        fix = "leave it out: the probabilities then get columns of their own"
        raise InputError(message, field="--in-place", file=path, fixes=fix)


def _extended(
    old: Table,
    answers: AnswerColumns,
    probabilities: NDArray[np.float64],
    labels: NDArray[Any],
    options: argparse.Namespace,
) -> Table:
    """Some rows of the file with the calibrated probabilities [n, C] and the predicted classes.

    InputError: the file has a column of such a name.
    """
    rows, new = dict(old), Table()
    if not options.in_place:
        new[CALIBRATED] = probabilities
    elif answers.columns:
        names = {normal(name.strip()): name for name in rows}
        for column, number in answers.columns.items():
            rows[names[column]] = probabilities[:, number]
    else:
        del rows[answers.array]
        new[IN_PLACE] = probabilities
    new[PREDICTED] = labels[probabilities.argmax(axis=1)]
    is_npz = options.output.suffix.lower() == ".npz"
    added = new if is_npz else by_column(new, _texts(labels))
    clashes = [name for name in rows if name.strip() in added]
    if clashes:
        fixes = ["rename it", "give the file that it was made of"]
        raise InputError("already there", field=clashes[0], file=options.file, fixes=fixes)
    return {**rows, **new}


def _write(
    options: argparse.Namespace,
    parts: Parts,
    others: Table,
    class_names: Sequence[str],
    decimal: str,
) -> list[str]:
    """Write all rows; return the names of the `others` that the form cannot hold.

    decimal: the sign in the numbers of a CSV, which is that of the old ones.
    """
    output: Path = options.output
    ending = output.suffix.lower()
    if ending != ".npz":
        parts = (by_column(part, class_names) for part in parts)
    # The first rows show which columns there will be, before a file of that name is replaced.
    first = next(parts)
    parts = chain([first], parts)
    names = list(first) if ending != ".npz" else [*others, *first]
    check_replaceable(output, "--output", names)
    with atomic_path(output) as temporary:
        if ending == ".npz":
            write_arrays(temporary, parts, others)
            return []
        if ending == ".csv":
            write_csv(temporary, parts, decimal)
        elif ending == ".jsonl":
            write_lines(temporary, parts)
        else:
            # The types of JSON's values are those of all rows together.
            are_lines = ending_of(options.file) in LINES
            write_parquet(temporary, iter([joined(parts)]) if are_lines else parts)
    return [name for name in others if name != CLASS_NAMES]


def prior_of(
    text: str, calibrator: Calibrator, path: Path, file_options: FileOptions, names: Sequence[str]
) -> list[float]:
    """The shares of the classes that --prior names, or their estimate, which is printed.

    `path` is the file of the points from which shares are estimated.

    Raises:
        InputError: a part of the text is no share, or names no class.
    """
    if text == "estimate":
        every = unlabelled(path, calibrator, file_options)
        parts = [calibrated(calibrator, points.logits, points.groups) for points in every]
        if not parts:
            raise no_rows().in_file(path)
        p = np.concatenate(parts)
        estimate = estimate_prior(p, calibrator.shares_, calibrator.n_points_)
        for name, share, low, high in zip(names, estimate.shares, estimate.lower, estimate.upper):
            say(f"share of {name}: {share:.4f}, from {low:.4f} to {high:.4f} with 95 % confidence")
        return estimate.shares.tolist()
    # .9,.1 are the shares in the order of the classes; sick=.1,healthy=.9 name them.
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
