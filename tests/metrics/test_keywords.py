"""Every public function that takes points takes the same keywords, and each has its effect."""

import inspect

import numpy as np
import pytest

from tests.refusals import refuses
from utility_calibration import calibrators
from utility_calibration import metrics as m
from utility_calibration.metrics import plots

RANDOM = np.random.default_rng(5)
N, NAMES = 60, np.array(["ant", "bee", "cat"])
P, Y = RANDOM.dirichlet(np.ones(3), N), RANDOM.integers(3, size=N)
COUNTS = RANDOM.integers(0, 4, N)
ROWS = np.repeat(np.arange(N), COUNTS)
FEW = {"utilities": 4, "floor_repetitions": 5, "bootstrap_repetitions": 0}
USER = m.Decision([[0, 1], [2, 0], [1, 1]])


def streamed(p, y, **keywords):
    stream = m.StreamingCalibration(m.TopK(), classes=3)
    stream.update(p, y, **keywords)
    return stream.result().upper


def display(kind):
    def numbers(p, y, **keywords):
        options = {"utility": m.TopK()} if kind == "ecdf" else {}
        found = plots.UtilityDisplay.from_predictions(p, y, kind=kind, **options, **keywords)
        columns = found.columns
        if kind == "reliability":
            return [columns["predicted"], columns["realized"]]
        return columns["difference"][[0, -1]] if kind == "running" else list(columns.values())

    return numbers


def scored(p, y, **keywords):
    return list(m.scorecard(p, y, **FEW, **keywords).metrics.values())


OF_POINTS = {
    "accuracy": m.accuracy,
    "brier_score": m.brier_score,
    "negative_log_likelihood": m.negative_log_likelihood,
    "binned_top_class_error": m.binned_top_class_error,
    "binned_class_wise_error": m.binned_class_wise_error,
    "two_bin_error": m.two_bin_error,
    "UtilityClass.calibration_errors": m.TopK().calibration_errors,
    "UtilityClass.evaluate": lambda p, y, **k: m.TopK().evaluate(p, y, **k).errors,
    "Decision.mean_loss": USER.mean_loss,
    "Decision.gaps": USER.gaps,
    "Decision.constant_losses": lambda p, y, **k: USER.constant_losses(y, **k),
    "Decision.net_benefit": lambda p, y, **k: USER.net_benefit(p, y, thresholds=[0.3], **k),
    "StreamingCalibration.update": streamed,
    "scorecard": scored,
    "UtilityDisplay.reliability": display("reliability"),
    "UtilityDisplay.running": display("running"),
    "UtilityDisplay.ecdf": display("ecdf"),
    "UtilityDisplay.decision_curve": display("decision_curve"),
}


def functions_of_points():
    """The public functions and methods that take labels, by name, with their parameters."""
    for room in (m, plots):
        for public in (getattr(room, name) for name in room.__all__):
            members = vars(public).values() if inspect.isclass(public) else [public]
            for member in members:
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and not function.__name__.startswith("_"):
                    parameters = inspect.signature(function).parameters
                    if "labels" in parameters:
                        yield function.__qualname__, list(parameters.values())


def test_probabilities_and_labels_come_first_and_all_else_goes_by_its_name():
    found = dict(functions_of_points())
    by_kind = {"UtilityDisplay.from_predictions"}
    assert found.keys() - by_kind == OF_POINTS.keys()
    for name, parameters in found.items():
        others = [each for each in parameters if each.name not in ("self", "cls")]
        first = ["labels"] if name == "Decision.constant_losses" else ["probabilities", "labels"]
        first += [each.name for each in others[2:3] if each.name == "utility"]
        assert [each.name for each in others[: len(first)]] == first, name
        assert others[-1].kind is inspect.Parameter.VAR_KEYWORD, name
        assert all(each.kind is each.KEYWORD_ONLY for each in others[len(first) : -1]), name


@pytest.mark.parametrize("name", OF_POINTS)
def test_a_count_as_weight_is_the_point_so_many_times(name):
    measure = OF_POINTS[name]
    weighted, repeated = measure(P, Y, sample_weight=COUNTS), measure(P[ROWS], Y[ROWS])
    np.testing.assert_allclose(weighted, repeated, atol=1e-12)
    assert not np.allclose(np.ravel(weighted), np.ravel(measure(P, Y)), atol=1e-9)


@pytest.mark.parametrize("name", OF_POINTS)
def test_labels_may_be_names_in_the_order_of_the_columns(name):
    measure = OF_POINTS[name]
    np.testing.assert_array_equal(measure(P, NAMES[Y], classes=NAMES), measure(P, Y))


@pytest.mark.parametrize("name", OF_POINTS)
def test_points_of_the_ignored_label_are_left_out(name):
    measure, kept = OF_POINTS[name], np.arange(N) % 3 > 0
    found = measure(P, np.where(kept, Y, -100), ignore_index=-100)
    np.testing.assert_array_equal(found, measure(P[kept], Y[kept]))


@pytest.mark.parametrize("name", [name for name in OF_POINTS if "Display" not in name])
def test_an_unknown_keyword_is_told_with_the_nearest_one(name):
    with refuses(number="sample_weight?"):
        OF_POINTS[name](P, Y, sample_weights=COUNTS)


@pytest.mark.parametrize("floor_of", ["evaluate", "scorecard"])
def test_clusters_and_numbers_of_points_reach_what_is_drawn(floor_of):
    def floor(**keywords):
        if floor_of == "evaluate":
            return m.TopK().evaluate(P, Y, repetitions=40, **keywords).floor_draws
        card = m.scorecard(P, Y, utilities=0, floor_repetitions=40, **keywords)
        return card["u_topk"].floor_draws

    plain = floor()
    np.testing.assert_array_equal(floor(points=np.arange(N)), plain)
    assert (floor(points=np.arange(N) + 7) != plain).any()
    assert floor(clusters=np.arange(N) // 10).mean() > plain.mean()


def test_recalibration_gain_takes_names_and_ignored_labels():
    gain = calibrators.recalibration_gain
    expected = gain(P, Y)
    assert gain(P, NAMES[Y], classes=NAMES) == expected
    wide, labels = np.concatenate([P, P[:9]]), np.concatenate([Y, np.full(9, -100)])
    assert gain(wide, labels, ignore_index=-100) == expected
