"""Logits of the CIFAR test sets from the public checkpoints (paper, section 4: CIFAR-10/100)."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from metrics.validation import InputError
from pipeline.sources.cifar_checkpoints import load_network
from pipeline.sources.heavy_imports import require
from pipeline.sources.inference import Run, forward_logits
from pipeline.sources.result import MissingResource, Progress, SourceResult

TEST_IMAGES = 10_000

NORMALIZATIONS: dict[tuple[str, str], tuple[tuple[float, ...], tuple[float, ...]]] = {
    ("cifar10", "zoo"): ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ("cifar10", "pixel_std"): ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
    ("cifar100", "zoo"): ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}
"""Mean and standard deviation per channel. The zoo's CIFAR-10 std is the mean over images of each
image's own; `pixel_std` is taken over all pixels and is what many other projects use."""


def cifar_logits(
    *,
    dataset: str,
    model: str,
    data_dir: str | Path,
    work_dir: Path,
    checkpoint: str | Path | None = None,
    normalization: str = "zoo",
    download: bool = True,
    device: str = "auto",
    batch_size: int = 500,
    precision: str = "float32",
    workers: int = 0,
    progress: Progress | None = None,
) -> SourceResult:
    """Run a checkpoint of the zoo over the CIFAR test set, in the data set's order.

    Args:
        dataset: cifar10 or cifar100.
        model: resnet44, resnet56, repvgg_a0, repvgg_a2, ... (see `cifar_networks.NETWORKS`).
        data_dir: folder of torchvision's layout, or of the official archive.
        work_dir: where a killed run finds its shards again.
        checkpoint: a file; without one torch.hub's folder, then the download.
        normalization: zoo, or pixel_std (CIFAR-10 only).
        download: whether the data set may be fetched if it is missing.
        device, batch_size, precision, workers, progress: see `inference.Run`.

    Raises:
        MissingResource: checkpoint or data set are neither there nor can be fetched.
        InputError: unknown names, or a damaged file.
    """
    if (dataset, normalization) not in NORMALIZATIONS:
        known = ", ".join("/".join(name) for name in NORMALIZATIONS)
        raise InputError(f"dataset={dataset} normalization={normalization}: choose from {known}")
    mean, std = NORMALIZATIONS[dataset, normalization]
    network, origin = load_network(dataset, model, checkpoint)
    images = _test_set(dataset, Path(data_dir), download)
    transforms = require("torchvision.transforms")
    images.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
    run = Run(work_dir, device, batch_size, precision, workers, progress=progress)
    key = {"data": _digest(images), "mean": mean, "std": std}
    logits, labels = forward_logits(network, images, key, run)
    warnings = origin.pop("warnings")
    if len(labels) != TEST_IMAGES:
        warnings.append(f"{len(labels)} test images, not {TEST_IMAGES}")
    details = {
        "source": "torchvision data set, checkpoint of chenyaofo/pytorch-cifar-models (BSD-3)",
        "model": f"{dataset}_{model}",
        "preprocessing": {"normalization": normalization, "mean": mean, "std": std},
        **run.described(),
        "origin": origin,
        "class_names": list(images.classes),
        "warnings": warnings,
    }
    return SourceResult(logits, labels, details)


def _test_set(dataset: str, folder: Path, download: bool) -> Any:
    """torchvision's test split; it checks the MD5 of every file."""
    kind = getattr(require("torchvision.datasets"), {"cifar10": "CIFAR10"}.get(dataset, "CIFAR100"))
    try:
        return kind(str(folder), train=False, download=download)
    except (OSError, RuntimeError, EOFError, tarfile.TarError, zlib.error) as error:
        reason = " ".join(str(error).split()) if download else "download=false"
        raise MissingResource(
            f"{folder / kind.base_folder} is missing or damaged and could not be fetched "
            f"({reason}): put {kind.url} into {folder} and run again with "
            "benchmark.source.download=true, or set benchmark.source.data_dir=<folder>"
        ) from error


def _digest(images: Any) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(images.data).data)
    digest.update(np.asarray(images.targets, dtype=np.int64).data)
    return digest.hexdigest()
