"""ImageNet: tiny images in synset folders, timm models with random weights, no network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.sources.imagenet import imagenet_logits
from pipeline.sources.result import MissingResource

LABELS = {"n01440764": 0, "n02123045": 281, "n15075141": 999}
MODEL = "test_vit.r160_in1k"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two images in each of three synset folders, in the colour modes that ImageNet has."""
    random = np.random.default_rng(0)
    folder = tmp_path / "imagenet"
    number = 0
    for synset in LABELS:
        (folder / synset).mkdir(parents=True)
        for mode in ("RGB", "L" if synset == "n01440764" else "CMYK"):
            number += 1
            pixels = random.integers(0, 256, (24 + number, 40, 3), dtype=np.uint8)
            image = Image.fromarray(pixels).convert(mode)
            image.save(folder / synset / f"ILSVRC2012_val_{number:08d}.JPEG")
    return folder


def logits_of(images: Path, **options: Any) -> Any:
    defaults = {"model": MODEL, "pretrained": False, "device": "cpu", "workers": 0}
    defaults |= {"expected_images": None}
    return imagenet_logits(data_dir=images, **{**defaults, **options})


def test_logits_are_timms_with_imagenets_class_numbers(images: Path) -> None:
    result = logits_of(images, batch_size=4)
    assert result.logits.shape == (6, 1000) and result.logits.dtype == np.float32
    assert result.labels.tolist() == [0, 0, 281, 281, 999, 999]

    timm = require("timm")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = timm.create_model(MODEL).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network))
    files = sorted(images.rglob("*.JPEG"))
    inputs = torch.stack([transform(Image.open(file).convert("RGB")) for file in files])
    with torch.inference_mode():
        np.testing.assert_allclose(result.logits, network(inputs).numpy(), atol=1e-4)
    assert result.details["warnings"] == ["random weights (pretrained=false)"]


def test_weights_from_a_file_and_from_the_hubs_cache(
    images: Path,
    tmp_path: Path,
    hub_cache: Callable[..., Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    from safetensors.torch import save

    torch.manual_seed(7)
    weights = save(require("timm").create_model(MODEL).state_dict())
    file = tmp_path / "model.safetensors"
    file.write_bytes(weights)
    options = {"pretrained": True}
    with caplog.at_level("INFO"):
        from_file = logits_of(images, checkpoint=file, **options)
    assert not [line for line in caplog.records if line.name.startswith("timm")]
    assert from_file.details["origin"]["weights"] == "model.safetensors"
    hub_cache("model", f"timm/{MODEL}", {"model.safetensors": weights})
    from_cache = logits_of(images, **options)
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert from_cache.details["origin"]["commits"] == {MODEL: commit}
    np.testing.assert_array_equal(from_cache.logits, from_file.logits)
    flipped = bytearray(weights)
    flipped[-9] ^= 1  # it loads, as another weight
    file.write_bytes(flipped)
    assert logits_of(images, checkpoint=file, **options).logits.shape == (6, 1000)
    with pytest.raises(InputError, match=r"model\.safetensors: its SHA-256 is .*sha256 says"):
        logits_of(images, checkpoint=file, sha256=hashlib.sha256(weights).hexdigest(), **options)
    file.write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="does not load into test_vit"):
        logits_of(images, checkpoint=file, **options)


def test_only_safetensors_are_loaded(images: Path, tmp_path: Path) -> None:
    weights = tmp_path / "resnet.pth"
    torch.save(require("timm").create_model(MODEL).state_dict(), weights)
    with pytest.raises(InputError, match=r"resnet\.pth: not safetensors; loading pickled weights"):
        logits_of(images, checkpoint=weights, pretrained=True)


def test_without_weights_one_line_says_how_to_get_them(
    images: Path, hub_cache: Callable[..., Path]
) -> None:
    with pytest.raises(MissingResource) as caught:
        logits_of(images, pretrained=True, model="resnet50.a1_in1k")
    assert "\n" not in str(caught.value)
    assert "hf download timm/resnet50.a1_in1k" in str(caught.value)
    assert "sources.checkpoints=<folder with resnet50.a1_in1k.safetensors>" in str(caught.value)


def test_missing_images_say_how_to_get_them(images: Path) -> None:
    with pytest.raises(MissingResource) as caught:
        logits_of(images / "n01440764")
    message = str(caught.value)
    assert "\n" not in message and "licence" in message
    assert "python scripts/prepare_imagenet.py <folder>" in message
    assert "sources.imagenet=<folder>" in message


def test_a_parent_folder_with_val_is_accepted(images: Path, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    images.rename(tmp_path / "root" / "val")
    assert len(logits_of(tmp_path / "root").labels) == 6


def test_an_incomplete_or_foreign_folder_is_refused(images: Path) -> None:
    with pytest.raises(InputError, match="6 images, expected 50000; run scripts/prepare_imagenet"):
        logits_of(images, expected_images=50_000)
    (images / "cats").mkdir()
    with pytest.raises(MissingResource, match="Found no valid file for the classes cats"):
        logits_of(images)
    Image.new("RGB", (8, 8)).save(images / "cats" / "tom.JPEG")
    with pytest.raises(MissingResource, match="'cats' is not in list"):
        logits_of(images)


def test_models_that_do_not_fit_are_refused(images: Path) -> None:
    with pytest.raises(InputError, match=r"timm .* has no such model"):
        logits_of(images, model="vit_of_another_library")
    with pytest.raises(InputError, match="21843 classes; ImageNet-1k has 1000"):
        logits_of(images, model="vit_tiny_patch16_224.augreg_in21k")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_bad_image_is_named_or_left_out(images: Path, workers: int) -> None:
    bad = images / "n02123045" / "ILSVRC2012_val_00000003.JPEG"
    bad.write_bytes(bad.read_bytes()[:200])
    with pytest.raises(
        InputError, match=r"n02123045/ILSVRC2012_val_00000003\.JPEG .*on_error=skip"
    ):
        logits_of(images, workers=workers)
    result = logits_of(images, workers=workers, on_error="skip")
    assert result.labels.tolist() == [0, 0, 281, 999, 999]
    assert "1 left out that cannot be read" in result.details["warnings"][-1]


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"batch_size": "abc"}, {"workers": -1}])
def test_sizes_of_batches_are_checked(images: Path, option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"benchmark\.source\.\w+=.*: expected a whole number"):
        logits_of(images, **option)
