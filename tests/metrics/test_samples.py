"""The points of an evaluation: weights by label, clusters by name, and what may go with labels."""

import warnings

import numpy as np
import pytest

from tests.forecasts import forecast_of
from utility_calibration.metrics.samples import cluster_numbers, sample_of

P, Y = forecast_of("smooth", 90, 3, 0)
BY_LABEL = np.array([0.25, 4.0, 1.5])


@pytest.mark.parametrize("unit", [1, 7])
def test_weights_that_are_a_function_of_the_label_are_known_for_each_class(unit):
    weights = unit * BY_LABEL[Y]
    assert sample_of(P, Y, sample_weight=weights).by_label.tolist() == (unit * BY_LABEL).tolist()
    weights[np.arange(90) % 5 == 0] = 0  # a point of weight 0 is no point
    assert sample_of(P, Y, sample_weight=weights).by_label.tolist() == (unit * BY_LABEL).tolist()


@pytest.mark.filterwarnings("ignore:sample_weight")
def test_other_weights_are_known_for_no_class():
    weights = BY_LABEL[Y]
    weights[5] *= 1.01
    assert sample_of(P, Y, sample_weight=weights).by_label is None
    assert sample_of(P, Y, sample_weight=np.full(90, 3.0)).by_label is None  # they do not vary
    three = np.unique(Y, return_index=True)[1]  # a point of each class
    assert sample_of(P[three], Y[three], sample_weight=[1, 2, 4]).by_label is None
    assert sample_of(P, Y).by_label is None


def test_a_class_without_points_gets_the_mean_weight_or_one_that_explains_its_absence():
    """One point of a class is expected where p / w, over its sum in a row, adds up to 1."""
    at = Y > 0
    with pytest.warns(UserWarning, match="1 classes have no point"):
        sample = sample_of(P[at], Y[at], sample_weight=BY_LABEL[Y[at]])
    by_label = sample.by_label
    assert by_label[1:].tolist() == BY_LABEL[1:].tolist()
    assert by_label[0] > BY_LABEL[Y[at]].mean()
    shares = P[at] / by_label
    expected = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
    assert expected[0] == pytest.approx(1, abs=0.1)


def test_weights_that_go_with_labels_in_part_are_noticed():
    """Beside a function of the label that is noise of half its size, there is nothing exact."""
    noise = 1 + 0.5 * np.random.default_rng(0).random(90)
    with pytest.warns(UserWarning, match="alarms of 5 %"):
        sample = sample_of(P, Y, sample_weight=BY_LABEL[Y] * noise)
    assert sample.by_label is None and sample.weights_go_with_labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not sample_of(P, Y, sample_weight=noise).weights_go_with_labels


def test_clusters_are_numbered_in_the_order_of_their_first_points():
    names = ["b", "a", "b", "c", "a"]
    assert cluster_numbers(names, 5).tolist() == [0, 1, 0, 2, 1]
    assert cluster_numbers(np.array([7.5, 2, 7.5, 9, 2]), 5).tolist() == [0, 1, 0, 2, 1]


def test_the_largest_unit_is_that_of_the_largest_cluster_or_weight():
    clusters = [0, 0, 0, 1, 1, 2]
    p, y = P[:6], Y[:6]
    assert sample_of(p, y, clusters=clusters).largest == pytest.approx(3 * 3 / 6)
    weights = np.array([1, 1, 1, 5, 1, 3.5])  # 3, 6 and 3.5 of 12.5 in three clusters
    sample = sample_of(p, y, clusters=clusters, sample_weight=weights)
    assert (sample.count, sample.largest) == (3, pytest.approx(6 / 12.5 * 3))
    assert sample_of(p, y, sample_weight=weights).largest == pytest.approx(5 / 12.5 * 6)
