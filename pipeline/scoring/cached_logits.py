"""The logits that later stages read, data/logits/<benchmark>.npz, checked once per program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.harness.artifacts import CorruptFile, read_npz
from pipeline.harness.cache import arrays_digest, record_of
from pipeline.harness.settings import Settings

READ_TOGETHER = 4096
"""Rows copied at a time."""


@dataclass(frozen=True)
class CachedLogits:
    """The file of a benchmark's logits, and what the logits stage recorded about them."""

    path: Path
    sha256: str
    """Of the logits, labels, splits, weights, clusters; not of a similarity that lies beside."""
    details: Mapping[str, Any]
    """Their origin, accuracy, number of points `n` and of `classes`, `class_names` if known."""
    similarity_sha256: str | None = None
    arrays_sha256: str = ""
    """Of all arrays in the file, the groups of points among them."""

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.details["n"])

    @property
    def size(self) -> int:
        """The number of logits, n x C."""
        return self.n * int(self.details["classes"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """`logits` [n, C] float32 and `labels` [n] int64, read once for all units of a benchmark.

        Where the source has them: `tested` [splits, n], which points test; `weights` [n];
        `groups` and `clusters` [n]; `similarity` [C, C]. The logits stay in the file, whose memory
        processes share.
        """
        return _arrays(self.path, self.arrays_sha256)


def logits_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.npz"""
    return settings.paths.data / "logits" / f"{settings.benchmark.name}.npz"


def find_logits(settings: Settings) -> CachedLogits:
    """The benchmark's cached logits, their bytes checked.

    Raises:
        CorruptFile: they are absent or damaged; one line with the fix.
    """
    path = logits_path(settings)
    cached = _checked(path, path.stat().st_mtime_ns) if path.is_file() else None
    if cached is None:
        raise CorruptFile(
            f"{path}: no logits, or damaged ones; run python -m pipeline.logits with the same "
            "arguments"
        )
    return cached


@lru_cache(maxsize=16)
def _checked(path: Path, changed: int) -> CachedLogits | None:
    """The logits, read once for each state of the file."""
    record = record_of(path)
    if record is None or "details" not in record:
        return None
    details, similarity = record["details"], ("similarity",)
    return CachedLogits(
        path=path,
        sha256=arrays_digest(path, ("logits", "labels", "tested", "weights", "clusters")),
        details=details,
        similarity_sha256=arrays_digest(path, similarity) if "similarity" in details else None,
        arrays_sha256=record["arrays"],
    )


@lru_cache(maxsize=1)
def _arrays(path: Path, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file; `sha256` makes another version of the file another entry."""
    return read_npz(path, mapped=("logits",))


def weights_at(cached: CachedLogits, points: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """The weights of some of the points; None where points have none."""
    weights = cached.arrays().get("weights")
    return None if weights is None else weights[points]


def groups_at(
    cached: CachedLogits, points: NDArray[np.int64], calibrator: Any
) -> dict[str, NDArray[np.str_]]:
    """The argument `groups` [points] of a calibrator that needs it; else, or without any, none."""
    groups = cached.arrays().get("groups") if calibrator.needs_groups else None
    return {} if groups is None else {"groups": groups[points]}


def clusters_of(cached: CachedLogits) -> NDArray[np.int64] | None:
    """The number of each point's cluster, from 0: [n]; None where points are independent."""
    clusters = cached.arrays().get("clusters")
    return None if clusters is None else np.unique(clusters, return_inverse=True)[1].astype(int)


def rows_of(logits: NDArray[np.float32], points: NDArray[np.int64]) -> NDArray[np.float32]:
    """`logits[points]`, read in the order of the file, which may be larger than the memory."""
    rows = np.empty((len(points), logits.shape[1]), dtype=np.float32)
    order = np.argsort(points)
    for block in np.array_split(order, len(order) // READ_TOGETHER + 1):
        rows[block] = logits[points[block]]
    return rows
