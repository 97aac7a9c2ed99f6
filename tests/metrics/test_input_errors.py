"""Bad input: one line that names the field and the fix, never a stack of library internals."""

import numpy as np
import pandas as pd
import pytest
import torch

from metrics import (
    DiscountedCumulativeGain,
    FunctionUtility,
    GainMatrix,
    InputError,
    Linear,
    Similarity,
    TopK,
    accuracy,
    brier_score,
    scorecard,
    utility_calibration,
    worst_interval,
)
from metrics.validation import (
    check_labels,
    check_logits,
    check_probabilities,
    look_like_probabilities,
)

P = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
Y = np.array([0, 1])
NAN, INF = float("nan"), float("inf")


def with_entry(value, row=1):
    changed = P.copy()
    changed[row, 0] = value
    return changed


BAD_PROBABILITIES = {
    "classes": (P.argmax(axis=1), ["shape [n, classes]", "these look like labels"]),
    "three dimensions": (P[None], ["shape [n, classes]", "one row per point"]),
    "no rows": (P[:0], ["no rows"]),
    "NaN": (with_entry(NAN), ["1 rows hold NaN", "row 1", "recompute or remove"]),
    "infinity": (with_entry(INF), ["NaN or infinite", "row 1"]),
    "above one": (np.array([[1.2, -0.2]]), ["outside [0, 1]", "row 0", "logits?"]),
    "negative": (with_entry(-1e-3), ["outside [0, 1]", "row 1"]),
    "row sums": (P * 0.9, ["2 rows do not sum to one", "sums to 0.9", "divide each row"]),
    "transposed": (P.T, ["columns do, so transpose it"]),
    "text": ([["a", "b"]], ["not an array of numbers"]),
    "complex": (P.astype(complex), ["real numbers", "complex128"]),
    "masked": (np.ma.masked_equal(P, 0.8), ["1 values are masked", "row 1", "fill or remove"]),
}
BAD_LABELS = {
    "too few": ([0], ["1 labels for 2 rows", "lengths must agree"]),
    "of columns": ([0, 1, 2], ["3 labels for 2 rows", "looks transposed"]),
    "one-hot": (np.eye(3)[:2], ["shape [n]", "[2, 3]"]),
    "negative": ([-1, 0], ["from -1 to 0", "0 to 2", "-1 in row 0", "remove such rows"]),
    "above the classes": ([0, 7], ["from 0 to 7", "0 to 2", "3 classes", "7 in row 1", "columns"]),
    "counted from one": ([1, 3], ["3 in row 1", "labels start at 0", "subtract 1"]),
    "fractions": ([1, 0.5], ["whole numbers", "0.5 in row 1", "0 to 2"]),
    "NaN": ([0, NAN], ["nan in row 1", "whole number from 0 to 2"]),
    "text": (["cat", "dog"], ["class, a whole number from 0 to 2", "map names to numbers"]),
    "huge": ([0, 1e20], ["from 0 to 1e+20", "1e+20 in row 1", "columns of the other classes"]),
    "masked": (np.ma.masked_array([0, 1], [False, True]), ["1 values are masked", "row 1"]),
}


def message_of(call, *args, words=(), **options):
    """The one line by which `call` refuses its arguments; it holds `words`."""
    with pytest.raises(InputError) as error:
        call(*args, **options)
    assert isinstance(error.value, ValueError)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 250
    for word in words:
        assert word in message
    return message


@pytest.mark.parametrize(("bad", "words"), BAD_PROBABILITIES.values(), ids=BAD_PROBABILITIES)
def test_bad_probabilities_are_named(bad, words):
    message = message_of(accuracy, bad, Y, words=words)
    assert message.startswith("probabilities: ")


