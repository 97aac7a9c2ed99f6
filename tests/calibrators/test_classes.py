"""Labels by name: which column is which class, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch

from utility_calibration.calibrators import TemperatureScaling, UtilityPatching, VectorScaling
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics import InputError

NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 200)
    return random.normal(size=(200, 3)) + 1.5 * np.eye(3)[labels], labels


def test_names_in_sorted_order_as_scikit_learn_has_them(data):
    logits, labels = data
    named = VectorScaling().fit(logits, NAMES[labels])
    plain = VectorScaling().fit(logits, labels)
    assert named.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(named.predict_proba(logits), plain.predict_proba(logits))
    np.testing.assert_array_equal(named.predict(logits), NAMES[plain.predict(logits)])
    np.testing.assert_array_equal(named.predict(torch.from_numpy(logits)), named.predict(logits))
    assert named.score(logits, NAMES[labels].tolist()) == plain.score(logits, labels)
    assert plain.score(logits, labels) > 0.5


def test_the_columns_of_a_data_frame_name_the_classes_in_any_order(data):
    logits, labels = data
    table = pd.DataFrame(logits[:, [2, 0, 1]], columns=NAMES[[2, 0, 1]])
    text = pd.Series(NAMES[labels])
    for some in (slice(None), labels != 1):  # a class without a sample has its column all the same
        fitted = TemperatureScaling().fit(table[some], text[some])
        assert fitted.classes_.tolist() == ["eel", "cat", "dog"]
        plain = TemperatureScaling().fit(logits[some], labels[some])
        np.testing.assert_allclose(
            fitted.predict_proba(table)[:, [1, 2, 0]], plain.predict_proba(logits), atol=1e-14
        )


def test_names_are_kept_in_the_file(data, tmp_path):
    logits, labels = data
    table = pd.DataFrame(logits, columns=NAMES)
    fitted = UtilityPatching(steps=2, step_size=1.0, sampled=False).fit(table, NAMES[labels])
    loaded = Calibrator.load(fitted.save(tmp_path / "c.npz"))
    assert loaded.classes_.tolist() == fitted.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(loaded.predict(table), fitted.predict(table))
    with pytest.raises(InputError, match="column 0 is 'dog'"):
        loaded.predict(table[["dog", "cat", "eel"]])


def test_columns_bear_their_classes_by_a_pattern_and_are_never_taken_in_another_order(data):
    logits, labels = data
    table = pd.DataFrame(logits, columns=["p_cat", "p_dog", "p_eel"])
    turned = TemperatureScaling().fit(table[["p_eel", "p_cat", "p_dog"]], NAMES[labels])
    assert turned.classes_.tolist() == ["eel", "cat", "dog"]
    with pytest.raises(InputError, match="give the logits as a data frame whose columns are named"):
        TemperatureScaling().fit(table.rename(columns={"p_eel": "p_emu"}), NAMES[labels])
    for names in (["p_2", "p_0", "p_1"], [2, 0, 1], ["p3", "p1", "p2"]):
        numbered = pd.DataFrame(logits[:, [2, 0, 1]], columns=names)
        with pytest.raises(InputError, match="put them in the order 0 to 2"):
            TemperatureScaling().fit(numbered, labels)


def test_numbers_as_text_are_refused_where_the_orders_of_text_and_of_numbers_differ():
    labels = np.arange(120) % 12
    logits = 2.0 * np.eye(12)[labels]
    with pytest.raises(InputError, match=r"in the order of text .* 10, .* or of numbers .* 2"):
        TemperatureScaling().fit(logits, labels.astype(str))
    frame = pd.DataFrame(logits, columns=range(12)).add_prefix("")
    assert TemperatureScaling().fit(frame, labels.astype(str)).classes_[2] == "2"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["cat", "dog"] * 100, "2 names .* for 3 columns; give the logits as a data frame"),
        (["cat", "dog", "eel"] * 66, "198 labels for 200 rows"),
        (np.arange(200) % 3 + 1, "values run from 1 to 3"),
        ([[0], [1, 2]] * 100, "labels: not an array of numbers"),
    ],
)
def test_labels_that_do_not_say_which_column_are_refused(data, labels, message):
    with pytest.raises(InputError, match=message) as caught:
        TemperatureScaling().fit(data[0], labels)
    assert "\n" not in str(caught.value)
