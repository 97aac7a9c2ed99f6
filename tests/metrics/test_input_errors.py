"""Bad input: one line that names the field and the fix, never a stack of library internals."""

import numpy as np
import pandas as pd
import pytest
import torch

from utility_calibration import metrics as m
from utility_calibration.metrics.decision_losses import acting_threshold
from utility_calibration.metrics.validation import check_labels, check_logits, check_probabilities

P, Y = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]), np.array([0, 1])
UNIFORM = np.full((5, 3), 1 / 3), np.arange(5) % 3
LOSSES = np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])
NAN, INF = float("nan"), float("inf")
OFF = "2 rows do not sum to one, row 0 sums to 0.9; divide each row by its sum, or give logits"


def with_entry(value):
    changed = P.copy()
    changed[1, 0] = value
    return changed


def function(returned):
    return lambda: m.FunctionUtility(returned).calibration_errors(P, Y)


PROBABILITIES = {
    "expected shape [n, classes], got [2]; these look like labels": P.argmax(axis=1),
    "expected shape [n, classes], got [1, 2, 3]; give one row per point and one column": P[None],
    "no rows; at least one point is needed": P[:0],
    "1 rows hold NaN or infinite values, the first is row 1; recompute": with_entry(NAN),
    "1 rows hold NaN or infinite values, the first is row 1": with_entry(INF),
    "values outside [0, 1], the first in row 0; are these logits?": np.array([[1.2, -0.2]]),
    "values outside [0, 1], the first in row 1": with_entry(-1e-3),
    OFF: P * 0.9,
    "3 rows do not sum to one, row 2 sums to 0.3; its columns do, so transpose it": P.T,
    "not an array of numbers (can't convert": [["a", "b"]],
    "expected real numbers, got torch.complex128": P.astype(complex),
    "1 values are masked, the first in row 1; fill or remove": np.ma.masked_equal(P, 0.8),
}
LABELS = {
    "1 labels for 2 rows; the lengths must agree": [0],
    "3 labels for 2 rows; the matrix looks transposed": [0, 1, 2],
    "expected shape [n], got [2, 3]; give the number of each": np.eye(3)[:2],
    "expected shape [n], got [2, 3]; these look like probabilities, which come first": P,
    "from -1 to 0, allowed are 0 to 2 (3 classes), the first outside is -1 in row 0": [-1, 0],
    "7 in row 1; correct or remove such rows, or add the columns of the other": [0, 7],
    "3 in row 1; labels start at 0: subtract 1 from all": [1, 3],
    "expected whole numbers, got 0.5 in row 1; give each row its class": [1, 0.5],
    "expected whole numbers, got nan in row 1": [0, NAN],
    "expected whole numbers, got inf in row 1": [0, INF],
    "2 names ('cat', 'dog') beside 3 columns without names": ["cat", "dog"],
    "values run from 0 to 1e+20": [0, 1e20],
    "1 values are masked, the first in row 1": np.ma.masked_array([0, 1], [False, True]),
}
OPTIONS = {
    "floor_repetitions: -1, expected a whole number of at least 0": {"floor_repetitions": -1},
    "utility_batch: 0, expected a whole number of at least 1": {"utility_batch": 0},
    "floor_utilities: 0, expected": {"floor_utilities": 0},
    "similarity matrix: for 2 classes, the forecast has 3": {"similarity": np.eye(2)},
}
POINTS = {
    "sample_weight: shape [4] for 5 rows; give one per row": np.ones(4),
    "sample_weight: -1 in row 2; weights are finite and not negative": [1, 1, -1, 1, 1],
    "sample_weight: inf in row 3": [1, 1, 1, INF, 1],
    "sample_weight: nan in row 3": [1, 1, 1, NAN, 1],
    "sample_weight: all are zero": np.zeros(5),
    "clusters: shape [2] for 5 rows": ["a", "b"],
    "clusters: none in row 2; give each row the name": [1, 1, NAN, 2, 2],
    "clusters: none in row 1": ["a", None, "b", "b", "b"],
    "clusters: all rows are of cluster a; give what tells": ["a"] * 5,
}
ONE_UTILITY = {
    "realized: shape [1] differs from predicted's [2]; give one realized": ([0.1, 0.2], [0.1]),
    "predicted: NaN or infinite values; recompute": ([NAN, 0.2], [0.1, 0.2]),
    "realized: NaN or infinite": ([0.1, 0.2], [0.1, INF]),
    "predicted: expected shape [..., n] with at least one point": ([], []),
    "predicted: expected shape [..., n]": (0.5, 0.5),
    "predicted: not an array of numbers": (["a"], [0.5]),
}
REFUSED = {
    "payoffs: for 4 classes, the forecast has 3": lambda: m.Linear(np.ones((2, 4))).worst(P, Y),
    "similarity matrix: for 4 classes": lambda: m.Similarity(np.eye(4)).worst(P, Y),
    "gains: for 4 classes": lambda: m.GainMatrix(np.eye(4)).worst(P, Y),
    "payoffs: expected 2 dimensions, got shape [2, 3, 4]": lambda: m.Linear(np.ones((2, 3, 4))),
    "similarity matrix: not square, shape [2, 3]": lambda: m.Similarity(np.ones((2, 3))),
    "gains: expected square matrices of two": lambda: m.GainMatrix(np.ones((2, 3))),
    "gains: values outside [0, 1]": lambda: m.GainMatrix([[1, 2], [0, 1]]),
    "gains: the diagonal (a right prediction) must be 1": lambda: m.GainMatrix([[0.9, 0], [0, 1]]),
    "subsets: 5, expected 1 … 4": lambda: m.GainMatrix.sample_misaligned(3, 4, 0, 5),
    "ks must be whole numbers in 1 … 3, got (1, 4)": lambda: m.TopK(ks=(1, 4)).worst(P, Y),
    "ks must be whole numbers in 1 … 3, got (1.5,)": lambda: m.TopK(ks=(1.5,)).worst(P, Y),
    "exponents: expected numbers >= 0, got []": lambda: m.DiscountedCumulativeGain(()),
    "exponents: expected numbers >= 0, got [-1.0]": lambda: m.DiscountedCumulativeGain((-1.0,)),
    "sample: a gain of 1.5 for errors": lambda: m.GainMatrix.sample_aligned(1, 2, 0, 1.5),
    "sample: count 0 and classes 4": lambda: m.Linear.sample(0, 4, 0),
    "utility function: returned ndarray for a torch tensor": function(lambda p: p.numpy()),
    "utility function: returned shape [2] for": function(lambda p: p.sum(dim=1)),
    "utility function: returned NaN or infinite": function(lambda p: p * NAN),
    "bins: 0, expected": lambda: m.binned_class_wise_error(P, Y, 0),
    "bins: 2.5, expected a whole": lambda: m.binned_class_wise_error(P, Y, 2.5),
    "scheme: 'q', expected": lambda: m.binned_class_wise_error(P, Y, scheme="q"),
    "weights: 'balanced', expected": lambda: m.binned_class_wise_error(P, Y, weights="balanced"),
    "confidence: 95, expected": lambda: m.calibration_interval(m.TopK(), P, Y, 95),
    "confidence: 1, expected": lambda: m.calibration_interval(m.TopK(), P, Y, 1),
    f"probabilities: {OFF}": lambda: m.noise_floor(m.TopK(), P * 0.9, Y),
    "probabilities: 2 rows do not": lambda: m.calibration_interval(m.TopK(), P * 0.9, Y),
    "losses: for 2 classes, the": lambda: m.decisions(LOSSES[:2], np.eye(3), [0, 1, 2]),
    "probability: expected": lambda: m.net_benefit([0.5, 2], [0, 1], [0.5]),
    "event: expected whole": lambda: m.net_benefit([0.5, 0.5], [0, 0.5], [0.5]),
    "thresholds: expected": lambda: m.net_benefit([0.5], [0], [1.0]),
    "labels: none; at least one": lambda: m.constant_losses(LOSSES, []),
    "expected two classes, two actions": lambda: acting_threshold(LOSSES),
    "labels: 'z' in row 1 is none of": lambda: m.accuracy(P, ["b", "z"], classes=list("abc")),
    "classes: 2 names for 3 columns; name each": lambda: m.accuracy(P, Y, classes=["a", "b"]),
    **{f"probabilities: {w}": (lambda p=p: m.accuracy(p, Y)) for w, p in PROBABILITIES.items()},
    **{f"labels: {w}": (lambda y=y: m.accuracy(P, y)) for w, y in LABELS.items()},
    **{words: (lambda o=o: m.scorecard(P, Y, **o)) for words, o in OPTIONS.items()},
}
REFUSED_BY_SEVERAL = [
    *(
        (f"repetitions: {r!r}, exp", lambda r=r: m.noise_floor(m.TopK(), P, Y, r))
        for r in (0, True)
    ),
    *(("errors: expected", lambda e=e: m.ecdf(e)) for e in ([], [[0.1]], [0.1, NAN], [INF])),
    *(("count", lambda g=g: m.dkw_band(*g)) for g in ((0, 0.95), (-1, 0.95), (10, 0), (10, 1))),
    *(
        (words, lambda call=call, given=given: call(*given))
        for call in (m.utility_calibration, m.worst_interval)
        for words, given in ONE_UTILITY.items()
    ),
    *(
        (words, lambda call=call, w=words, v=value: call(*UNIFORM, **{w.partition(":")[0]: v}))
        for words, value in POINTS.items()
        for call in (
            m.scorecard,
            lambda *p, **given: m.noise_floor(m.TopK(), *p, **given),
            lambda *p, **given: m.calibration_interval(m.TopK(), *p, **given),
        )
    ),
]


