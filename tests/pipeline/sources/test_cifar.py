"""CIFAR: real checkpoint, hand-made archives in torchvision's layout, no network."""

import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.utils import instantiate

from tests.pipeline.sources.conftest import flip_a_byte, refused
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.scoring.class_names import CIFAR100
from utility_calibration.pipeline.sources.cifar import NETWORKS, cifar_logits, load_network

RESNET56 = "cifar100_resnet56-f2eff4c8.pt"
IMAGES = 12


@pytest.fixture
def checkpoint(shared_dir):
    return shared_dir / "checkpoints" / RESNET56


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """A folder with the official archive in small: 12 test images, MD5 sums made to fit."""
    kind = require("torchvision.datasets").CIFAR100
    folder = tmp_path / "cifar"
    folder.mkdir()
    random = np.random.default_rng(0)

    def rows(count):
        pixels = random.integers(0, 256, (count, 3072), dtype=np.uint8)
        return {"data": pixels, "fine_labels": random.integers(0, 100, count).tolist()}

    files = {name: rows(2) for name, _ in kind.train_list}
    files[kind.test_list[0][0]] = rows(IMAGES)
    files[kind.meta["filename"]] = {kind.meta["key"]: list(CIFAR100)}
    contents = {name: pickle.dumps(content) for name, content in files.items()}
    with tarfile.open(folder / kind.filename, "w:gz") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{kind.base_folder}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    sums = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    for attribute in ("train_list", "test_list"):
        listed = [[name, sums[name]] for name, _ in getattr(kind, attribute)]
        monkeypatch.setattr(kind, attribute, listed)
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": sums[kind.meta["filename"]]})
    whole = hashlib.md5((folder / kind.filename).read_bytes()).hexdigest()
    monkeypatch.setattr(kind, "tgz_md5", whole)
    return folder


def test_the_real_checkpoint_over_an_archive_through_the_configuration(
    archives, checkpoint, benchmark_config
):
    options = {"data_dir": archives, "checkpoint": checkpoint, "batch_size": 5}
    overrides = [f"benchmark.source.{name}={value}" for name, value in options.items()]
    result = instantiate(benchmark_config("cifar100_resnet", *overrides).source, device="cpu")
    assert result.logits.shape == (IMAGES, 100) and result.logits.dtype == np.float32

    with (archives / "cifar-100-python" / "test").open("rb") as file:
        raw = pickle.load(file)
    np.testing.assert_array_equal(result.labels, raw["fine_labels"])
    pixels = raw["data"].reshape(-1, 3, 32, 32) / 255
    mean = np.array([0.5070, 0.4865, 0.4409]).reshape(1, 3, 1, 1)
    std = np.array([0.2673, 0.2564, 0.2761]).reshape(1, 3, 1, 1)
    inputs = torch.tensor((pixels - mean) / std, dtype=torch.float32)
    network = load_network("cifar100", "resnet56", checkpoint)[0]
    with torch.inference_mode():
        np.testing.assert_allclose(result.logits, network(inputs).numpy(), rtol=0, atol=1e-3)

    details = result.details
    assert details["origin"]["checkpoint"] == RESNET56
    assert details["origin"]["sha256"].startswith("f2eff4c8")
    assert details["class_names"] == list(CIFAR100)
    assert (details["device"], details["warnings"]) == ("cpu", [])


def test_other_constants_of_the_images_are_said(archives, checkpoint):
    options = {"dataset": "cifar100", "model": "resnet56", "data_dir": archives, "device": "cpu"}
    options["checkpoint"] = checkpoint
    usual = cifar_logits(**options)
    other = cifar_logits(**options, normalization="cifar10_pixels")
    assert usual.details["warnings"] == []
    assert other.details["preprocessing"]["std"] == (0.2470, 0.2435, 0.2616)
    assert "cifar10_pixels" in other.details["warnings"][0]
    assert np.abs(usual.logits - other.logits).max() > 0.1
    refused("source.normalization imagenet", cifar_logits, **options, normalization="imagenet")


def test_repvgg_has_the_published_number_of_parameters():
    """The shared folder has no checkpoint of this network, so nothing else builds it."""
    count = sum(parameter.numel() for parameter in NETWORKS["repvgg_a2"](100).parameters())
    assert count / 1e6 == pytest.approx(26.94, abs=0.006)


def test_what_is_nowhere_is_one_line_that_says_where_it_is_wanted(
    checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch_hub"))
    where = "releases/download/repvgg/cifar10_repvgg_a0-ef08a50e.pt source.checkpoint=<file>"
    refused(where, load_network, "cifar10", "repvgg_a0")
    where = "cifar-100-python.tar.gz benchmark.source.data_dir=<folder>"
    options = {"model": "resnet56", "checkpoint": checkpoint, "data_dir": tmp_path / "none"}
    refused(where, cifar_logits, dataset="cifar100", **options)


class _Payload:
    def __reduce__(self):
        return (Path.touch, (Path("executed"),))


def test_damaged_wrong_and_evil_checkpoints(checkpoint, tmp_path, monkeypatch):
    damaged = tmp_path / RESNET56
    damaged.write_bytes(checkpoint.read_bytes())
    flip_a_byte(damaged)
    refused("SHA-256 f2eff4c8", load_network, "cifar100", "resnet56", damaged)
    refused("cifar100 resnet44", load_network, "cifar100", "resnet44", checkpoint)
    refused("source.model resnet18", load_network, "cifar10", "resnet18")
    monkeypatch.chdir(tmp_path)
    torch.save({"fc.weight": _Payload()}, tmp_path / "bad.pt")
    refused("cifar100 resnet56", load_network, "cifar100", "resnet56", tmp_path / "bad.pt")
    assert not (tmp_path / "executed").exists()
