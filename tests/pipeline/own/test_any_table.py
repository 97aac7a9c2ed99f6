"""Any table: the same numbers whatever the order and the names, or one line.

What stands beside the answers, and classes that do not occur, are in test_advice.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from tests.pipeline.own.files import PATTERNS, WORDS
from utility_calibration.metrics import InputError
from utility_calibration.pipeline.own.points.check import checked
from utility_calibration.pipeline.own.points.whole_file import points_and_layout_of_files
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.pipeline.sources.file import file_logits

NUMBERED = (*PATTERNS, "p_00{}", "{}.0", "p_{}.0")
KINDS = ["words", "numbers", "from one", "floats", "text 001", "booleans"]
N = 60


def problem(seed: int, classes: int):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), N)
    y = np.array([rng.choice(classes, p=row) for row in p])
    y[:classes] = np.arange(classes)
    return p, y


def named(kind: str, classes: int):
    """The classes as labels, and as they stand in the columns' names."""
    if kind == "words":
        return np.array(WORDS[:classes]), WORDS[:classes]
    if kind == "booleans":
        return np.array([False, True]), ["False", "True"]
    numbers = np.arange(classes) + (kind == "from one")
    names = [str(number) for number in numbers]
    if kind == "text 001":
        return np.array([f"00{number}" for number in numbers]), names
    return numbers.astype(float) if kind == "floats" else numbers, names


def read(table: pd.DataFrame, **options):
    """Probabilities by class and labels, by the classes' names."""
    mistakes = list[str]()
    rows = dict(table.items())
    decided = points_and_layout_of_files([Path("x")], [rows], FileOptions(**options), mistakes)
    points = checked(decided.points, mistakes)
    p = softmax(points.matrix.astype(float), axis=1)
    return p[np.arange(len(p)), points.labels], points


tables = st.tuples(
    st.integers(0, 99), st.integers(2, 5), st.sampled_from(KINDS), st.sampled_from(NUMBERED)
)


def table_of(seed: int, classes: int, kind: str, pattern: str):
    classes = 2 if kind == "booleans" else classes
    pattern = "p_{}" if kind in ("words", "booleans") and pattern not in PATTERNS else pattern
    p, y = problem(seed, classes)
    labels, names = named(kind, classes)
    table = pd.DataFrame(p, columns=[pattern.format(name) for name in names])
    return table.assign(label=labels[y]), p, y


@given(tables, st.randoms(use_true_random=False))
def test_columns_of_any_pattern_and_order_are_the_classes_that_they_name(drawn, random):
    table, p, y = table_of(*drawn)
    order = list(table.columns)
    random.shuffle(order)
    _, points = read(table[order])
    np.testing.assert_allclose(points.matrix, np.log(p), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(points.labels, y)
    assert not points.notes


def test_a_folder_of_lists_is_one_array_and_an_option_may_be_impossible(tmp_path):
    datasets = pytest.importorskip("datasets")
    p, y = problem(0, 4)
    rows = np.log(p)
    rows[y != 3, 3] = -np.inf  # an option that these questions lack
    table = pd.DataFrame({"choices": [["x", "y"]] * N, "answer": np.array([*"ABCD"])[y]})
    table["logits"] = rows.tolist()
    table["class_names"] = [[*"ABCD"]] * N
    datasets.Dataset.from_pandas(table).save_to_disk(str(tmp_path / "a"))
    result = file_logits(path=tmp_path / "a")
    np.testing.assert_allclose(result.logits, rows, rtol=1e-6)
    np.testing.assert_array_equal(result.labels, y)
    assert "`answer` is taken for the labels" in result.details["warnings"]


def test_everything_wrong_with_a_file_is_said_at_once():
    table, _, _ = table_of(0, 3, "words", "p_{}")
    table = table.assign(**np.log(table[["p_New York", "p_bird", "p_cat"]]))
    table = table.assign(confidence=0.5, split="fit", weight=-1.0)
    table.loc[5, "label"] = ""
    with pytest.raises(InputError) as caught:
        read(table)
    mistakes = (caught.value, *caught.value.others)
    assert {mistake.field for mistake in mistakes} == {"labels", "columns", "split", "weight"}
    assert [m.where.row for m in mistakes if m.field in ("labels", "split")] == [5, 0]
