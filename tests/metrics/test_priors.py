"""Users of each prior: where on the sphere they lie, and that the paper's keep their bits."""

import numpy as np
import pytest

from tests.refusals import refuses
from utility_calibration.metrics import Linear, Rank, scorecard
from utility_calibration.metrics.measurement import Options
from utility_calibration.metrics.priors import MOST_PAYING, PRIORS, linear_users, rank_users
from utility_calibration.metrics.users import sampled_users

SHARES = np.array([0.1, 0.4, 0.3, 0.15, 0.05])
C = len(SHARES)


@pytest.mark.parametrize("prior", PRIORS)
def test_users_lie_on_the_unit_sphere_and_better_ranks_never_pay_less(prior):
    by_class = linear_users(prior, 200, C, 3, SHARES).matrix
    by_rank = rank_users(prior, 200, C, 3).matrix
    for payoffs in (by_class, by_rank):
        assert payoffs.shape == (200, C)
        assert np.abs(payoffs).max(axis=1) == pytest.approx(np.ones(200))
        assert len(np.unique(payoffs, axis=0)) > 50
    assert (np.diff(by_rank, axis=1) <= 0).all()
    assert (linear_users(prior, 200, C, 3, SHARES).matrix == by_class).all()
    assert (linear_users(prior, 200, C, 4, SHARES).matrix != by_class).any()


def test_uniform_users_are_those_of_before_bit_for_bit():
    assert (linear_users("uniform", 7, C, 5).matrix == Linear.sample(7, C, 5).matrix).all()
    assert (rank_users("uniform", 7, C, 5).matrix == Rank.sample(7, C, 5).matrix).all()
    users = sampled_users(C, Options(utilities=7, utility_seed=5))
    assert (users["linear"].matrix == Linear.sample(7, C, 5).matrix).all()
    assert (users["rank"].matrix == Rank.sample(7, C, 6).matrix).all()


def test_sparse_users_are_paid_by_few_classes_or_by_the_first_ranks():
    paying = linear_users("sparse", 500, C, 0).matrix != 0
    assert set(paying.sum(axis=1)) == set(range(1, MOST_PAYING + 1))
    assert paying.mean(axis=0) == pytest.approx(np.full(C, 2 / C), abs=0.08)
    by_rank = rank_users("sparse", 500, C, 0).matrix
    assert (by_rank[:, MOST_PAYING:] == 0).all() and (by_rank[:, 0] == 1).all()


def test_positive_users_lose_by_no_class():
    assert (linear_users("positive", 100, C, 0).matrix >= 0).all()
    assert (linear_users("uniform", 100, C, 0).matrix < 0).any()


def test_frequent_users_care_for_the_frequent_classes():
    sizes = np.abs(linear_users("frequent", 2000, C, 0, SHARES).matrix).mean(axis=0)
    assert np.argsort(-sizes).tolist() == np.argsort(-SHARES).tolist()
    order = linear_users("frequent", 9, C, 0, np.ones(C)).matrix
    assert (order == linear_users("frequent", 9, C, 0, np.arange(C)[::-1]).matrix).all()


def test_graded_users_have_the_payoffs_of_discounted_gains_in_an_order_of_their_own():
    payoffs = linear_users("graded", 300, C, 0).matrix
    falling = -np.sort(-payoffs, axis=1)
    exponents = -np.log(falling[:, 1]) / np.log(np.log2(3))
    assert exponents.min() >= 0.5 and exponents.max() <= 2
    ranks = np.arange(1, C + 1)
    assert falling == pytest.approx(np.log2(1 + ranks) ** -exponents[:, None])
    assert (payoffs.argmax(axis=1)[:, None] == np.arange(C)).mean(axis=0).min() > 0.1


@pytest.mark.parametrize(
    ("options", "field", "word"),
    [
        ({"prior": "sparsely"}, "prior", "sparse"),
        ({"prior": "frequent"}, "class_shares", "share"),
        ({"prior": "frequent", "class_shares": [0.5, np.nan]}, "class_shares", "share"),
        ({"prior": "frequent", "class_shares": [[0.5, 0.5]]}, "class_shares", "share"),
    ],
)
def test_unknown_priors_and_missing_shares_are_refused(options, field, word):
    with refuses(field=field, fix=word):
        Options(**options)


def test_shares_of_another_number_of_classes_are_refused():
    with refuses(field="class_shares", fix="share"):
        scorecard(np.full((4, 3), 1 / 3), [0, 1, 2, 0], prior="frequent", class_shares=[0.5, 0.5])


def test_a_scorecard_has_the_errors_of_its_prior():
    p = np.random.default_rng(0).dirichlet(np.ones(C), 60)
    y = np.arange(60) % C
    card = scorecard(p, y, utilities=9, prior="sparse", floor_repetitions=0)
    errors = linear_users("sparse", 9, C, 0).calibration_errors(p, y)
    assert card.curves["linear"].errors == pytest.approx(errors)
