"""Logits of the CIFAR test sets from the public checkpoints (paper, section 4: CIFAR-10/100).

The checkpoints are release files of https://github.com/chenyaofo/pytorch-cifar-models
(BSD-3-Clause). torchvision checks the MD5 of the data set, this module the SHA-256 of checkpoints.
Both architectures are written here with the checkpoints' parameter names, so that no code of
torch.hub runs. ResNet: He et al. 2016, section 4.2 (6k + 2 layers, 16/32/64 channels). RepVGG: Ding
et al. 2021, in its three-branch training form, with the strides adapted to 32 × 32 images.
"""

import tarfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of

from ..harness.artifacts import sha256_of
from ..harness.task import Progress, no_progress
from . import downloads
from .forward_pass import Run, forward_logits
from .input_digests import Place, file_content, file_in, reads
from .source_result import SourceResult

CLASSES = {"cifar10": 10, "cifar100": 100}
RELEASES = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download"
_FILES = """
    cifar10_resnet20-4118986f cifar10_resnet32-ef93fc4d cifar10_resnet44-2a3cabcb
    cifar10_resnet56-187c023a cifar10_repvgg_a0-ef08a50e cifar10_repvgg_a1-38d2431b
    cifar10_repvgg_a2-09488915 cifar100_resnet20-23dac2f1 cifar100_resnet32-84213ce6
    cifar100_resnet44-ffe32858 cifar100_resnet56-f2eff4c8 cifar100_repvgg_a0-2df1edd0
    cifar100_repvgg_a1-c06b21a7 cifar100_repvgg_a2-8e71b1f8
"""
ZOO = dict(name.split("-") for name in _FILES.split())
"""For each <dataset>_<model> the first digits of the checkpoint's SHA-256, a part of its name."""
NORMALIZATIONS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
    "cifar10_pixels": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}
"""Mean and standard deviation per channel: the zoo's for either data set, and that of all pixels.

The zoo's deviation for CIFAR-10 is smaller than that of all pixels, which much code has
(docs/fidelity.md).
"""
NO_EFFECT = ("data_dir", "download", "checkpoints")


@reads(lambda options: CLASSES.get(options["dataset"]), NO_EFFECT, checkpoint=file_content)
def cifar_logits(
    *,
    dataset: str,
    model: str,
    data_dir: Place,
    checkpoint: Place | None = None,
    checkpoints: Place | None = None,
    download: bool = True,
    normalization: str | None = None,
    device: str = "auto",
    batch_size: int = 500,
    workers: int = 0,
    rows: int | None = None,
    progress: Progress = no_progress,
) -> SourceResult:
    """Run a zoo's checkpoint over the CIFAR test set; Args: conf/benchmark/_cifar.yaml.

    Raises:
        InputError: images or checkpoint are neither there nor can be downloaded, an option is
            impossible, or the checkpoint is damaged.
    """
    run = Run(device, batch_size, workers, progress, rows=rows)
    constants = normalization or dataset
    if constants not in NORMALIZATIONS:
        fix = f"choose one of {', '.join(NORMALIZATIONS)}, or null"
        raise InputError(constants, field="benchmark.source.normalization", fixes=fix)
    mean, std = NORMALIZATIONS[constants]
    network, origin, warnings = load_network(dataset, model, checkpoint, checkpoints)
    if constants != dataset:
        warnings.append(f"images are normalised by the constants {constants}, not the zoo's")
    images = _test_images(dataset, data_dir, download)
    transforms = require("torchvision.transforms")
    images.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
    logits, labels, _ = forward_logits(network, images, run)
    details = {
        "source": "torchvision data set, checkpoint of chenyaofo/pytorch-cifar-models (BSD-3)",
        "model": f"{dataset}_{model}",
        "preprocessing": {"mean": mean, "std": std},
        **run.described(),
        "origin": origin,
        "class_names": list(images.classes),
        "warnings": warnings,
    }
    return SourceResult(logits, labels, details)


def _test_images(dataset: str, data_dir: Place, download: bool) -> Any:
    """torchvision's data set of the test images; it checks the MD5 of its files."""
    kind = getattr(require("torchvision.datasets"), dataset.upper())
    try:
        return kind(str(data_dir), train=False, download=download)
    except (OSError, RuntimeError, EOFError, tarfile.TarError, zlib.error) as error:
        place = Path(data_dir) / kind.base_folder
        fixes = [
            f"put that file into {data_dir} and run again with benchmark.source.download=true",
            "set benchmark.source.data_dir=<folder>",
        ]
        reason = error if download else "download=false"
        raise downloads.not_fetched(place, kind.url, reason, fixes) from error


