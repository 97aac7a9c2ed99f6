"""A person's classifier: a file with labels and logits or probabilities (docs/your-data.md).

`pipeline/own/` reads it: `reading` (bytes to columns or arrays), `columns` (which one is what, as a
`Layout`), `points` (splits, weights). A second file may hold the test points of a split.
"""

from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.metrics.errors import InputError, naming

from ..own.points.check import checked
from ..own.points.whole_file import points_and_layout_of_files
from ..own.reading.read import read
from ..own.words.file_options import FileOptions
from .input_digests import any_content
from .source_result import SourceResult

VALUES = ("auto", "logits", "probabilities")


def file_logits(
    *,
    path: str | Path,
    test: str | Path | None = None,
    values: str = "auto",
    **others: Any,
) -> SourceResult:
    """Read logits [n, C] and labels [n] from `path`; probabilities become their logarithms.

    Rows count from 0 in messages, over both files.

    Args:
        path: .npz, .csv, .tsv, .jsonl (also .gz of these), .parquet, or a folder of `datasets`.
        test: a second such file: its points test, those of `path` calibrate.
        values: the kind of the answers. `auto`: the name of the array; in a table, probabilities
            if all values are in [0, 1] and all rows sum to one.
        others: the other fields of `FileOptions` (pipeline/own/words/file_options.py).
    """
    if values not in VALUES:
        fix = f"choose one of {', '.join(VALUES)}"
        raise InputError(f"{values}, which is no kind", field="values", fixes=fix)
    file_options = FileOptions(values=values, **others)
    files = [Path(file) for file in (path, test) if file is not None]
    contents = [read(file, file_options, file_options.gives_role) for file in files]
    mistakes = list[InputError]()
    with naming(" and ".join(map(str, files))):
        decided = points_and_layout_of_files(files, contents, file_options, mistakes)
        points = checked(decided.points, mistakes, file_options.distinct)
    origin = {
        "file": str(files[0].absolute()),
        "sha256": any_content(files[0]),
        "values": points.kind,
    }
    if test is not None:
        origin |= {"test": str(files[1].absolute()), "test_sha256": any_content(files[1])}
    details: dict[str, Any] = {
        "source": "a file",
        "model": files[0].stem,
        "preprocessing": "none" if points.kind == "logits" else "logarithm of probabilities",
        "origin": origin,
        "warnings": list(points.notes),
    }
    if points.names is not None:
        details["class_names"] = points.names
    of_points = (points.groups, points.tested, points.weights, points.clusters)
    return SourceResult(points.matrix, points.labels.astype(np.int64), details, *of_points)
