"""Logits of the ImageNet-1k validation set from timm models (paper, section 4: ViT, ResNet-50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.parallel import Progress
from pipeline.sources.heavy_imports import require
from pipeline.sources.hub import hub_files
from pipeline.sources.inference import Run, forward_logits
from pipeline.sources.result import MissingResource, SourceResult, reason_of

VALIDATION_IMAGES = 50_000
SYNSETS = 1000
PREPARE = (
    "accept the licence at https://image-net.org, download ILSVRC2012_img_val.tar and "
    "ILSVRC2012_devkit_t12.tar.gz into a folder, and run 'python scripts/prepare_imagenet.py "
    "<folder>'"
)


def imagenet_logits(
    *,
    model: str,
    data_dir: str | Path,
    checkpoint: str | Path | None = None,
    revision: str | None = None,
    pretrained: bool = True,
    expected_images: int | None = VALIDATION_IMAGES,
    device: str = "auto",
    batch_size: int = 256,
    workers: int | None = None,
    progress: Progress | None = None,
) -> SourceResult:
    """Run a pinned timm model over the validation set with timm's own preprocessing.

    Args:
        model: architecture and tag, such as resnet50.a1_in1k.
        data_dir: 1000 synset folders of images, or a folder that holds them as `val/`.
        checkpoint: safetensors to load instead of the hub's.
        revision: commit of the model's repository on the hub; None means the newest.
        pretrained: False gives random weights, to measure speed or to test.
        expected_images: the number of images in data_dir; None accepts any number.
        device, batch_size, workers, progress: see `inference.Run`.

    Raises:
        MissingResource: images or weights are absent; the message says how to get them.
        InputError: the folder is incomplete or has other contents, or a file is damaged.
    """
    run = Run(device, batch_size, workers, progress)
    network, origin = _network(model, checkpoint, revision, pretrained)
    timm_data = require("timm.data")
    if network.num_classes != SYNSETS:
        raise InputError(f"model={model}: {network.num_classes} classes; ImageNet-1k has {SYNSETS}")
    # The input size that the model was trained for: the published accuracies "at 224".
    settings = timm_data.resolve_model_data_config(network, use_test_size=False)
    transform = timm_data.create_transform(**settings, is_training=False)
    images = _images(Path(data_dir), timm_data.ImageNetInfo().label_names(), transform)
    if expected_images is not None and len(images) != expected_images:
        raise InputError(
            f"{data_dir}: {len(images)} images, expected {expected_images}; run "
            "scripts/prepare_imagenet.py again, or set benchmark.source.expected_images=null to "
            "accept a part"
        )
    logits, labels = forward_logits(network, images, run)
    details = {
        "source": "ImageNet-1k validation set, timm model",
        "model": model,
        "preprocessing": settings,
        **run.described(),
        "origin": origin,
        "warnings": [] if pretrained else ["random weights (pretrained=false)"],
    }
    return SourceResult(logits, labels, details)


def _network(
    model: str, checkpoint: str | Path | None, revision: str | None, pretrained: bool
) -> tuple[Any, dict[str, Any]]:
    timm = require("timm")
    if not timm.is_model(model):
        raise InputError(f"model={model}: timm {timm.__version__} has no such model")
    if not pretrained:
        with torch.random.fork_rng():
            torch.manual_seed(0)  # every run has the same random weights
            return timm.create_model(model, pretrained=False), {"weights": "random"}
    if checkpoint is None:
        folder = hub_files(
            f"timm/{model}", "model", ["model.safetensors"], "checkpoint=<file>", revision
        )
        weights, commits = folder / "model.safetensors", {model: folder.name}
    else:
        weights, commits = Path(checkpoint), {}
    if weights.suffix != ".safetensors":
        raise InputError(
            f"{weights}: not safetensors; loading pickled weights may run what is in them: save "
            "them with safetensors.torch.save_file"
        )
    try:
        network = timm.create_model(
            model, pretrained=True, pretrained_cfg_overlay={"file": str(weights)}
        )
    except Exception as error:  # safetensors and load_state_dict have no common base
        raise InputError(f"{weights}: does not load into {model} ({reason_of(error)})") from error
    origin = {"weights": weights.name, "sha256": sha256_of(weights), "hub": f"timm/{model}"}
    return network, {**origin, "commits": commits}


def _images(data_dir: Path, synsets: list[str], transform: Any) -> Any:
    """torchvision's data set of the synset folders in `data_dir` or its `val/`.

    The label is the synset's place in ImageNet's list, not in the folder, so that a part of the
    set keeps its class numbers.
    """
    folder = data_dir / "val" if (data_dir / "val").is_dir() else data_dir
    try:
        images = require("torchvision.datasets").ImageFolder(str(folder), transform)
        numbers = [synsets.index(synset) for synset in images.classes]
    except (OSError, ValueError) as error:  # no folders, an empty one, or one of another name
        raise MissingResource(
            f"ImageNet validation set: {folder} does not hold synset folders (n01440764, ...) of "
            f"images alone ({reason_of(error)}): {PREPARE}, "
            "or set benchmark.source.data_dir=<folder>"
        ) from error
    images.samples = [(name, numbers[place]) for name, place in images.samples]
    return images
