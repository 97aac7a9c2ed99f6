"""The folder of ready-made logits from a clone with pickles: read without running any of them."""

import hashlib
import os
import pickle

import numpy as np
import pytest
import torch

from tests.refusals import refuses
from utility_calibration.scripts.maintain import prepare_logits
from utility_calibration.scripts.maintain.pickled_arrays import read_pickled

NAME = "cifar10_resnet56"


@pytest.fixture
def pair(monkeypatch):
    """Random logits and labels, whose sum is the expected one of the only file."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(10_000, 10)).astype(np.float32)
    labels = random.integers(0, 10, 10_000)
    sha256 = hashlib.sha256(logits.tobytes() + labels.tobytes()).hexdigest()
    monkeypatch.setattr(prepare_logits, "SHA256", {NAME: sha256})
    return logits, labels


def run(tmp_path, content, protocol=4):
    path = tmp_path / "clone" / prepare_logits.pickle_of(NAME).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    prepare_logits.main([str(tmp_path / "made"), "--clone", str(tmp_path / "clone")])


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_come_back_from_every_protocol(tmp_path, pair, protocol):
    run(tmp_path, pair, protocol)
    with np.load(tmp_path / "made" / f"{NAME}.npz", allow_pickle=False) as made:
        np.testing.assert_array_equal(made["logits"], pair[0])
        np.testing.assert_array_equal(made["labels"], pair[1])
        assert (made["logits"].dtype, made["labels"].dtype) == (np.float32, np.int64)
    assert "wasscal" in (tmp_path / "made" / "README.md").read_text()


def test_tensors_and_lists_are_arrays_as_well(tmp_path, pair):
    logits, labels = pair
    for content in ([torch.tensor(logits), torch.tensor(labels)], (logits, labels.tolist())):
        made = tmp_path / "made" / f"{NAME}.npz"
        made.unlink(missing_ok=True)
        run(tmp_path, content)
        with np.load(made) as arrays:
            np.testing.assert_array_equal(arrays["logits"], logits)
            np.testing.assert_array_equal(arrays["labels"], labels)


class _Runs:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def test_a_pickle_that_runs_something_is_refused_before_it_does(tmp_path):
    path, trace = tmp_path / "evil.p", tmp_path / "trace"
    run_system = _Runs(os.system, f"touch {trace}")
    inside = np.array([run_system], dtype=object)
    for content in (run_system, (np.zeros(2), [run_system]), inside, _Runs(eval, "1"), getattr):
        path.write_bytes(pickle.dumps(content))
        with refuses(file=path):
            read_pickled(path)
    assert not trace.exists()
    path.write_bytes(pickle.dumps(np.zeros(9))[:40])
    with refuses(file=path, fix="fetch"):
        read_pickled(path)


@pytest.mark.parametrize("code", ["O", "i8", [("a", "O")]])
def test_an_array_over_bytes_of_the_file_is_never_made(tmp_path, code):
    """Of objects the bytes would be addresses, and looking at one ends the process."""
    path = tmp_path / "x.p"
    path.write_bytes(pickle.dumps(_Runs(np.ndarray, (1,), np.dtype(code), b"A" * 8), protocol=2))
    with refuses(file=path):
        read_pickled(path)
    array = np.array([1, "a"], dtype=object)
    path.write_bytes(pickle.dumps(array, protocol=2))
    with refuses(file=path):
        read_pickled(path)


def test_other_numbers_and_other_contents_are_refused(tmp_path, pair):
    logits, labels = pair
    for content in ((logits + 1, labels), (logits[:5], labels[:5]), logits, (labels, logits)):
        with refuses(file=tmp_path / "clone" / prepare_logits.pickle_of(NAME).path):
            run(tmp_path, content)
    run(tmp_path, pair)
    np.savez(tmp_path / "made" / f"{NAME}.npz", logits=logits + 1, labels=labels)
    with refuses(file=tmp_path / "made" / f"{NAME}.npz"):
        run(tmp_path, pair)


@pytest.mark.parametrize(
    "change",
    [
        lambda logits, labels: {"labels": labels},
        lambda logits, labels: {"logits": logits},
        lambda logits, labels: {"p": logits, "y": labels},
        lambda logits, labels: {"logits": logits, "labels": labels.astype(str)},
        lambda logits, labels: {"logits": logits[:, :5], "labels": labels},
        lambda logits, labels: {"logits": 1.0, "labels": 1},
    ],
)
def test_a_file_of_other_arrays_is_refused(tmp_path, pair, change):
    path = tmp_path / "made" / f"{NAME}.npz"
    path.parent.mkdir()
    np.savez(path, **change(*pair))
    with refuses(file=path, fix="delete"):
        run(tmp_path, pair)
