"""Tables: which column is what, by name; a column that is no class never becomes one unnoticed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.5, 0.25, 0.25]])
LABELS = [0, 1, 2, 0]


def table_of(names=("c0", "c1", "c2"), values=PROBABILITIES, labels=LABELS) -> pd.DataFrame:
    return pd.DataFrame({"label": labels, **dict(zip(names, values.T))})


def refused(tmp_path, table: pd.DataFrame, **options) -> str:
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    with pytest.raises(InputError) as caught:
        file_logits(path=path, **options)
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and line.isprintable(), line
    return line


def read(tmp_path, table: pd.DataFrame, **options):
    table.to_csv(tmp_path / "t.csv", index=False)
    return file_logits(path=tmp_path / "t.csv", **options)


def accuracy(result) -> float:
    return float(np.mean(result.logits.argmax(axis=1) == result.labels))


@pytest.mark.parametrize("names", [["label", "labels"], ["label", "label"], ["Label", "LABELS"]])
def test_two_columns_of_labels(tmp_path, names):
    table = pd.concat([table_of()[["label"]], table_of()], axis=1)
    table.columns = pd.Index([*names, "c0", "c1", "c2"])
    line = refused(tmp_path, table)
    assert "could both be the labels" in line or "two columns are called `label`" in line


@pytest.mark.parametrize("name", ["id", "ID", "pred", "prediction", "y_true", "fold", "weight"])
@pytest.mark.parametrize("values", ["auto", "logits", "probabilities"])
def test_columns_of_other_things_than_classes(tmp_path, name, values):
    line = refused(tmp_path, table_of().assign(**{name: [7, 8, 9, 10]}), values=values)
    assert f"column `{name}` would be taken for a class; remove it" in line


def test_a_cell_that_is_no_number_is_named(tmp_path):
    for cell in ("nan", "NA", "n/a", "1,5"):
        line = refused(tmp_path, table_of().assign(c1=[0.1, 0.2, cell, 0.3]))
        assert f"column `c1` holds `{cell}` in row 2, which is no finite number" in line
    line = refused(tmp_path, table_of(labels=[0, 1, "nan", 2]))
    assert "labels: nan in row 2 is no column's name" in line


def test_a_class_may_have_such_a_name_where_labels_bear_it(tmp_path):
    table = table_of(("id", "key", "name"), labels=["id", "key", "name", "id"])
    assert read(tmp_path, table).details["class_names"] == ["id", "key", "name"]


@pytest.mark.parametrize("names", ["210", ["c2", "c1", "c0"], ["p_2", "p_1", "p_0"]])
def test_numbered_columns_are_the_classes_of_their_numbers_in_any_order(tmp_path, names):
    expected = read(tmp_path, table_of())
    found = read(tmp_path, table_of(names, PROBABILITIES[:, ::-1]))
    assert accuracy(found) == accuracy(expected) == 1.0
    assert found.details["class_names"] == ["2", "1", "0"]
    assert "class_names" not in expected.details


def test_columns_from_one_are_ambiguous_only_where_labels_are(tmp_path):
    names = ("p1", "p2", "p3")
    assert accuracy(read(tmp_path, table_of(names))) == 1.0  # a label 0: numbers of columns
    assert accuracy(read(tmp_path, table_of(names, labels=[1, 2, 3, 1]))) == 1.0  # a label 3: names
    assert "may number the columns from 0, or name" in refused(
        tmp_path, table_of(names, labels=[1, 2, 2, 1])
    )


def test_a_label_without_a_column(tmp_path):
    line = refused(tmp_path, table_of(("c0", "c2", "c4"), labels=[0, 1, 2, 0]))
    assert "labels: 1 names none of the columns" in line
    assert "subtract 1" in refused(tmp_path, table_of(labels=[1, 2, 3, 1]))


def test_the_header_names_the_classes(tmp_path):
    result = read(tmp_path, table_of(("cat", "dog", "emu")))
    assert result.details["class_names"] == ["cat", "dog", "emu"]
    labels = ["emu", "cat", "dog", "emu"]
    shuffled = read(tmp_path, table_of(("emu", "cat", "dog"), labels=labels))
    assert accuracy(shuffled) == 1.0
    prefixed = read(tmp_path, table_of(("p_emu", "p_cat", "p_dog"), labels=labels))
    assert accuracy(prefixed) == 1.0
    assert prefixed.details["class_names"] == ["emu", "cat", "dog"]
    line = refused(tmp_path, table_of(("cat", "dog", "eel"), labels=labels))
    assert "labels: emu in row 0 is no column's name" in line


def test_percentages_are_not_taken_for_logits(tmp_path):
    labels = np.arange(4 * len(PROBABILITIES)) % 3
    table = table_of(values=np.tile(100 * PROBABILITIES, (4, 1)), labels=labels)
    line = refused(tmp_path, table)
    assert "all rows sum to about 100" in line and "divide each row by its sum" in line
    assert read(tmp_path, table, values="logits").logits.max() > 50


@pytest.mark.parametrize("scale", [255, 1000, 37.5])
@pytest.mark.parametrize("rounded", [False, True])
def test_votes_and_scaled_probabilities_are_not_taken_for_logits(tmp_path, scale, rounded):
    rows = scale * np.random.default_rng(0).dirichlet(np.ones(3), size=40)
    rows = np.round(rows) if rounded and scale > 100 else rows
    table = table_of(values=rows, labels=np.arange(40) % 3)
    line = refused(tmp_path, table)
    assert f"all rows sum to about {scale:g}" in line and "divide each row by its sum" in line
    assert read(tmp_path, table, values="logits").logits.max() == np.float32(rows.max())


@pytest.mark.parametrize("classes", [2, 10])
def test_logits_that_happen_to_be_positive_or_whole_are_read(tmp_path, classes):
    random = np.random.default_rng(0)
    many = random.normal(size=(40, classes))
    for rows in (np.abs(many), np.round(128 + 20 * many), random.integers(3, size=many.shape)):
        path = tmp_path / "x.npz"
        np.savez(path, logits=rows, labels=np.arange(40) % 2)
        np.testing.assert_array_equal(file_logits(path=path).logits, rows.astype(np.float32))


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("made", ["shifted", "uint8", "uint16"])
def test_logits_of_a_network_made_positive_are_read(tmp_path, classes, made):
    """They sum to zero, as training and weight decay leave them: a shift makes that common sum."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, classes))
    rows[np.arange(40), np.arange(40) % classes] += 8
    rows -= rows.mean(axis=1, keepdims=True)
    rows -= rows.min()
    if made != "shifted":
        rows = np.round(rows / rows.max() * np.iinfo(made).max).astype(made)
    path = tmp_path / "x.npz"
    np.savez(path, logits=rows, labels=np.arange(40) % classes)
    np.testing.assert_array_equal(file_logits(path=path).logits, rows.astype(np.float32))


