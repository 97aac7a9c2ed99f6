"""The logits that later stages read: data/logits/<benchmark>.npz with its sidecar, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.harness.artifacts import CorruptFile, read_npz
from pipeline.harness.cache import arrays_digest, record_of
from pipeline.harness.units import Settings

READ_TOGETHER = 4096
"""Rows copied at a time."""


@dataclass(frozen=True)
class CachedLogits:
    """Where a benchmark's logits lie and what their record says."""

    path: Path
    sha256: str
    """Of the logits, labels and given splits; not of a similarity that lies beside them."""
    n: int
    classes: int
    similarity_sha256: str | None = None


def logits_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.npz"""
    return Path(settings["paths"]["data"]) / "logits" / f"{settings['benchmark']['name']}.npz"


def sidecar_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.json"""
    return logits_path(settings).with_suffix(".json")


def read_sidecar(settings: Settings) -> dict[str, Any] | None:
    """What the logits stage recorded of a benchmark's logits; None where they are absent."""
    try:
        found = _found(logits_path(settings), logits_path(settings).stat().st_mtime_ns)
    except FileNotFoundError:
        return None
    return None if found is None else {**found[1], "sha256": found[0].sha256}


def find_logits(settings: Settings) -> CachedLogits:
    """The benchmark's cached logits, their bytes checked.

    Raises:
        CorruptFile: they are absent or damaged; one line with the fix.
    """
    path = logits_path(settings)
    found = _found(path, path.stat().st_mtime_ns) if path.is_file() else None
    if found is None:
        raise CorruptFile(
            f"{path}: no logits, or damaged ones; run python -m pipeline.logits with the same "
            "arguments"
        )
    return found[0]


@lru_cache(maxsize=16)
def _found(path: Path, changed: int) -> tuple[CachedLogits, dict[str, Any]] | None:
    """The logits and their sidecar's content, read once for each state of the file."""
    record = record_of(path)
    if record is None:
        return None
    sidecar = record["sidecar"]
    has_similarity = "similarity" in sidecar
    return CachedLogits(
        path=path,
        sha256=arrays_digest(path, ("logits", "labels", "tested")),
        n=sidecar["n"],
        classes=sidecar["classes"],
        similarity_sha256=arrays_digest(path, ("similarity",)) if has_similarity else None,
    ), sidecar


@lru_cache(maxsize=1)
def load_logits(path: Path, sha256: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits [n, C], left in the file, and labels [n], for all units of the same benchmark.

    Processes share the memory in which the system keeps the file. `sha256` is not checked again; it
    makes another version of the file another entry.
    """
    arrays = read_npz(path, mapped=("logits",))
    return arrays["logits"], arrays["labels"]


def given_splits(settings: Settings) -> NDArray[np.bool_] | None:
    """Which points test, [splits, n], where the benchmark's source says so; None elsewhere."""
    sidecar = read_sidecar(settings) or {}
    return _tested(find_logits(settings)) if "given_splits" in sidecar else None


@lru_cache(maxsize=1)
def _tested(cached: CachedLogits) -> NDArray[np.bool_]:
    return read_npz(cached.path, mapped=("logits",))["tested"]


def rows_of(logits: NDArray[np.float32], points: NDArray[np.int64]) -> NDArray[np.float32]:
    """`logits[points]`, read in the order of the file: a large one may not stay in memory."""
    rows = np.empty((len(points), logits.shape[1]), dtype=np.float32)
    order = np.argsort(points)
    for some in np.array_split(order, len(order) // READ_TOGETHER + 1):
        rows[some] = logits[points[some]]
    return rows
