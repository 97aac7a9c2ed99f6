"""An npz in which two arrays could be meant, names for its classes, and groups."""

from __future__ import annotations

import numpy as np
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5], [0.0, 0.0, 3.0]])
LABELS = np.array([0, 1, 2])
P = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def read(tmp_path, values="auto", **arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    return file_logits(path=tmp_path / "x.npz", values=values)


def refused(tmp_path, **arrays) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, **arrays)
    line = str(caught.value)
    assert line.startswith(f"{tmp_path / 'x.npz'}: ") and line.isprintable(), line
    return line


def test_labels_and_another_label(tmp_path):
    assert "`labels` and `label` differ" in refused(
        tmp_path, logits=LOGITS, labels=LABELS, label=LABELS[::-1]
    )
    result = read(tmp_path, logits=LOGITS, labels=LABELS, label=LABELS)
    assert result.labels.tolist() == [0, 1, 2]
    assert read(tmp_path, logits=LOGITS, label=LABELS).labels.tolist() == [0, 1, 2]


def test_weights_are_refused_instead_of_passed_over(tmp_path):
    arrays = {"logits": LOGITS, "labels": LABELS, "weight": np.ones(3)}
    assert "weight: points have no weights here" in refused(tmp_path, **arrays)


def test_probabilities_of_other_logits(tmp_path):
    both = {"logits": LOGITS, "probabilities": P[::-1], "labels": LABELS}
    assert "are not the softmax of `logits`" in refused(tmp_path, **both)
    assert read(tmp_path, "logits", **both).logits[0, 0] == 2
    assert np.argmax(read(tmp_path, "probabilities", **both).logits[0]) == 2
    assert read(tmp_path, **{**both, "probabilities": P}).logits[0, 0] == 2


def test_class_names_are_kept_and_give_labels_their_meaning(tmp_path):
    names = np.array(["emu", "cat", "élan"])
    result = read(tmp_path, logits=LOGITS, labels=LABELS, class_names=names)
    assert result.details["class_names"] == names.tolist()
    by_name = read(tmp_path, logits=LOGITS, labels=names, class_names=names)
    assert by_name.labels.tolist() == [0, 1, 2]
    as_bytes = np.char.encode(names, "utf-8")
    encoded = read(tmp_path, logits=LOGITS, labels=as_bytes, class_names=as_bytes)
    assert encoded.details["class_names"] == names.tolist()


@pytest.mark.parametrize("names", [["a", "b"], ["a", "a", "b"], ["a", "", "b"], ["a", "b", "\x1b"]])
def test_bad_class_names(tmp_path, names):
    assert "class_names" in refused(
        tmp_path, logits=LOGITS, labels=LABELS, class_names=np.array(names)
    )


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_probabilities_of_the_second_of_two_classes(tmp_path, shape):
    p = np.array([0.1, 0.75, 1.0]).reshape(shape)
    result = read(tmp_path, probabilities=p, labels=np.array([0, 1, 1]))
    np.testing.assert_allclose(np.exp(result.logits[:, 1]), p.ravel(), rtol=1e-6)
    np.testing.assert_allclose(np.exp(result.logits).sum(axis=1), 1, rtol=1e-6)
    names = np.array(["no", "yes"])
    named = read(tmp_path, probabilities=p, labels=names[[0, 1, 1]], class_names=names)
    assert named.labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "factor", [1 + 9e-4, 1 - 9e-4, np.array([[1.00002, 1, 1]]).T], ids=["more", "less", "one row"]
)
def test_probabilities_off_by_rounding_are_renormalised_with_a_note(tmp_path, factor):
    rows = P * factor
    result = read(tmp_path, probabilities=rows, labels=LABELS)
    softmax = np.exp(result.logits) / np.exp(result.logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax, P, rtol=1e-6)
    assert "renormalised" in result.details["warnings"][0]
    assert read(tmp_path, probabilities=P, labels=LABELS).details["warnings"] == []


def test_groups(tmp_path):
    result = read(tmp_path, logits=LOGITS, labels=LABELS, groups=np.array([3, 3, 4]))
    assert result.groups.tolist() == ["3", "3", "4"]
    assert "groups: shape [2]" in refused(
        tmp_path, logits=LOGITS, labels=LABELS, groups=np.array(["a", "b"])
    )
    assert "groups: none in row 1" in refused(
        tmp_path, logits=LOGITS, labels=LABELS, groups=np.array([0, np.nan, 1])
    )


def test_groups_by_another_name(tmp_path):
    np.savez(tmp_path / "x.npz", logits=LOGITS, labels=LABELS, site=np.array(["a", "b", "a"]))
    result = file_logits(path=tmp_path / "x.npz", groups="site")
    assert result.groups.tolist() == ["a", "b", "a"]
    for wrong in ("sites", "groups", "labels"):
        with pytest.raises(InputError, match=f"no array `{wrong}` for groups.*it holds .*site"):
            file_logits(path=tmp_path / "x.npz", groups=wrong)