@pytest.mark.parametrize(("bad", "words"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels_are_named(bad, words):
    message = message_of(accuracy, P, bad, words=words)
    assert message.startswith("labels: ")


@pytest.mark.parametrize("call", [accuracy, TopK().worst, scorecard])
def test_every_function_checks_both_and_names_a_wrong_order(call):
    assert message_of(call, P * 0.9, Y).startswith("probabilities: 2 rows do not sum to one")
    assert message_of(call, P, [0, 7]).startswith("labels: ")
    assert "labels, which come second: (probabilities, labels)" in message_of(call, Y, P)
    assert "probabilities, which come first: (probabilities, labels)" in message_of(
        call, np.eye(3)[:2], P
    )


@pytest.mark.parametrize("name", ["three dimensions", "NaN", "above one"])
def test_unnormalised_rows_are_checked_for_everything_else(name):
    bad, words = BAD_PROBABILITIES[name]
    message = message_of(scorecard, bad, Y, words=words, rows_sum_to_one=False)
    assert message.startswith("probabilities: ")


def test_bad_logits_are_named():
    for name in ("three dimensions", "NaN", "text"):
        bad, words = BAD_PROBABILITIES[name]
        message = message_of(check_logits, bad, "model.npz: logits", words=words)
        assert message.startswith("model.npz: logits: ")
    words = ("of size 1e+160", "above 1e+100 in row 1", "divide all logits")
    message_of(check_logits, with_entry(1e160), words=words)  # its square is infinite
    assert float(check_logits(with_entry(-1e160)).min()) == -INF


UTILITY_INPUTS = {
    "lengths": ([0.1, 0.2], [0.1], ["realized", "[1]", "[2]", "one realized utility"]),
    "NaN predicted": ([NAN, 0.2], [0.1, 0.2], ["predicted", "NaN"]),
    "NaN realized": ([0.1, 0.2], [0.1, INF], ["realized", "infinite"]),
    "empty": ([], [], ["predicted", "at least one point"]),
    "a number": (0.5, 0.5, ["predicted", "shape [..., n]"]),
    "text": (["a"], [0.5], ["predicted", "not an array of numbers"]),
}


@pytest.mark.parametrize("call", [utility_calibration, worst_interval])
@pytest.mark.parametrize(
    ("predicted", "realized", "words"), UTILITY_INPUTS.values(), ids=UTILITY_INPUTS
)
def test_bad_utilities_are_named(call, predicted, realized, words):
    message_of(call, predicted, realized, words=words)


SQUARE4 = np.eye(4)
UTILITY_CLASSES = {
    "linear for 4": (Linear(np.ones((2, 4))).calibration_errors, (P, Y), ["payoffs", "4", "3"]),
    "similarity for 4": (Similarity(SQUARE4).calibration_errors, (P, Y), ["similarity", "4", "3"]),
    "gains for 4": (GainMatrix(SQUARE4).calibration_errors, (P, Y), ["gains", "4", "3"]),
    "linear 3d": (Linear, (np.ones((2, 3, 4)),), ["payoffs", "2 dimensions", "[2, 3, 4]"]),
    "similarity shape": (Similarity, (np.ones((2, 3)),), ["similarity", "square", "[2, 3]"]),
    "gains shape": (GainMatrix, (np.ones((2, 3)),), ["gains", "square"]),
    "gains range": (GainMatrix, ([[1, 2], [0, 1]],), ["gains", "outside [0, 1]"]),
    "gains diagonal": (GainMatrix, ([[0.9, 0], [0, 1]],), ["gains", "diagonal"]),
    "subsets": (GainMatrix.sample_misaligned, (3, 4, 0, 5), ["subsets", "5"]),
    "top K of 4": (TopK(ks=(1, 4)).calibration_errors, (P, Y), ["ks", "1 … 3"]),
    "top 1.5": (TopK(ks=(1.5,)).calibration_errors, (P, Y), ["ks", "whole", "(1.5,)"]),
    "no exponents": (DiscountedCumulativeGain, ((),), ["exponents"]),
    "negative exponent": (DiscountedCumulativeGain, ((-1.0,),), ["exponents"]),
    "gain": (GainMatrix.sample_aligned, (1, 2, 0, 1.5), ["gain of 1.5", "from 0 to 1"]),
    "no sample": (Linear.sample, (0, 4, 0), ["count 0"]),
}


@pytest.mark.parametrize(("call", "args", "words"), UTILITY_CLASSES.values(), ids=UTILITY_CLASSES)
def test_bad_parameters_of_utilities_are_named(call, args, words):
    message_of(call, *args, words=words)


SCORECARD_OPTIONS = {
    "floor": ({"floor_repetitions": -1}, ["floor_repetitions"]),
    "batch": ({"utility_batch": 0}, ["utility_batch: 0, expected at least 1"]),
    "sampled users of the floor": ({"floor_utilities": 0}, ["floor_utilities: 0"]),
    "similarity": ({"similarity": np.eye(2)}, ["similarity", "2", "3"]),
}


@pytest.mark.parametrize(("options", "words"), SCORECARD_OPTIONS.values(), ids=SCORECARD_OPTIONS)
def test_bad_options_of_the_scorecard_are_named(options, words):
    message_of(scorecard, P, Y, words=words, **options)


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
    integers = check_logits(np.array([[3, -4], [0, 1]]))
    assert integers.dtype.is_floating_point
    for labels in ([2, 0], [2.0, 0.0], np.array([2, 0], np.uint8), torch.tensor([2, 0])):
        assert check_labels(labels, 2, 3).tolist() == [2, 0]
    assert check_labels([True, False], 2, 2).tolist() == [1, 0]


def test_data_frames_with_types_of_pandas_own():
    probabilities = pd.DataFrame([[0.75, 0.25], [0.5, 0.5]])
    labels = pd.Series([0, 1])
    expected = accuracy(probabilities.to_numpy(), labels.to_numpy())
    assert accuracy(probabilities.convert_dtypes(), labels.convert_dtypes()) == expected
    assert accuracy(probabilities.astype("double[pyarrow]"), labels.astype("int64[pyarrow]")) == 0.5
    probabilities = probabilities.convert_dtypes()
    probabilities.loc[1, 0] = pd.NA
    with pytest.raises(InputError, match="NaN or infinite values, the first is row 1"):
        accuracy(probabilities, labels)


def test_rows_off_by_rounding_are_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match=r"leave \[0, 1\] by up to 2e-05.*renormalised"):
        assert brier_score(np.array([[1.00002, 0.0], [0.0, 1.0]]), np.array([0, 1])) == 0
    with pytest.raises(InputError, match="are these logits"):
        brier_score(np.array([[1.0002, 0.0]]), np.array([0]))


def test_three_decimals_of_three_classes_sum_to_one_but_for_rounding():
    above, below = [0.334, 0.334, 0.333], [0.333, 0.333, 0.333]  # .001 off, and as doubles more
    assert accuracy(np.array([above, below]), np.array([0, 0])) == 1
    with pytest.raises(InputError, match="2 rows do not sum to one"):
        accuracy(np.array([[0.335, 0.334, 0.333], [0.333, 0.333, 0.332]]), np.array([0, 0]))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda p: p.numpy(), "returned ndarray for a torch tensor"),
        (lambda p: p.sum(dim=1), "returned shape [2]"),
        (lambda p: p * float("nan"), "NaN or infinite"),
    ],
)
def test_what_a_utility_function_may_return(function, words):
    line = message_of(lambda: FunctionUtility(function).calibration_errors(P, Y))
    assert line.startswith("utility function: ") and words in line


def test_probabilities_are_told_from_logits_by_every_row():
    rows = np.full((20, 4), 0.25)
    assert look_like_probabilities(torch.from_numpy(rows))
    for row in (0, 15):  # among the first, and beyond those that logits are told by
        for value in (0.26, 1.5, -0.25, NAN):
            changed = rows.copy()
            changed[row, 1] = value
            assert not look_like_probabilities(torch.from_numpy(changed))
    assert look_like_probabilities(torch.from_numpy(rows * 1.0009))  # rounding
