"""Calibrators of other packages: what the adapter does, with a made-up package in their place."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from calibrators.base import Calibrator
from metrics.archive import read_arrays
from metrics.validation import InputError
from pipeline.sources import peers
from pipeline.sources.peers import PEERS, PeerCalibration
from pipeline.sources.result import MissingResource

SMALL = {"n_bins": 3}


class Shares:
    """Half the row, half the classes' shares among the labels: as simple as a calibrator can be."""

    fits = 0

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def fit(self, x: np.ndarray, y: np.ndarray) -> Shares:
        assert x.dtype == np.float64 and np.abs(x.sum(axis=1) - 1).max() < 1e-9
        warnings.filterwarnings("ignore")  # as betacal does
        Shares.fits += 1
        self.classes = x.shape[1]
        self.shares = np.bincount(y, minlength=self.classes) / len(y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return ((x + self.shares) / 2).astype(np.float32)


class EachClass(Shares):
    def fit(self, x: np.ndarray, y: np.ndarray) -> Shares:
        if len(np.unique(y)) < x.shape[1]:
            raise ValueError("needs samples of both classes\nand more words")
        return super().fit(x, y)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A package that has all classes of probmetrics; one-vs-rest is told by `.inner`."""
    library = SimpleNamespace(
        **{peer.name: Shares for peer in PEERS.values()},
        MulticlassOneVsRestCalibrator=lambda one: setattr(one, "inner", True) or one,
    )
    library.BetacalCalibrator = EachClass
    monkeypatch.setattr(peers, "require", lambda name: library)
    monkeypatch.setattr(peers, "version", lambda name: "1.0")
    monkeypatch.setattr(Shares, "fits", 0)
    return library


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 4


@pytest.mark.parametrize("method", PEERS)
def test_a_loaded_calibrator_fits_again_once_and_predicts_the_same_bits(
    method, package, points, tmp_path
) -> None:
    fitted = PeerCalibration(method).fit(*points)
    expected = fitted.predict_proba(points[0])
    loaded = PeerCalibration.load(fitted.save(tmp_path / "one.npz"))
    assert Shares.fits == 1  # loading fits nothing
    np.testing.assert_array_equal(loaded.predict_proba(points[0]), expected)
    np.testing.assert_array_equal(loaded.predict_proba(points[0][:5]), expected[:5])
    assert Shares.fits == 2
    again = loaded.save(tmp_path / "two.npz")
    assert again.read_bytes() == (tmp_path / "one.npz").read_bytes()


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
    with pytest.raises(InputError, match=r"fitted with probmetrics 1\.0, betacal 1\.0.*is prob"):
        PeerCalibration.load(path).predict_proba(points[0])


def test_rows_in_single_precision_come_back_summing_to_one(package, points) -> None:
    p = PeerCalibration("structured_vector").fit(*points).predict_proba(torch.tensor(points[0]))
    assert p.dtype == torch.float64
    assert (p.sum(dim=1) - 1).abs().max() < 1e-15


def test_methods_for_two_classes_are_fitted_one_vs_rest(package, points) -> None:
    told = {m: hasattr(PeerCalibration(m).fit(*points)._foreign, "inner") for m in PEERS}
    assert [method for method in PEERS if told[method]] == ["beta", "venn_abers", "histogram"]


def test_a_fit_leaves_the_filters_of_warnings_alone(package, points) -> None:
    before = list(warnings.filters)
    PeerCalibration("beta").fit(*points).predict_proba(points[0])
    assert warnings.filters == before


def test_classes_without_samples_are_named_where_a_method_needs_them(package, points) -> None:
    logits, labels = points
    message = r"^labels: beta cannot be fitted; classes without a sample: 3 \(needs samples of both"
    with pytest.raises(InputError, match=message) as caught:
        PeerCalibration("beta").fit(logits, labels % 3)
    assert "\n" not in str(caught.value)
    p = PeerCalibration("histogram").fit(logits, labels % 3).predict_proba(logits)
    assert p.shape == logits.shape


def test_an_absent_package_is_named_with_the_command_that_installs_it(points, monkeypatch) -> None:
    def absent(name: str) -> Any:
        raise MissingResource(f"the package {name} is not installed")

    monkeypatch.setattr(peers, "require", absent)
    with pytest.raises(MissingResource, match=r"^beta: the package probmetrics .*-peers\.txt"):
        PeerCalibration("beta").fit(*points)


def test_export_weights_and_other_columns_are_refused(package, points) -> None:
    fitted = PeerCalibration("beta").fit(*points)
    with pytest.raises(InputError, match="beta: a calibrator of another package cannot be export"):
        fitted.to_module()
    with pytest.raises(InputError, match="sample_weight: PeerCalibration has no weighted form"):
        fitted.fit(*points, np.ones(60))
    with pytest.raises(InputError, match="logits: 3 columns, but the PeerCalibration was fitted"):
        fitted.predict_proba(points[0][:, :3])
