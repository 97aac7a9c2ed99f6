"""Logits of the CIFAR test sets from the public checkpoints (paper, section 4: CIFAR-10/100).

The checkpoints are release files of https://github.com/chenyaofo/pytorch-cifar-models
(BSD-3-Clause), whose names end in the first eight hexadecimal digits of their SHA-256.
"""

from __future__ import annotations

import tarfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import torch

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.parallel import Progress
from pipeline.sources.cifar_networks import NETWORKS
from pipeline.sources.content import file_content, reads
from pipeline.sources.inference import Run, forward_logits, warnings_on
from pipeline.sources.result import MissingResource, SourceResult, reason_of

CLASSES = {"cifar10": 10, "cifar100": 100}
RELEASES = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download"
HASHES = {
    ("cifar10", "resnet20"): "4118986f",
    ("cifar10", "resnet32"): "ef93fc4d",
    ("cifar10", "resnet44"): "2a3cabcb",
    ("cifar10", "resnet56"): "187c023a",
    ("cifar10", "repvgg_a0"): "ef08a50e",
    ("cifar10", "repvgg_a1"): "38d2431b",
    ("cifar10", "repvgg_a2"): "09488915",
    ("cifar100", "resnet20"): "23dac2f1",
    ("cifar100", "resnet32"): "84213ce6",
    ("cifar100", "resnet44"): "ffe32858",
    ("cifar100", "resnet56"): "f2eff4c8",
    ("cifar100", "repvgg_a0"): "2df1edd0",
    ("cifar100", "repvgg_a1"): "c06b21a7",
    ("cifar100", "repvgg_a2"): "8e71b1f8",
}
"""First digits of the SHA-256 of each checkpoint."""
NORMALIZATIONS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}
"""The zoo's mean and standard deviation per channel."""


# torchvision checks the MD5 of the data set, and this module the SHA-256 of the zoo's checkpoints.
@reads(
    lambda options: {"cifar10": 10, "cifar100": 100}.get(options["dataset"]),
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
    progress: Progress | None = None,
) -> SourceResult:
    """Run a checkpoint of the zoo over the CIFAR test set, in the data set's order.

    Args:
        dataset: cifar10 or cifar100.
        model: resnet44, resnet56, repvgg_a0, repvgg_a2, ... (see `cifar_networks.NETWORKS`).
        data_dir: folder of torchvision's layout, or of the official archive.
        checkpoint: a file; None means the zoo's file in `checkpoints`, or in torch.hub's folder, or
            else the download.
        checkpoints: a folder that may hold files under the zoo's names.
        download: whether a missing data set may be downloaded.
        device, batch_size, workers, progress: see `inference.Run`.

    Raises:
        MissingResource: checkpoint or data set are absent and cannot be downloaded.
        InputError: unknown names, or a damaged file.
    """
    run = Run(device, batch_size, workers, progress)
    if checkpoint is None and checkpoints is not None:
        held = Path(checkpoints).expanduser() / zoo_name(dataset, model)
        checkpoint = held if held.is_file() else None
    network, origin = load_network(dataset, model, checkpoint)
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
        "warnings": origin.pop("warnings") + warnings_on(outputs.skipped),
    }
    return SourceResult(outputs.logits, outputs.labels, details)


def zoo_name(dataset: str, model: str) -> str:
    """The name of the zoo's checkpoint.

    Raises:
        InputError: an unknown model.
    """
    if (dataset, model) not in HASHES:
        offered = ", ".join("/".join(name) for name in HASHES)
        raise InputError(f"dataset={dataset} model={model}: not in the zoo, which has {offered}")
    return f"{dataset}_{model}-{HASHES[dataset, model]}.pt"


def load_network(
    dataset: str, model: str, checkpoint: str | Path | None = None
) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Build the network and load its checkpoint: a given file, torch.hub's folder, or a download.

    Args:
        dataset: cifar10 or cifar100.
        model: a name of `NETWORKS`.
        checkpoint: a file to load; None means the zoo's.

    Returns:
        the network in evaluation mode, and entries for the record: `checkpoint` (file name),
        `sha256`, `url` and `warnings`.

    Raises:
        MissingResource: the file is absent and cannot be downloaded, or it does not fit.
        InputError: unknown model, or wrong hash.
    """
    name, family = zoo_name(dataset, model), model.partition("_")[0].rstrip("0123456789")
    digits = HASHES[dataset, model]
    url = f"{RELEASES}/{family}/{name}"
    path = Path(checkpoint or Path(torch.hub.get_dir()) / "checkpoints" / name)
    network = NETWORKS[model](CLASSES[dataset])
    safely: dict[str, Any] = {"map_location": "cpu", "weights_only": True}
    try:
        if checkpoint is None:
            load = partial(torch.hub.load_state_dict_from_url, check_hash=True, progress=False)
            network.load_state_dict(load(url, **safely))
        else:
            network.load_state_dict(torch.load(path, **safely))
    except Exception as error:  # torch.load may raise anything
        raise MissingResource(
            f"{path}: no checkpoint of {dataset} {model} ({reason_of(error)}); put {url} there, "
            "or set benchmark.source.checkpoint=<file>"
        ) from error
    sha256, warnings = sha256_of(path), []
    if not sha256.startswith(digits):
        if path.name == name:
            raise InputError(
                f"{path}: its SHA-256 begins with {sha256[:8]}, its name says {digits}; "
                "the file is damaged: delete it and download it again"
            )
        warnings = [f"{path.name} is not the zoo's checkpoint (SHA-256 {digits}...)"]
    origin = {"checkpoint": path.name, "sha256": sha256, "url": url, "warnings": warnings}
    return network.eval(), origin


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
