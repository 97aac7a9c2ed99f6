"""The labelled points of one file, or of two, of which the second has the test points."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from utility_calibration.metrics.archive import array_names
from utility_calibration.metrics.errors import InputError

from ..columns.layout_from_rows import PointsAndLayout, points_and_layout
from ..reading.cells import FileColumns, are_arrays
from ..rows.prepared import joined
from ..rows.roles import advice_on_clusters
from ..words.file_options import FileOptions, matching


def points_and_layout_of_files(
    paths: Sequence[Path],
    contents: Sequence[FileColumns],
    file_options: FileOptions,
    mistakes: list[InputError],
) -> PointsAndLayout:
    """Decide what is what in a file or two, and read their points.

    `contents` is what reading/read.py found in each of `paths`; `mistakes` gets what does not
    keep the rest from being checked. InputError: something is missing or has two meanings.
    """
    advice = advice_on_clusters(paths[0], contents[0], file_options)
    names = _all_names(paths, contents)
    ignored = matching(file_options.ignore or "", names, None)
    are_tables = not any(map(are_arrays, contents))
    notes = list[str]()
    rows, tested = joined(paths, contents, file_options, notes)
    # Arrays that have no purpose are not in `rows`, because they have not been read.
    others = [name for name in names if name not in ignored and (name in rows or not are_tables)]
    points, layout = points_and_layout(rows, file_options, mistakes, others, tested)
    if tested is not None and points.splits:
        fixes = ["leave it out", "leave out the second file"]
        raise InputError("in both files", field="split", fixes=fixes)
    notes += [*points.notes, *advice]
    return PointsAndLayout(replace(points, tested=tested, notes=tuple(notes)), layout)


def _all_names(paths: Sequence[Path], contents: Sequence[FileColumns]) -> list[str]:
    """The columns or arrays of all files, also arrays that have not been read."""
    names = dict[str, None]()
    for path, rows in zip(paths, contents, strict=True):
        names |= dict.fromkeys(array_names(path) if are_arrays(rows) else rows)
    return list(names)
