"""Labels of any kind become numbers of columns, and keep their names."""

from __future__ import annotations

import numpy as np
import pytest

from metrics import InputError
from pipeline.sources.class_labels import class_labels, notes_on_absent_classes


def numbered(labels, classes=3, names=None):
    return class_labels(np.asarray(labels), len(labels), classes, names)


@pytest.mark.parametrize("kind", [np.uint8, np.float64, str])
def test_numbers_of_columns_stay(kind):
    result = numbered(np.array([0, 2, 1, 2]).astype(kind))
    assert (result.numbers.tolist(), result.names, result.notes) == ([0, 2, 1, 2], None, [])
    assert result.numbers.dtype == np.int64


def test_names_stand_for_the_columns_in_alphabetical_order_and_say_so():
    result = numbered(["dog", "cat", "emu", "cat"])
    assert result.numbers.tolist() == [1, 0, 2, 0]
    assert result.names == ["cat", "dog", "emu"]
    assert "alphabetical order, cat, dog, emu" in result.notes[0]


@pytest.mark.parametrize(
    ("labels", "numbers", "names"),
    [
        ([1, 2, 3], [0, 1, 2], ["1", "2", "3"]),
        (["10", "9", "2"], [2, 1, 0], ["2", "9", "10"]),  # as numbers, not as text
    ],
)
def test_other_numbers_stand_for_the_columns_in_increasing_order(labels, numbers, names):
    result = numbered(labels)
    assert (result.numbers.tolist(), result.names) == (numbers, names)
    assert "labels are not 0 to 2" in result.notes[0]


def test_the_columns_names_win():
    names = ["emu", "cat", "dog"]
    assert numbered(["cat", "emu"], names=names).numbers.tolist() == [1, 0]
    result = numbered([0, 2], names=names)
    assert (result.numbers.tolist(), result.names) == ([0, 2], names)
    assert numbered([30, 10], names=["10", "20", "30"]).numbers.tolist() == [2, 0]
    from_one = ["p1", "p2", "p3"]
    assert numbered([0, 1, 2], names=from_one).numbers.tolist() == [0, 1, 2]  # 0: no name
    assert numbered([1, 2, 3], names=from_one).numbers.tolist() == [0, 1, 2]  # 3: no number


@pytest.mark.parametrize(
    ("labels", "names", "words"),
    [
        (["cat", "dog"], None, "2 names (cat, dog) for 3 columns; add `class_names`"),
        (["cat", "cow"], ["cat", "dog", "emu"], "cow in row 1 is no column's name"),
        (["cat", ""], None, "none in row 1"),
        ([1, 2, 3], ["0", "1", "2"], "subtract 1"),
        ([0, 7], None, "0 to 7, allowed are 0 to 2"),
        ([0, 1.5], None, "whole numbers"),
        (["x", "a\nb"], None, "a?b in row 1 holds control characters"),
    ],
)
def test_what_is_unclear_is_refused(labels, names, words):
    with pytest.raises(InputError) as caught:
        numbered(labels, names=names)
    assert words in str(caught.value) and str(caught.value).startswith("labels: ")
    assert str(caught.value).isprintable()


def test_classes_without_a_point_are_noted():
    assert notes_on_absent_classes(numbered([0, 1, 2] * 5), 3) == []
    note = "no point's label is 1, 3; what is no class must not be among the columns"
    assert notes_on_absent_classes(numbered([0] * 16 + [2] * 4, 4), 4) == [note]
    named = numbered(["cat"] * 5 + ["emu"] * 5, 3, ["cat", "dog", "emu"])
    assert notes_on_absent_classes(named, 3)[0].startswith("no point's label is dog; ")


def test_points_of_one_class_are_refused():
    with pytest.raises(InputError, match="labels: all 4 are 1; give points of"):
        notes_on_absent_classes(numbered([1] * 4), 3)
