"""Cases about metrics: errors over a class of utilities, binned errors, noise floor, scorecard."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

import metrics
from metrics import reference
from metrics.forecast import Forecast
from pipeline.sources.heavy_imports import require
from scripts.speed.case import OURS, PLAIN, Answer, Case, Data, Size

EXPONENTS = (0.5, 0.75, 1, 1.25, 1.5, 2)
BINS = 15
BIN_EDGE = 2e-3
"""Bin edges of other packages differ by an ulp. Then a point may change its bin.

This moves an error by up to 2 / n.
"""
SMALL, LARGE = Size(3000, 100), Size(15_000, 1000)
SMALL_SAMPLED, LARGE_SAMPLED = Size(3000, 100, 1500), Size(15_000, 1000, 1500)


def _matrix(utilities: Any) -> Any:
    return utilities.matrix.numpy()


def _plain_linear(data: Data) -> Any:
    return reference.linear_errors(*data.plain, _matrix(data.linear))


def _plain_top_class(data: Data) -> float:
    return reference.binned_top_class_error(*data.plain, scheme="equal_width")


def _noise_floor(data: Data) -> Tensor:
    forecast = Forecast(data.p)
    outcomes = forecast.redraw(data.uniforms)
    return metrics.ClassWise().errors(forecast, outcomes).max(dim=1).values


def _torchmetrics(data: Data) -> Any:
    require("torchvision")  # which torchmetrics imports; its own way of importing it may fail
    error = require("torchmetrics.functional.classification").multiclass_calibration_error
    return error(data.p, data.labels, num_classes=data.size.classes, n_bins=BINS, norm="l1")


def _scorecard(data: Data, floor: int, bootstrap: int) -> Any:
    return metrics.scorecard(
        data.p,
        data.labels,
        utilities=data.size.utilities,
        floor_repetitions=floor,
        bootstrap_repetitions=bootstrap,
        exponents=EXPONENTS,
    )


def _plain_scorecard(data: Data) -> Any:
    return reference.scorecard(*data.plain, _matrix(data.linear), _matrix(data.rank), EXPONENTS)


def _numbers(data: Data, result: Any) -> Answer:
    """The numbers that both scorecards have."""
    values = result if isinstance(result, dict) else result.metrics
    return {k: np.asarray(v) for k, v in values.items() if k in metrics.METRICS}


METRIC_CASES = (
    Case(
        "ecdf",
        "eCDF of U_lin",
        {
            PLAIN: _plain_linear,
            OURS: lambda data: data.linear.calibration_errors(data.p, data.labels),
        },
        [SMALL_SAMPLED, LARGE_SAMPLED],
        note="plain: per utility a matrix-vector product, a sort and a running sum",
    ),
    Case(
        "u_cwe",
        "U_CWE",
        {
            PLAIN: lambda data: reference.class_wise_errors(*data.plain),
            OURS: lambda data: metrics.ClassWise().calibration_errors(data.p, data.labels),
        },
        [SMALL, LARGE],
    ),
    Case(
        "u_topk",
        "U_topK",
        {
            PLAIN: lambda data: reference.top_k_errors(*data.plain),
            OURS: lambda data: metrics.TopK().calibration_errors(data.p, data.labels),
        },
        [SMALL, LARGE],
        note="both rank the rows first",
    ),
    Case(
        "cwe_bin",
        "CWE, binned",
        {
            PLAIN: lambda data: reference.binned_class_wise_error(*data.plain),
            OURS: lambda data: metrics.binned_class_wise_error(data.p, data.labels),
        },
        [SMALL, LARGE],
        note="15 bins of equal weight; plain: a loop over classes and bins of the sorted points",
    ),
    Case(
        "tce_width",
        "ECE of the top class",
        {
            PLAIN: _plain_top_class,
            OURS: lambda data: metrics.binned_top_class_error(
                data.p, data.labels, scheme="equal_width"
            ),
            "torchmetrics": _torchmetrics,
            "netcal": lambda data: require("netcal.metrics").ECE(BINS).measure(*data.plain),
        },
        [SMALL],
        peer_tolerance=BIN_EDGE,
        note="15 bins of equal width; ours checks all probabilities first",
    ),
    Case(
        "floor",
        "Noise floor of U_CWE",
        {
            PLAIN: lambda data: reference.noise_floor(data.plain[0], data.uniforms.numpy()),
            OURS: _noise_floor,
        },
        [SMALL],
        note="20 draws of the labels by inverse CDF on both sides; plain sorts anew for every draw",
    ),
    Case(
        "scorecard",
        "Scorecard",
        {
            PLAIN: _plain_scorecard,
            OURS: lambda data: _scorecard(data, 0, 0),
            "ours, whole evaluation": lambda data: _scorecard(data, 400, 200),
        },
        [SMALL_SAMPLED],
        answer=_numbers,
        note="all metrics, certificates and both eCDFs; whole evaluation: as the stage does it, "
        "with 400 draws of the labels and 200 resamplings; plain: metrics and eCDFs alone",
    ),
)