def message_of(call, *args, **options):
    """The one line by which `call` refuses its arguments."""
    with pytest.raises(m.InputError) as error:
        call(*args, **options)
    assert isinstance(error.value, ValueError)
    message = str(error.value)
    assert "\n" not in message and len(message) < 250
    return message


@pytest.mark.parametrize(("words", "call"), [*REFUSED.items(), *REFUSED_BY_SEVERAL])
def test_what_cannot_be_used_is_named_with_its_fix(words, call):
    field, _, said = words.partition(": ")
    message = message_of(call)
    assert field in message and said in message


@pytest.mark.parametrize("call", [m.accuracy, m.TopK().worst, m.scorecard])
def test_every_function_checks_both_and_names_a_wrong_order(call):
    assert message_of(call, P * 0.9, Y) == f"probabilities: {OFF}"
    assert message_of(call, P, [0, 7]).startswith("labels: ")
    assert "labels, which come second: (probabilities, labels)" in message_of(call, Y, P)
    assert "which come first: (probabilities, labels)" in message_of(call, np.eye(3)[:2], P)


def test_unnormalised_rows_and_logits_are_checked_for_everything_else():
    for words, bad in list(PROBABILITIES.items())[1:6]:
        assert words in message_of(m.scorecard, bad, Y, rows_sum_to_one=False)
        if "[0, 1]" not in words and not np.isinf(bad).any():
            assert f"model.npz: logits: {words}" in message_of(
                check_logits, bad, "model.npz: logits"
            )
    message = message_of(check_logits, with_entry(1e160))  # its square is infinite
    assert "of size 1e+160, the first above 1e+100 in row 1; divide all logits" in message
    assert float(check_logits(with_entry(-1e160)).min()) == -INF


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_may_miss_one_by_their_numbers_rounding(dtype):
    z = np.random.default_rng(0).normal(scale=3, size=(50, 1000)).astype(dtype)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)).astype(dtype)
    assert check_probabilities(p).dtype == torch.float64


