"""The points of a benchmark: their cached logits, and which calibrate and which test in a split.

Points of one cluster, such as a patient's, stay on one side: else the test points would not be new.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, naming

from ..harness.artifacts import CorruptFile, read_npz
from ..harness.cache import arrays_digest, record_of, state_of
from ..harness.settings import Settings

READ_TOGETHER = 4096  # rows copied at a time
LARGEST = 60_000_000  # probabilities held at a time; larger benchmarks use their first splits
SMALLEST_GROUP = 20  # A group is scored if it has this many test points in every split
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class CachedLogits:
    """The file of a benchmark's logits, and what the logits stage recorded about them."""

    path: Path
    sha256: str
    """Of the logits, labels, splits, weights and clusters."""
    details: Mapping[str, Any]
    """Origin, accuracy, number of points `n` and of `classes`, perhaps `class_names`."""
    similarity_sha256: str | None = None
    arrays_sha256: str = ""
    """Of all arrays, also the groups."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the source."""

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.details["n"])

    @property
    def size(self) -> int:
        """The number of logits, n x C."""
        return self.n * int(self.details["classes"])

    @property
    def inputs(self) -> str:
        """What the logits are for a calibrator: "log_probabilities" if a file had probabilities."""
        origin = self.details.get("origin")  # a text where a stage made the logits
        kind = origin.get("values") if isinstance(origin, Mapping) else None
        return "log_probabilities" if kind == "probabilities" else "logits"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """`logits` [n, C] float32, in the file's shared memory, and `labels` [n] int64.

        Where the source has them: `tested` [splits, n], which points test; `weights` [n];
        `groups` and `clusters` [n]; `similarity` [C, C].
        """
        return _arrays(self.path, self.arrays_sha256)


def logits_path(settings: Settings) -> Path:
    """data/logits/<benchmark>.npz"""
    return settings.paths.data / "logits" / f"{settings.benchmark.name}.npz"


def find_logits(settings: Settings) -> CachedLogits:
    """The benchmark's cached logits, checked once per program; CorruptFile where there are none."""
    path = logits_path(settings)
    cached = _checked(path, state_of(path)) if path.is_file() else None
    if cached is not None:
        return cached
    fix = "run utility-calibration logits with the same arguments"
    raise CorruptFile(f"{path}: no logits, or damaged ones; {fix}")


@lru_cache(maxsize=16)
def _checked(path: Path, state: tuple[int, ...]) -> CachedLogits | None:
    record = record_of(path)
    if record is None or "details" not in record:
        return None
    sha256 = arrays_digest(path, ("logits", "labels", "tested", "weights", "clusters"))
    has_similarity = "similarity" in record["details"]
    return CachedLogits(
        path,
        sha256,
        details=record["details"],
        similarity_sha256=arrays_digest(path, ("similarity",)) if has_similarity else None,
        arrays_sha256=record["arrays"],
        options=record.get("options", {}),
    )


@lru_cache(maxsize=1)
def _arrays(path: Path, sha256: str) -> dict[str, NDArray[Any]]:
    return read_npz(path, mapped=("logits",))


