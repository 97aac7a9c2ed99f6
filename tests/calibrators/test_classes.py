"""Labels by name: which column is which class, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from tests.refusals import check_facts, refuses
from utility_calibration.calibrators import TemperatureScaling, UtilityPatching, VectorScaling
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics import (
    Decision,
    InputError,
    StreamingCalibration,
    TopK,
    brier_score,
)

NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 200)
    return random.normal(size=(200, 3)) + 1.5 * np.eye(3)[labels], labels


@pytest.mark.parametrize(
    "names",
    [NAMES, NAMES[[2, 0, 1]], np.array([7, 3, 5]), np.array([2.0, 0, 1])],
)
def test_classes_name_the_columns_in_any_order(data, names, tmp_path):
    logits, labels = data
    named = VectorScaling().fit(logits, names[labels], classes=names)
    plain = VectorScaling().fit(logits, labels)
    assert named.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(named.predict_proba(logits), plain.predict_proba(logits))
    np.testing.assert_array_equal(named.predict(logits), names[plain.predict(logits)])
    np.testing.assert_array_equal(named.predict(torch.from_numpy(logits)), named.predict(logits))
    assert named.score(logits, names[labels].tolist()) == plain.score(logits, labels)
    assert plain.score(logits, labels) > 0.5
    loaded = Calibrator.load(named.save(tmp_path / "named.npz"))
    np.testing.assert_array_equal(loaded.predict(logits), named.predict(logits))


def one_rule(labels, matrix, classes=None, **facts):
    """The doors of metrics and calibrators say the same of labels that nothing places."""
    lines = []
    logits = matrix.map(np.log) if isinstance(matrix, pd.DataFrame) else np.log(matrix)
    for door, values in ((TemperatureScaling().fit, logits), (brier_score, matrix)):
        with pytest.raises(InputError) as caught:
            door(values, labels, classes=classes)
        check_facts(caught.value, **facts)
        lines.append(str(caught.value))
    assert lines[0] == lines[1]


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, pd.Categorical])
def test_names_beside_columns_without_names_are_refused_by_fit_and_by_metrics(kind):
    labels = np.arange(60) % 3
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    for names in (NAMES, np.array(["2", "10", "1"])):
        text = kind(names[labels])
        one_rule(text, p, field="labels", fix="classes=")
        assert brier_score(p, text, classes=names) == brier_score(p, labels)
    one_rule(["cat", "emu"] * 30, p, NAMES, field="labels", row=1, number="emu")
    one_rule(NAMES[labels], p, ["cat", "dog"], field="classes", number="2")
    one_rule(labels, p, NAMES, field="labels", row=0, number="'0'")
    for absent in (None, np.nan, pd.NA):
        one_rule(pd.Series([absent, *NAMES[labels[1:]]]), p, field="labels", row=0)


def test_metrics_take_the_names_of_a_frames_columns_too_and_refuse_two_orders():
    labels = np.arange(60) % 3
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    frame = pd.DataFrame(p, columns=NAMES).iloc[:, [2, 0, 1]]
    assert brier_score(frame, NAMES[labels]) == pytest.approx(brier_score(p, labels))
    for other in (frame, frame.add_prefix("p_")):
        one_rule(NAMES[labels], other, NAMES, field="classes", number=other.columns[0])
    turned = pd.DataFrame(p, columns=["p_2", "p_0", "p_1"])
    one_rule(labels, turned, field="labels", fix="the order 0 to 2")


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
    with refuses("logits", number="'dog'"):
        loaded.predict(table[["dog", "cat", "eel"]])


def test_columns_are_never_taken_in_another_order_than_their_names_say(data):
    logits, labels = data
    table = pd.DataFrame(logits, columns=["p_cat", "p_dog", "p_eel"])
    with refuses("labels", fix="classes=", number="p_eel"):
        TemperatureScaling().fit(table, NAMES[labels])
    for names in (["p_2", "p_0", "p_1"], [2, 0, 1], ["p3", "p1", "p2"], ["1.0", "2.0", "0.0"]):
        numbered = pd.DataFrame(logits[:, [2, 0, 1]], columns=names)
        p = pd.DataFrame(np.full((200, 3), 1 / 3), columns=names)
        for call in (
            lambda of=numbered: TemperatureScaling().fit(of, labels),
            lambda of=p: StreamingCalibration(TopK(), 3).update(of, labels),
            lambda of=p: Decision(np.eye(3)).mean_loss(of, labels),
            lambda of=p: brier_score(pa.Table.from_pandas(of.rename(columns=str)), labels),
        ):
            with refuses("labels", fix="the order 0 to 2"):
                call()


def test_numbers_as_text_are_names():
    labels = np.arange(120) % 12
    logits = 2.0 * np.eye(12)[labels]
    frame = pd.DataFrame(logits, columns=range(12)).add_prefix("")
    assert TemperatureScaling().fit(frame, labels.astype(str)).classes_[2] == "2"
