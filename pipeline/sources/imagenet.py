"""Logits of the ImageNet-1k validation set from timm models (paper, section 4: ViT, ResNet-50)."""

from pathlib import Path
from typing import Any

import torch

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of

from ..harness.artifacts import sha256_of_json
from ..harness.task import Progress, no_progress
from .forward_pass import Run, forward_logits, warnings_on
from .hub import hub_files, weights_digest
from .input_digests import Place, file_content, file_in, reads
from .source_result import SourceResult

VALIDATION_IMAGES, SYNSETS = 50_000, 1000
NO_EFFECT = ("checkpoints", "sha256", "expected_images")
ADDRESS = "https://image-net.org"
PREPARE = (
    f"accept the licence at {ADDRESS}, download ILSVRC2012_img_val.tar and "
    "ILSVRC2012_devkit_t12.tar.gz into a folder, and run 'python -m "
    "utility_calibration.scripts.maintain.prepare_imagenet <folder>' in a clone"
)
"""How to get the images. No program may do it, because a person must accept the licence."""


def images_content(data_dir: Place) -> str | None:
    """A digest of the images' names and sizes, whatever the path of their folder; None of none."""
    images = sorted(_validation_folder(data_dir).glob("n*/*"))
    listed = [(path.parent.name, path.name, path.stat().st_size) for path in images]
    return sha256_of_json(listed) if listed else None


@reads(lambda _: SYNSETS, NO_EFFECT, data_dir=images_content, checkpoint=file_content)
def imagenet_logits(
    *,
    model: str,
    data_dir: Place,
    checkpoint: Place | None = None,
    checkpoints: Place | None = None,
    sha256: str | None = None,
    revision: str | None = None,
    pretrained: bool = True,
    expected_images: int | None = VALIDATION_IMAGES,
    device: str = "auto",
    batch_size: int = 256,
    workers: int | None = None,
    on_error: str = "stop",
    rows: int | None = None,
    progress: Progress = no_progress,
) -> SourceResult:
    """Run a timm model with timm's own preprocessing; Args: conf/benchmark/_imagenet.yaml."""
    run = Run(device, batch_size, workers, progress, on_error, rows)
    timm_data = require("timm.data")
    images = _images(data_dir, timm_data.ImageNetInfo().label_names(), expected_images)
    checkpoint = checkpoint or file_in(checkpoints, f"{model}.safetensors")
    network, origin = _network(model, checkpoint, revision, pretrained, sha256)
    if network.num_classes != SYNSETS:
        message = f"{model} has {network.num_classes} classes, ImageNet-1k {SYNSETS}"
        raise InputError(message, field="benchmark.source.model")
    # The input size that the model was trained for: the published accuracies "at 224".
    settings = timm_data.resolve_model_data_config(network, use_test_size=False)
    images.transform = timm_data.create_transform(**settings, is_training=False)
    paths = [path for path, _ in images.samples]
    logits, labels, skipped = forward_logits(network, images, run, name_of=paths.__getitem__)
    warnings = warnings_on(skipped)
    if not pretrained:
        warnings.insert(0, "random weights (pretrained=false)")
    details = {
        "source": "ImageNet-1k validation set, timm model",
        "model": model,
        "preprocessing": settings,
        **run.described(),
        "origin": origin,
        "warnings": warnings,
    }
    return SourceResult(logits, labels, details)


def _network(
    model: str, checkpoint: Place | None, revision: str | None, pretrained: bool, sha256: str | None
) -> tuple[Any, dict[str, Any]]:
    """A model of timm, and its origin for the record."""
    timm = require("timm")
    if not timm.is_model(model):
        message = f"timm {timm.__version__} has no {model}"
        raise InputError(message, field="benchmark.source.model")
    if not pretrained:
        with torch.random.fork_rng():
            torch.manual_seed(0)  # every run has the same random weights
            return timm.create_model(model, pretrained=False), {"weights": "random"}
    if checkpoint is None:
        setting = f"sources.checkpoints=<folder with {model}.safetensors>"
        folder = hub_files(f"timm/{model}", "model", ["model.safetensors"], setting, revision)
        weights = folder / "model.safetensors"
        commits = {model: folder.name}
    else:
        weights = Path(checkpoint).expanduser()
        commits = {}
        if not weights.is_file():
            fix = "correct benchmark.source.checkpoint"
            raise InputError("no such file", file=weights, fixes=fix)
    if weights.suffix != ".safetensors":
        raise InputError(
            "not safetensors",
            file=weights,
            fixes="loading pickled weights may run what is in them: save them with "
            "safetensors.torch.save_file",
        )
    weights_sha256 = weights_digest(weights, sha256)
    overlay = {"file": str(weights)}
    try:
        network = timm.create_model(model, pretrained=True, pretrained_cfg_overlay=overlay)
    except Exception as error:  # safetensors and load_state_dict have no common base
        raise InputError(
            f"does not load into {model} ({reason_of(error)})", file=weights
        ) from error
    origin = {
        "weights": weights.name,
        "sha256": weights_sha256,
        "hub": f"timm/{model}",
        "commits": commits,
    }
    return network, origin


def _validation_folder(data_dir: Place) -> Path:
    folder = Path(data_dir).expanduser()
    return folder / "val" if (folder / "val").is_dir() else folder


def _images(data_dir: Place, synsets: list[str], expected: int | None) -> Any:
    """torchvision's data set of the synset folders in `data_dir` or its `val/`.

    The label is the synset's place in ImageNet's list, not in the folder, so that a part of the
    set keeps its class numbers.
    """
    folder = _validation_folder(data_dir)
    try:
        images = require("torchvision.datasets").ImageFolder(str(folder))
        numbers = [synsets.index(synset) for synset in images.classes]
    except (OSError, ValueError) as error:  # no folders, an empty one, or one of another name
        raise InputError(
            "the ImageNet validation set is not there: no synset folders (n01440764, ...) of "
            f"images alone ({reason_of(error)})",
            file=folder,
            fixes=[PREPARE, "set sources.imagenet=<folder>"],
        ) from error
    if expected is not None and len(images) != expected:
        raise InputError(
            f"{len(images)} images, expected {expected}",
            file=data_dir,
            fixes=[
                "run utility_calibration.scripts.maintain.prepare_imagenet again",
                "set benchmark.source.expected_images=null to accept a part",
            ],
        )
    images.samples = [(name, numbers[place]) for name, place in images.samples]
    return images
