"""Votes of networks on ImageNet: the forecast by hand, and files in the public layout, in small."""

import hashlib

import numpy as np
import pytest
from hydra.utils import instantiate

from tests.pipeline.sources.conftest import refused
from utility_calibration.pipeline.sources import imagenet_votes
from utility_calibration.pipeline.sources.imagenet_votes import (
    imagenet_votes_logits,
    rank_weights,
    vote_forecast,
)

IMAGES, CLASSES = 40, 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of two networks on two images of each of 20 classes; sums and sizes are made to fit."""
    random = np.random.default_rng(0)
    labels = np.arange(IMAGES) // 2
    votes, networks = [], {}
    (tmp_path / "imagenet_votes").mkdir()
    for name in ("first", "second"):
        answers = np.array([random.permutation(CLASSES)[:5] for _ in range(IMAGES)])
        is_right = random.random(IMAGES) < 0.7
        answers[is_right, 0] = labels[is_right]
        np.save(tmp_path / "imagenet_votes" / f"{name}.npy", answers)
        votes.append(answers.astype("<i2"))
        networks[name] = hashlib.sha256(votes[-1].tobytes()).hexdigest()[:8]
    together = hashlib.sha256(np.stack(votes, axis=1).tobytes()).hexdigest()
    changed = {"NETWORKS": networks, "VOTES_SHA256": together, "SYNSETS": CLASSES}
    changed |= {"VALIDATION_IMAGES": IMAGES, "IMAGES_PER_CLASS": 2}
    for name, value in changed.items():
        monkeypatch.setattr(imagenet_votes, name, value)
    return tmp_path


def test_the_forecast_is_the_weighted_share_of_votes():
    votes = np.array([[[0, 1], [0, 2]]], dtype=np.int16)  # one image, two networks, two ranks
    forecast = vote_forecast(votes, [0.6, 0.2], classes=4)
    np.testing.assert_allclose(forecast, [[0.65, 0.15, 0.15, 0.05]], rtol=1e-6)
    np.testing.assert_array_equal(rank_weights(votes, np.array([2])), [0, 0.5])


def test_the_weights_come_from_images_that_are_not_in_the_benchmark(folder, benchmark_config):
    overrides = [f"benchmark.source.data_dir={folder}", "benchmark.source.weighing_images=10"]
    result = instantiate(benchmark_config("imagenet_votes", *overrides).source)
    left = np.sort(np.random.default_rng(0).permutation(IMAGES)[10:])
    assert result.labels.tolist() == (left // 2).tolist()
    assert result.logits.shape == (IMAGES - 10, CLASSES) and result.logits.dtype == np.float32
    np.testing.assert_allclose(np.exp(result.logits).sum(axis=1), 1, rtol=1e-6)
    assert len(result.details["origin"]["rank_weights"]) == 5


def test_other_votes_and_impossible_numbers_are_one_line(folder):
    path = folder / "imagenet_votes" / "second.npy"
    votes = np.load(path)
    for changed, told in (
        (np.roll(votes, 1), "second.npy SHA-256"),
        (votes[:-1], "second.npy [40, 5]"),
        (votes + 0.5, "second.npy [40, 5]"),
        (np.array([object()]), "second.npy"),
    ):
        np.save(path, changed, allow_pickle=True)
        refused(told, imagenet_votes_logits, data_dir=folder, weighing_images=10)
    path.write_bytes(b"no array")
    refused("second.npy delete", imagenet_votes_logits, data_dir=folder, weighing_images=10)
    path.unlink()
    told = "second.npy modestyachts/ImageNetV2 sources.real"
    refused(told, imagenet_votes_logits, data_dir=folder, weighing_images=10)
    for number in (0, IMAGES, 2.5):
        refused("weighing_images", imagenet_votes_logits, data_dir=folder, weighing_images=number)
