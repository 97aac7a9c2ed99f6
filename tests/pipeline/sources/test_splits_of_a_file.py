"""A file's own calibration and test points: a column `split`, or a second file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits

NAMES = np.array(["ant", "bee", "cat"])


def example(n: int = 12, seed: int = 0) -> dict[str, np.ndarray]:
    return {"logits": np.random.default_rng(seed).normal(size=(n, 3)), "labels": np.arange(n) % 3}


def table_of(arrays, **more) -> pd.DataFrame:
    named = dict(zip(NAMES, arrays["logits"].T))
    return pd.DataFrame({"label": NAMES[arrays["labels"]], **named, **more})


WORDS = ["calibration", "cal", "Validation", "val", "test", "TEST"] * 2


def test_a_split_says_which_points_test(tmp_path):
    np.savez(tmp_path / "x.npz", **example(), split=np.array(WORDS))
    expected = [[False, False, False, False, True, True] * 2]
    np.testing.assert_array_equal(file_logits(path=tmp_path / "x.npz").tested, expected)
    table_of(example(), split_1=WORDS, split_2=WORDS[::-1]).to_csv(tmp_path / "x.csv", index=False)
    found = file_logits(path=tmp_path / "x.csv")
    np.testing.assert_array_equal(found.tested, [expected[0], expected[0][::-1]])
    assert found.logits.shape == (12, 3)
    assert file_logits(path=tmp_path / "x.npz").tested.shape == (1, 12)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cal"] * 12, "split: no row says `test`"),
        (["train", *WORDS[1:]], "split: `train` in row 0; say `calibration` or `test`"),
    ],
)
def test_a_split_without_one_side_or_of_other_words_is_refused(tmp_path, words, told):
    table_of(example(), split=words).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(InputError, match=f"x.csv: {told}"):
        file_logits(path=tmp_path / "x.csv")


def test_a_second_file_tests_its_columns_in_any_order(tmp_path):
    first, second = example(), example(6, seed=1)
    table_of(first).to_csv(tmp_path / "cal.csv", index=False)
    turned = ["cat", "label", "ant", "bee"]
    table_of(second)[turned].to_csv(tmp_path / "test.csv", index=False)
    found = file_logits(path=tmp_path / "cal.csv", test=tmp_path / "test.csv")
    np.testing.assert_allclose(found.logits[12:], second["logits"], rtol=1e-6)
    np.testing.assert_array_equal(found.labels[12:], second["labels"])
    np.testing.assert_array_equal(found.tested, [[False] * 12 + [True] * 6])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"logits": np.zeros((6, 4)), "class_names": np.array(list("abcd"))},
            r"shape \[6, 4\], but \[12, 3\] in",
        ),
        ({"class_names": np.array(["ant", "bee", "cow"])}, "not the classes of .*: cat, cow in"),
        ({"groups": np.array(["a", "b"] * 3)}, "groups in one file alone"),
    ],
)
def test_a_second_file_of_another_kind_is_refused(tmp_path, change, told):
    np.savez(tmp_path / "cal.npz", **example(), class_names=NAMES)
    second = {**example(6), "class_names": NAMES, **change}
    np.savez(tmp_path / "test.npz", **second)
    with pytest.raises(InputError, match=told) as caught:
        file_logits(path=tmp_path / "cal.npz", test=tmp_path / "test.npz")
    assert "test.npz" in str(caught.value) and str(caught.value).isprintable()
