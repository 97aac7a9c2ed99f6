"""The display in scikit-learn's manner: the numbers behind it, and what it draws."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from metrics import InputError, Linear, TopK, utility_calibration
from metrics.plots import UtilityDisplay


@pytest.fixture
def binary():
    random = np.random.default_rng(0)
    p = random.random(400)
    return (random.random(400) < p).astype(int), np.stack([1 - p, p], axis=1)


def test_the_bins_of_a_reliability_diagram_are_means_of_their_points(binary):
    y, p = binary
    frame = UtilityDisplay.from_predictions(y, p, bins=1).frame()
    assert len(frame) == 1
    assert frame.predicted[0] == pytest.approx(p.max(axis=1).mean())
    assert frame.realized[0] == pytest.approx(np.mean(p.argmax(axis=1) == y))
    assert frame.noise_low[0] < frame.predicted[0] < frame.noise_high[0]


def test_the_steps_of_an_ecdf_are_the_errors_of_the_class(binary):
    y, p = binary
    payoffs = np.random.default_rng(1).random((20, 2))
    frame = UtilityDisplay.from_predictions(y, p, kind="ecdf", utility=Linear(payoffs)).frame()
    v, u = p @ payoffs.T, payoffs.T[y]
    errors = [utility_calibration(v[:, m], u[:, m]) for m in range(20)]
    np.testing.assert_allclose(frame.error, np.sort(errors), atol=1e-12)
    assert frame.share.iloc[-1] == 1


def test_the_range_of_the_running_difference_is_the_error(binary):
    y, p = binary
    display = UtilityDisplay.from_predictions(y, p**2 / (p**2).sum(1)[:, None], kind="running")
    assert np.ptp([0, *display.frame().difference]) == pytest.approx(display.worst.error)
    (shade,) = display.ax_.patches
    assert shade.get_x() == display.worst.low


def test_forecasts_share_the_axes_of_an_ecdf(binary):
    y, p = binary
    users, ax = Linear.sample(50, 2, seed=0), Figure().subplots()
    for name in ("a $5 method", "b"):
        UtilityDisplay.from_predictions(y, p, kind="ecdf", utility=users, name=name, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [r"a \$5 method", "b"]
    assert ax.lines[0].get_color() != ax.lines[1].get_color() and len(ax.collections) == 2
    ax.figure.canvas.draw()


def test_a_decision_curve_counts_hits_and_weighs_false_alarms(binary):
    y, p = binary
    frame = UtilityDisplay.from_predictions(y, p, kind="decision_curve").frame()
    acts = p[:, 1] >= 0.25
    expected = np.mean(acts & (y == 1)) - np.mean(acts & (y == 0)) / 3
    assert frame.net_benefit[frame.threshold == 0.25].item() == pytest.approx(expected)
    always = np.mean(y == 1) - np.mean(y == 0) / 3
    assert frame.act_always[frame.threshold == 0.25].item() == pytest.approx(always)


class Named:
    """An estimator whose classes have names."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        return X


def test_an_estimator_draws_into_the_given_axes_under_its_name(binary):
    y, p = binary
    axes, names = Figure().subplots(), np.array(["no", "yes"])
    display = UtilityDisplay.from_estimator(Named(), p, names[y], ax=axes, utility=TopK())
    assert display.ax_ is axes and display.figure_ is axes.figure
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Named"]
    with pytest.raises(InputError, match="y: 'maybe' in row 0 is none of `classes`"):
        UtilityDisplay.from_estimator(Named(), p, ["maybe"] * 400)


def test_wrong_options_are_named_and_reversed_arguments_told_that_labels_come_first(binary):
    wrong = {"kind": "roc"}, {"event": 2}, {"ax": [0]}, {"sample_weight": 1}
    for options, message in zip(
        wrong, ("kind: roc", "event: 2", "ax: list", "sample_weight: a figure"), strict=True
    ):
        with pytest.raises(InputError, match=message):
            UtilityDisplay.from_predictions(*binary, **({"kind": "decision_curve"} | options))
    with pytest.raises(InputError, match="labels come first here"):
        UtilityDisplay.from_predictions(*binary[::-1])
