"""Gain matrices against their definition over materialised matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasts import forecast_of
from tests.refusals import refuses
from utility_calibration.metrics import GainMatrix, reference
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.draws import Draws


def materialised(utilities, classes):
    """All matrices [m, C, C] of a class that holds none."""
    matrices = np.stack([utilities.matrix(k) for k in range(utilities.utilities)])
    assert matrices.shape[1:] == (classes, classes)
    return matrices


def errors_of(gains, p, y):
    """UC of every user by the definition."""
    return reference.calibration_errors([reference.gain_matrix(p, R) for R in gains], p, y)


def random_gains(count, classes, low, high, seed):
    gains = np.random.default_rng(seed).uniform(low, high, size=(count, classes, classes))
    gains[:, np.arange(classes), np.arange(classes)] = 1
    return gains


@pytest.mark.parametrize("kind", ["dyadic", "one_hot", "flat"])
def test_an_error_may_gain_as_much_as_the_right_class(kind):
    """No bound excludes a class then; sums are exact here, so ties are ties in both."""
    p, y = forecast_of(kind, 60, 4, 0)
    gains = random_gains(6, 4, 0, 2.999, 2).astype(int) / 2
    gains[:, range(4), range(4)] = 1
    found = GainMatrix(gains).calibration_errors(p, y)
    np.testing.assert_allclose(found, errors_of(gains, p, y), atol=1e-14)


@pytest.mark.parametrize("kind", ["smooth", "saturated", "one_hot"])
@pytest.mark.parametrize("classes", [2, 12])
@pytest.mark.parametrize("family", ["aligned", "misaligned"])
def test_sampled_users_have_the_errors_of_the_definition(family, classes, kind):
    p, y = forecast_of(kind, 80, classes, 2)
    sample = getattr(GainMatrix, f"sample_{family}")
    utilities = sample(9, classes, 5, **({"subsets": 2} if family == "misaligned" else {}))
    gains = materialised(utilities, classes)
    errors = utilities.calibration_errors(p, y)
    np.testing.assert_allclose(errors, errors_of(gains, p, y), atol=1e-13)
    np.testing.assert_allclose(GainMatrix(gains).calibration_errors(p, y), errors, atol=1e-13)
    worst = utilities.evaluate(p, y).worst
    assert worst.utility == int(errors.argmax())
    assert worst.error == pytest.approx(errors.max(), abs=1e-13)


@given(
    classes=st.sampled_from([2, 3, 5, 9, 60]),
    low=st.sampled_from([0.0, 0.2, 0.8]),
    width=st.sampled_from([0.0, 0.1, 0.2]),
    concentration=st.sampled_from([0.05, 1.0, 1000.0]),
    off_by=st.sampled_from([0.0, 9e-4, -9e-4]),
    seed=st.integers(0, 999),
)
def test_the_bounds_exclude_no_class_that_is_chosen(
    classes, low, width, concentration, off_by, seed
):
    """Also for rows whose sum is off by what the checks let pass."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(classes, concentration), size=40) * (1 + off_by)
    p = p.clip(max=1)
    gains = random_gains(8, classes, low, low + width, seed)
    forecast = Forecast(p)
    _, predicted, chosen = GainMatrix(gains).choose(forecast)
    every = np.einsum("ni,mij->nmj", p, gains)
    np.testing.assert_allclose(predicted, every.max(axis=2), rtol=0, atol=1e-14)
    largest = np.take_along_axis(every, chosen.astype(np.int64)[..., None], axis=2)[..., 0]
    np.testing.assert_allclose(largest, every.max(axis=2), rtol=0, atol=1e-14)


def test_aligned_users_gain_one_when_right_and_at_most_a_tenth_when_wrong():
    classes = 20
    gains = materialised(GainMatrix.sample_aligned(100, classes, 0), classes)
    diagonal = np.eye(classes, dtype=bool)
    off = gains[:, ~diagonal]
    assert (gains[:, diagonal] == 1).all() and off.min() >= 0 and off.max() < 0.1
    assert off.mean() == pytest.approx(0.05, abs=0.001)
    assert off.var() == pytest.approx(0.01 / 12, rel=0.03)
    assert len(np.unique(off)) > 0.999 * off.size  # every entry is drawn on its own


@pytest.mark.parametrize("partition_seed", [0, None], ids=["shared", "own"])
def test_misaligned_users_specialise_in_a_part_of_the_classes(partition_seed):
    classes, subsets = 23, 5
    users = GainMatrix.sample_misaligned(200, classes, 0, subsets, partition_seed=partition_seed)
    gains = materialised(users, classes)
    assert (len({matrix.tobytes() for matrix in gains}) == subsets) == (partition_seed == 0)
    sizes = []
    for matrix in gains:
        assert (np.diag(matrix) == 1).all()
        members = np.array([set(np.delete(matrix[:, j], j)) == {0.2} for j in range(classes)])
        outside = matrix[:, ~members]
        assert (outside[outside != 1] == 0).all()
        sizes.append(members.sum())
    assert set(sizes) == {4, 5}  # 23 classes in 5 parts of nearly equal size
    share = (gains == 0.2).any(axis=1).mean(axis=0)
    assert share == pytest.approx(np.full(classes, 0.2), abs=0.12)  # no class is preferred


@pytest.mark.parametrize("subsets", [1, 4])
def test_the_parts_of_the_partition_are_those_of_seed_0_unless_another_is_given(subsets):
    """Errors of specialists can be compared between programs that say nothing of the partition."""
    places = Draws(0).permutation(12) % subsets
    expected = {tuple((places == part).tolist()) for part in range(subsets)}
    users = GainMatrix.sample_misaligned(400, 12, 7, subsets)
    found = {tuple(((users.matrix(k) > 0).sum(axis=0) > 1).tolist()) for k in range(400)}
    assert found == expected


def test_the_gains_of_many_draws_keep_to_the_limit_of_a_block(monkeypatch):
    """300 draws of 50 even rows bring about 500 codes; ten users fit into the limit."""
    users = GainMatrix.sample_aligned(150, 10, 1)
    forecast = Forecast(np.full((50, 10), 0.1, dtype=np.float64))
    labels = np.random.default_rng(0).integers(10, size=(300, 50))
    outcomes = forecast.outcomes(labels)
    whole = np.concatenate([block.payoffs for block in users.blocks(forecast, outcomes)])
    monkeypatch.setattr("utility_calibration.metrics.utilities.gain_matrix.BLOCK_BYTES", 40_000)
    blocks = [block.payoffs for block in users.blocks(forecast, outcomes)]
    assert max(payoffs.nbytes for payoffs in blocks) <= 40_000
    assert np.array_equal(np.concatenate(blocks), whole)


@pytest.mark.parametrize(
    ("gains", "row", "column", "fix"),
    [
        ([[1, 2], [0, 1]], 0, "1", "divide"),
        ([[1, 0], [-0.5, 1]], 1, "0", "Decision"),
        ([[1, 0], [0, 0.5]], 1, "1", "write 1"),
        ([[1, 0, 0], [0, 1, 0]], None, "", "a line per true class"),
    ],
)
def test_a_matrix_of_no_gains_is_refused_with_its_cell(gains, row, column, fix):
    with refuses("gains", row=row, column=column, fix=fix):
        GainMatrix(gains)