def test_labels_that_are_booleans(tmp_path):
    two = table_of("ab", PROBABILITIES[:, :2] / PROBABILITIES[:, :2].sum(axis=1, keepdims=True))
    result = read(tmp_path, two.assign(label=[False, True, True, False]))
    np.testing.assert_array_equal(result.labels, [0, 1, 1, 0])


@pytest.mark.parametrize("name", ["p", "1", "1.0"])
def test_one_column_is_the_probability_of_the_second_class(tmp_path, name):
    table = pd.DataFrame({"label": [0, 1, 1], name: [0.1, 0.75, 1.0]})
    result = read(tmp_path, table)
    expected = [[0.9, 0.1], [0.25, 0.75], [0.0, 1.0]]
    np.testing.assert_allclose(np.exp(result.logits), expected, atol=1e-7)
    np.testing.assert_array_equal(result.labels, [0, 1, 1])


@pytest.mark.parametrize(
    ("classes", "column"),
    [
        (("well", "sick"), "p_sick"),
        (("sick", "well"), "p_well"),
        (("well", "sick"), "P(sick)"),
        (("well", "sick"), "p_well"),
        (("No", "Yes"), "probability_of_yes"),
        ((0, 1), "p_0"),
        ((0, 1), "p1"),
        ((0, 1), "0"),
        ((1, 0), "0.0"),
        ((-1, 1), "p_-1"),
    ],
)
def test_one_column_may_bear_its_class_after_a_prefix(classes, column, tmp_path):
    meant = next(
        name
        for name in classes
        if column.lower().removesuffix(".0").rstrip(")").endswith(str(name).lower())
    )
    labels = [classes[0], classes[1], classes[1]]
    table = pd.DataFrame({"label": labels, column: [0.9 if y == meant else 0.2 for y in labels]})
    result = read(tmp_path, table)
    assert accuracy(result) == 1.0
    told = f"column `{column}` is taken for the probability of {meant}"
    assert (told in result.details["warnings"]) == (column != str(meant))


