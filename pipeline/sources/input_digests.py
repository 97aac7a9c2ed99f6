"""Digests of the files that a source reads. Keys use file contents, not paths.

A source says by `reads` which of its options name files, and how their content is digested.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from pydoc import ErrorDuringImport, locate
from typing import Any, NamedTuple, TypeVar

from utility_calibration.metrics.errors import InputError, MissingResource, reason_of

from ..harness.artifacts import sha256_of, sha256_of_json
from ..harness.code_digest import UnknownTarget, refuse_short
from ..harness.settings import Settings

Source = TypeVar("Source", bound=Callable[..., Any])
Options = Mapping[str, Any]
Place = str | Path
Classes = Callable[[Options], int | None] | None
SPEED = ("batch_size", "workers")
"""Options of all sources that change the speed, not the logits."""
STAY = ("vectors_path",)
"""Options of files that stay in effect for later commands that name none."""


class Reads(NamedTuple):
    """What a source says of its options."""

    contents: Mapping[str, Callable[[Any], Any]] = {}
    """For each option that names files a function to their digest, or to None where none lie."""
    without_effect: Sequence[str] = ()
    """Options that change no logits."""
    classes: Classes = None
    """The number of classes from the options, before anything is read."""


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
        READS[source] = Reads(contents, without_effect, classes)
        return source

    return declared


READS: dict[Callable[..., Any], Reads] = {}
"""What each source has said."""


def inputs_of(entry: Options, earlier: Options) -> dict[str, dict[str, Any]]:
    """What a `_target_` makes its answer from: plain `options`, and the content of `files`.

    Where the files went away, their content is taken from `earlier`, which is that behind the
    answer that lies there. So logits stay up to date on a machine without the images.
    """
    declared = _reads(entry)
    files: dict[str, Any] = {}
    if declared is None:
        declared = Reads()
        files = _files_among(entry, earlier)
    for name, content_of in declared.contents.items():
        value = entry.get(name)
        files[name] = None if value is None else content_of(value)
        if files[name] is None and (value is not None or name in STAY):
            files[name] = earlier.get(name)
    others = {*files, *declared.without_effect, *SPEED}
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
    if declared is None or declared.classes is None:
        return None
    return declared.classes(entry)


def _reads(entry: Options) -> Reads | None:
    """What the source of a `_target_` says by `reads`; None of one that says nothing."""
    name = str(entry["_target_"])
    refuse_short(name)
    try:
        source = locate(name)
    except ErrorDuringImport as error:
        reason = reason_of(error.value or error)
        message = f"{name}: its module cannot be imported ({reason})"
        raise UnknownTarget(f"{message}; mend it, or install what it needs") from error
    if source is None:
        raise UnknownTarget(f"{name}: {_what_is_missing(name)}")
    return READS.get(source)  # type: ignore[call-overload]


def _what_is_missing(name: str) -> str:
    """Why a dotted name leads nowhere, and what mends that."""
    package = name.partition(".")[0]
    if locate(package) is None:
        fix = f"correct `_target_`, or install the package that has {package}"
        return f"no package {package} is installed; {fix}"
    module = name
    while locate(module) is None:
        module = module.rpartition(".")[0]
    missing = name.removeprefix(f"{module}.")
    return f"{module} has no {missing}; correct `_target_`"


def ready_made(settings: Settings) -> Path | None:
    """The ready-made npz of the benchmark in paths.precomputed."""
    folder, stem = settings.paths.precomputed, settings.benchmark.precomputed
    if not folder or not stem:
        return None
    if not Path(folder).expanduser().is_dir():
        raise MissingResource(f"paths.precomputed={folder}: no such folder; correct or unset it")
    path = Path(folder).expanduser() / f"{stem}.npz"
    return path if path.is_file() else None


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
