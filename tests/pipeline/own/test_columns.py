"""Tables: which column is what, by name; a column that is no class never becomes one unnoticed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

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


def test_the_column_of_labels_is_one(tmp_path):
    twice = refused(tmp_path, table_of().assign(labels=LABELS))
    assert "`label` and `labels` could be the labels; keep one" in twice
    renamed = table_of().rename(columns={"label": "target"})
    assert read(tmp_path, renamed).details["warnings"][0] == "`target` is taken for the labels"
    assert "`target` and `gold` could be" in refused(tmp_path, renamed.assign(gold=LABELS))


def test_all_columns_that_are_no_classes_stand_in_one_message_with_the_options(tmp_path):
    table = table_of().assign(pred_label=LABELS, confidence=PROBABILITIES.max(axis=1))
    line = refused(tmp_path, table)
    assert ": pred_label, confidence: no label has this name, while c* has those of all" in line
    assert "--ignore pred_label,confidence; or say which columns are the classes: --clas" in line
    plain = read(tmp_path, table_of())
    for option in ({"ignore": "pred_*,confidence"}, {"classes": "c?"}, {"classes": "c2,c0,c1"}):
        result = read(tmp_path, table[table.columns[::-1]], **option)
        assert accuracy(result) == 1.0
        np.testing.assert_array_equal(np.sort(result.logits), np.sort(plain.logits))


@pytest.mark.parametrize("names", ["210", ["p_2", "p_1", "p_0"]])
def test_numbered_columns_are_the_classes_of_their_numbers_in_any_order(tmp_path, names):
    turned = read(tmp_path, table_of(names, PROBABILITIES[:, ::-1]))
    assert accuracy(turned) == 1.0
    np.testing.assert_array_equal(turned.logits, read(tmp_path, table_of()).logits)


def test_the_header_names_the_classes(tmp_path):
    labels = ["emu", "cat", "dog", "emu"]
    for names in (("emu", "cat", "dog"), ("p_emu", "p_cat", "p_dog")):
        result = read(tmp_path, table_of(names, labels=labels))
        assert accuracy(result) == 1.0
        assert result.details["class_names"] == ["cat", "dog", "emu"]
    line = refused(tmp_path, table_of(("cat", "dog", "eel"), labels=labels))
    assert "labels: emu in row 0 is no column's name" in line
    line = refused(tmp_path, table_of(("cat", "dog", "emu")))
    assert "do not bear the labels 0, 1, 2" in line and "order of the labels: --classes" in line
    named = read(tmp_path, table_of(("cat", "dog", "emu")), classes="cat,dog,emu")
    assert (accuracy(named), named.details["class_names"]) == (1.0, ["cat", "dog", "emu"])


@pytest.mark.parametrize("scale", [100, 255])
def test_percentages_and_votes_are_not_taken_for_logits(tmp_path, scale):
    rows = np.round(scale * np.random.default_rng(0).dirichlet(np.ones(3), size=40))
    table = table_of(values=rows, labels=np.arange(40) % 3)
    line = refused(tmp_path, table)
    assert f"all rows sum to about {scale}" in line and "divide each row by its sum" in line
    assert read(tmp_path, table, values="logits").logits.max() == rows.max()


def test_one_column_is_the_probability_of_the_second_class(tmp_path):
    table = pd.DataFrame({"label": [0, 1, 1], "p": [0.1, 0.75, 1.0]})
    result = read(tmp_path, table)
    expected = [[0.9, 0.1], [0.25, 0.75], [0.0, 1.0]]
    np.testing.assert_allclose(np.exp(result.logits), expected, atol=1e-7)
    np.testing.assert_array_equal(result.labels, [0, 1, 1])


@pytest.mark.parametrize(
    ("classes", "column", "meant"),
    [
        (("well", "sick"), "p_sick", "sick"),
        (("well", "sick"), "P(well)", "well"),
        (("No", "Yes"), "probability_of_yes", "Yes"),
        ((0, 1), "p_0", 0),
    ],
)
def test_one_column_may_bear_its_class_after_a_prefix(classes, column, meant, tmp_path):
    labels = [classes[0], classes[1], classes[1]]
    table = pd.DataFrame({"label": labels, column: [0.9 if y == meant else 0.2 for y in labels]})
    result = read(tmp_path, table)
    assert accuracy(result) == 1.0
    told = f"the single column is taken for the probability of {meant}"
    assert told in result.details["warnings"]


def test_one_column_of_logits_is_the_log_odds_of_the_second_class(tmp_path):
    table = pd.DataFrame({"label": ["no", "yes", "yes"], "z": [-1.5, 2.0, 3.0]})
    result = read(tmp_path, table)
    np.testing.assert_array_equal(result.logits, [[0, -1.5], [0, 2], [0, 3]])
    assert "log-odds of yes" in result.details["warnings"][0]


def test_a_table_is_read_without_a_warning_of_torch(tmp_path, recwarn):
    torch.set_warn_always(True)  # else once in a program
    try:
        read(tmp_path, table_of())
    finally:
        torch.set_warn_always(False)
    assert not [str(warning.message) for warning in recwarn]


def test_groups(tmp_path):
    table = table_of().assign(site=["A", "B", "A", "B"])
    result = read(tmp_path, table, groups="site")
    assert result.groups.tolist() == ["A", "B", "A", "B"]
    assert result.logits.shape == (4, 3)
    assert "nothing is called `town` for groups" in refused(tmp_path, table, groups="town")
    assert "--groups NAME" in refused(tmp_path, table_of().assign(group=[1, 2, 1, 2]))
    assert "groups: none in row 1" in refused(
        tmp_path, table.assign(site=["A", "", "B", "B"]), groups="site"
    )


def test_parquet_with_the_types_of_pandas(tmp_path):
    table = table_of(("cat", "dog", "emu"), labels=["cat", "dog", "emu", "cat"])
    table = table.assign(site=pd.Categorical(["A", "B", "A", "B"])).convert_dtypes()
    table.to_parquet(tmp_path / "t.parquet")
    result = file_logits(path=tmp_path / "t.parquet", groups="site")
    np.testing.assert_allclose(np.exp(result.logits), PROBABILITIES, rtol=1e-6)
    assert (accuracy(result), result.groups.tolist()) == (1.0, ["A", "B", "A", "B"])


def test_parquet_with_missing_values_or_damage_is_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    table = table_of().convert_dtypes()
    table.loc[1, "c1"] = pd.NA
    table.to_parquet(path)
    with pytest.raises(InputError, match=r"t\.parquet: .*nothing.* row 1"):
        file_logits(path=path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"t\.parquet: not readable as parquet") as caught:
        file_logits(path=path)
    assert str(caught.value).isprintable()
