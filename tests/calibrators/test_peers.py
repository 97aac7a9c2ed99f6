"""Calibrators of other packages: what the adapter does, with a made-up package in their place."""

from types import SimpleNamespace
from typing import Self

import numpy as np
import pytest
import torch

from tests.refusals import check_line, refuses
from utility_calibration.calibrators import peers
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.calibrators.peers import PEERS, PeerCalibration
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.errors import MissingResource

SMALL = {"n_bins": 3}


class Shares:
    """Half the row, half the classes' shares among the labels: as simple as a calibrator can be."""

    fits = 0

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def fit(self, x: np.ndarray, y: np.ndarray) -> Self:
        assert x.dtype == np.float64 and np.abs(x.sum(axis=1) - 1).max() < 1e-9
        Shares.fits += 1
        self.classes = x.shape[1]
        self.shares = np.bincount(y, minlength=self.classes) / len(y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return ((x + self.shares) / 2).astype(np.float32)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A package that has all classes of probmetrics."""
    library = SimpleNamespace(
        **{peer.name: Shares for peer in PEERS.values()},
        MulticlassOneVsRestCalibrator=lambda binary: binary,
    )
    monkeypatch.setattr(peers, "require", lambda name, install: library)
    monkeypatch.setattr(peers, "version", lambda name: "1.0")
    monkeypatch.setattr(Shares, "fits", 0)
    return library


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 4


def test_a_loaded_calibrator_fits_again_once_and_predicts_the_same_bits(
    package, points, tmp_path
) -> None:
    fitted = PeerCalibration("ensemble_temperature").fit(*points)
    expected = fitted.predict_proba(points[0])
    loaded = PeerCalibration.load(fitted.save(tmp_path / "one.npz"))
    assert Shares.fits == 1  # loading fits nothing
    np.testing.assert_array_equal(loaded.predict_proba(points[0]), expected)
    np.testing.assert_array_equal(loaded.predict_proba(points[0][:5]), expected[:5])
    assert Shares.fits == 2
    fitted.cache_predictions(torch.from_numpy(points[0]))
    loaded = PeerCalibration.load(fitted.save(tmp_path / "cached.npz"))
    np.testing.assert_array_equal(loaded.predict_proba(points[0]), expected)
    assert Shares.fits == 2
    np.testing.assert_array_equal(loaded.predict_proba(points[0][1:]), expected[1:])
    assert Shares.fits == 3  # other points: the package's object is needed


def test_the_file_holds_points_and_versions_and_no_pickle(package, points, tmp_path) -> None:
    path = PeerCalibration("histogram", SMALL).fit(*points).save(tmp_path / "one.npz")
    content = read_arrays(path, fix="")
    np.testing.assert_array_equal(content["logits_"], points[0])
    np.testing.assert_array_equal(content["labels_"], points[1])
    assert content["versions_"].tolist() == ["probmetrics 1.0"]
    assert PeerCalibration.load(path).options == SMALL
    assert isinstance(Calibrator.load(path), PeerCalibration)


def test_other_versions_than_the_fits_are_refused(package, points, tmp_path, monkeypatch) -> None:
    path = PeerCalibration("beta").fit(*points).save(tmp_path / "one.npz")
    monkeypatch.setattr(peers, "version", lambda name: "2.0")
    with refuses("beta", fix="fit and save", number="betacal 1.0"):
        PeerCalibration.load(path).predict_proba(points[0])


def test_any_absent_package_is_one_line_with_the_command() -> None:
    for given, told in (
        (("not_there.inside",), "pip install not_there"),
        (("not_there", peers.INSTALL), "requirements-peers.txt"),
    ):
        with pytest.raises(MissingResource) as caught:
            require(*given)
        check_line(str(caught.value), "not_there", told)


def test_export_and_weights_are_refused(package, points) -> None:
    fitted = PeerCalibration("beta").fit(*points)
    with refuses("beta"):
        fitted.to_module()
    with refuses("sample_weight"):
        fitted.fit(*points, np.ones(60))
