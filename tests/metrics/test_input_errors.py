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
    binned_class_wise_error,
    brier_score,
    calibration_interval,
    constant_losses,
    decisions,
    dkw_band,
    ecdf,
    net_benefit,
    noise_floor,
    scorecard,
    utility_calibration,
    worst_interval,
)
from metrics.decisions import acting_threshold
from metrics.validation import (
    check_labels,
    check_logits,
    check_probabilities,
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


SQUARE4, LOSSES = np.eye(4), np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])
UNIFORM = np.full((5, 3), 1 / 3), np.arange(5) % 3


def card(**options):
    return lambda: scorecard(P, Y, **options)


def all_that_take(name, value):
    """The calls that take weights or clusters, with a `value` that they refuse."""
    return [
        lambda: scorecard(*UNIFORM, **{name: value}),
        lambda: noise_floor(TopK(), *UNIFORM, **{name: value}),
        lambda: calibration_interval(TopK(), *UNIFORM, **{name: value}),
    ]


def of_function(function):
    return lambda: FunctionUtility(function).calibration_errors(P, Y)


REFUSED = {
    "linear for 4": (lambda: Linear(np.ones((2, 4))).worst(P, Y), ["payoffs", "4", "3"]),
    "similarity for 4": (lambda: Similarity(SQUARE4).worst(P, Y), ["similarity", "4", "3"]),
    "gains for 4": (lambda: GainMatrix(SQUARE4).worst(P, Y), ["gains", "4", "3"]),
    "linear 3d": (lambda: Linear(np.ones((2, 3, 4))), ["payoffs", "2 dimensions", "[2, 3, 4]"]),
    "similarity shape": (lambda: Similarity(np.ones((2, 3))), ["similarity", "square", "[2, 3]"]),
    "gains shape": (lambda: GainMatrix(np.ones((2, 3))), ["gains", "square"]),
    "gains range": (lambda: GainMatrix([[1, 2], [0, 1]]), ["gains", "outside [0, 1]"]),
    "gains diagonal": (lambda: GainMatrix([[0.9, 0], [0, 1]]), ["gains", "diagonal"]),
    "subsets": (lambda: GainMatrix.sample_misaligned(3, 4, 0, 5), ["subsets", "5"]),
    "top K of 4": (lambda: TopK(ks=(1, 4)).worst(P, Y), ["ks", "1 … 3"]),
    "top 1.5": (lambda: TopK(ks=(1.5,)).worst(P, Y), ["ks", "whole", "(1.5,)"]),
    "no exponents": (lambda: DiscountedCumulativeGain(()), ["exponents"]),
    "negative exponent": (lambda: DiscountedCumulativeGain((-1.0,)), ["exponents"]),
    "gain": (lambda: GainMatrix.sample_aligned(1, 2, 0, 1.5), ["gain of 1.5", "from 0 to 1"]),
    "no sample": (lambda: Linear.sample(0, 4, 0), ["count 0"]),
    "function of NumPy": (of_function(lambda p: p.numpy()), ["returned ndarray for a torch"]),
    "function to [n]": (of_function(lambda p: p.sum(dim=1)), ["utility function", "shape [2]"]),
    "function to NaN": (of_function(lambda p: p * NAN), ["utility function", "NaN or infinite"]),
    "floor": (card(floor_repetitions=-1), ["floor_repetitions"]),
    "batch": (card(utility_batch=0), ["utility_batch: 0, expected a whole number of at"]),
    "users of the floor": (card(floor_utilities=0), ["floor_utilities: 0"]),
    "similarity of 2": (card(similarity=np.eye(2)), ["similarity", "2", "3"]),
    "no bin": (lambda: binned_class_wise_error(P, Y, 0), ["bins"]),
    "half a bin": (lambda: binned_class_wise_error(P, Y, 2.5), ["bins: 2.5, expected a whole"]),
    "scheme": (lambda: binned_class_wise_error(P, Y, scheme="quantile"), ["scheme"]),
    "class weights": (lambda: binned_class_wise_error(P, Y, weights="balanced"), ["weights"]),
    "confidence": (lambda: calibration_interval(TopK(), P, Y, 95), ["confidence"]),
    "confidence of 1": (lambda: calibration_interval(TopK(), P, Y, 1), ["confidence"]),
    "floor of row sums": (lambda: noise_floor(TopK(), P * 0.9, Y), ["do not sum to one"]),
    "bounds of row sums": (lambda: calibration_interval(TopK(), P * 0.9, Y), ["do not sum to one"]),
    **{
        f"{repetitions} repetitions": (
            lambda repetitions=repetitions: noise_floor(TopK(), P, Y, repetitions),
            ["expected a whole number of at least 1"],
        )
        for repetitions in (0, -1, 2.0, True)
    },
    **{
        f"{name} {place} {words}": (call, [f"{name}: {words}"])
        for name, value, words in (
            ("sample_weight", np.ones(4), "shape [4] for 5 rows"),
            ("sample_weight", [1, 1, -1, 1, 1], "-1 in row 2"),
            ("sample_weight", [1, 1, 1, INF, 1], "inf in row 3"),
            ("sample_weight", [1, 1, 1, NAN, 1], "nan in row 3"),
            ("sample_weight", np.zeros(5), "all are zero"),
            ("clusters", ["a", "b"], "shape [2] for 5 rows"),
            ("clusters", [1, 1, NAN, 2, 2], "none in row 2"),
            ("clusters", ["a", None, "b", "b", "b"], "none in row 1"),
            ("clusters", ["a"] * 5, "all rows are of cluster a"),
        )
        for place, call in enumerate(all_that_take(name, value))
    },
    "losses of 2 classes": (
        lambda: decisions(LOSSES[:2], np.eye(3), [0, 1, 2]),
        ["losses: for 2 classes, the forecast has 3"],
    ),
    "probability": (lambda: net_benefit([0.5, 2], [0, 1], [0.5]), ["probability: expected"]),
    "event": (lambda: net_benefit([0.5, 0.5], [0, 0.5], [0.5]), ["event: expected whole"]),
    "thresholds": (lambda: net_benefit([0.5], [0], [1.0]), ["thresholds"]),
    "unknown name": (
        lambda: accuracy(P, ["b", "z"], classes=["a", "b", "c"]),
        ["labels: 'z' in row 1 is none of `classes`"],
    ),
    "two names": (lambda: accuracy(P, Y, classes=["a", "b"]), ["2 names for 3 columns; name each"]),
    "no labels": (lambda: constant_losses(LOSSES, []), ["labels: none"]),
    "threshold of 3 classes": (lambda: acting_threshold(LOSSES), ["expected two classes"]),
    **{
        f"errors {errors}": (lambda errors=errors: ecdf(np.array(errors)), ["errors"])
        for errors in ([], [[0.1]], [0.1, NAN], [INF])
    },
    **{
        f"band {given}": (lambda given=given: dkw_band(*given), ["count"])
        for given in ((0, 0.95), (-1, 0.95), (10, 0), (10, 1))
    },
    **{
        f"{call.__name__} {name}": (
            lambda call=call, v=predicted, u=realized: call(v, u),
            words,
        )
        for call in (utility_calibration, worst_interval)
        for name, predicted, realized, words in (
            ("lengths", [0.1, 0.2], [0.1], ["realized", "[1]", "[2]", "one realized utility"]),
            ("NaN predicted", [NAN, 0.2], [0.1, 0.2], ["predicted", "NaN"]),
            ("NaN realized", [0.1, 0.2], [0.1, INF], ["realized", "infinite"]),
            ("empty", [], [], ["predicted", "at least one point"]),
            ("a number", 0.5, 0.5, ["predicted", "shape [..., n]"]),
            ("text", ["a"], [0.5], ["predicted", "not an array of numbers"]),
        )
    },
    **{f"p {name}": (lambda p=p: accuracy(p, Y), ["probabilities: ", *words])
       for name, (p, words) in BAD_PROBABILITIES.items()},
    **{f"y {name}": (lambda y=y: accuracy(P, y), ["labels: ", *words])
       for name, (y, words) in BAD_LABELS.items()},
}  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_named_with_its_fix(call, words):
    message_of(call, words=words)


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
