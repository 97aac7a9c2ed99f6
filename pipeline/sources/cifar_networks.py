"""The two CIFAR architectures of the paper, with the parameter names of the public checkpoints.

They are written here so that a checkpoint loads without code from torch.hub. The checkpoints
are those of https://github.com/chenyaofo/pytorch-cifar-models (BSD-3-Clause). ResNet: He et al.
2016, section 4.2 (6k + 2 layers, 16/32/64 channels). RepVGG: Ding et al. 2021, in its three-branch
training form, with the strides adapted to 32 × 32 images.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


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
        self.rbr_dense = _convolution(inputs, outputs, 3, stride)
        self.rbr_1x1 = _convolution(inputs, outputs, 1, stride)
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


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "resnet20": lambda classes: CifarResNet(3, classes),
    "resnet32": lambda classes: CifarResNet(5, classes),
    "resnet44": lambda classes: CifarResNet(7, classes),
    "resnet56": lambda classes: CifarResNet(9, classes),
    "repvgg_a0": lambda classes: RepVGG(0.75, 2.5, classes),
    "repvgg_a1": lambda classes: RepVGG(1.0, 2.5, classes),
    "repvgg_a2": lambda classes: RepVGG(1.5, 2.75, classes),
}
"""Architecture by its name in the model zoo; call with the number of classes."""


def _convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    branch = nn.Sequential()
    padding = kernel // 2
    branch.add_module("conv", nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False))
    branch.add_module("bn", nn.BatchNorm2d(outputs))
    return branch


def _stage(
    block: Callable[[int, int, int], nn.Module], count: int, inputs: int, outputs: int, stride: int
) -> nn.Sequential:
    """`count` blocks, of which the first changes channels and resolution."""
    first = block(inputs, outputs, stride)
    return nn.Sequential(first, *(block(outputs, outputs, 1) for _ in range(count - 1)))
