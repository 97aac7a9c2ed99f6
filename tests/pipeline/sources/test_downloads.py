"""What is nowhere and cannot be fetched is one kind of error; what was fetched is checked."""

import hashlib

import pytest
import torch

from tests.pipeline.sources.conftest import COMMIT
from tests.refusals import refuses
from utility_calibration.pipeline.sources import cifar, hub, similarity
from utility_calibration.pipeline.sources.downloads import check_digest, download


def checkpoint(folder):
    cifar.load_network("cifar10", "repvgg_a0")


def images(folder):
    cifar._test_images("cifar100", folder, download=True)


def model(folder):
    hub.hub_files("somebody/model", "model", ["*.json"], "sources.checkpoints=<folder>", COMMIT)


def vectors(folder):
    similarity._downloaded("word2vec-google-news-300")


@pytest.mark.parametrize(
    ("fetch", "url", "fix"),
    [
        (checkpoint, "releases/download/repvgg/cifar10_repvgg_a0-ef08a50e.pt", "source.checkpoint"),
        (images, "cifar-100-python.tar.gz", "source.data_dir"),
        (model, "https://huggingface.co/somebody/model", "sources.checkpoints"),
        (vectors, "gensim-data/releases/download/word2vec-google", "sources.word_vectors"),
    ],
)
def test_every_failed_download_names_its_address_and_the_setting(
    fetch, url, fix, tmp_path, monkeypatch, hub_cache
):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch_hub"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two requests
    with refuses(fix=fix, number=url):
        fetch(tmp_path)


def test_a_download_that_ends_early_leaves_no_file(tmp_path):
    path = tmp_path / "folder" / "file"
    with refuses(file=path, number="file:///nowhere/at/all"):
        download("file:///nowhere/at/all", path, "put it there")
    assert not path.exists()


@pytest.mark.parametrize("kind", [hashlib.md5, hashlib.sha1, hashlib.sha256])
def test_a_digest_is_compared_whole_or_by_its_first_digits(kind):
    digest, other = kind(b"right").hexdigest(), kind(b"wrong").hexdigest()
    for expected in (digest, digest[:8], digest.upper()):
        check_digest("file", digest, expected, "fetch it again")
    for expected in (other, other[:8]):
        with refuses(file="file", fix="fetch it again", number=expected):
            check_digest("file", digest, expected, "fetch it again")
