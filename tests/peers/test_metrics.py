"""Binned errors and UC against torchmetrics, netcal, probmetrics and MAPIE."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.peers.conftest import package
from utility_calibration import metrics as m
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.reference import binned_error
from utility_calibration.scripts.speed.cases import Data

BINS = 15
BIN_EDGE = 2e-3
"""Some packages put the edges of bins elsewhere by an ulp, or compute in float32: a point may
change its bin, which moves the error by up to 2 / n."""
SINGLE = 2e-5
"""probmetrics adds up n float32 numbers."""
JITTER = 1e-6
"""MAPIE moves each prediction by about 1e-8 of itself."""


def without_ties(n: int = 1000) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Binary predictions that all differ by more than any package's rounding, and labels."""
    rng = np.random.default_rng(0)
    v = rng.permutation((np.arange(n) + 0.5) / n)
    return v, (rng.random(n) < v**1.3).astype(np.int64)


# ---- Binned errors -------------------------------------------------------------------------------


def ece_of_torchmetrics(inputs: Data) -> float:
    error = package("torchmetrics.functional.classification").multiclass_calibration_error
    options = {"num_classes": inputs.size.classes, "n_bins": BINS, "norm": "l1"}
    return float(error(*map(torch.from_numpy, inputs.arrays), **options))


def ece_of_netcal(inputs: Data) -> float:
    return float(package("netcal.metrics").ECE(BINS).measure(*inputs.arrays))


@pytest.mark.parametrize("theirs", [ece_of_torchmetrics, ece_of_netcal])
def test_top_class_bins_of_equal_width_are_those_of_others(theirs, inputs: Data) -> None:
    ours = m.binned_top_class_error(inputs.p, inputs.labels, scheme="equal_width")
    assert ours == pytest.approx(theirs(inputs), abs=BIN_EDGE)


def test_class_wise_bins_of_equal_width_agree_with_torchmetrics(inputs: Data) -> None:
    error = package("torchmetrics.functional.classification").binary_calibration_error
    p, labels = map(torch.from_numpy, inputs.arrays)
    theirs = [
        float(error(p[:, c], (labels == c).long(), n_bins=BINS, norm="l1"))
        for c in range(inputs.size.classes)
    ]
    ours = m.binned_class_wise_error(inputs.p, inputs.labels, scheme="equal_width")
    assert ours == pytest.approx(np.mean(theirs), abs=BIN_EDGE / inputs.size.classes)


def test_a_certain_prediction_has_a_bin_of_its_own_in_torchmetrics_and_none_here() -> None:
    """Bins here end with [14/15, 1]; theirs with [14/15, 1) and {1}, which cannot cancel out."""
    error = package("torchmetrics.functional.classification").binary_calibration_error
    v, y = np.array([1.0, 0.95]), np.array([0, 1])
    theirs = float(error(torch.from_numpy(v), torch.from_numpy(y), n_bins=15, norm="l1"))
    assert theirs == pytest.approx((1.0 + 0.05) / 2)
    assert binned_error(v, y, scheme="equal_width") == pytest.approx((1.0 - 0.05) / 2)


# ---- UC of a binary utility: Kuiper's statistic (ECCE-R, Arrieta-Ibarra et al. 2022) -----


def kuiper_of_probmetrics(v: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    distributions = package("probmetrics.distributions")
    metric = package("probmetrics.metrics").KuiperCalibrationMetric()
    labels = distributions.CategoricalDirac(torch.from_numpy(y), 2)
    return float(metric.compute(labels, distributions.CategoricalProbs(torch.from_numpy(v))))


def kuiper_of_mapie(v: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Their statistic is in units of its standard deviation under calibration."""
    calibration = package("mapie.metrics.calibration")
    return float(calibration.kuiper_statistic(y, v) * calibration.length_scale(v))


@pytest.mark.parametrize(
    ("kuiper", "error"), [(kuiper_of_probmetrics, SINGLE), (kuiper_of_mapie, JITTER)]
)
def test_uc_is_the_kuiper_statistic_of_others(kuiper, error) -> None:
    v, y = without_ties()
    theirs = pytest.approx(kuiper(v, y), abs=error)
    assert m.utility_calibration(v, y) == theirs
    for found in m.ClassWise().calibration_errors(np.stack([1 - v, v], axis=1), y):
        assert found == theirs


def test_top_class_uc_of_predictions_without_ties_is_the_kuiper_statistic(inputs: Data) -> None:
    p, labels = inputs.arrays
    distinct = np.unique(p.max(axis=1).astype(np.float32), return_index=True)[1]
    p, labels = p[distinct], labels[distinct]
    hit = (p.argmax(axis=1) == labels).astype(np.int64)
    ours = m.TopClass().calibration_errors(p, labels)[0]
    assert ours == pytest.approx(kuiper_of_probmetrics(p.max(axis=1), hit), abs=SINGLE)


def test_others_split_ties_by_their_order_and_we_do_not() -> None:
    """An interval has all points of equal prediction or none: at 1/2 their errors cancel out.

    A sum that stops within the group depends on the order of the rows.
    """
    v, y = np.full(4, 0.5), np.array([1, 1, 0, 0])
    assert m.utility_calibration(v, y) == 0
    assert kuiper_of_probmetrics(v, y) == pytest.approx(0.25, abs=1e-6)


def test_mapie_leaves_the_empty_interval_out() -> None:
    """Where all errors have one sign, the running sum's range without its start at 0 is smaller.

    The largest interval is then all points but the first.
    """
    v, y = np.array([0.2, 0.4]), np.array([1, 1])
    assert m.utility_calibration(v, y) == pytest.approx((0.8 + 0.6) / 2)
    assert kuiper_of_mapie(v, y) == pytest.approx(0.6 / 2, abs=JITTER)


def test_relplots_smooth_error_orders_temperatures_as_ours(inputs: Data) -> None:
    """It is another error: smooth weights in place of intervals, so the numbers differ."""
    relplot = package("relplot")
    ours, theirs = [], []
    for temperature in (1.0, 1.6, 0.4):
        p = softmax(inputs.logits / temperature)
        ours.append(float(m.TopClass().calibration_errors(p, inputs.labels)[0]))
        hit = (p.argmax(axis=1) == inputs.labels).astype(float)
        theirs.append(float(relplot.smECE(p.max(axis=1), hit)))
    assert np.argsort(ours).tolist() == np.argsort(theirs).tolist()
