"""What one pass keeps of some shards: sums of a fixed size, in an npz that the plan asks for.

The sums of several such files add up. They are merged in the order of the shards, so the results
do not depend on how many processes made them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics import ClassWise, StreamingCalibration, TopK
from utility_calibration.metrics.errors import InputError

from ...harness.artifacts import CorruptFile, read_npz, save_npz
from ...harness.cache import Record, Save, arrays_digest, record_of
from ..applying.deployed import forecaster_of
from ..columns.layout import Layout
from ..points.by_parts import Notes, join_note, labelled
from ..words.file_options import FileOptions
from .shards import BOTH, ONCE, PointsDigest, Shard, unchanged

MOST_RANKED = 1000
"""Classes up to which all K of top-K are scored."""
MOST_CLASSES = 10_000
"""Classes up to which class-wise utilities are scored."""
FEW = 100
"""Classes up to which there are more buckets."""
BUCKETS_OF_FEW = 4000
"""Of each of few classes: 32 MB for a forecast of 100 classes."""
FIX = "delete it and run it again"

Accumulators = dict[str, StreamingCalibration]
"""One per metric, by its key."""


@dataclass(frozen=True)
class Reading:
    """How every shard is read."""

    file_options: FileOptions
    """What the person says."""
    layout: Layout
    """What each column is, as the first rows decide it."""
    calibrator: Path | None
    """A saved calibrator, if its answers are scored and not the forecast as it is."""
    notes: Notes
    """What was done otherwise or left out in the first rows."""

    def empty(self) -> Accumulators:
        """The accumulators before the first point: of logits, or of a calibrator's answers."""
        classes = len(self.layout.class_names)
        takes_logits = self.calibrator is None
        buckets = BUCKETS_OF_FEW if classes <= FEW else None
        ks = None if classes <= MOST_RANKED else range(1, 21)
        top = StreamingCalibration(TopK(ks), classes, buckets, takes_logits)
        if classes > MOST_CLASSES:
            return {"u_topk": top}
        return {
            "u_cwe": StreamingCalibration(ClassWise(), classes, buckets, takes_logits),
            "u_topk": top,
        }

    def check_calibrator(self) -> None:
        """Raise `InputError` if the saved calibrator does not fit the classes of the layout."""
        self.forecaster()

    def forecaster(self) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
        """What is scored of logits [n, C]: they themselves, or the calibrator's probabilities."""
        if self.calibrator is None:
            return lambda logits: logits
        return forecaster_of(self.calibrator, self.layout)


def summed(
    shards: Sequence[Shard],
    reading: Reading,
    progress: Callable[[int, int, str], None],
) -> tuple[Save, Record]:
    """Add up the points of some shards; `Task.make` says what is returned.

    The record has a digest of each shard's points, their number, and notes of the reading.

    Raises:
        InputError: a shard does not fit the first rows, or it changes meanwhile.
    """
    forecaster, sums = reading.forecaster(), reading.empty()
    points_read, n_points, notes = dict[str, Any](), 0, Notes()
    for number, shard in enumerate(shards):
        digest = PointsDigest()
        with unchanged(shard):
            for points in labelled(shard.path, reading.file_options, reading.layout, notes):
                digest.add(points)
                if points.weights.any():  # points of weight 0 alone say nothing
                    forecast = forecaster(points.logits)
                    for streaming in sums.values():
                        streaming.update(forecast, points.labels, sample_weight=points.weights)
                progress(number, len(shards), f"{n_points + digest.n_points:,} cases")
        n_points += digest.n_points
        points_read[str(shard.path)] = [digest.n_points, digest.text()]
    return partial(_save, sums), {"points": points_read, "notes": notes}


def _save(sums: Accumulators, path: Path) -> None:
    """Write the sums, each as the bytes of the npz that it saves itself to."""
    arrays = dict[str, Any]()
    for key, streaming in sums.items():
        file = io.BytesIO()
        streaming.save(file)
        arrays[key] = np.frombuffer(file.getvalue(), np.uint8)
    save_npz(path, arrays)


def merged(paths: Sequence[Path], reading: Reading) -> Accumulators:
    """The sums of all shards, from the files that `summed` made.

    Raises:
        CorruptFile: a file is damaged.
        InputError: two shards have the same points.
    """
    total, seen = reading.empty(), dict[str, str]()
    for path in paths:
        record = record_of(path) or {}
        _refuse_same_points(record.get("points", {}), seen)
        for key, sums in _read(path, record, reading).items():
            total[key].merge(sums)
    return total


def notes_of(paths: Sequence[Path], reading: Reading) -> list[str]:
    """What was done otherwise or left out when the shards were read, each once."""
    notes = Notes()
    for path in paths:
        for key, note in (record_of(path) or {}).get("notes", {}).items():
            join_note(notes, key, note)
    return list((dict(reading.notes) | notes).values())


def _refuse_same_points(points_read: dict[str, Any], seen: dict[str, str]) -> None:
    """Raise `InputError` if a shard has the points of one that was `seen` (shard by digest)."""
    for shard, (n_points, digest) in points_read.items():
        if n_points and digest in seen:
            raise InputError(f"the same cases as {seen[digest]}", file=shard, fixes=[ONCE, BOTH])
        seen[digest] = shard


def _read(path: Path, record: Record, reading: Reading) -> Accumulators:
    """The sums in a file of `summed`; CorruptFile if its arrays are not those of its record."""
    sums = reading.empty()
    try:
        if arrays_digest(path) != record.get("arrays"):
            raise CorruptFile("damaged")
        arrays = read_npz(path)
        for key, streaming in sums.items():
            streaming.load(io.BytesIO(arrays[key].tobytes()))
    except (InputError, KeyError, OSError) as error:
        raise CorruptFile("the sums of shards are damaged", file=path, fixes=FIX) from error
    return sums
