"""A layout is decided once, and applied to all rows: what fits has the right numbers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, NAMES, N, P, Y, read, table, written
from tests.refusals import refuses
from utility_calibration.pipeline.own.points.by_parts import (
    FirstRows,
    decided_from,
    first_rows_of,
    points_of,
)
from utility_calibration.pipeline.own.words.file_options import FileOptions

HALF = N // 2
NAMED = table(P, NAMES[Y], [f"p_{name}" for name in NAMES])


def first_rows(content: Any, **options: Any) -> FirstRows:
    return decided_from(Path("first"), dict(content.items()), FileOptions(**options))


def later(content: Any, first: FirstRows, **options: Any) -> Any:
    rows = {name: values[HALF:] for name, values in content.items()}
    return points_of(rows, FileOptions(**options), first.layout, [])


def check(points: Any, p: Any = P[HALF:], y: Any = Y[HALF:]) -> None:
    np.testing.assert_allclose(softmax(points.logits.astype(float), axis=1), p, atol=1e-6)
    np.testing.assert_array_equal(points.labels, y)


def test_a_layout_says_the_columns_in_the_order_of_the_classes_and_does_not_change():
    layout = first_rows(NAMED[["p_cat", "label", "p_ant", "p_bee"]]).layout
    assert layout.columns == ("p_ant", "p_bee", "p_cat")
    assert layout.class_names == ("ant", "bee", "cat")
    assert (layout.kind, layout.roles.labels, layout.single) == ("probabilities", "label", None)
    with pytest.raises(FrozenInstanceError):
        layout.kind = "logits"


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 0, 1]])
def test_later_rows_may_have_their_columns_in_another_order(order):
    first = first_rows(NAMED[:HALF])
    check(later(NAMED[NAMED.columns[order]], first))


def test_an_array_may_have_its_classes_in_another_order_if_labels_are_names(tmp_path):
    arrays = {"probabilities": P, "labels": NAMES[Y]}
    path = written(tmp_path / "a", {**arrays, "class_names": NAMES})
    first = first_rows_of([path], FileOptions())
    moved = {**arrays, "probabilities": P[:, [2, 0, 1]]}
    rows = {name: values[HALF:] for name, values in moved.items()}
    rows["class_names"] = NAMES[[2, 0, 1]]
    check(points_of(rows, FileOptions(), first.layout, []))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda rows: rows.drop(columns="p_bee"), "p_bee"),
        (lambda rows: rows.assign(p_dog=0.5), "p_dog"),
        (lambda rows: rows.assign(weight=1.0), "weight"),
        (lambda rows: rows.assign(split="test"), "split"),
    ],
)
def test_rows_that_lack_a_column_or_have_one_that_may_count_are_refused(change, field):
    first = first_rows(NAMED[:HALF])
    with refuses(field, fix="all files"):
        later(change(NAMED), first)


def test_later_rows_may_lack_what_is_not_used_and_have_remarks():
    first = first_rows(NAMED.assign(id=1, note="x"), ignore="id")
    check(later(NAMED.assign(remark="y"), first, ignore="id"))


def test_a_later_label_that_the_first_rows_lack_is_a_class_by_its_name():
    content = NAMED[["label", "p_ant", "p_bee", "p_cat"]]
    of_two = content[content["label"] != "cat"]
    layout = first_rows(of_two, classes="p_ant,p_bee,p_cat").layout
    assert layout.codes == {"ant": 0, "bee": 1, "cat": 2}
    check(later(content, FirstRows(layout, {}), classes="p_ant,p_bee,p_cat"))


def test_labels_of_the_first_rows_are_numbers_for_all(tmp_path):
    path = written(tmp_path / "a", {"logits": LOGITS[:HALF], "labels": Y[:HALF]})
    first = first_rows_of([path], FileOptions())
    assert first.layout.codes == {"0": 0, "1": 1, "2": 2}
    named = {"logits": LOGITS, "labels": NAMES[Y]}
    with refuses("labels", row=1, fix="--ignore-label ant"):
        later(named, first)


def test_a_column_is_read_as_the_kind_that_the_person_says(tmp_path):
    labels = 1 * (Y == 1)
    content = table(P[:, [1]], labels, ["z"])
    with refuses("logits", fix="--values logits"):
        read(tmp_path / "a.csv", content, logits="z")
    result = read(tmp_path / "a.csv", content, logits="z", values="logits")
    np.testing.assert_allclose(result.logits[:, 1] - result.logits[:, 0], P[:, 1], rtol=1e-6)
    with refuses("probabilities", row=0):
        read(tmp_path / "a.csv", table(LOGITS[:, [1]], labels, ["z"]), probabilities="z")


def test_two_columns_of_answers_are_refused(tmp_path):
    labels = 1 * (Y == 1)
    both = np.stack([LOGITS[:, 1], P[:, 1]], axis=1)
    with refuses("z", fix="--probabilities p"):
        read(tmp_path / "a.csv", table(both, labels, ["z", "p"]), logits="z", probabilities="p")


def test_a_layout_of_other_class_names_is_another_one():
    layout = first_rows(NAMED).layout
    assert replace(layout, class_names=("a", "b", "c")) != layout
