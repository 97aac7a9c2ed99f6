"""paths.precomputed: a folder with <precomputed>.npz, taken instead of computing."""

import pytest

from pipeline.harness.artifacts import sha256_of
from pipeline.harness.cached_logits import find_logits
from pipeline.harness.command import UnitsFailed
from pipeline.logits import run_logits
from pipeline.sources.result import MissingResource
from tests.pipeline.conftest import times, write_example


@pytest.fixture
def folder(tmp_path):
    write_example(tmp_path / "ready/digits.npz", n=90, classes=10, seed=3)
    (tmp_path / "ready/README.md").write_text("# Title\n\nOutputs of a model.\nMore.\n")
    return tmp_path / "ready"


def requested(request_tiny, *overrides):
    """Digits, whose own source needs seconds, in the temporary folders of `tiny`."""
    settings = request_tiny("split=0").settings("file")
    return [
        {**settings, "benchmark": {**settings["benchmark"], "precomputed": "digits"}}
        | {"paths": {**settings["paths"], **dict(overrides)}}
    ]


def test_they_are_taken_with_checksum_and_origin(request_tiny, tmp_path, folder):
    settings = requested(request_tiny, ("precomputed", str(folder)))
    run_logits(settings)
    record = find_logits(settings[0]).details
    assert record["n"] == 90
    assert record["origin"]["file"] == str(folder / "digits.npz")
    assert record["origin"]["sha256"] == sha256_of(folder / "digits.npz")
    assert record["origin"]["readme_says"] == "Outputs of a model."


def test_they_stay_when_the_folder_is_not_named_again(request_tiny, tmp_path, folder):
    run_logits(requested(request_tiny, ("precomputed", str(folder))))
    before = times(tmp_path / "data")
    run_logits(requested(request_tiny))
    assert times(tmp_path / "data").keys() == before.keys()
    cached = tmp_path / "data/logits/tiny.npz"
    assert cached.stat().st_mtime_ns == before[cached]


def test_the_environment_variable_names_a_folder_too(request_tiny, tmp_path, folder, monkeypatch):
    monkeypatch.setenv("PRECOMPUTED", str(folder))
    settings = requested(request_tiny)
    run_logits(settings)
    assert find_logits(settings[0]).n == 90


def test_a_folder_without_the_file_computes(request_tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    settings = requested(request_tiny, ("precomputed", str(tmp_path / "empty")))
    run_logits(settings)
    assert find_logits(settings[0]).n == 200


def test_a_truncated_file_is_named(request_tiny, tmp_path, folder):
    path = folder / "digits.npz"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UnitsFailed, match=r"digits\.npz: not readable .* truncated or damaged"):
        run_logits(requested(request_tiny, ("precomputed", str(folder))))
    assert not (tmp_path / "data/logits/tiny.npz").exists()


def test_a_folder_that_does_not_exist_is_named(request_tiny, tmp_path):
    with pytest.raises(MissingResource, match="no such folder; correct or unset it"):
        run_logits(requested(request_tiny, ("precomputed", str(tmp_path / "none"))))
