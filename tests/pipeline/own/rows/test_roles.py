"""Columns with another purpose than answers: splits, weights, groups, clusters, or none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipeline.own.files import LOGITS, OWN, N, P, Y, own_of, read, table, written

SPLIT = np.array(["calibration", "cal", "Validation", "val", "test", "TEST"] * 10)
TESTED = np.array([False, False, False, False, True, True] * 10)


@pytest.mark.parametrize("name", ["weight", "split", "cluster", "y", "labels"])
def test_what_is_ignored_has_no_purpose(tmp_path, name):
    odd = {name: -np.ones(N)}
    arrays = {"logits": LOGITS, "label": Y, "probabilities": P, **odd}
    for content, ignore in (
        (table().assign(**odd), f"{name},"),
        (arrays, f"{name}, probabilities"),
    ):
        result = read(tmp_path / "a.csv", content, ignore=ignore)
        np.testing.assert_allclose(own_of(result)[0], OWN, rtol=1e-4)


@pytest.mark.parametrize("name", ["npz", "csv"])
def test_splits_weights_and_groups_come_from_arrays_or_columns(tmp_path, name):
    more = {
        "split_1": SPLIT,
        "split_2": SPLIT[::-1],
        "sample_weight": 1 + np.arange(N),
        "site": SPLIT,
    }
    content = {"logits": LOGITS, "labels": Y, **more} if name == "npz" else table(**more)
    result = read(tmp_path / "a.csv", content, groups="site")
    np.testing.assert_array_equal(result.tested, [TESTED, TESTED[::-1]])
    np.testing.assert_array_equal(result.weights, 1 + np.arange(N))
    np.testing.assert_array_equal(result.groups, SPLIT)
    assert result.logits.shape == (N, 3)


@pytest.mark.parametrize(
    ("weights", "kept", "expected"),
    [
        (np.full(N, 0.5), N, None),
        (np.ones(N), N, None),
        (np.full(N, 2), N, np.full(N, 2)),
        ((np.arange(N) % 3 > 0) * 0.1, 40, None),
        (np.arange(N) % 3, 40, np.tile([1, 2], 20)),
    ],
)
def test_equal_weights_are_none_and_points_of_weight_0_are_left_out(
    tmp_path, weights, kept, expected
):
    content = table(weight=weights, split=SPLIT, site=SPLIT)
    result = read(tmp_path / "a.csv", content, groups="site")
    rows = weights > 0
    assert len(result.labels) == kept == rows.sum()
    np.testing.assert_array_equal(result.groups, np.array(SPLIT)[rows])
    np.testing.assert_array_equal(result.tested, [TESTED[rows]])
    np.testing.assert_array_equal(result.labels, Y[rows])
    if expected is None:
        assert result.weights is None
    else:
        np.testing.assert_array_equal(result.weights, expected)


def test_a_second_file_tests_its_columns_in_any_order_beside_what_is_ignored(tmp_path):
    test = written(tmp_path / "b.csv", table(id=1)[["p_2", "id", "label", "p_0", "p_1"]])
    result = read(tmp_path / "a.csv", table(), test=test, ignore="id")
    np.testing.assert_allclose(own_of(result)[0], [*OWN, *OWN], rtol=1e-4)
    np.testing.assert_array_equal(result.tested, [[False] * N + [True] * N])


@pytest.mark.parametrize(
    ("values", "options", "count"),
    [
        (np.arange(N) // 6, {"ignore": "patient_id"}, 1),
        (np.arange(N) // 6, {"clusters": "patient_id"}, 0),
        (np.arange(N), {"ignore": "patient_id"}, 0),
    ],
)
def test_repeated_names_of_patients_bring_one_line_of_advice(tmp_path, values, options, count):
    arrays = {"logits": LOGITS, "labels": Y, "patient_id": values}
    single = table(P[:, [0]], 1 * (Y == 0), ["risk"], patient_id=values)
    for content in (table(patient_id=values), single, arrays):
        _, notes = own_of(read(tmp_path / "a.csv", content, **options))
        assert sum("say --clusters patient_id" in note for note in notes) == count
