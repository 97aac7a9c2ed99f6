"""The logits that later stages read: data/logits/<benchmark>.npz with its sidecar, checked once."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import OmegaConf

from pipeline.harness.artifacts import CorruptFile, read_npz, read_record, sha256_of
from pipeline.harness.command import CONF, override
from pipeline.harness.units import Settings

READ_TOGETHER = 4096
"""Rows copied at a time."""
FILE_SOURCE = "pipeline.sources.file.file_logits"


@dataclass(frozen=True)
class CachedLogits:
    """Where a benchmark's logits lie and what the sidecar says of them."""

    path: Path
    sha256: str
    n: int
    classes: int
    similarity: Path | None = None
    """npz with `matrix` [C, C], where the benchmark has one."""
    similarity_sha256: str | None = None


def logits_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.npz"""
    return Path(settings["paths"]["data"]) / "logits" / f"{settings['benchmark']['name']}.npz"


def sidecar_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.json"""
    return logits_path(settings).with_suffix(".json")


def read_sidecar(settings: Settings) -> dict[str, Any] | None:
    """What the sidecar says; None where it is absent, half-written or was edited."""
    return read_record(sidecar_path(settings))


def logits_record(settings: Settings) -> dict[str, Any]:
    """The sidecar, or its copy kept with the results; empty where there is neither."""
    copy = Path(settings["paths"]["results"]) / "logits" / sidecar_path(settings).name
    return read_sidecar(settings) or read_record(copy) or {}


def similarity_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.similarity.npz"""
    return logits_path(settings).with_suffix(".similarity.npz")


def running_path(settings: Settings) -> Path:
    """The lock of whoever makes them."""
    return logits_path(settings).with_suffix(".running.json")


def failed_path(settings: Settings) -> Path:
    """Why the last attempt to make them failed; there until one succeeds."""
    return logits_path(settings).with_suffix(".failed.json")


def find_logits(settings: Settings) -> CachedLogits:
    """The benchmark's cached logits, their bytes checked against the sidecar.

    Raises `CorruptFile` where they are absent, truncated or were exchanged: one line with the fix.
    """
    path = logits_path(settings)
    fix = f"run {command_for(settings)}"
    record = read_sidecar(settings)
    if not path.is_file() or record is None:
        raise CorruptFile(
            f"{path}: no logits with a readable sidecar (absent, cut or edited); {fix}"
        )
    if sha256_of(path) != record.get("sha256"):
        raise CorruptFile(
            f"{path}: differs from what its sidecar recorded, truncated or overwritten; {fix}"
        )
    similarity = similarity_path(settings)
    expected = record.get("similarity_sha256")
    if expected and (not similarity.is_file() or sha256_of(similarity) != expected):
        raise CorruptFile(f"{similarity}: absent or overwritten; {fix}")
    return CachedLogits(
        path=path,
        sha256=record["sha256"],
        n=record["n"],
        classes=record["classes"],
        similarity=similarity if expected else None,
        similarity_sha256=expected,
    )


def command_for(settings: Settings) -> str:
    """The command line that makes these logits, with the user's file and folders where given."""
    benchmark, paths = settings["benchmark"], settings["paths"]
    chosen = [override("benchmark", benchmark["name"])]
    if benchmark["source"]["_target_"] == FILE_SOURCE:  # its name is the user's, not conf/'s
        chosen = ["benchmark=file", override("benchmark.name", benchmark["name"])]
        chosen.append(override("benchmark.source.path", str(benchmark["source"]["path"])))
    usual = OmegaConf.to_container(OmegaConf.load(CONF / "paths" / "default.yaml"))
    assert isinstance(usual, dict)
    for key in ("data", "precomputed"):
        if paths[key] != usual[key]:
            chosen.append(override(f"paths.{key}", str(paths[key])))
    return shlex.join(["python", "-m", "pipeline.logits", *chosen])


@lru_cache(maxsize=1)
def load_logits(path: Path, sha256: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits [n, C], left in the file, and labels [n], for all units of the same benchmark.

    Processes share the memory in which the system keeps the file. `sha256` is not checked again; it
    makes another version of the file another entry.
    """
    arrays = read_npz(path, mapped=("logits",))
    return arrays["logits"], arrays["labels"]


def rows_of(logits: NDArray[np.float32], points: NDArray[np.int64]) -> NDArray[np.float32]:
    """`logits[points]`, read in the order of the file: a large one may not stay in memory."""
    rows = np.empty((len(points), logits.shape[1]), dtype=np.float32)
    order = np.argsort(points)
    for some in np.array_split(order, len(order) // READ_TOGETHER + 1):
        rows[some] = logits[points[some]]
    return rows
