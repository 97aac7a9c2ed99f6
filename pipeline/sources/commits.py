"""Which commits of the hub logits are made from: pinned on first use.

Where no revision is set, the commit that the logits' record names is taken again, so that logits
made anew are of the very same files; the record lies beside the logits and with the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NEWEST = "newest"
"""A revision: the hub's newest commit, whatever was used before."""

REVISIONS = {"revision": "model", "model_revision": "model", "data_revision": "data"}
"""Settings of sources that name a commit, and the setting that names its repository."""


def as_recorded(source: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The settings `source` with each revision left open as in the logits' earlier `record`."""
    commits = commits_of(record)
    known = {
        setting: commits[source[name]]
        for setting, name in REVISIONS.items()
        if setting in source and source[setting] is None and source[name] in commits
    }
    return {**source, **known}


def commits_of(record: Mapping[str, Any]) -> dict[str, str]:
    """The commits of the hub by model or data set, as a source or a sidecar recorded them."""
    origin = record.get("origin")
    commits = origin.get("commits") if isinstance(origin, dict) else None
    return commits if isinstance(commits, dict) else {}


def remarks_on_commits(
    source: Mapping[str, Any], before: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[str]:
    """A line for each repository whose commit is new: taken for the first time, or another one."""
    for setting, name in REVISIONS.items():
        if setting not in source or source[name] not in now:
            continue
        repository = source[name]
        commit = now[repository]
        if repository not in before and source[setting] is None:
            yield (
                f"{repository}: commit {commit}, the newest known here, is taken from now on; "
                f"benchmark.source.{setting}={NEWEST} takes a newer one"
            )
        elif before.get(repository, commit) != commit:
            yield f"{repository}: commit {commit}, the last time it was {before[repository]}"
