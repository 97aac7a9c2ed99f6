"""Files of the Hugging Face hub: from the cache, or fetched; without network one line, at once.

huggingface_hub retries an unreachable host for 24 s per file. One request with a short timeout
finds out first; HF_HUB_OFFLINE=1 skips even that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.sources.commits import NEWEST
from pipeline.sources.heavy_imports import require
from pipeline.sources.result import MissingResource, reason_of

REACH_TIMEOUT = 5.0
"""Seconds to wait for the hub's first answer."""


def hub_files(
    repository: str, kind: str, patterns: Sequence[str], setting: str, revision: str | None = None
) -> Path:
    """The local folder that holds a repository's files matching `patterns`, named by its commit.

    Args:
        repository: owner/name on the hub.
        kind: model or dataset.
        patterns: file name patterns of which at least one file is needed.
        setting: how to point at a local copy instead, for the message (`data=<folder>`).
        revision: the commit wanted, which the hub guarantees bit by bit; None and "newest" take
            its newest.

    Raises:
        MissingResource: not in the cache and not to be fetched, with the reason.
    """
    hub = require("huggingface_hub")
    errors = require("huggingface_hub.errors")
    revision = None if revision == NEWEST else revision
    obstacle = _obstacle()
    try:
        folder = Path(
            hub.snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(patterns),
                local_files_only=obstacle is not None,
            )
        )
    except errors.LocalEntryNotFoundError:
        reason = obstacle or "the hub did not answer"
    except (errors.HfHubHTTPError, OSError) as error:
        reason = reason_of(error)
    else:
        if any(next(folder.rglob(pattern), None) for pattern in patterns):
            return folder
        reason = f"no file matches {' or '.join(patterns)}"
    flag = " --repo-type dataset" if kind == "dataset" else ""
    flag += f" --revision {revision}" if revision else ""
    raise MissingResource(
        f"{kind} {repository} is not in the Hugging Face cache ({reason}): with network run "
        f"'hf download {repository}{flag}', or set benchmark.source.{setting}"
    )


def _obstacle() -> str | None:
    """Why the hub cannot be asked, or None."""
    hub = require("huggingface_hub")
    if hub.is_offline_mode():
        return "HF_HUB_OFFLINE is set"
    try:
        hub.get_session().head(hub.constants.ENDPOINT, timeout=REACH_TIMEOUT)
    except Exception as error:  # the HTTP library's own hierarchy; any failure means unreachable
        return f"{hub.constants.ENDPOINT} cannot be reached: {type(error).__name__}"
    return None