def test_one_column_of_logits_is_the_log_odds_of_the_second_class(tmp_path):
    table = pd.DataFrame({"label": ["no", "yes", "yes"], "z": [-1.5, 2.0, 3.0]})
    result = read(tmp_path, table)
    np.testing.assert_array_equal(result.logits, [[0, -1.5], [0, 2], [0, 3]])
    assert "log-odds of yes" in result.details["warnings"][0]


def test_groups(tmp_path):
    table = table_of().assign(site=["A", "B", "A", "B"])
    result = read(tmp_path, table, groups="site")
    assert result.groups.tolist() == ["A", "B", "A", "B"]
    assert result.logits.shape == (4, 3)
    assert read(tmp_path, table_of()).groups is None
    assert "no column `town`" in refused(tmp_path, table, groups="town")
    assert "groups: none in row 1" in refused(
        tmp_path, table.assign(site=["A", "", "B", "B"]), groups="site"
    )
    assert "give --groups group" in refused(tmp_path, table_of().assign(group=[1, 2, 1, 2]))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["target", "c0", "c1", "c2"], "rename `target` to `label`"),
        (["label", "c0", "c1", "a\nb"], "column 4 holds control characters"),
    ],
)
def test_other_names(tmp_path, names, words):
    table = table_of()
    table.columns = pd.Index(names)
    assert words in refused(tmp_path, table)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_parquet_with_types_of_its_own(tmp_path, backend):
    table = table_of(("cat", "dog", "emu"), labels=["cat", "dog", "emu", "cat"])
    table = table.assign(site=pd.Categorical(["A", "B", "A", "B"]))
    table.convert_dtypes(dtype_backend=backend).to_parquet(tmp_path / "t.parquet")
    result = file_logits(path=tmp_path / "t.parquet", groups="site")
    np.testing.assert_allclose(np.exp(result.logits), PROBABILITIES, rtol=1e-6)
    assert (accuracy(result), result.groups.tolist()) == (1.0, ["A", "B", "A", "B"])


@pytest.mark.parametrize("column", ["c1", "label"])
def test_parquet_with_missing_values(tmp_path, column):
    table = table_of().convert_dtypes()
    table.loc[1, column] = pd.NA
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: .*(nothing|NaN).* row 1"):
        file_logits(path=tmp_path / "t.parquet")


def test_parquet_that_is_damaged(tmp_path):
    path = tmp_path / "t.parquet"
    table_of().to_parquet(path)
    for content in (b"", b"PAR1", path.read_bytes()[:-20], b"hello\nworld"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"t\.parquet: not readable as parquet") as caught:
            file_logits(path=path)
        assert str(caught.value).isprintable()


def test_an_empty_cell_is_named_by_its_column_and_row(tmp_path):
    table = table_of(labels=["cat", "dog", "emu", "cat"])
    table.iloc[2, 1] = np.nan
    assert f"column `{table.columns[1]}` holds nothing in row 2" in refused(tmp_path, table)
