"""What `score` refuses before any fit; no folder is left."""

import pytest

from tests.pipeline.conftest import write_example
from tests.refusals import fails, refuses
from tests.scripts.conftest import quick
from utility_calibration.metrics.errors import MissingResource
from utility_calibration.pipeline.own.request import job


def test_a_method_whose_package_is_not_there_says_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "find_spec", lambda name: None if name == "probmetrics" else name)
    path = write_example(tmp_path / "x.npz", n=60)
    with fails(MissingResource, "histogram", "probmetrics", "requirements-peers.txt"):
        quick(path, tmp_path / "out", "--methods", "temperature", "histogram", "beta")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("how", ["name", "link", "hard link"])
def test_points_cannot_test_what_they_calibrate(tmp_path, how):
    path = write_example(tmp_path / "x.npz", n=60)
    second = path if how == "name" else tmp_path / "y.npz"
    if how == "link":
        second.symlink_to(path)
    elif how == "hard link":
        second.hardlink_to(path)
    with refuses("--test", fix="leave it out"):
        quick(path, tmp_path / "out", "--test", str(second))
    assert not (tmp_path / "out").exists()
