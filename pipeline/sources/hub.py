"""Files of the Hugging Face hub, from its cache or downloaded, and checked against their names."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.result import MissingResource, reason_of


def hub_files(
    repository: str,
    kind: str,
    patterns: Sequence[str],
    setting: str,
    revision: str | None = None,
    needed: Sequence[str] = (),
) -> Path:
    """The local folder that holds a repository's files matching `patterns`, named by its commit.

    A commit that lies in the cache with all that is `needed` is taken without a request.

    Args:
        repository: owner/name on the hub; the path of a local file or folder is returned as it is.
        kind: model or dataset.
        patterns: patterns of file names; at least one file must match.
        setting: the setting of a local copy, for the message (`sources.yahoo_data=<folder>`).
        revision: the commit, whose files never change; None means the newest.
        needed: a file must match each of these patterns; by default one of `patterns`.

    MissingResource: the files are not in the cache and cannot be downloaded. InputError: a file of
    the cache is not what its hash says.
    """
    place = Path(repository).expanduser()
    if place.exists():
        return place
    if repository.startswith(("/", ".", "~")):
        raise MissingResource(f"{repository}: no such file or folder; correct {setting}")
    hub = require("huggingface_hub")
    options = {"repo_type": kind, "revision": revision, "allow_patterns": list(patterns)}
    reason = ""
    for local in (True, False) if re.fullmatch(r"[0-9a-f]{40}", revision or "") else (False,):
        try:
            folder = Path(hub.snapshot_download(repository, **options, local_files_only=local))
        except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
            reason = reason_of(error)
            continue
        matching = [path for pattern in patterns for path in folder.rglob(pattern)]
        if matching and all(next(folder.rglob(pattern), None) for pattern in needed):
            for path in matching:
                _check_blob(path)
            return folder
        reason = f"no file matches {' or '.join(needed or patterns)}"
    flag = " --repo-type dataset" if kind == "dataset" else ""
    flag += f" --revision {revision}" if revision else ""
    raise MissingResource(
        f"{kind} {repository} is not in the Hugging Face cache ({reason}): with network run "
        f"'hf download {repository}{flag}', or set {setting}"
    )


def _check_blob(path: Path) -> None:
    """Check a file of the cache against its blob's name: its SHA-256, small ones git's SHA-1.

    A plain file, as on Windows, has no such name and is not checked.
    """
    blob = path.resolve()
    if not path.is_symlink() or len(blob.name) not in (40, 64):
        return
    found = sha256_of(blob)
    if len(blob.name) == 40:
        content = blob.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if found != blob.name:
        raise InputError(
            f"{path}: damaged: its hash begins with {found[:12]}, the hub's with {blob.name[:12]}; "
            f"delete {blob} and download it again"
        )


def check_sha256(path: Path, expected: str | None) -> str:
    """The SHA-256 of `path`; an `InputError` if the benchmark's file says another one."""
    found = sha256_of(path)
    if expected and found != expected.lower():
        raise InputError(
            f"{path}: its SHA-256 is {found}, benchmark.source.sha256 says {expected}; the file is "
            "damaged, or another one"
        )
    return found
