"""Costs of decisions by a person's losses: means over splits, and how sure their gaps are."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from utility_calibration.pipeline.scoring import costs
from utility_calibration.pipeline.scoring.held_out import HeldOut

LOSSES = np.array([[0.0, 1.0], [4.0, 0.0]])
"""Of the actions wait and treat, by class: treat from a probability of .2 on."""
SPLITS, N_TEST, POPULATION = 5, 40, 100


@pytest.fixture
def units(tmp_path, monkeypatch):
    """Units of two methods; the second one always says .1."""
    (tmp_path / "l.csv").write_text("class,wait,treat\nno,0,1\nyes,4,0\n")
    entry = {
        "_target_": "utility_calibration.pipeline.own.request.utilities.losses",
        "path": str(tmp_path / "l.csv"),
        "class_names": ["no", "yes"],
    }
    evaluation = SimpleNamespace(own={"u_losses": entry}, bootstrap_repetitions=9, noise_seed=0)
    settings = SimpleNamespace(evaluation=evaluation, splits=SimpleNamespace(count=SPLITS))

    def held_out(unit):
        random = np.random.default_rng(unit.split)
        second = random.random(N_TEST)
        labels = (random.random(N_TEST) < second).astype(int)
        points = random.permutation(POPULATION)[:N_TEST]
        if unit.calibrator == "constant":
            second = np.full(N_TEST, 0.1)
        p = np.stack([1 - second, second], axis=1)
        return HeldOut(p, labels, points, POPULATION, rows_sum_to_one=True)

    monkeypatch.setattr(costs, "held_out", held_out)
    return [
        SimpleNamespace(calibrator=name, split=split, settings=settings)
        for name in ("informed", "constant")
        for split in range(SPLITS)
    ]


def costs_by_hand(unit, threshold=0.2):
    """The mean cost of treating from a probability on: [1] of waiting in all cases."""
    test = costs.held_out(unit)
    treats = test.probabilities[:, 1] >= threshold
    return float(LOSSES[test.labels, treats.astype(int)].mean())


def test_costs_are_means_over_splits_and_gaps_have_the_interval_of_overlapping_splits(units):
    """The variance of a gap over J splits is s² (1/J + n_test / n_fit) (Nadeau & Bengio 2003)."""
    _, record = costs.costs_of(units, lambda *_: None)
    found = record["costs"]
    informed = np.array([costs_by_hand(unit) for unit in units[:SPLITS]])
    waiting = np.array([costs_by_hand(unit) for unit in units[SPLITS:]])
    assert found["methods"]["informed"]["cost"] == pytest.approx(informed.mean())
    assert found["methods"]["constant"]["cost"] == pytest.approx(waiting.mean())
    assert found["constant"]["wait"] == pytest.approx(waiting.mean())
    gap = found["methods"]["informed"]["against"]["constant"]
    assert gap["difference"] == pytest.approx((informed - waiting).mean())
    share = N_TEST / POPULATION
    error = (informed - waiting).std(ddof=1) * np.sqrt(1 / SPLITS + share / (1 - share))
    half = stats.t.ppf(0.975, SPLITS - 1) * error
    assert gap["difference_half_width"] == pytest.approx(half)
    assert found["best_constant"] == min(found["constant"], key=found["constant"].get)
    assert found["curve"]["own_threshold"] == pytest.approx(0.2)
    actions = found["methods"]["constant"]["actions"]
    assert (actions["wait"]["share"], actions["treat"]["share"]) == (1, 0)