def logits_at(cached: CachedLogits, points: Indices) -> NDArray[np.float32]:
    """The logits of some of the points, read in the order of the file, which may be large."""
    logits = cached.arrays()["logits"]
    rows = np.empty((len(points), logits.shape[1]), dtype=np.float32)
    order = np.argsort(points)
    for block in np.array_split(order, len(order) // READ_TOGETHER + 1):
        rows[block] = logits[points[block]]
    return rows


def weights_at(cached: CachedLogits, points: Indices) -> NDArray[np.float64] | None:
    """The weights of some of the points; None where points have none."""
    weights = cached.arrays().get("weights")
    return None if weights is None else weights[points]


def groups_at(cached: CachedLogits, points: Indices, calibrator: Any) -> dict[str, Any]:
    """The argument `groups` [points] of a calibrator that needs it; else, or without any, none."""
    groups = cached.arrays().get("groups") if calibrator.needs_groups else None
    return {} if groups is None else {"groups": groups[points]}


def clusters_of(cached: CachedLogits) -> Indices | None:
    """The number of each point's cluster, from 0: [n]; None where points are independent."""
    clusters = cached.arrays().get("clusters")
    return None if clusters is None else np.unique(clusters, return_inverse=True)[1].astype(int)


def split_indices(
    n: int, split: int, seed: int = 0, share: float = 0.7, clusters: Indices | None = None
) -> tuple[Indices, Indices]:
    """Return the indices of calibration and test points of one split, each in random order.

    A split is a permutation of `n` points, drawn from the generator seeded by (`seed`, `split`).
    Its first 70 % (`share`) calibrate (sec. 4). It is not stratified, and the same for all
    calibrators. Each side has at least one point. A cluster is never divided, so the share is as
    near as whole clusters allow; `clusters` [n] has the number of each point's.
    """
    units = np.arange(n) if clusters is None else np.unique(clusters)
    if len(units) < 2:
        what, field = ("a single point", "labels") if clusters is None else ("one", "clusters")
        fix = f"give at least two {'points' if clusters is None else 'of them'}"
        raise InputError(f"{what} cannot be split", field=field, fixes=fix)
    generator = np.random.default_rng([seed, split])
    order = generator.permutation(n)
    if clusters is None:
        count = min(max(round(share * n), 1), n - 1)
        return order[:count], order[count:]
    units = generator.permutation(units)
    passed = np.bincount(clusters)[units].cumsum()
    count = 1 + int(np.abs(passed[:-1] - share * n).argmin())
    calibrates = np.isin(clusters[order], units[:count])
    return order[calibrates], order[~calibrates]


def indices_of(settings: Settings, cached: CachedLogits, split: int) -> tuple[Indices, Indices]:
    """The split of the source, if it has splits (a file may), or else `split_indices`."""
    source = settings.benchmark.source
    files = [str(source[name]) for name in ("path", "test") if source.get(name)]
    with naming(" and ".join(files) or cached.path):
        return _indices_of(settings, cached, split)


def _indices_of(settings: Settings, cached: CachedLogits, split: int) -> tuple[Indices, Indices]:
    splits, tested = settings.splits, cached.arrays().get("tested")
    if tested is None:
        drawn = splits.seed, splits.calibration_fraction, clusters_of(cached)
        return split_indices(cached.n, split, *drawn)
    if split >= len(tested):
        fix = f"set splits.count={len(tested)}"
        message = f"{splits.count}, the file itself gives {len(tested)}"
        raise InputError(message, field="splits.count", fixes=fix)
    calibration, test = np.flatnonzero(~tested[split]), np.flatnonzero(tested[split])
    names = cached.arrays().get("clusters")
    divided = [] if names is None else np.intersect1d(names[calibration], names[test]).tolist()
    if divided:
        raise InputError(
            f"{divided[0]} has calibration and test points in split {split}, and so have "
            f"{len(divided) - 1} others",
            field="clusters",
            fixes="keep each on one side, or leave the clusters out",
        )
    return calibration, test


def absent_in_calibration(settings: Settings, cached: CachedLogits) -> dict[int, int]:
    """Per class that some split has no point of to calibrate on, the number of such splits."""
    labels = cached.arrays()["labels"]
    splits = range(settings.splits.count)
    learned = [np.unique(labels[indices_of(settings, cached, split)[0]]) for split in splits]
    absent = np.concatenate([np.setdiff1d(labels, classes) for classes in learned]).tolist()
    return dict(sorted(Counter(absent).items()))


def splits_together(size: int, splits: int) -> int:
    """The number of `splits` whose test points fit into memory; `size`: logits, n x C."""
    return min(splits, max(1, LARGEST // max(1, size)))
