"""The result of a source, and digests of its input files. Keys use file contents, not paths.

A source says by `reads` which of its options name files, and how their content is digested.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pydoc import locate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, MissingResource

from ..harness.artifacts import sha256_of, sha256_of_json
from ..harness.code import UnknownTarget, refuse_short
from ..harness.settings import Settings

Source = TypeVar("Source", bound=Callable[..., Any])
Options = Mapping[str, Any]
Place = str | Path
Classes = Callable[[Options], int | None] | None
SPEED = ("batch_size", "workers")
"""Options of all sources that change the speed, not the logits."""
STAY = ("vectors_path",)
"""Once given, such a file stays in effect for commands that name none."""


@dataclass(frozen=True)
class SourceResult:
    """Logits of a benchmark with their labels, and where they come from.

    `details` goes to the record, besides checksum and accuracy: `source`, `model`, `preprocessing`,
    `origin`, optionally `class_names` (C names, in the order of the columns) and `warnings` (a list
    of lines that the stage also prints). All values must be valid in JSON. The other fields are
    None where points have no groups, splits, weights, or clusters of dependent points.
    """

    logits: NDArray[np.float32]  # [n, C], before the softmax
    labels: NDArray[np.int64]  # [n], in [0, C)
    details: dict[str, Any] = field(default_factory=dict)
    groups: NDArray[np.str_] | None = None  # [n], the name of each point's group
    tested: NDArray[np.bool_] | None = None  # [splits, n], True for test points
    weights: NDArray[np.float64] | None = None  # [n], >= 0
    clusters: NDArray[np.str_] | None = None  # [n], the name of each point's cluster

    def part(self, rows: int) -> "SourceResult":
        """The points of `drawn_rows`."""
        drawn = drawn_rows(len(self.labels), rows)
        parts: dict[str, Any] = {}
        for name in ("logits", "labels", "groups", "weights", "clusters"):
            array = getattr(self, name)
            if array is not None:
                parts[name] = array[drawn]
        if self.tested is not None:
            parts["tested"] = self.tested[:, drawn]
        return replace(self, **parts)


def drawn_rows(n: int, rows: int | None) -> NDArray[np.intp]:
    """`rows` of n rows in their order, drawn at random from a fixed seed; None: all of them."""
    if rows is None or rows >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, rows, replace=False))


def reads(
    classes: Classes = None, without_effect: Sequence[str] = (), /, **contents: Callable[[Any], Any]
) -> Callable[[Source], Source]:
    """Say how the content behind an option is digested, such as `checkpoint=file_content`.

    Args:
        classes: the number of classes from the options, before anything is read.
        without_effect: options that change no logits.
        contents: for each option that names files a function to their digest, or to None where
            nothing lies.
    """

    def declared(source: Source) -> Source:
        source.reads = (contents, without_effect, classes)  # type: ignore[attr-defined]
        return source

    return declared


def inputs_of(entry: Options, earlier: Options) -> dict[str, dict[str, Any]]:
    """What a `_target_` makes its answer from: plain `options`, and the content of `files`.

    Where the files went away, their content is taken from `earlier`, which is that behind the
    answer that lies there. So logits stay up to date on a machine without the images.
    """
    declared = _reads(entry)
    contents, without_effect, _ = declared or ({}, (), None)
    files: dict[str, Any] = {}
    if declared is None:
        files = _files_among(entry, earlier)
    for name, content_of in contents.items():
        value = entry.get(name)
        files[name] = None if value is None else content_of(value)
        if files[name] is None and (value is not None or name in STAY):
            files[name] = earlier.get(name)
    others = {*files, *without_effect, *SPEED}
    options = {name: value for name, value in entry.items() if name not in others}
    return {"options": options, "files": files}


def _files_among(entry: Options, earlier: Options) -> dict[str, Any]:
    """The content of files in the options of a source that declares none; any text may name one."""
    files = {}
    for name, text in entry.items():
        if not isinstance(text, str):
            continue
        content = any_content(text)
        if content or name in earlier:
            files[name] = content
    return files


def class_count(entry: Options) -> int | None:
    """The number of classes, where the source of a `_target_` knows it before it runs."""
    declared = _reads(entry)
    if declared is None:
        return None
    _, _, classes = declared
    return classes(entry) if classes else None


def _reads(entry: Options) -> Any:
    """What the source of a `_target_` says by `reads`, or None."""
    refuse_short(str(entry["_target_"]))
    source = locate(str(entry["_target_"]))
    if source is None:
        raise UnknownTarget(f"{entry['_target_']}: no such module or name; check `_target_`")
    return getattr(source, "reads", None)


def ready_made(settings: Settings) -> Path | None:
    """The ready-made npz of the benchmark in paths.precomputed."""
    folder, stem = settings.paths.precomputed, settings.benchmark.precomputed
    if not folder or not stem:
        return None
    if not Path(folder).expanduser().is_dir():
        raise MissingResource(f"paths.precomputed={folder}: no such folder; correct or unset it")
    path = Path(folder).expanduser() / f"{stem}.npz"
    return path if path.is_file() else None


def is_hub_name(value: str) -> bool:
    """Whether `value` is an owner/name on the Hugging Face hub, and no path of something here."""
    is_path = value.startswith((".", "~", "/")) or Path(value).exists()
    return value.count("/") == 1 and not is_path


def check_is_file(path: Path, meaning: str) -> None:
    """Raise an error of one line unless `path` is a file; `meaning` says which one is needed."""
    if path.is_dir():
        raise InputError("this is a folder", file=path, fixes=f"give the path of {meaning}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {meaning}")


def file_in(folder: Place | None, name: str) -> Path | None:
    """The file `name` in a folder that may hold it; None where there is none."""
    path = Path(folder).expanduser() / name if folder else None
    return path if path and path.is_file() else None


def file_content(path: Place) -> str | None:
    """The SHA-256 of a file; None where none lies."""
    place = Path(path).expanduser()
    return sha256_of(place) if place.is_file() else None


def files_content(paths: Iterable[Path]) -> str | None:
    """A digest of what some files hold, whatever their folder; None of no file."""
    sums = sorted((path.name, sha256_of(path)) for path in paths)
    return sha256_of_json(sums) if sums else None


def any_content(text: Place) -> str | None:
    """The content of a file, or of a folder that `datasets` saved; None of another text."""
    folder = Path(text)
    if (folder / "state.json").is_file():
        return files_content(folder.glob("*.arrow"))
    return file_content(text)
