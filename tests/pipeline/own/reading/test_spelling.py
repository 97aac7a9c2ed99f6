"""Names that are written as numbers: one number in two ways is never silently one class."""

from itertools import cycle

import numpy as np
import pytest

from tests.pipeline.own.files import LOGITS, N, P, Y, read, table, written
from tests.refusals import refuses
from utility_calibration.pipeline.own.points.by_parts import first_rows_of, labelled
from utility_calibration.pipeline.own.reading.parts import batches
from utility_calibration.pipeline.own.reading.spelling import one_number_twice
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.pipeline.sources.file import file_logits


def labels_of(*spellings):
    """The labels of the points, of which class 1 is spelt in turn in several ways."""
    ways = cycle(spellings)
    return [next(ways) if y == 1 else str(y) for y in Y]


@pytest.mark.parametrize("other", ["01", "+1", "1e0", "001.0"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.tsv"])
def test_labels_of_one_number_and_two_spellings_are_refused(tmp_path, name, other):
    with refuses("labels", fix="alike" if other != "001.0" else ""):
        read(tmp_path / name, table(y=labels_of("1", other)))


def test_arrays_are_refused_likewise(tmp_path):
    arrays = {"logits": LOGITS, "labels": np.array(labels_of("1", "01"))}
    with refuses("labels", fix="alike"):
        read(tmp_path / "a.npz", arrays)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(("first", "second"), [("1", "01"), ("100000", "1e5"), ("7", "007")])
def test_they_are_two_classes_where_each_has_its_column(tmp_path, name, first, second):
    names = np.array(["0", first, second])
    content = table(y=names[Y], names=[f"p_{each}" for each in names])
    result = read(tmp_path / name, content)
    counts = dict(zip(result.details["class_names"], np.bincount(result.labels), strict=True))
    assert counts == dict(zip(names, np.bincount(Y), strict=True))


@pytest.mark.parametrize(("column", "option"), [("groups", {}), ("ward", {"groups": "ward"})])
def test_groups_of_one_number_stay_apart(tmp_path, column, option):
    names = np.array(["1", "01", "2"])[np.arange(N) % 3]
    result = read(tmp_path / "a.csv", table(**{column: names}), **option)
    assert np.unique(result.groups).tolist() == ["01", "1", "2"]


@pytest.mark.parametrize("same", ["1.0", " 1", "1.00"])
def test_a_column_that_once_had_a_gap_keeps_its_classes(tmp_path, same):
    result = read(tmp_path / "a.csv", table(y=labels_of("1", same)))
    np.testing.assert_array_equal(result.labels, Y)


def test_numbers_after_an_empty_first_cell_are_read(tmp_path):
    clusters = [np.nan, *range(1, N)]
    with refuses("clusters", row=0, fix="complete"):
        read(tmp_path / "a.csv", table(clusters=clusters))
    labels = ["", *Y[1:].astype(str)]
    with refuses("labels", row=0, fix="complete"):
        read(tmp_path / "b.csv", table(y=labels))


def test_names_of_one_spelling_are_numbers(tmp_path):
    result = read(tmp_path / "a.csv", table(y=[f"{y:02d}" for y in Y]))
    np.testing.assert_array_equal(result.labels, Y)
    result = read(
        tmp_path / "a.csv", table(y=Y + 2**53, names=[f"p_{2**53 + k}" for k in range(3)])
    )
    np.testing.assert_array_equal(result.labels, Y)


def test_a_later_part_of_a_file_may_not_spell_a_class_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("utility_calibration.pipeline.own.reading.parts.ROWS", 20)
    labels = [str(y) if row < 20 else f"0{y}" for row, y in enumerate(Y)]
    path = written(tmp_path / "a.csv", table(y=labels))
    file_options = FileOptions()
    layout = first_rows_of([path], file_options).layout
    with refuses("labels"):
        list(labelled(path, file_options, layout, {}))
    parts = list(batches(path, file_options, file_options.gives_role))
    assert parts[0]["label"].dtype.kind == "i" and parts[1]["label"].dtype.kind == "O"


@pytest.mark.parametrize("name", ["inf", "-inf", "nan"])
def test_a_word_that_python_reads_as_a_number_is_a_name(tmp_path, name):
    names = np.array(["a", "b", name])
    result = read(tmp_path / "a.csv", table(y=names[Y], names=names))
    assert sorted(result.details["class_names"]) == sorted(names)


@pytest.mark.filterwarnings("error")
def test_labels_that_are_no_class_numbers_are_refused(tmp_path):
    infinite = np.where(Y == 2, np.inf, Y)
    with refuses("labels", row=int(np.argmax(Y == 2))):
        read(tmp_path / "a.npz", {"logits": LOGITS, "labels": infinite})
    names = np.array(["1.25", "2.5", "3.75"])
    path = written(tmp_path / "a.csv", table(y=names[Y], names=names))
    with refuses("label", fix="c1.25"):
        file_logits(path=path)
    lettered = np.char.add("c", names)  # the fix works
    result = read(tmp_path / "b.csv", table(P, lettered[Y], lettered))
    np.testing.assert_array_equal(result.labels, Y)


def test_two_spellings_of_one_number_are_found():
    assert one_number_twice(["3", "1", "01"]) == ("1", "01")
    assert one_number_twice(["1e5", "2", "100000"]) == ("1e5", "100000")
    assert one_number_twice(["1", "2", "one", "v1", "1_0"]) is None
