"""Logits written piece by piece, so that a killed run continues where it stopped.

A shard is one npz of consecutive rows (`logits` float32 [m, C], `labels` int64 [m]) under a folder
named by what the logits depend on: weights, data, preprocessing, precision. Other inputs get
another folder, so no shard is ever taken for one of a different run.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.harness.artifacts import CorruptFile, read_npz, sha256_of_json, write_npz

log = logging.getLogger(__name__)

Rows = tuple[NDArray[np.float32], NDArray[np.int64]]


class Shards:
    """`count` rows in pieces of `size`, kept in `work_dir/<digest of key>/`."""

    def __init__(self, work_dir: Path, key: Mapping[str, Any], count: int, size: int) -> None:
        digest = sha256_of_json({**key, "count": count, "shard_size": size})
        self.folder = Path(work_dir) / digest[:16]
        self.ranges = [(start, min(start + size, count)) for start in range(0, count, size)]

    def missing(self) -> list[tuple[int, int]]:
        """The ranges [start, stop) of rows that no whole shard holds."""
        return [rows for rows in self.ranges if self._read(*rows) is None]

    def write(self, start: int, logits: NDArray[np.float32], labels: NDArray[np.int64]) -> None:
        """Store the rows from `start` on; the file appears whole or not at all."""
        write_npz(self._path(start), logits=logits, labels=labels)

    def collect(self) -> Rows:
        """All rows in order.

        Raises:
            CorruptFile: a shard was removed or damaged since it was written.
        """
        pieces = []
        for rows in self.ranges:
            piece = self._read(*rows)
            if piece is None:
                raise CorruptFile(f"{self._path(rows[0])}: removed while in use; run again")
            pieces.append(piece)
        return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:08d}.npz"

    def _read(self, start: int, stop: int) -> Rows | None:
        """The rows of a shard, or None where it is absent or damaged (then it is redone)."""
        path = self._path(start)
        try:
            arrays = read_npz(path)
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            log.warning("%s is damaged and is computed again (%s)", path, error)
            return None
        logits, labels = arrays.get("logits"), arrays.get("labels")
        if logits is None or labels is None or not len(logits) == len(labels) == stop - start:
            log.warning("%s does not hold rows %d to %d and is computed again", path, start, stop)
            return None
        return logits.astype(np.float32, copy=False), labels.astype(np.int64, copy=False)


def weights_digest(model: torch.nn.Module) -> str:
    """SHA-256 over the names, shapes and bytes of a model's parameters and buffers."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        value = value.detach().cpu().contiguous()
        digest.update(f"{name}{value.dtype}{list(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
