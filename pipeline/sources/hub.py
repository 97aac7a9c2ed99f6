"""Files of the Hugging Face hub, from its cache or downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.sources.heavy_imports import require
from pipeline.sources.result import MissingResource, reason_of


def hub_files(
    repository: str, kind: str, patterns: Sequence[str], setting: str, revision: str | None = None
) -> Path:
    """The local folder that holds a repository's files matching `patterns`, named by its commit.

    Args:
        repository: owner/name on the hub; the path of a local file or folder is returned as it is.
        kind: model or dataset.
        patterns: patterns of file names; at least one file must match.
        setting: the setting of a local copy, for the message (`data=<folder>`).
        revision: the commit, whose files never change; None means the newest.

    Raises:
        MissingResource: the files are not in the cache and cannot be downloaded; with the reason.
    """
    if Path(repository).exists():
        return Path(repository)
    hub = require("huggingface_hub")
    try:
        options = {"repo_type": kind, "revision": revision, "allow_patterns": list(patterns)}
        folder = Path(hub.snapshot_download(repository, **options))
        if any(next(folder.rglob(pattern), None) for pattern in patterns):
            return folder
        reason = f"no file matches {' or '.join(patterns)}"
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        reason = reason_of(error)
    flag = " --repo-type dataset" if kind == "dataset" else ""
    flag += f" --revision {revision}" if revision else ""
    raise MissingResource(
        f"{kind} {repository} is not in the Hugging Face cache ({reason}): with network run "
        f"'hf download {repository}{flag}', or set benchmark.source.{setting}"
    )
