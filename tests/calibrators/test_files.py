"""Files are whole or not there, and saved calibrators come back or are refused in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.special

from calibrators import (
    Calibrator,
    DirichletCalibration,
    LogitShiftPatching,
    TemperatureScaling,
    VectorScaling,
)
from calibrators.files import STALE, atomic_path, read_archive, write_archive
from metrics.validation import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def old(tmp_path) -> Path:
    path = tmp_path / "x.json"
    path.write_text("old")
    return path


def test_failed_write_keeps_the_old_file_and_leaves_nothing(old):
    with pytest.raises(KeyboardInterrupt), atomic_path(old) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("name", ["x.json", "[a]*.npz", "no suffix"])
@pytest.mark.parametrize("nested", [False, True])
def test_what_a_killed_write_left_goes_once_nobody_can_be_writing_it(name, nested, tmp_path):
    """A stage gives a calibrator's `save` a temporary name, beside which that makes its own."""
    path, left = tmp_path / name, list[Path]()
    with atomic_path(path) as outer:
        with atomic_path(outer if nested else path) as inner:
            left += {outer, inner} if nested else {inner}
            inner.write_text("half")
        outer.write_text("whole")
    for leftover in left:
        leftover.write_text("half")
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
    assert set(tmp_path.iterdir()) == {path, *left}  # may still be written
    for leftover in left:
        os.utime(leftover, (0, time.time() - 2 * STALE))
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
    assert list(tmp_path.iterdir()) == [path]


def test_the_writer_is_there_without_torch_or_numpy():
    """The stages' --help and `pipeline.status` are to do without what takes a second to load."""
    program = (
        "import sys, calibrators.files as _; print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.fixture
def saved(made_up, tmp_path):
    return VectorScaling().fit(*made_up()).save(tmp_path / "vector.npz")


def refused(path, kind=Calibrator):
    with pytest.raises(InputError) as caught:
        kind.load(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


def test_a_missing_file(tmp_path):
    assert "no such file" in refused(tmp_path / "nothing.npz")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    assert re.search("not (readable as|an) npz.*; fit and save it again", refused(saved))


@pytest.mark.parametrize("seed", range(5))
def test_flipped_bytes_never_give_another_calibrator(saved, seed, made_up):
    expected = Calibrator.load(saved).predict_proba(made_up()[0])
    content = bytearray(saved.read_bytes())
    for place in np.random.default_rng(seed).integers(0, len(content), 3):
        content[place] ^= 0x55
    saved.write_bytes(bytes(content))
    try:
        loaded = Calibrator.load(saved)
    except InputError as error:
        assert "\n" not in str(error)
    else:  # the bytes that changed are ones that zip readers skip, such as dates
        np.testing.assert_array_equal(loaded.predict_proba(made_up()[0]), expected)


def test_another_method(saved):
    message = refused(saved, TemperatureScaling)
    assert "holds a fitted VectorScaling, expected TemperatureScaling" in message


def written_as(path, version):
    """The file at `path` as a release wrote it that knew format `version`; None: did not say."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files if name != "format"}
    np.savez(path, **content, **({} if version is None else {"format": version}))


def test_a_file_without_a_format_is_read_and_a_newer_one_refused(saved, made_up):
    expected = Calibrator.load(saved).predict_proba(made_up()[0])
    written_as(saved, None)
    np.testing.assert_array_equal(Calibrator.load(saved).predict_proba(made_up()[0]), expected)
    written_as(saved, 99)
    assert "format 99 of a newer release, this one reads up to 1; update" in refused(saved)
    written_as(saved, "one")
    assert "damaged format number" in refused(saved)


@pytest.mark.parametrize("kind", ["dirichlet", "logit_shift"])
def test_an_old_dirichlet_map_acts_on_centred_log_probabilities(kind, made_up, tmp_path):
    logits, labels = made_up()
    if kind == "dirichlet":
        fitted = DirichletCalibration(odir=1.0, l2=1.0).fit(logits, labels)
    else:
        fitted = LogitShiftPatching(start="dirichlet", steps=0).fit(logits, labels)
    path = fitted.save(tmp_path / "old.npz")
    written_as(path, None)
    matrix = fitted.matrix_ if kind == "dirichlet" else fitted.start_matrix_
    intercept = fitted.intercept_ if kind == "dirichlet" else fitted.start_intercept_
    centred = logits - logits.mean(axis=1, keepdims=True)
    expected = scipy.special.softmax(centred @ matrix.T + intercept, axis=1)
    np.testing.assert_allclose(Calibrator.load(path).predict_proba(logits), expected, rtol=1e-6)


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "data.npz", logits=np.zeros((2, 2)))
    assert "not a saved calibrator, it lacks" in refused(tmp_path / "data.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    assert "not an npz; fit and save it again" in refused(tmp_path / "array.npy")
    (tmp_path / "text.npz").write_text("hello\nworld")
    refused(tmp_path / "text.npz")
    np.savez(tmp_path / "pickled.npz", calibrator=np.array([object()]))
    refused(tmp_path / "pickled.npz")


def test_fitted_values_replace_no_method(saved):
    kind, parameters, fitted, _ = read_archive(saved)
    arrays = {name: np.asarray(value) for name, value in fitted.items()}
    write_archive(saved, kind, parameters, {**arrays, "predict_proba": np.zeros(3)})
    assert "'predict_proba' is no fitted value" in refused(saved)


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_parameters_that_are_no_json(saved, text):
    with np.load(saved) as archive:
        content = {name: archive[name] for name in archive.files}
    np.savez(saved, **{**content, "params": np.asarray(text)})
    assert "damaged parameters" in refused(saved)


def test_classes_that_contradict_their_number(saved):
    kind, parameters, fitted, _ = read_archive(saved)
    arrays = {name: np.asarray(value) for name, value in fitted.items()}
    write_archive(saved, kind, parameters, {**arrays, "n_features_in_": np.asarray(2)})
    assert "classes_ and n_features_in_ differ" in refused(saved)


def test_parameters_of_another_version(saved):
    kind, parameters, fitted, _ = read_archive(saved)
    arrays = {name: np.asarray(value) for name, value in fitted.items()}
    write_archive(saved, kind, {**parameters, "gone": 1}, arrays)
    assert "parameters of another version" in refused(saved)


def test_parameters_that_json_cannot_hold_are_named(made_up, tmp_path):
    fitted = VectorScaling(max_iterations=np.int64(300)).fit(*made_up())
    assert VectorScaling.load(fitted.save(tmp_path / "good.npz")).max_iterations == 300
    fitted.set_params(l2=lambda: 1.0)
    with pytest.raises(InputError, match="l2: a function cannot be stored"):
        fitted.save(tmp_path / "bad.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["good.npz"]


def test_python_objects_are_not_stored(tmp_path):
    fitted = {"names_": np.array(["a", None], dtype=object)}
    with pytest.raises(InputError, match=r"names_: .* is not an array of numbers"):
        write_archive(tmp_path / "c.npz", "Uncalibrated", {}, fitted)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_earlier_file_and_nothing_else(
    saved, fault, made_up, monkeypatch
):
    before = saved.read_bytes()

    def half(stream, **arrays):
        stream.write(before[: len(before) // 2])
        raise fault

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises(type(fault)):
        TemperatureScaling().fit(*made_up()).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
