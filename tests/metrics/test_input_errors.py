"""Bad input: one line that names the field and the fix, never a stack of library internals."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.metrics.decision_losses import acting_threshold
from utility_calibration.metrics.shown import dkw_band
from utility_calibration.metrics.uc import ecdf
from utility_calibration.metrics.validation import check_labels, check_logits, check_probabilities

P, Y = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]), np.array([0, 1])
UNIFORM = np.full((5, 3), 1 / 3), np.arange(5) % 3
LOSSES = np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])
NAN, INF = float("nan"), float("inf")


def with_entry(value):
    changed = P.copy()
    changed[1, 0] = value
    return changed


def function(returned):
    return lambda: m.FunctionUtility(returned).calibration_errors(P, Y)


PROBABILITIES = [
    (P.argmax(axis=1), None, "second"),
    (P[None], None, "one row per point"),
    (P[:0], None, "at least one point"),
    (with_entry(NAN), 1, "recompute"),
    (with_entry(INF), 1, "recompute"),
    (np.array([[1.2, -0.2]]), 0, "logits"),
    (with_entry(-1e-3), 1, "logits"),
    (P * 0.9, 0, "divide each row"),
    (P * 0.9, 0, "give logits"),
    (P.T, 2, "transpose"),
    ([["a", "b"]], None, ""),
    (P.astype(complex), None, ""),
    (np.ma.masked_equal(P, 0.8), 1, "remove"),
]
LABELS = [
    ([0], None, "one per row"),
    ([0, 1, 2], None, "transposed"),
    ([[0], [1, 2]], None, ""),
    (np.eye(3)[:2], None, "argmax"),
    (P, None, "first"),
    ([-1, 0], 0, "remove"),
    ([0, 7], 1, "add the columns"),
    ([1, 3], 1, "subtract 1"),
    ([1, 0.5], 1, "from 0 to 2"),
    ([0, NAN], 1, "from 0 to 2"),
    ([0, NAN], 1, "leave such rows out"),
    ([0, None], None, "from 0 to 2"),
    ([0, INF], 1, "from 0 to 2"),
    (["cat", "dog"], None, "classes="),
    (["0", "2"], None, "make them numbers"),
    (["0", "3"], None, "classes="),
    ([0, 1e20], 1, "remove"),
    (np.ma.masked_array([0, 1], [False, True]), 1, "fill"),
]
SIGNS = [1, -1], np.array([1.0, -1.0])
OPTIONS = [
    ("floor_repetitions", {"floor_repetitions": -1}),
    ("utility_batch", {"utility_batch": 0}),
    ("floor_utilities", {"floor_utilities": 0}),
    ("bootstrap_utilities", {"bootstrap_utilities": 0}),
    ("similarity matrix", {"similarity": np.eye(2)}),
]
POINTS = [
    ("sample_weight", np.ones(4), None, "one per row"),
    ("sample_weight", [1, 1, -1, 1, 1], 2, "not negative"),
    ("sample_weight", [1, 1, 1, INF, 1], 3, "finite"),
    ("sample_weight", [1, 1, 1, NAN, 1], 3, "finite"),
    ("sample_weight", np.zeros(5), None, "larger weight"),
    ("sample_weight", np.full(5, 1e-310), None, "larger weight"),
    ("sample_weight", [1, 1e308, 1, 1, 1], 1, "divide"),
    ("clusters", ["a", "b"], None, "one per row"),
    ("clusters", [1, 1, NAN, 2, 2], 2, "the name"),
    ("clusters", ["a", None, "b", "b", "b"], 1, "the name"),
    ("clusters", ["a"] * 5, None, "independent"),
]
ONE_UTILITY = [
    ("realized", ([0.1, 0.2], [0.1])),
    ("predicted", ([NAN, 0.2], [0.1, 0.2])),
    ("realized", ([0.1, 0.2], [0.1, INF])),
    ("predicted", ([], [])),
    ("predicted", (0.5, 0.5)),
    ("predicted", (["a"], [0.5])),
]
OTHER_CLASSES = [(0, 3), (-1,), (0.5,), ()]
BY_FIELD = [
    ("payoffs", lambda: m.Linear(np.ones((2, 4))).evaluate(P, Y).worst),
    ("similarity matrix", lambda: m.Similarity(np.eye(4)).evaluate(P, Y).worst),
    ("gains", lambda: m.GainMatrix(np.eye(4)).evaluate(P, Y).worst),
    ("payoffs", lambda: m.Linear(np.ones((2, 3, 4)))),
    ("similarity matrix", lambda: m.Similarity(np.ones((2, 3)))),
    ("gains", lambda: m.GainMatrix(np.ones((2, 3)))),
    ("gains", lambda: m.GainMatrix([[1, 2], [0, 1]])),
    ("gains", lambda: m.GainMatrix([[0.9, 0], [0, 1]])),
    ("subsets", lambda: m.GainMatrix.sample_misaligned(3, 4, 0, 5)),
    *(("ClassWise", lambda c=c: m.ClassWise(c).evaluate(P, Y).worst) for c in OTHER_CLASSES),
    ("ks", lambda: m.TopK(ks=(1, 4)).evaluate(P, Y).worst),
    ("ks", lambda: m.TopK(ks=(1.5,)).evaluate(P, Y).worst),
    ("exponents", lambda: m.DiscountedCumulativeGain(())),
    ("exponents", lambda: m.DiscountedCumulativeGain((-1.0,))),
    ("sample", lambda: m.GainMatrix.sample_aligned(1, 2, 0, 1.5)),
    ("sample", lambda: m.Linear.sample(0, 4, 0)),
    ("utility function", function(lambda p: p.tolist())),
    ("utility function", function(lambda p: p.sum(axis=1))),
    ("utility function", function(lambda p: p * NAN)),
    ("bins", lambda: m.binned_class_wise_error(P, Y, bins=0)),
    ("bins", lambda: m.binned_class_wise_error(P, Y, bins=2.5)),
    ("scheme", lambda: m.binned_class_wise_error(P, Y, scheme="q")),
    ("weights", lambda: m.binned_class_wise_error(P, Y, weights="balanced")),
    ("confidence", lambda: m.TopK().evaluate(P, Y, confidence=95).interval),
    ("confidence", lambda: m.TopK().evaluate(P, Y, confidence=1).interval),
    ("probabilities", lambda: m.TopK().evaluate(P * 0.9, Y).floor),
    ("probabilities", lambda: m.TopK().evaluate(P * 0.9, Y).interval),
    ("losses", lambda: m.Decision(LOSSES[:2]).mean_loss(np.eye(3), [0, 1, 2])),
    ("losses", lambda: m.Decision(LOSSES[:2]).decide(np.eye(3))),
    ("actions", lambda: m.Decision(LOSSES, ["one"])),
    ("index", lambda: m.Decision(np.stack([LOSSES, LOSSES])).mean_loss(P, Y)),
    ("event", lambda: m.Decision(LOSSES).net_benefit(P, Y, thresholds=[0.5], event=3)),
    ("thresholds", lambda: m.Decision(LOSSES).net_benefit(P, Y, thresholds=[1.0])),
    ("losses", lambda: m.Decision(LOSSES).net_benefit(P, Y)),  # three classes: no threshold
    ("thresholds", lambda: m.Decision([[0, 1], [0, 1]]).net_benefit(np.eye(2), [0, 1])),
    ("labels", lambda: m.Decision(LOSSES).constant_losses([])),
    ("scorecard", lambda: m.scorecard(P, Y, utilities=0)["u_tokp"]),
    ("keywords", lambda: m.accuracy(P, Y, weights=Y)),
    ("keywords", lambda: m.TopK().evaluate(P, Y, groups=Y)),
    ("losses", lambda: acting_threshold(LOSSES)),
    ("classes", lambda: m.accuracy(P, Y, classes=["a", "b"])),
    *((name, lambda o=o: m.scorecard(P, Y, **o)) for name, o in OPTIONS),
    *(("repetitions", lambda r=r: m.TopK().evaluate(P, Y, repetitions=r).floor) for r in (0, True)),
    *(("errors", lambda e=e: ecdf(e)) for e in ([], [[0.1]], [0.1, NAN], [INF])),
    *(("count", lambda g=g: dkw_band(*g)) for g in ((0, 0.95), (-1, 0.95))),
    *(("confidence", lambda g=g: dkw_band(*g)) for g in ((10, 0), (10, 1))),
    *(
        (name, lambda call=call, given=given: call(*given))
        for call in (m.utility_calibration, m.worst_interval)
        for name, given in ONE_UTILITY
    ),
]
BY_PLACE = [
    *(("probabilities", row, fix, lambda p=p: m.accuracy(p, Y)) for p, row, fix in PROBABILITIES),
    *(("labels", row, fix, lambda y=y: m.accuracy(P, y)) for y, row, fix in LABELS),
    *(("labels", 1, "map -1 to 0", lambda y=y: m.accuracy(P[:, :1] * 0, y)) for y in SIGNS),
    ("labels", 1, "remove", lambda: m.accuracy(P, [1, -1])),
    ("labels", 1, "correct", lambda: m.accuracy(P, ["b", "z"], classes=list("abc"))),
    *(
        (name, row, fix, lambda call=call, n=name, v=value: call(*UNIFORM, **{n: v}))
        for name, value, row, fix in POINTS
        for call in (
            m.scorecard,
            lambda *p, **given: m.TopK().evaluate(*p, **given).floor,
            lambda *p, **given: m.TopK().evaluate(*p, **given).interval,
        )
    ),
]


@pytest.mark.parametrize(("field", "call"), BY_FIELD)
def test_what_cannot_be_used_is_named(field, call):
    with refuses(field):
        call()


@pytest.mark.parametrize(("field", "row", "fix", "call"), BY_PLACE)
def test_the_row_and_a_fix_are_told(field, row, fix, call):
    with refuses(field, row, fix=fix):
        call()


def test_an_error_is_one_line_in_the_order_file_field_place_fix_and_survives_processes():
    place = {"field": "labels", "row": 3, "column": "y"}
    error = m.InputError("\x1b[1modd\nvalue", **place, fixes=["drop", "mend"])
    line = "labels: odd value in row 3 of column `y`; drop, or mend"
    assert str(error) == line
    both = m.InputError.of_all([error, m.InputError("none", field="logits")]).in_file("a.csv")
    assert str(both) == f"a.csv: {line}; also: logits: none"
    assert str(pickle.loads(pickle.dumps(both))) == str(both)
    assert both.in_file("b.csv").where.file == "a.csv"


@pytest.mark.parametrize("call", [m.accuracy, m.TopK().evaluate, m.scorecard])
def test_every_function_checks_both_and_names_a_wrong_order(call):
    for field, fix, given in (
        ("probabilities", "divide each row", (P * 0.9, Y)),
        ("labels", "add the columns", (P, [0, 7])),
        ("probabilities", "(probabilities, labels)", (Y, P)),
        ("labels", "(probabilities, labels)", (np.eye(3)[:2], P)),
    ):
        with refuses(field, fix=fix):
            call(*given)


def test_unnormalised_rows_and_logits_are_checked_for_everything_else():
    for bad, row, fix in PROBABILITIES[1:7]:
        with refuses("probabilities", row, fix=fix):
            m.scorecard(bad, Y, rows_sum_to_one=False)
        if fix != "logits" and not np.isinf(bad).any():
            with refuses("model.npz: logits", row, fix=fix):
                check_logits(bad, "model.npz: logits")
    with refuses("logits", 1, fix="divide all logits", number="1e+160"):  # its square is infinite
        check_logits(with_entry(1e160))
    assert float(check_logits(with_entry(-1e160)).min()) == -INF


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_may_miss_one_by_their_numbers_rounding(dtype):
    z = np.random.default_rng(0).normal(scale=3, size=(50, 1000)).astype(dtype)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)).astype(dtype)
    assert check_probabilities(p).dtype == np.float64


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[INF, -INF], [INF, INF], [NAN, INF], [3e38, INF]])
def test_infinite_numbers_are_refused_without_a_warning(values):
    matrix = np.array([[0.5, 0.5], values], np.float32)
    with refuses("logits", 1):
        check_logits(matrix)
    with refuses("probabilities", 1):
        check_probabilities(matrix)


@pytest.mark.filterwarnings("error")
def test_good_input_passes_unchanged_in_value():
    for same in (P, P.astype(object), P.astype(">f8"), np.asfortranarray(P)):
        assert np.array_equal(check_probabilities(same), P)
    assert np.array_equal(check_logits(P * 1e100), P * 1e100)
    large = torch.full((2, 3), 3e38)  # sums overflow
    assert np.array_equal(check_logits(large), large)
    assert check_logits(np.array([[3, -4], [0, 1]])).dtype.kind == "f"
    for labels in ([2, 0], [2.0, 0.0], np.array([2, 0], np.uint8), torch.tensor([2, 0])):
        assert check_labels(labels, 2, 3).tolist() == [2, 0]
    assert check_labels([True, False], 2, 2).tolist() == [1, 0]


def test_data_frames_with_types_of_pandas_own():
    p, y = pd.DataFrame([[0.75, 0.25], [0.5, 0.5]]), pd.Series([0, 1])
    assert m.accuracy(p.convert_dtypes(), y.convert_dtypes()) == 0.5
    assert m.accuracy(p.astype("double[pyarrow]"), y.astype("int64[pyarrow]")) == 0.5
    p = p.convert_dtypes()
    p.loc[1, 0] = pd.NA
    with refuses("probabilities", 1):
        m.accuracy(p, y)


def test_rows_off_by_rounding_are_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match="2e-05.*renormalised"):
        assert m.brier_score(np.array([[1.00002, 0.0], [0.0, 1.0]]), np.array([0, 1])) == 0
    with refuses("probabilities", 0, fix="logits"):
        m.brier_score(np.array([[1.0002, 0.0]]), [0])


def test_three_decimals_of_three_classes_sum_to_one_but_for_rounding():
    above, below = [0.334, 0.334, 0.333], [0.333, 0.333, 0.333]  # .001 off, and as doubles more
    assert m.accuracy(np.array([above, below]), np.array([0, 0])) == 1
    off = np.array([[0.335, 0.334, 0.333], [0.333, 0.333, 0.332]])
    with refuses("probabilities", fix="divide each row"):
        m.accuracy(off, np.array([0, 0]))
