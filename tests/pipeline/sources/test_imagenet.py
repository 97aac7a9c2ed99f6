"""ImageNet: tiny images in synset folders, timm models with random weights, no network."""

import numpy as np
import pytest
import torch
from PIL import Image

from tests.pipeline.sources.conftest import COMMIT, refused
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.sources.imagenet import imagenet_logits

LABELS = {"n01440764": 0, "n02123045": 281, "n15075141": 999}
MODEL = "test_vit.r160_in1k"


@pytest.fixture
def images(tmp_path):
    """Two images in each of three synset folders, in the colour modes that ImageNet has."""
    random, number = np.random.default_rng(0), 0
    for synset in LABELS:
        folder = tmp_path / "imagenet" / synset
        folder.mkdir(parents=True)
        for mode in ("RGB", "L" if synset == "n01440764" else "CMYK"):
            number += 1
            pixels = random.integers(0, 256, (24 + number, 40, 3), dtype=np.uint8)
            image = Image.fromarray(pixels).convert(mode)
            image.save(folder / f"ILSVRC2012_val_{number:08d}.JPEG")
    return tmp_path / "imagenet"


def logits_of(images, **options):
    defaults = {"model": MODEL, "pretrained": False, "device": "cpu", "workers": 0}
    return imagenet_logits(data_dir=images, **{**defaults, "expected_images": None, **options})


def test_logits_are_timms_with_imagenets_class_numbers(images, tmp_path):
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
    (tmp_path / "root").mkdir()
    images.rename(tmp_path / "root" / "val")
    np.testing.assert_array_equal(logits_of(tmp_path / "root").labels, result.labels)


def test_weights_from_a_file_and_from_the_hubs_cache(images, tmp_path, hub_cache, caplog):
    from safetensors.torch import save

    torch.manual_seed(7)
    weights = save(require("timm").create_model(MODEL).state_dict())
    file = tmp_path / "model.safetensors"
    file.write_bytes(weights)
    options = {"pretrained": True, "checkpoint": file}
    with caplog.at_level("INFO"):
        from_file = logits_of(images, **options)
    assert not [line for line in caplog.records if line.name.startswith("timm")]
    assert from_file.details["origin"]["weights"] == "model.safetensors"
    hub_cache("model", f"timm/{MODEL}", {"model.safetensors": weights})
    from_cache = logits_of(images, pretrained=True)
    assert from_cache.details["origin"]["commits"] == {MODEL: COMMIT}
    np.testing.assert_array_equal(from_cache.logits, from_file.logits)
    refused("model.safetensors SHA-256", logits_of, images, sha256="0" * 64, **options)
    file.write_bytes(weights[: len(weights) // 2])
    refused("model.safetensors test_vit", logits_of, images, **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": "vit_of_another_library"}, "timm vit_of_another_library"),
        ({"model": "vit_tiny_patch16_224.augreg_in21k"}, "21843 1000"),
        ({"expected_images": 50_000}, "6 50000 prepare_imagenet expected_images=null"),
        ({"batch_size": 0}, "source.batch_size 0"),
        ({"batch_size": "abc"}, "source.batch_size abc"),
        ({"workers": -1}, "source.workers -1"),
        ({"on_error": "go"}, "source.on_error go"),
        ({"pretrained": True}, "hf download timm/test_vit checkpoints=<folder"),
        ({"pretrained": True, "checkpoint": "no.safetensors"}, "no.safetensors"),
        ({"pretrained": True, "checkpoint": __file__}, f"{__file__} safetensors.torch.save_file"),
    ],
)
def test_what_does_not_fit_is_one_line(images, hub_cache, options, told):
    refused(told, logits_of, images, **options)


def test_folders_without_the_images_say_how_to_get_them(images):
    how = "maintain.prepare_imagenet sources.imagenet=<folder>"
    refused(how, logits_of, images / "n01440764")
    (images / "cats").mkdir()
    refused("cats", logits_of, images)
    Image.new("RGB", (8, 8)).save(images / "cats" / "tom.JPEG")
    refused("cats", logits_of, images)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_bad_image_is_named_or_left_out(images, workers):
    bad = images / "n02123045" / "ILSVRC2012_val_00000003.JPEG"
    bad.write_bytes(bad.read_bytes()[:200])
    refused(
        "n02123045/ILSVRC2012_val_00000003.JPEG on_error=skip", logits_of, images, workers=workers
    )
    result = logits_of(images, workers=workers, on_error="skip")
    assert result.labels.tolist() == [0, 0, 281, 999, 999]
    assert result.details["warnings"][-1].startswith("1 ")
