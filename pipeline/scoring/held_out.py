"""The test points of one fitted unit, calibrated, and their scorecard."""

from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from hydra.utils import get_class, instantiate
from numpy.typing import NDArray

from utility_calibration.metrics import Scorecard, scorecard
from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.card import Result
from utility_calibration.metrics.kernels.threads import LITTLE, one_thread, row_blocks
from utility_calibration.metrics.shown import ALL_CLASSES

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.settings import Settings
from ..harness.task import Progress
from ..harness.units import Unit
from . import points

PREDICTED_TOGETHER = 1 << 24  # probabilities computed at a time, to limit a calibrator's memory


class HeldOut(NamedTuple):
    """The test points of a unit, calibrated."""

    probabilities: Array
    """[n_test, C] in float64."""
    labels: Array
    """[n_test]."""
    points: NDArray[np.int64]
    """[n_test], their positions in the benchmark."""
    population: int
    """The number of the benchmark's points."""
    rows_sum_to_one: bool
    """False for isotonic regression without normalisation."""
    weights: NDArray[np.float64] | None = None
    """[n_test]."""
    clusters: NDArray[np.int64] | None = None
    """[n_test], the numbers of their clusters."""
    cluster_count: int = 0
    """The number of the benchmark's clusters."""

    def where(self, chosen: NDArray[np.bool_]) -> Self:
        """Those of the points that the mask `chosen` [n_test] selects."""
        rows = chosen.nonzero()[0]
        changed = {}
        for name in ("probabilities", "labels", "points", "weights", "clusters"):
            values = getattr(self, name)
            if values is not None:
                changed[name] = values[rows]
        return self._replace(**changed)


def evaluated(unit: Unit, progress: Progress) -> tuple[Save, Record]:
    """Score a fitted unit; return the function that writes its arrays, and its record."""
    cached = points.find_logits(unit.settings)
    entries, arrays = scored(unit.settings, held_out(unit))
    return partial(save_npz, arrays=arrays), {
        "benchmark": unit.benchmark,
        "calibrator": unit.calibrator,
        "split": unit.split,
        "splits": asdict(unit.settings.splits),
        "logits_sha256": cached.sha256,
        "n": cached.n,
        **entries,
        "evaluation": unit.settings.evaluation.measured(),
    }


def held_out(unit: Unit) -> HeldOut:
    """A fitted unit's calibrated probabilities and labels on its test points."""
    kind: Any = get_class(unit.settings.calibrator["_target_"])
    calibrator = kind.load(unit.fit_path)
    cached = points.find_logits(unit.settings)
    calibrator.inputs = cached.inputs  # a calibrator with a constructor of its own does not save it
    _, test = points.indices_of(unit.settings, cached, unit.split)
    n_classes = int(cached.details["classes"])
    probabilities = np.empty((len(test), n_classes))
    for start, end in row_blocks(len(test), n_classes, PREDICTED_TOGETHER):
        block = test[start:end]
        groups = points.groups_at(cached, block, calibrator)
        rows = points.logits_at(cached, block)
        probabilities[start:end] = calibrator.predict_proba(rows, **groups)
    clusters = points.clusters_of(cached)
    return HeldOut(
        probabilities,
        cached.arrays()["labels"][test],
        points=test,
        population=cached.n,
        rows_sum_to_one=bool(getattr(calibrator, "normalize", True)),
        weights=points.weights_at(cached, test),
        clusters=None if clusters is None else clusters[test],
        cluster_count=0 if clusters is None else int(clusters.max()) + 1,
    )


def scored(settings: Settings, test: HeldOut) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scorecard of test points: the entries of a record, and the arrays of an npz."""
    with one_thread(test.probabilities.size <= LITTLE):
        card = scorecard(
            test.probabilities,
            test.labels,
            points=test.points,
            clusters=test.clusters,
            population=test.population if test.clusters is None else test.cluster_count,
            rows_sum_to_one=test.rows_sum_to_one,
            sample_weight=test.weights,
            **options_of(settings),
        )
    floors, worst, certificates = {}, {}, {}
    for key, result in card.results.items():
        # Of a metric that is no utility a result has the value alone.
        if hasattr(result, "floor"):
            floors[key] = result.floor._asdict()
        if hasattr(result, "worst"):
            worst[key] = _worst(result)
        if hasattr(result, "interval"):
            certificates[key] = result.interval._asdict()
    if card.interval is not None:
        certificates[ALL_CLASSES] = card.interval._asdict()
    entries = {
        "n_test": len(test.labels),
        "metrics": card.metrics,
        "noise_floor": floors,
        "worst": worst,
        "certificates": certificates,
        "zero_likelihood": card.zero_likelihood,
    }
    return entries, _arrays(card)


def _worst(result: Result) -> dict[str, float]:
    """The worst utility, its interval, and what its user gains by acting otherwise."""
    worst, gain = result.worst, result.gain
    return {
        "utility": worst.utility,
        "error": worst.error,
        "low": worst.low,
        "high": worst.high,
        "sign": worst.sign,
        "gain": gain.gain,
        "threshold": gain.threshold,
        "act_from": gain.act_from,
    }


def _arrays(card: Scorecard) -> dict[str, Any]:
    """The sampled users' errors, their floors, and the draws: <family>…, floor_<key>, …"""
    arrays = {}
    for family, curve in card.curves.items():
        arrays[family] = curve.errors
        if len(curve.floor_mean):
            arrays[f"{family}_floor_mean"] = curve.floor_mean
            arrays[f"{family}_floor_q05"] = curve.floor_q05
            arrays[f"{family}_floor_q95"] = curve.floor_q95
    for kind in ("floor", "bootstrap"):
        for key, result in card.results.items():
            if hasattr(result, f"{kind}_draws"):
                arrays[f"{kind}_{key}"] = getattr(result, f"{kind}_draws")
    return arrays


def options_of(settings: Settings) -> dict[str, Any]:
    """The options of an evaluation as `utility_calibration.metrics.scorecard` takes them."""
    options = settings.evaluation.measured()
    if options["own"]:
        options["own"] = instantiate(options["own"], _convert_="all")
    if options["prior"] == "frequent":
        options["class_shares"] = class_shares(settings)
    similarity = points.find_logits(settings).arrays().get("similarity")
    return options | {"similarity": similarity}


def class_shares(settings: Settings) -> NDArray[np.float64]:
    """The share of each class among all points of the benchmark, by weight if points have any: [C].

    They are the same for all splits and methods, so that these have the same users.
    """
    cached = points.find_logits(settings)
    arrays, classes = cached.arrays(), int(cached.details["classes"])
    counts = np.bincount(arrays["labels"], arrays.get("weights"), minlength=classes)
    return np.asarray(counts / counts.sum())