def load_network(
    dataset: str, model: str, checkpoint: Place | None = None, checkpoints: Place | None = None
) -> tuple[nn.Module, dict[str, str], list[str]]:
    """A network of the zoo in evaluation mode, its origin for the record, and warnings.

    Its checkpoint is the file `checkpoint`, or lies in the folder `checkpoints` or torch.hub's, or
    is downloaded.
    """
    digits = ZOO.get(f"{dataset}_{model}")
    if digits is None:
        message = f"{model} of {dataset} is not in the zoo"
        fix = f"choose one of {', '.join(ZOO)}"
        raise InputError(message, field="benchmark.source.model", fixes=fix)
    name = f"{dataset}_{model}-{digits}.pt"
    release = model.partition("_")[0].rstrip("0123456789")
    url = f"{RELEASES}/{release}/{name}"
    usual = Path(torch.hub.get_dir()) / "checkpoints" / name
    path = Path(checkpoint or file_in(checkpoints, name) or usual).expanduser()
    if not path.is_file():
        if checkpoint is not None:
            fixes = ["correct benchmark.source.checkpoint", f"put {url} there"]
            raise InputError("no such file", file=path, fixes=fixes)
        fixes = ["put that file there", "set benchmark.source.checkpoint=<file>"]
        downloads.download(url, path, fixes)
    sha256 = sha256_of(path)
    warnings = []
    if path.name == name:
        fix = "delete the file and download it again, as it is damaged"
        downloads.check_digest(path, sha256, digits, fix)
    elif not sha256.startswith(digits):
        warnings.append(f"{path.name} is not the zoo's checkpoint (SHA-256 {digits}...)")
    network = NETWORKS[model](CLASSES[dataset])
    try:
        # weights_only: a pickle may name functions, which are not called.
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch.load may raise anything
        message = f"no checkpoint of {dataset} {model} ({reason_of(error)})"
        fixes = [f"take {url}", "set benchmark.source.checkpoint=<file>"]
        raise InputError(message, file=path, fixes=fixes) from error
    origin = {"checkpoint": path.name, "sha256": sha256, "url": url}
    return network.eval(), origin, warnings


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions and a shortcut; a stride above 1 projects the shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, images: Tensor) -> Tensor:
        hidden = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.downsample(images))


class CifarResNet(nn.Module):
    """ResNet for 32 × 32 images: [b, 3, 32, 32] to logits [b, classes]; depth = 6 · blocks + 2."""

    def __init__(self, blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(ResidualBlock, blocks, 16, 16, stride=1)
        self.layer2 = _stage(ResidualBlock, blocks, 16, 32, stride=2)
        self.layer3 = _stage(ResidualBlock, blocks, 32, 64, stride=2)
        self.fc = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        hidden = torch.relu(self.bn1(self.conv1(images)))
        hidden = self.layer3(self.layer2(self.layer1(hidden)))
        return self.fc(hidden.mean(dim=(2, 3)))


class RepVGGBlock(nn.Module):
    """The sum of a 3 × 3, a 1 × 1 and, where the shape allows, an identity branch, then ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()

        def branch(kernel: int) -> nn.Sequential:
            convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
            return nn.Sequential(OrderedDict(conv=convolution, bn=nn.BatchNorm2d(outputs)))

        self.rbr_dense, self.rbr_1x1 = branch(3), branch(1)
        same_shape = inputs == outputs and stride == 1
        self.rbr_identity = nn.BatchNorm2d(inputs) if same_shape else None

    def forward(self, images: Tensor) -> Tensor:
        total = self.rbr_dense(images) + self.rbr_1x1(images)
        if self.rbr_identity is not None:
            total = total + self.rbr_identity(images)
        return torch.relu(total)


class RepVGG(nn.Module):
    """RepVGG-A for 32 × 32 images: [b, 3, 32, 32] to logits [b, classes].

    `width` scales the first three stages (64, 128, 256 channels), `last_width` the fourth (512).
    """

    def __init__(self, width: float, last_width: float, classes: int) -> None:
        super().__init__()
        sizes = [int(channels * width) for channels in (64, 128, 256)] + [int(512 * last_width)]
        stem = min(64, sizes[0])
        self.stage0 = RepVGGBlock(3, stem, stride=1)
        self.stage1 = _stage(RepVGGBlock, 2, stem, sizes[0], stride=1)
        self.stage2 = _stage(RepVGGBlock, 4, sizes[0], sizes[1], stride=2)
        self.stage3 = _stage(RepVGGBlock, 14, sizes[1], sizes[2], stride=2)
        self.stage4 = _stage(RepVGGBlock, 1, sizes[2], sizes[3], stride=2)
        self.linear = nn.Linear(sizes[3], classes)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.stage2(self.stage1(self.stage0(images)))
        return self.linear(self.stage4(self.stage3(hidden)).mean(dim=(2, 3)))


def _stage(
    block: Callable[[int, int, int], nn.Module], count: int, inputs: int, outputs: int, stride: int
) -> nn.Sequential:
    """`count` blocks, of which the first changes channels and resolution."""
    first = block(inputs, outputs, stride)
    return nn.Sequential(first, *(block(outputs, outputs, 1) for _ in range(count - 1)))


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    **{f"resnet{6 * blocks + 2}": partial(CifarResNet, blocks) for blocks in (3, 5, 7, 9)},
    "repvgg_a0": partial(RepVGG, 0.75, 2.5),
    "repvgg_a1": partial(RepVGG, 1.0, 2.5),
    "repvgg_a2": partial(RepVGG, 1.5, 2.75),
}
"""Architecture by its name in the model zoo; call with the number of classes."""