def test_good_input_passes_unchanged_in_value():
    assert torch.equal(check_probabilities(P), torch.from_numpy(P))
    assert torch.equal(check_logits(P * 1e100), torch.from_numpy(P * 1e100))
    large = torch.full((2, 3), 3e38)  # sums overflow
    assert torch.equal(check_logits(large), large)
    assert check_logits(np.array([[3, -4], [0, 1]])).dtype.is_floating_point
    for labels in ([2, 0], [2.0, 0.0], np.array([2, 0], np.uint8), torch.tensor([2, 0])):
        assert check_labels(labels, 2, 3).tolist() == [2, 0]
    assert check_labels([True, False], 2, 2).tolist() == [1, 0]


def test_data_frames_with_types_of_pandas_own():
    p, y = pd.DataFrame([[0.75, 0.25], [0.5, 0.5]]), pd.Series([0, 1])
    assert m.accuracy(p.convert_dtypes(), y.convert_dtypes()) == 0.5
    assert m.accuracy(p.astype("double[pyarrow]"), y.astype("int64[pyarrow]")) == 0.5
    p = p.convert_dtypes()
    p.loc[1, 0] = pd.NA
    assert "NaN or infinite values, the first is row 1" in message_of(m.accuracy, p, y)


def test_rows_off_by_rounding_are_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match=r"leave \[0, 1\] by up to 2e-05.*renormalised"):
        assert m.brier_score(np.array([[1.00002, 0.0], [0.0, 1.0]]), np.array([0, 1])) == 0
    assert "are these logits" in message_of(m.brier_score, np.array([[1.0002, 0.0]]), [0])


def test_three_decimals_of_three_classes_sum_to_one_but_for_rounding():
    above, below = [0.334, 0.334, 0.333], [0.333, 0.333, 0.333]  # .001 off, and as doubles more
    assert m.accuracy(np.array([above, below]), np.array([0, 0])) == 1
    off = np.array([[0.335, 0.334, 0.333], [0.333, 0.333, 0.332]])
    assert "2 rows do not sum to one" in message_of(m.accuracy, off, np.array([0, 0]))
