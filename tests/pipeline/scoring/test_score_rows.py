"""Tidy rows and eCDF levels of one calibrator against values by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.reporting.conftest import scored
from utility_calibration.metrics.shown import thin
from utility_calibration.pipeline.scoring.score_rows import curves_of, rows_of

WORST = {"low": 0.2, "high": 0.4, "gain": 0.02, "threshold": 0.3}


def all_row(splits, key):
    rows = {(row["split"], row["metric"]): row for row in rows_of("m", splits, {})}
    return rows["all", key]


def test_the_floor_is_that_of_the_mean_over_splits():
    """Repetition by repetition: opposite noise in two splits cancels, equal noise does not."""
    noise = np.linspace(-1, 1, 99)
    first, same, turned = (
        scored(split, {"u_topk": 1.5}, arrays={"floor_u_topk": 2 + sign * noise})
        for split, sign in ((0, 1), (1, 1), (1, -1))
    )
    equal, opposite = [first, same], [first, turned]
    assert all_row(equal, "u_topk")["floor_q95"] == pytest.approx(2.9)
    assert all_row(opposite, "u_topk")["floor_q95"] == pytest.approx(2)
    assert all_row(equal, "u_topk")["p_value"] == pytest.approx((1 + 75) / 100, abs=0.011)


def test_the_bootstrap_is_of_the_mean_over_splits():
    moved = np.random.default_rng(0).normal(size=(2, 200))
    arrays = [{"bootstrap_nll": draws} for draws in moved]
    splits = [scored(k, {"nll": 1.0}, arrays=arrays[k], zero_likelihood=k) for k in range(2)]
    row = all_row(splits, "nll")
    assert row["half_width"] == pytest.approx(1.96 * moved.mean(axis=0).std(ddof=1), rel=1e-4)
    assert row["zero_likelihood"] == 0.5


def test_rows_of_a_split_say_what_was_measured_there():
    bounds = dict(zip(("estimate", "lower", "upper", "upper_finite"), (0.1, 0.0, 0.2, 0.9)))
    told = {
        "noise_floor": {"u_cwe": {"mean": 0.01, "q95": 0.02, "p_value": 0.5}},
        "worst": {"u_cwe": {"utility": 3, "sign": -1, "act_from": 0.4, **WORST}},
    }
    splits = [
        scored(
            k,
            {"u_cwe": 0.1 + k, "accuracy": 0.9},
            certificates={"u_cwe": bounds, "all": {**bounds, "upper": 0.3 + 0.2 * k}},
            **told,
        )
        for k in range(2)
    ]
    pooled = {"u_cwe": {"utility": 5, "gap": 0.1, "act_from": None, **WORST}}
    rows = rows_of("m", splits, pooled, "north")
    assert [(r["split"], r["metric"]) for r in rows] == [
        (split, metric) for split in (0, 1, "all") for metric in ("u_cwe", "accuracy", "all")
    ]
    first, whole = rows[0], rows[6]
    assert first["group"] == "north" and first["p_value"] == 0.5 and first["upper"] == 0.2
    assert (first["worst_utility"], first["worst_sign"]) == (3, -1)
    assert (whole["worst_utility"], whole["worst_sign"]) == (5, 1)
    assert (first["gain"], first["act_from"], whole["act_from"]) == (0.02, 0.4, np.inf)
    assert whole["value"] == pytest.approx(0.6)
    assert rows[8]["value"] is None and rows[8]["upper"] == pytest.approx(0.4)


def test_a_curve_is_the_mean_over_splits_of_the_sorted_errors():
    parts = [[0.3, 0.1, 0.2], [0.1, 0.7, 0.6]]
    splits = [scored(k, {}, arrays={"linear": np.array(own)}) for k, own in enumerate(parts)]
    table = pd.DataFrame(curves_of("m", splits))
    np.testing.assert_allclose(table[["level", "error"]].T, [[1 / 3, 2 / 3, 1], [0.1, 0.4, 0.5]])
    assert set(table["family"]) == {"linear"} and table["floor_low"].isna().all()


def test_a_curve_has_121_levels_and_its_floor_of_fewer_users_the_same():
    errors, few = (np.sort(np.random.default_rng(k).random(n)) for k, n in ((0, 1000), (1, 300)))
    arrays = {"rank": errors, "rank_floor_q05": few, "rank_floor_q95": few + 1}
    table = pd.DataFrame(curves_of("m", [scored(0, {}, arrays=arrays)]))
    kept = thin(1000, 121)
    np.testing.assert_allclose(table[["level", "error"]].T, [(kept + 1) / 1000, errors[kept]])
    np.testing.assert_allclose(table["floor_high"] - table["floor_low"], 1)
