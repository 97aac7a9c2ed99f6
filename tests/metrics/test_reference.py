"""The plain definitions against themselves: worked examples, and two ways to say the same."""

import numpy as np
import pytest
from scipy import special

from tests.forecasts import KINDS, forecast_of
from utility_calibration.metrics import ClassWise, reference, reference_additions
from utility_calibration.metrics.binned import interval_and_binned_errors
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.uniforms import hashed_uniforms, stream_keys
from utility_calibration.metrics.resampling import multiplied_outcomes, redrawn_outcomes
from utility_calibration.metrics.samples import sample_of


def test_the_worked_example_of_one_utility():
    """Residuals .8, -.2 (tied at .2), -.5, .1: the sum is .6 after the tie, then .1, then .2."""
    v, u = np.array([0.5, 0.2, 0.9, 0.2]), np.array([0.0, 1.0, 1.0, 0.0])
    assert reference.utility_calibration(v, u) == pytest.approx(0.6 / 4)
    assert reference.worst_interval(v, u) == pytest.approx((0.6 / 4, 0.2, 0.2, -1))
    tied = reference.worst_interval(v, u, tolerance=0.3)  # .2, .2 and .5 count as one
    assert tied == pytest.approx((0.2 / 4, 0.2, 0.9, -1))


def test_the_worked_example_of_every_class_of_utilities():
    p = np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
    np.testing.assert_array_equal(reference.ranks(p), [[0, 1, 2], [1, 2, 0]])
    losses = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])  # action 0 bets on class 0
    gains = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.9, 1.0]])
    expected = {
        "class_wise": (reference.class_wise(p, 1), [[0, 1, 0], [0, 1, 0]]),
        "top_class": (reference.top_k(p, 1), [[1, 0, 0], [0, 0, 1]]),
        "top_k": (reference.top_k(p, 2), [[1, 1, 0], [1, 0, 1]]),
        "linear": (reference.linear(p, np.array([3.0, 4, 5])), [[3, 4, 5], [3, 4, 5]]),
        "rank": (reference.rank(p, np.array([3.0, 4, 5])), [[3, 4, 5], [4, 5, 3]]),
        "similarity": (
            reference.similarity(p, np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])),
            [[0.5, 0.5, 0.25], [0.125, 0.1875, 0.75]],
        ),
        "decision": (reference.decision(p, losses), [[0, -1, -1], [-1, 0, 0]]),
        # Expected gains: .5, .725, .25 for the first point, .125, .8625, .75 for the second.
        "gain_matrix": (reference.gain_matrix(p, gains), [[0.5, 1, 0.9], [0.5, 1, 0.9]]),
    }
    for name, (vectors, by_hand) in expected.items():
        np.testing.assert_allclose(vectors, by_hand, err_msg=name)
    np.testing.assert_allclose(reference.discounts(2, 3), [1, np.log2(3) ** -2, 0.25])


@pytest.mark.parametrize("kind", KINDS)
def test_the_direct_forms_are_those_of_the_vectors(kind):
    p, y = forecast_of(kind, 40, 4, 0)
    matrix = np.random.default_rng(0).choice([-1.0, -0.5, 0.0, 0.25, 1.0], size=(5, 4))
    for direct, vectors in (
        (reference.class_wise_errors(p, y), [reference.class_wise(p, c) for c in range(4)]),
        (reference.top_k_errors(p, y)[:-1], [reference.top_k(p, k) for k in range(1, 4)]),
        (reference.linear_errors(p, y, matrix), [reference.linear(p, a) for a in matrix]),
        (
            reference.linear_errors(*reference.ranked(p, y), matrix),
            [reference.rank(p, a) for a in matrix],
        ),
    ):
        expected = reference.calibration_errors(vectors, p, y)
        np.testing.assert_allclose(direct, expected, atol=1e-14)


def test_binned_errors_by_hand():
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    y = np.array([0, 1, 1, 1])
    # Confidences .6 (wrong), .7, .8, .9 (right): residuals .6, -.3 | -.2, -.1.
    assert reference.binned_top_class_error(p, y, bins=2) == pytest.approx((0.3 + 0.3) / 4)
    # Three bins of equal width: .6 lies in [1/3, 2/3), the others in [2/3, 1].
    width = reference.binned_top_class_error(p, y, 3, "equal_width")
    assert width == pytest.approx((0.6 + 0.6) / 4)
    one_bin = reference.binned_class_wise_error(p, y, bins=1)
    assert one_bin == pytest.approx(abs(p.sum(axis=0) - [1, 3]).sum() / 4 / 2)
    prior = reference.binned_class_wise_error(p, y, bins=1, weights="prior")
    assert prior == pytest.approx(abs(p.sum(axis=0) - [1, 3]) @ [0.25, 0.75] / 4)


def test_samples_lie_where_the_paper_draws_them():
    random = np.random.default_rng(0)
    payoffs = reference.sample_payoffs(500, 6, random)
    assert ((np.abs(payoffs) == 1).sum(axis=1) == 1).all()
    assert (np.abs(payoffs) <= 1).all()
    assert (np.diff(reference.sample_valuations(500, 6, random)) <= 0).all()


def test_labels_drawn_by_the_definition_are_those_of_the_fast_draw():
    p, _ = forecast_of("smooth", 40, 5, 6)
    uniforms = np.random.default_rng(0).random((8, 40))
    drawn = Forecast(p).redraw(uniforms).labels
    np.testing.assert_array_equal([reference_additions.redraw(p, one) for one in uniforms], drawn)
    errors = [ClassWise().calibration_errors(p, labels).max() for labels in drawn]
    np.testing.assert_allclose(reference_additions.noise_floor(p, uniforms), errors, atol=1e-14)


@pytest.mark.parametrize("kind", ["smooth", "dyadic"])
def test_the_floors_of_weights_by_class_and_of_clusters_are_those_of_the_definition(kind):
    p, y = forecast_of(kind, 90, 4, 6)
    weights, clusters = np.array([0.2, 5.0, 1.0, 2.0]), np.arange(90) // 8
    forecast, numbers = Forecast(p), np.arange(90)
    uniforms = hashed_uniforms(stream_keys(3, 6), numbers[:, None]).T
    draws = redrawn_outcomes(forecast, numbers, 6, 3, by_label=weights)
    found = np.concatenate([ClassWise().errors(*draw).max(axis=1) for draw in draws])
    expected = reference_additions.noise_floor(p, uniforms, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    (draw,) = multiplied_outcomes(sample_of(p, y, clusters=clusters), 6, 3)
    normals = special.ndtri(uniforms[:, :12]).astype(np.float32)
    expected = reference_additions.cluster_floor(p, y, clusters, normals)
    np.testing.assert_allclose(ClassWise().errors(*draw).max(axis=1), expected, atol=1e-6)
    _, binned = interval_and_binned_errors(ClassWise(), *draw, bins=6)
    terms = (normals[:, clusters] * (1.0 * (y == 2) - p[:, 2]))[
        :, np.argsort(p[:, 2], kind="stable")
    ]
    expected = np.abs(terms.reshape(6, 6, 15).sum(axis=2)).sum(axis=1) / 90
    np.testing.assert_allclose(binned[:, 2], expected, atol=1e-6)
