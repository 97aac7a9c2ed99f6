"""One round: the first of the worst utilities, its interval, and a step as long as it pays.

The last bit of a number decides none of them.
"""

import numpy as np
import pytest

from utility_calibration.calibrators.patching.audit import Family, find_worst, witness_of
from utility_calibration.calibrators.patching.line_search import CAPPED, JAXOPT
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.calibrators.patching.utilities import Utility


def family_of(errors):
    """A family of utilities with these errors."""
    return Family(lambda known: np.array(errors), lambda number: None)


@pytest.mark.parametrize("noise", [-1e-13, 0.0, 1e-13])
def test_of_errors_equal_but_for_rounding_the_first_wins(noise):
    families = [[0.1, 0.2], [0.0, 0.3 + noise, 0.3], [0.3 + 2 * noise]]
    assert find_worst([family_of(errors) for errors in families])[:2] == (1, 1)


@pytest.mark.parametrize("ulps", [-1, 1])
def test_the_last_bit_of_a_prediction_moves_no_end_and_no_point(ulps):
    """An atom of predictions that rounding has torn apart, one of which has the other outcome."""
    v = np.full(50, 0.3)
    v[20:30] = 0.8
    torn = v.copy()
    torn[::3] = np.nextafter(torn[::3], float(ulps))
    labels = np.arange(50) % 3
    found = []
    for p in (v, torn):
        state = PatchedForecast(np.stack([p, (1 - p) / 2, (1 - p) / 2], axis=1), labels)
        found.append(witness_of(state, Utility.standard("class", 0)))
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    assert found[0].sign == found[1].sign
    assert found[0].error == pytest.approx(found[1].error, abs=1e-14)
    assert (found[0].low, found[0].high) == pytest.approx((found[1].low, found[1].high), abs=1e-14)


@pytest.mark.parametrize("noise", [-1e-12, 0.0, 1e-12])
def test_rounding_does_not_decide_a_test_that_is_met_exactly(noise):
    step = CAPPED.step(lambda eta: (-eta, eta * eta * (1 + noise)), 1.0)
    assert CAPPED.step(lambda eta: (0.1 * eta, eta * eta), 1.0) is None
    assert step is not None
    assert step.size == 1.0  # change η² - 2η = -η is half of the predicted -2η
    assert CAPPED.first(0.25 * (1 + noise), 1.0, 1.0) == 1.0


def test_the_search_that_the_paper_names_tries_the_step_size_first_and_four_fifths_next():
    tried = []

    def falls_below_a_tenth(eta):
        tried.append(eta)
        return -eta, 2 * eta if eta > 0.1 else 0.0

    step = JAXOPT.step(falls_below_a_tenth, JAXOPT.first(1e-6, 1.0, 1.0))
    assert step is not None and step.size == tried[-1] <= 0.1 < tried[-2]
    np.testing.assert_allclose(tried, 0.8 ** np.arange(len(tried)))
    tried.clear()


def test_where_no_trial_lowers_the_score_jaxopts_search_keeps_the_last_and_ours_ends_the_run():
    tried = []

    def rises(eta):
        tried.append(eta)
        return eta, eta * eta

    step = JAXOPT.step(rises, 1.0)
    assert step is not None and len(tried) == 30
    assert step.size == tried[-1] == pytest.approx(0.8**29)
    assert step.change == pytest.approx(2 * step.size + step.size**2)
    assert CAPPED.step(rises, 1.0) is None


@pytest.mark.parametrize(("payoff", "lowers_the_score"), [(1.0, True), (100.0, False)])
def test_the_step_of_the_theory_is_refused_where_it_raises_the_score(payoff, lowers_the_score):
    """Proposition A.1 needs payoffs in [-1, 1]; a person's own utility may pay more."""
    state = PatchedForecast(np.tile([0.6, 0.4], (4, 1)), np.array([0, 0, 0, 1]))
    utility = Utility.standard("linear", 0, np.array([payoff, 0.0]))
    witness = witness_of(state, utility)
    vectors = utility.vectors(state, witness.rows)
    step = ProjectedDescent(1.0, search=None).step(state, witness, vectors)
    assert (step is not None) == lowers_the_score
    searched = ProjectedDescent(1.0).step(state, witness, vectors)
    assert searched is not None and searched.change < 0  # the default searches
