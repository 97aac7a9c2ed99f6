"""Logits of the CIFAR test sets from the public checkpoints (paper, section 4: CIFAR-10/100).

The checkpoints are release files of https://github.com/chenyaofo/pytorch-cifar-models
(BSD-3-Clause). torchvision checks the MD5 of the data set, this module the SHA-256 of checkpoints.
"""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path
from typing import Any

import torch

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.parallel import Progress, no_progress
from pipeline.sources.cifar_networks import NETWORKS
from pipeline.sources.content import file_content, reads
from pipeline.sources.hub import file_in
from pipeline.sources.inference import Run, forward_logits
from pipeline.sources.result import MissingResource, SourceResult, reason_of

CLASSES = {"cifar10": 10, "cifar100": 100}
RELEASES = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download"
_FILES = """
    cifar10_resnet20-4118986f cifar10_resnet32-ef93fc4d cifar10_resnet44-2a3cabcb
    cifar10_resnet56-187c023a cifar10_repvgg_a0-ef08a50e cifar10_repvgg_a1-38d2431b
    cifar10_repvgg_a2-09488915 cifar100_resnet20-23dac2f1 cifar100_resnet32-84213ce6
    cifar100_resnet44-ffe32858 cifar100_resnet56-f2eff4c8 cifar100_repvgg_a0-2df1edd0
    cifar100_repvgg_a1-c06b21a7 cifar100_repvgg_a2-8e71b1f8
"""
ZOO = tuple(_FILES.split())
"""The release files without .pt: <dataset>_<model>-<first digits of the SHA-256>."""
NORMALIZATIONS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}
"""The zoo's mean and standard deviation per channel."""


@reads(
    lambda options: CLASSES.get(options["dataset"]),
    data_dir=None,
    download=None,
    checkpoint=file_content,
    checkpoints=None,
)
def cifar_logits(
    *,
    dataset: str,
    model: str,
    data_dir: str | Path,
    checkpoint: str | Path | None = None,
    checkpoints: str | Path | None = None,
    download: bool = True,
    device: str = "auto",
    batch_size: int = 500,
    workers: int = 0,
    progress: Progress = no_progress,
) -> SourceResult:
    """Run a checkpoint of the zoo over the CIFAR test set, in the data set's order.

    Args: those of conf/shared/cifar.yaml; `device`, `workers`, `progress` as in `inference.Run`.

    Raises:
        MissingResource: checkpoint or data set are absent and cannot be downloaded.
        InputError: unknown names, or a damaged file.
    """
    run = Run(device, batch_size, workers, progress)
    checkpoint = checkpoint or file_in(checkpoints, f"{zoo_name(dataset, model)}.pt")
    network, origin, warnings = load_network(dataset, model, checkpoint)
    mean, std = NORMALIZATIONS[dataset]
    images = _test_set(dataset, Path(data_dir), download)
    transforms = require("torchvision.transforms")
    images.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
    outputs = forward_logits(network, images, run)
    details = {
        "source": "torchvision data set, checkpoint of chenyaofo/pytorch-cifar-models (BSD-3)",
        "model": f"{dataset}_{model}",
        "preprocessing": {"mean": mean, "std": std},
        **run.described(),
        "origin": origin,
        "class_names": list(images.classes),
        "warnings": warnings,
    }
    return SourceResult(outputs.logits, outputs.labels, details)


def zoo_name(dataset: str, model: str) -> str:
    """The name of the zoo's checkpoint without .pt, or an error for an unknown model."""
    found = [name for name in ZOO if name.startswith(f"{dataset}_{model}-")]
    if not found:
        offered = ", ".join(name.partition("-")[0] for name in ZOO)
        raise InputError(f"dataset={dataset} model={model}: not in the zoo, which has {offered}")
    return found[0]


def load_network(
    dataset: str, model: str, checkpoint: str | Path | None = None
) -> tuple[torch.nn.Module, dict[str, str], list[str]]:
    """Build the network and load its checkpoint: a given file, torch.hub's folder, or a download.

    Returns:
        the network in evaluation mode, its origin for the record, and warnings.

    Raises:
        MissingResource: the file is absent and cannot be downloaded, or it does not fit.
        InputError: unknown model, or wrong hash.
    """
    held = zoo_name(dataset, model)
    name, digits = f"{held}.pt", held.rpartition("-")[2]
    url = f"{RELEASES}/{model.partition('_')[0].rstrip('0123456789')}/{name}"
    path = Path(checkpoint or Path(torch.hub.get_dir()) / "checkpoints" / name)
    network = NETWORKS[model](CLASSES[dataset])
    safely: dict[str, Any] = {"map_location": "cpu", "weights_only": True}
    try:
        if checkpoint is None:
            safely |= {"check_hash": True, "progress": False}
            state = torch.hub.load_state_dict_from_url(url, **safely)
        else:
            state = torch.load(path, **safely)
        network.load_state_dict(state)
    except Exception as error:  # torch.load may raise anything
        raise MissingResource(
            f"{path}: no checkpoint of {dataset} {model} ({reason_of(error)}); put {url} there, "
            "or set benchmark.source.checkpoint=<file>"
        ) from error
    sha256 = sha256_of(path)
    is_zoos = sha256.startswith(digits)
    if path.name == name and not is_zoos:
        raise InputError(
            f"{path}: its SHA-256 begins with {sha256[:8]}, its name says {digits}; "
            "the file is damaged: delete it and download it again"
        )
    warning = f"{path.name} is not the zoo's checkpoint (SHA-256 {digits}...)"
    origin = {"checkpoint": path.name, "sha256": sha256, "url": url}
    return network.eval(), origin, [] if is_zoos else [warning]


def _test_set(dataset: str, folder: Path, download: bool) -> Any:
    """torchvision's test split; it checks the MD5 of every file."""
    kind = getattr(require("torchvision.datasets"), dataset.upper())
    try:
        return kind(str(folder), train=False, download=download)
    except (OSError, RuntimeError, EOFError, tarfile.TarError, zlib.error) as error:
        reason = " ".join(str(error).split()) if download else "download=false"
        raise MissingResource(
            f"{folder / kind.base_folder} is missing or damaged and could not be fetched "
            f"({reason}): put {kind.url} into {folder} and run again with "
            "benchmark.source.download=true, or set benchmark.source.data_dir=<folder>"
        ) from error
