"""The output folder of utility-calibration score: only files that it wrote are replaced or removed.

The folder holds a list of the file names that this program owns. A name enters the list before the
first file is written, so that a killed run can be continued. A name that somebody else's file has
is refused.
"""

import csv
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path

from utility_calibration.calibrators.files import REQUIRED
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import array_names
from utility_calibration.metrics.errors import InputError

from ...harness.artifacts import CorruptFile, read_json, write_json
from ...harness.lock import alone
from ...harness.parameters import UsageError
from ..words.forms import WRITTEN

LIST = WRITTEN
LONGEST_HEAD = 1 << 24
"""Letters of the names of a table's columns."""
PICTURES = ("pdf", "svg", "png")
ALWAYS = (
    *("report.html", "report.md", "verdict.json", "metrics.json"),
    *("table.csv", "table.md", "table.tex", "groups.csv", "data/locks", "data/log"),
)
STREAMED = ("streaming.json", "streaming.md")
"""The report of one pass, in place of the files above."""


def names_of(benchmark: str, costs: bool = False) -> list[str]:
    """The files that a run writes for a benchmark; `*` matches several names.

    costs: whether it says what decisions cost.
    """
    pictures = ["present", "ecdf", "worst_*", *(["decision_curve"] if costs else [])]
    names = ["decisions.json", "decisions.md"] if costs else []
    names += [f"{name}.{kind}" for name in pictures for kind in PICTURES]
    scores = [f"scores/{benchmark}{end}" for end in (".csv", ".ecdf.csv", ".json")]
    folders = [f"data/fits/{benchmark}", f"data/scores/{benchmark}"]
    return [*ALWAYS, *scores, *folders, f"data/logits/{benchmark}.npz", *names]


def names_of_stream(benchmark: str) -> list[str]:
    """The files that one pass writes for a benchmark."""
    return [*STREAMED, f"data/shards/{benchmark}", "data/locks", "data/log"]


@contextmanager
def only_run(folder: Path, names: Sequence[str], wait: bool) -> Iterator[None]:
    """Take `names`, and keep every other run out of the folder until the block ends.

    UsageError: a run is in the folder, which the message names, and this one does not `wait`.
    """
    take(folder, names)  # before the lock, which is a file in the folder
    fix = "" if wait else "name another folder, or wait for its end: --wait"
    with alone(folder / "data/locks/run.lock", f"--output {folder}", fix):
        take(folder, names)  # a run that failed has removed its list
        yield


def take(folder: Path, names: Sequence[str]) -> None:
    """Put `names` on the folder's list first; UsageError: a file of such a name is not on it."""
    listed = taken_in(folder)
    new = [name for name in names if name not in listed]
    _refuse_links(folder, names)
    others = sorted(path.relative_to(folder) for name in new for path in folder.glob(name))
    if others:
        shown = ", ".join(map(str, others[:3]))
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise UsageError(
            f"--output {folder}: holds {shown}{more}, not written by this program; "
            "name another folder, or move them"
        )
    if new:
        try:
            write_json(folder / LIST, [*listed, *new])
        except OSError as error:
            raise UsageError(
                f"--output {folder}: cannot be written to ({error.strerror}); name another folder"
            ) from error


def _refuse_links(folder: Path, names: Sequence[str]) -> None:
    """Raise `UsageError` if a folder of one of the names is a link: its files may be others'."""
    for name in names:
        for place in (folder / name, *(folder / name).parents):
            if place.is_symlink() and place.is_dir() and folder in place.parents:
                message = f"{place.relative_to(folder)} is a link to another folder"
                fix = "remove it, or name another --output"
                raise UsageError(f"--output {folder}: {message}; {fix}")


def taken_in(folder: Path) -> list[str]:
    """The names on the folder's list; none of them leads out of the folder."""
    try:
        content = read_json(folder / LIST)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except CorruptFile as error:
        raise UsageError(f"{error}; or name another --output") from error
    names = [str(name) for name in content] if isinstance(content, list) else []
    return [name for name in names if _is_inside(Path(name))]


def _is_inside(path: Path) -> bool:
    return not path.is_absolute() and ".." not in path.parts


def remove_others(folder: Path, written: Sequence[Path]) -> None:
    """Remove reports and figures of an earlier run, which would lie beside those just written.

    Metrics with such figures begin with u_, so `worst_of_mine.png` is somebody's own and stays.
    """
    names = [*names_of("", costs=True), *STREAMED]
    reports = [name for name in names if "/" not in name]
    patterns = [name.replace("_*", "_u_*") for name in taken_in(folder) if name in reports]
    earlier = {path for pattern in patterns for path in folder.glob(pattern)}
    for path in earlier - set(written):
        path.unlink()


def give_back(folder: Path) -> None:
    """Remove what this program wrote to a new folder, and the folder if nothing else is there."""
    written = [path for name in taken_in(folder) for path in folder.glob(name)]
    for path in written:
        # What a link leads to is not ours; only the link is removed.
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    (folder / LIST).unlink(missing_ok=True)
    # The deepest folders come first, so that those above them are empty when their turn comes.
    inside = sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True)
    for path in (*inside, folder):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def check_replaceable(path: Path, option: str, names: Sequence[str] | None = None) -> None:
    """Raise `InputError` if the file that `option` names exists and the programs did not write it.

    names: of the columns or arrays that `apply` would write; None for a calibrator of `score`.
    """
    if not path.exists():
        return
    with suppress(InputError, OSError, ValueError, StopIteration):
        if names is None and set(array_names(path)) >= REQUIRED:
            return
        if names is not None and _has_names(path, names):
            return
    message, fixes = "another file has this name", ["move it", "name another"]
    if names is not None:
        message = "is there, with other columns or arrays than it would get"
        fixes = ["remove it to write it anew", "name another"]
    raise InputError(f"{path}: {message}", field=option, fixes=fixes)


def _has_names(path: Path, names: Sequence[str]) -> bool:
    """Whether a file of one of the forms that `apply` writes has columns or arrays of these names.

    An object of JSON lines may lack an entry that another one has.
    """
    ending = path.suffix.lower()
    if ending == ".npz":
        return sorted(array_names(path)) == sorted(names)
    if ending == ".parquet":
        return sorted(require("pyarrow.parquet").read_schema(path).names) == sorted(names)
    with path.open(encoding="utf-8", newline="") as file:
        if ending == ".jsonl":
            first = json.loads(next(file)).keys()
            return first <= set(names) and names[-1] in first  # the predicted class
        # Semicolons are between cells beside decimal commas.
        text = file.read(LONGEST_HEAD)
    heads = [next(csv.reader(StringIO(text, newline=""), delimiter=sign)) for sign in ",;"]
    return any(sorted(head) == sorted(names) for head in heads)
