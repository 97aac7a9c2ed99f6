"""The public CIFAR checkpoints: where they are, and loading them with their hash checked.

Source: https://github.com/chenyaofo/pytorch-cifar-models (BSD-3-Clause), release files whose names
end in the first eight hexadecimal digits of their SHA-256.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.cifar_networks import NETWORKS
from pipeline.sources.result import MissingResource, reason_of

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
CLASSES = {"cifar10": 10, "cifar100": 100}


def checkpoint_url(dataset: str, model: str) -> str:
    """Where the zoo offers the checkpoint; `InputError` for a name that the zoo does not have."""
    if (dataset, model) not in HASHES:
        known = ", ".join("/".join(name) for name in HASHES)
        raise InputError(f"dataset={dataset} model={model}: not in the zoo, which has {known}")
    family = model.partition("_")[0].rstrip("0123456789")
    return f"{RELEASES}/{family}/{dataset}_{model}-{HASHES[dataset, model]}.pt"


def load_network(
    dataset: str, model: str, checkpoint: str | Path | None = None
) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Build the network and load its checkpoint: a given file, torch.hub's folder, or a download.

    Args:
        dataset: cifar10 or cifar100.
        model: a name of `NETWORKS`.
        checkpoint: a file to load; without one the zoo's is taken.

    Returns:
        the network in evaluation mode, and what to record: `checkpoint` (file name), `sha256`,
        `url` and `warnings`.

    Raises:
        MissingResource: the file is not there and cannot be downloaded.
        InputError: unknown model, wrong hash, or a file that does not fit the network.
    """
    url = checkpoint_url(dataset, model)
    path = Path(checkpoint) if checkpoint is not None else _hub_file(url)
    if checkpoint is not None and not path.is_file():
        raise MissingResource(
            f"checkpoint {path} does not exist: download {url} there, "
            "or set benchmark.source.checkpoint=null to use torch.hub's folder"
        )
    sha256, known = sha256_of(path), HASHES[dataset, model]
    warnings = []
    if not sha256.startswith(known):
        if path.name == url.rpartition("/")[2]:
            raise InputError(
                f"{path}: its SHA-256 begins with {sha256[:8]}, its name says {known}; "
                "the file is damaged: delete it and download it again"
            )
        warnings = [f"{path.name} is not the zoo's checkpoint (SHA-256 {known}...)"]
    network = NETWORKS[model](CLASSES[dataset])
    _load_weights(network, path, f"{dataset} {model}")
    origin = {"checkpoint": path.name, "sha256": sha256, "url": url, "warnings": warnings}
    return network.eval(), origin


def _hub_file(url: str) -> Path:
    """The checkpoint in torch.hub's folder, downloaded with its hash checked if it is not there."""
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if not path.is_file():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(path), path.stem[-8:], progress=False)
        except (OSError, RuntimeError) as error:
            raise MissingResource(
                f"checkpoint {path.name} is not in {path.parent} and its download failed "
                f"({reason_of(error)}): put {url} there, or set benchmark.source.checkpoint=<file>"
            ) from error
    return path


def _load_weights(network: torch.nn.Module, path: Path, what: str) -> None:
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the unpickler meets
        raise InputError(f"{path}: not a torch checkpoint ({reason_of(error)})") from error
    try:
        network.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: does not fit {what} ({reason_of(error)}); check dataset and model"
        ) from error
