"""The files that a person may give: how each is read, by its ending, and what to do instead."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from utility_calibration.metrics.errors import InputError, MissingResource

from .message_text import SAVEZ

LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv", *LINES, ".parquet")
"""Endings of file names that are read as tables; each may be followed by .gz but parquet."""
PARTED = (".csv", ".tsv", ".parquet")
"""Endings of forms that are read by parts, too."""
LINE_BY_LINE = (
    "write one object per line: "
    "pandas.read_json(…).to_json('my.jsonl', orient='records', lines=True)"
)
SAVED = "state.json"
"""A file in every folder that `datasets` saves with save_to_disk."""
WRITTEN = ".written_by_score.json"
"""A list in a folder of results, of the files that this program owns."""
READ = "npz, CSV, TSV, JSON lines or parquet"
INSTEAD = {
    (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt"): (
        "a pickle, which is never loaded",
        f"save its arrays: {SAVEZ}",
    ),
    (".xlsx", ".xls", ".ods"): ("a workbook", "save the sheet as «CSV UTF-8»"),
    (".json",): ("not read", f"name it my.jsonl if each line is an object, else {LINE_BY_LINE}"),
    (".zip", ".bz2", ".xz", ".zst", ".tar"): (
        "not read",
        "unpack it, or pack it with gzip (.csv.gz)",
    ),
    (".npy",): ("a single array", f"save labels, too: {SAVEZ}"),
}
"""What files are that are not read, and what to do instead, by their endings."""


def ending_of(path: Path) -> str:
    """The ending that says how to read a file: .csv for a.CSV and a.csv.gz."""
    endings = [ending.lower() for ending in path.suffixes]
    if len(endings) > 1 and endings[-1] == ".gz":
        return endings[-2]
    return endings[-1] if endings else ""


def check_is_npz(path: Path) -> None:
    """Raise `InputError` for a file of another ending that is no npz either, such as scores.txt."""
    if ending_of(path) in ("", ".npz"):
        return  # its contents say what is wrong
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            return
    fixes = ["name a table of text .csv", f"give {READ}"]
    raise InputError(f"{ending_of(path)} is not read", file=path, fixes=fixes)


def is_table(path: Path) -> bool:
    """Whether a file (or a folder that `datasets` saved) is read as a table."""
    return path.is_dir() or ending_of(path) in TABLES


def shards_of(path: Path) -> list[Path]:
    """The files that a file, a folder or a pattern such as shards/*.parquet means, by name.

    A data set that `datasets` saved is one shard.
    """
    if path.is_dir() and not (path / SAVED).is_file():
        shards = _readable(path.iterdir())
        _check_links(shards)
        # A folder of several data sets is refused by `check_is_given`, with another fix.
        if not shards and not (path / "dataset_dict.json").is_file():
            deeper = left_out_below(path)
            if deeper is not None:
                raise deeper.in_file(path)
            raise InputError("no file in it can be read", file=path, fixes=f"put in it {READ}")
    elif path.exists() or not glob.has_magic(str(path)):
        shards = [path]  # a file's own name may have signs of a pattern: scores[1].csv
    else:
        shards = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not shards:
            raise InputError("no file fits", file=path, fixes=["quote the pattern", f"give {READ}"])
        _check_links(shards)
    return shards or [path]


def _readable(files: Iterable[Path]) -> list[Path]:
    """Those of some files whose form is read, by name, without hidden ones."""
    return [
        file
        for file in sorted(files)
        if ending_of(file) in (*TABLES, ".npz") and file.name[0] not in "._" and not file.is_dir()
    ]


def left_out_below(folder: Path) -> InputError | None:
    """The error on files in the folders of a folder, which are left out; None if there are none.

    Beside files that are read it is a note. Results of the program itself, and hidden folders, are
    no points.
    """
    if not folder.is_dir():
        return None
    inner = [path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"]
    readable = [_readable(path.rglob("*")) for path in inner if not (path / WRITTEN).is_file()]
    deeper = sorted(file for files in readable for file in files)
    if not deeper:
        return None
    pattern = folder / "**" / f"*{ending_of(deeper[0])}"
    some = deeper[0].relative_to(folder)
    message = f"{len(deeper):,} files in deeper folders are left out ({some})"
    return InputError(message, fixes=f"to read them: {quote(str(pattern))}")


def _check_links(shards: Sequence[Path]) -> None:
    """Raise `InputError` for the links among some shards that lead to no file."""
    lost = [path for path in shards if not path.exists()]
    mistakes = [InputError(f"{path} is a link to no file") for path in lost]
    if mistakes:
        mistakes[0].fixes = ("remove such links", "correct them")
        raise InputError.of_all(mistakes)


def check_is_file(path: Path, wanted: str) -> None:
    """Raise an error of one line unless `path` is a file that may be read; `wanted` says which."""
    if path.is_dir():
        raise InputError("this is a folder", file=path, fixes=f"give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")
    for endings, (message, fix) in INSTEAD.items():
        if ending_of(path) in endings:
            raise InputError(message, file=path, fixes=fix)


def check_is_given(path: Path) -> None:
    """Raise an error of one line unless `path` is a file, or a data set saved by `datasets`."""
    if (path / "dataset_dict.json").is_file():
        raise InputError("several data sets", file=path, fixes="give the folder of one of them")
    if not (path / SAVED).is_file():
        check_is_file(path, f"a file: {READ}, or a folder saved by datasets")
