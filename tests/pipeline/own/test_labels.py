"""Labels of any kind become numbers of columns that have no names, or names of their own."""

from __future__ import annotations

import numpy as np
import pytest

from metrics import InputError
from pipeline.own.arrays import coded
from pipeline.own.cells import Mistakes, distinct_labels


def numbered(labels, classes=3, names=None, matrix=None):
    mistakes = Mistakes()
    distinct = distinct_labels(np.asarray(labels), "labels", mistakes)
    mistakes.check()
    codes, found, notes = coded(distinct, classes, names, matrix)
    return codes.tolist(), found, list(notes)


@pytest.mark.parametrize("kind", [np.uint8, np.float64, str])
def test_numbers_of_columns_stay(kind):
    assert numbered(np.array([0, 2, 1, 2]).astype(kind)) == ([0, 2, 1, 2], None, [])


def test_names_stand_for_the_columns_in_alphabetical_order_and_say_so():
    codes, names, notes = numbered(["dog", "cat", "emu", "cat"])
    assert (codes, names) == ([1, 0, 2, 0], ["cat", "dog", "emu"])
    assert "alphabetical order, cat, dog, emu" in notes[0]


def test_names_that_fit_the_columns_in_another_order_are_refused():
    codes = np.arange(90) % 3
    shown = np.eye(3)[codes]  # the columns are cat, dog, bird
    with pytest.raises(InputError, match=r"do not fit their alphabetical order .bird, cat, dog"):
        numbered(np.array(["cat", "dog", "bird"])[codes], matrix=shown)


def test_other_numbers_stand_for_the_columns_in_increasing_order():
    codes, names, notes = numbered([1, 2, 3])
    assert (codes, names) == ([0, 1, 2], ["1", "2", "3"])
    assert "labels are not 0 to 2" in notes[0]


def test_numbers_as_text_in_two_orders_are_refused():
    for labels in (["10", "9", "2"], [str(k) for k in range(12)]):
        with pytest.raises(InputError, match=r"add class_names=model\.classes_"):
            numbered(labels, len(labels))
    names = ["2", "9", "10"]
    assert numbered(["10", "9", "2"], names=names) == ([2, 1, 0], names, [])


def test_labels_that_fit_better_if_counted_from_one_are_refused():
    codes = np.arange(90) % 3
    shown = np.eye(4)[codes]
    with pytest.raises(InputError, match="fit the columns better if counted from 1"):
        numbered(codes + 1, 4, matrix=shown)
    assert numbered(codes + 1, 4, matrix=np.eye(4)[codes + 1])[0] == (codes + 1).tolist()


def test_the_columns_names_win():
    names = ["emu", "cat", "dog"]
    assert numbered(["cat", "Emu"], names=names)[0] == [1, 0]
    assert numbered([0, 2], names=names) == ([0, 2], names, [])
    assert numbered([30, 10], names=["10", "20", "30"])[0] == [2, 0]


@pytest.mark.parametrize(
    ("labels", "names", "words"),
    [
        (["cat", "dog"], None, "2 names (cat, dog) for 3 columns; add `class_names`"),
        (["cat", "cow"], ["cat", "dog", "emu"], "cow in row 1 is no class's name"),
        ([0, 1, 2], ["1", "2", "3"], "0 in row 0 is no class's name"),
        (["cat", "", "dog", "emu"], None, "none in row 1"),
        ([0, 7], None, "0 to 7, allowed are 0 to 2"),
        ([0, 1.5], None, "whole numbers"),
        ([[0], [1]], None, "shape [2, 1], not [n]; save labels[:, 0]"),
        (["x", "a\nb"], None, "a?b in row 1 holds control characters"),
    ],
)
def test_what_is_unclear_is_refused(labels, names, words):
    with pytest.raises(InputError) as caught:
        numbered(labels, names=names)
    assert words in str(caught.value) and str(caught.value).isprintable()
