"""Files of the Hugging Face hub: from its cache or the network, and checked by their hashes."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import MissingResource, reason_of

from ..harness.artifacts import sha256_of
from .downloads import check_digest, not_fetched

COMMIT = re.compile(r"[0-9a-f]{40}")
GIT_DIGITS, SHA256_DIGITS = 40, 64
"""The length of a name in the cache: small files have git's SHA-1, large ones their SHA-256."""


def is_hub_name(value: str) -> bool:
    """Whether `value` is an owner/name on the Hugging Face hub, and no path of something here."""
    is_path = value.startswith((".", "~", "/")) or Path(value).exists()
    return value.count("/") == 1 and not is_path


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

    Raises:
        MissingResource: the path of a local file or folder leads nowhere.
        InputError: the files are not in the cache and cannot be downloaded, or a file of the cache
            is not what its hash says.
    """
    place = Path(repository).expanduser()
    if place.exists():
        return place
    if repository.startswith(("/", ".", "~")):
        raise MissingResource(f"{repository}: no such file or folder; correct {setting}")
    hub = require("huggingface_hub")
    options = {"repo_type": kind, "revision": revision, "allow_patterns": list(patterns)}
    # The newest commit is known only to the hub, so the cache alone cannot answer for it.
    is_pinned = COMMIT.fullmatch(revision or "") is not None
    reason = ""
    for only_cache in (True, False) if is_pinned else (False,):
        try:
            answer = hub.snapshot_download(repository, **options, local_files_only=only_cache)
        except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
            reason = reason_of(error)
            continue
        folder = Path(answer)
        if is_complete(folder, patterns, needed):
            _check_files(folder, patterns)
            return folder
        reason = f"no file matches {' or '.join(needed or patterns)}"
    command = f"hf download {repository}"
    if kind == "dataset":
        command += " --repo-type dataset"
    if revision:
        command += f" --revision {revision}"
    address = require("huggingface_hub.constants", "huggingface_hub").ENDPOINT
    url = f"{address}/{'datasets/' if kind == 'dataset' else ''}{repository}"
    fixes = [f"with network run '{command}'", f"set {setting}"]
    raise not_fetched(f"{kind} {repository} in the Hugging Face cache", url, reason, fixes)


def is_complete(folder: Path, patterns: Sequence[str], needed: Sequence[str]) -> bool:
    """Whether some file of a folder matches one of `patterns`, and some file each of `needed`."""
    has_any = any(next(folder.rglob(pattern), None) for pattern in patterns)
    has_all = all(next(folder.rglob(pattern), None) for pattern in needed)
    return has_any and has_all


def _check_files(folder: Path, patterns: Sequence[str]) -> None:
    """Check the files of the cache against the names of their blobs, which are digests."""
    for pattern in patterns:
        for path in folder.rglob(pattern):
            blob = path.resolve()
            n_digits = len(blob.name)
            # A plain file, as on Windows, has no such name.
            if not path.is_symlink() or n_digits not in (GIT_DIGITS, SHA256_DIGITS):
                continue
            digest = _git_digest(blob) if n_digits == GIT_DIGITS else sha256_of(blob)
            check_digest(path, digest, blob.name, f"delete {blob} and download it again")


def _git_digest(path: Path) -> str:
    """How git names a file: the SHA-1 of its size and its bytes."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def weights_digest(path: Path, expected: str | None) -> str:
    """The SHA-256 of a model's weights; `InputError` if the benchmark's file says another one."""
    sha256 = sha256_of(path)
    if expected:
        accept = f"set benchmark.source.sha256={sha256} if you mean this file"
        fixes = ["download it again, as it may be damaged", accept]
        check_digest(path, sha256, expected, fixes, field="benchmark.source.sha256")
    return sha256
