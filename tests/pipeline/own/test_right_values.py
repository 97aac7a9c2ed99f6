"""Files that were read wrongly or refused with advice that led astray: the right numbers.

Expected numbers are plain NumPy on the points that the file was made of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import read
from tests.refusals import refuses
from utility_calibration.pipeline.own.points import by_parts
from utility_calibration.pipeline.own.reading import parts
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.pipeline.precision import in_float32

N = 400
rng = np.random.default_rng(3)
Z = 2 * rng.normal(size=(N, 4))
P = softmax(Z, axis=1)
Y = (P.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
ROWS = np.arange(N)
OFFSETS = rng.choice([0.0, 1e8, -1e8], size=(N, 1))
IMAGE = (4, 10, 10)


def scores_of(p: Any, y: Any) -> tuple[float, float, float]:
    """Accuracy, Brier score and NLL with the floor."""
    own = p[np.arange(len(y)), y]
    brier = np.square(p - np.eye(p.shape[1])[y]).sum(axis=1).mean()
    accuracy = float((p.argmax(axis=1) == y).mean())
    return accuracy, float(brier), float(-np.log(np.maximum(own, 1e-12)).mean())


def check(result: Any, p: Any = P, y: Any = Y) -> None:
    """The reading gives the scores of these probabilities and labels."""
    got = scores_of(softmax(np.asarray(result.logits, float), axis=1), result.labels)
    np.testing.assert_allclose(got, scores_of(p, y), rtol=2e-6)


def table(values: Any, names: str = "p_{}", **more: Any) -> pd.DataFrame:
    columns = [names.format(k) for k in range(values.shape[1])]
    return pd.DataFrame(values, columns=columns).assign(label=Y[: len(values)], **more)


def images(values: Any) -> Any:
    """[n, C] as [B, C, H, W]."""
    return np.moveaxis(values.reshape(*IMAGE, -1), -1, 1)


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "a.parquet", "a.jsonl"])
def test_a_row_may_have_any_common_offset(tmp_path, name):
    shifted = Z + OFFSETS
    content: Any = {"logits": shifted, "labels": Y} if name == "a.npz" else table(shifted, "z_{}")
    check(read(tmp_path / name, content))
    assert np.abs(softmax(in_float32(shifted).astype(float), axis=1) - P).max() < 1e-6


def test_a_stream_and_a_whole_file_read_an_offset_alike(tmp_path):
    rows = dict(table(Z + OFFSETS, "z_{}").items())
    layout, _notes = by_parts.decided_from(tmp_path / "a.csv", rows, FileOptions())
    points = by_parts.points_of(rows, FileOptions(), layout, [])
    assert np.abs(softmax(points.logits.astype(float), axis=1) - P).max() < 1e-6


def test_digits_that_were_lost_before_are_told(tmp_path):
    content = {"logits": (Z + 1e8).astype(np.float32), "labels": Y}
    note, _on_ties = read(tmp_path / "a", content).details["warnings"]
    assert note.startswith("WARNING") and "step of 8" in note
    for kept in (Z.astype(np.float16), 100 * Z.astype(np.float32)):
        assert not read(tmp_path / "a", {"logits": kept, "labels": Y}).details["warnings"]


@pytest.mark.parametrize("form", ["npz", "columns", "objects"])
def test_zeros_stay_zeros_and_are_counted(tmp_path, form):
    p = np.where(P < 0.03, 0, P)
    p = p / p.sum(axis=1, keepdims=True)
    count = int((p[ROWS, Y] == 0).sum())
    content: Any = {"probabilities": p, "labels": Y}
    name = "a.npz"
    if form == "columns":
        name, content = "a.csv", table(p)
    elif form == "objects":
        objects = [{f"c{k}": float(v) for k, v in enumerate(row) if v > 0} for row in p]
        name, content = "a.jsonl", pd.DataFrame({"probs": objects, "label": [f"c{k}" for k in Y]})
    result = read(tmp_path / name, content)
    check(result, p)
    assert count > 1
    assert int(np.isneginf(result.logits[ROWS, result.labels]).sum()) == count
    assert any(f"probability 0 in {count} cases" in note for note in result.details["warnings"])


def test_a_probability_below_the_floor_is_no_zero(tmp_path):
    p = softmax(30 * Z, axis=1)
    result = read(tmp_path / "a", {"probabilities": p, "labels": Y})
    assert (p < 1e-12).any() and p.min() > 0
    assert np.isfinite(result.logits).all()
    np.testing.assert_allclose(result.logits, np.log(p), rtol=1e-6)


@pytest.mark.parametrize("kind", ["predictions", "scores", "probs"])
def test_values_overrules_names(tmp_path, kind):
    check(read(tmp_path / "a", {kind: P, "labels": Y}, values="probabilities"))
    check(read(tmp_path / "a", {kind: Z, "labels": Y}, values="logits"))


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["p_0", "p_1", "p_2", "p_3", "p_unknown"], ["p_*", "p_0,p_1,p_2,p_3,p_unknown"]),
        (["0", "1", "2", "3", "other"], ["0,1,2,3,other"]),
        (["prob 3", "none of these", "prob 2", "prob 1", "prob 0"], []),
    ],
)
def test_a_class_to_reject_stands_beside_numbers(tmp_path, names, classes):
    numbers = [name[-1] for name in names]
    p = np.full((N, 5), 0.2)
    for place, number in enumerate(numbers):
        if number.isdecimal():
            p[:, place] = 0.8 * P[:, int(number)]
    content = pd.DataFrame(p, columns=names).assign(label=Y)
    for options in ({}, *({"classes": text} for text in classes)):
        result = read(tmp_path / "a.csv", content, **options)
        check(result, np.c_[0.8 * P, np.full(N, 0.2)])
        assert result.details["class_names"][:4] == ["0", "1", "2", "3"]


def test_a_pattern_does_not_make_a_class_of_a_p_value(tmp_path):
    content = table(Z).assign(p_value=rng.random(N))
    with refuses("--classes"):
        read(tmp_path / "a.csv", content, classes="p_*")


@pytest.mark.parametrize("values", [Z, P])
def test_the_classes_of_images_are_the_second_axis_or_the_last(tmp_path, values):
    kind = "logits" if values is Z else "probabilities"
    y = Y.reshape(IMAGE)
    for matrix in (images(values), values.reshape(*IMAGE, 4)):
        check(read(tmp_path / "a", {kind: matrix, "labels": y}))
    sequences = np.moveaxis(values.reshape(20, 20, 4), 2, 1)
    content = {
        kind: sequences,
        "labels": Y.reshape(20, 20),
        "clusters": np.arange(400).reshape(20, 20),
    }
    assert len(read(tmp_path / "a", content).clusters) == N
    both = {kind: values[:64].reshape(4, 4, 4, 4), "labels": Y[:64].reshape(4, 4, 4)}
    with refuses(kind, fix="[n, C]"):
        read(tmp_path / "a", both)


@pytest.mark.parametrize("options", [{}, {"ignore": "split"}])
def test_training_rows_are_left_out(tmp_path, options):
    words = np.array(["Train", "calibration", "test", "training "])[ROWS % 4]
    kept = np.isin(ROWS % 4, (1, 2))
    arrays = {"logits": Z, "labels": Y, "split": words}
    for name, content in (("a.npz", arrays), ("a.csv", table(Z, "z_{}", split=words))):
        result = read(tmp_path / name, content, **options)
        check(result, P[kept], Y[kept])
        assert any(f"{N // 2} cases" in note for note in result.details["warnings"])
        assert (result.tested is None) == bool(options)
    with refuses("split"):
        read(tmp_path / "b", {**arrays, "split": np.full(N, "train")})


def test_a_stream_leaves_training_rows_out(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS", 50)
    words = np.where(ROWS < 120, "train", "test")
    path = tmp_path / "a.csv"
    table(Z, "z_{}", split=words).to_csv(path, index=False)
    file_options, notes = FileOptions(ignore="split"), by_parts.Notes()
    first = by_parts.first_rows_of([path], file_options)
    read_in_parts = list(by_parts.labelled(path, file_options, first.layout, notes))
    assert sum(len(points.labels) for points in read_in_parts) == N - 120
    assert [note.partition(":")[0] for note in notes.values()] == ["a.csv, rows 0 to 49"]
    (tmp_path / "only.csv").write_text("\n".join(path.read_text().splitlines()[:100]))
    assert by_parts.first_rows_of([tmp_path / "only.csv", path], file_options).notes == first.notes
    with refuses("split", file=tmp_path / "only.csv"):
        by_parts.first_rows_of([tmp_path / "only.csv"], file_options)


@pytest.mark.parametrize("empty", [None, [], [None] * 4])
def test_rows_without_an_answer_are_to_be_left_out(tmp_path, empty):
    answers = [empty if row % 40 == 5 else Z[row].tolist() for row in ROWS]
    with refuses(row=5, column="logits", fix="leave these 10 cases out"):
        read(tmp_path / "a.jsonl", pd.DataFrame({"logits": answers, "label": Y}))
    gaps = table(np.where((ROWS % 40 == 5)[:, None], np.nan, Z))
    with refuses(row=5, fix="leave these 10 cases out"):
        read(tmp_path / "a.csv", gaps)


def note_of(result: Any, word: str) -> bool:
    return any(word in note for note in result.details["warnings"])


def test_losses_are_told_by_their_smallest_value(tmp_path):
    result = read(tmp_path / "a", {"logits": 30 - Z, "labels": Y})
    (note,) = result.details["warnings"]
    share = 100 * float((Z.argmax(axis=1) == Y).mean())
    assert f"{share:.1f} %" in note and "losses" in note
    of_two = {"logits": -Z[:, :2], "labels": (Z[:, 1] > Z[:, 0]) * 1}
    assert note_of(read(tmp_path / "a", of_two), "losses")
    for y in (3 - Y, (Y + 1) % 4):  # columns in another order
        assert not note_of(read(tmp_path / "a", {"logits": Z, "labels": y}), "losses")


def test_a_softmax_of_probabilities_is_told(tmp_path):
    twice = softmax(P, axis=1)
    honest = 0.3 + 0.2 * P[:, :1]
    for kind in (np.float64, np.float32):
        content = {"probabilities": twice.astype(kind), "labels": Y}
        assert note_of(read(tmp_path / "a", content), "softmax")
    assert not note_of(read(tmp_path / "a", {"probabilities": P, "labels": Y}), "softmax")
    of_two = {"probabilities": np.c_[1 - honest, honest], "labels": (Y == 0) * 1}
    assert not note_of(read(tmp_path / "a", of_two), "softmax")


def test_cumulative_values_divided_by_their_sum_are_told(tmp_path):
    sums = P.cumsum(axis=1)
    divided = sums / sums.sum(axis=1, keepdims=True)
    assert note_of(read(tmp_path / "a.csv", table(divided)), "cumulative")


@pytest.mark.parametrize("name", ["patient", "id", "Patient ID"])
def test_a_risk_beside_the_name_of_a_patient_is_enough(tmp_path, name):
    y = (rng.random(N) < P[:, 1]) * 1
    content = pd.DataFrame({name: ROWS, "risk": P[:, 1], "outcome": y})
    result = read(tmp_path / "a.csv", content)
    check(result, np.c_[1 - P[:, 1], P[:, 1]], y)
    assert note_of(result, name)
    with refuses("columns", fix="--classes risk"):
        read(tmp_path / "a.csv", content.assign(age=ROWS % 90))


def test_labels_are_not_offered_as_clusters(tmp_path):
    content = table(P).rename(columns={"label": "option_id"})
    assert not note_of(read(tmp_path / "a.csv", content, labels="option_id"), "--clusters")
    content["page_id"] = ROWS // 2
    assert note_of(read(tmp_path / "a.csv", content, labels="option_id"), "--clusters page_id")
