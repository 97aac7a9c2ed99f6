"""conf/benchmark/: every source of the paper composes, and names a target that takes its keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import get_method

PUBLISHED = {
    "cifar10_repvgg": 94.39,
    "cifar10_resnet": 94.37,
    "cifar10_resnet44": 94.01,
    "cifar100_repvgg": 77.18,
    "cifar100_resnet": 72.63,
    "imagenet_vit": 85.11,
    "imagenet_resnet": 80.38,
    "yahoo": 72.3,
    "synthetic": None,
    "synthetic_imagenet": None,
}
PAPER = {"accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg", "u_w2v"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_benchmark_composes_and_fits_its_source(
    name: str, benchmark_config: Callable[..., Any]
) -> None:
    config = benchmark_config(name)
    assert config.name == name and config.title
    assert config.published_accuracy == PUBLISHED[name]
    assert set(config.metrics) >= PAPER
    for section in (config.source, config.similarity):
        if section is None:
            continue
        target = inspect.signature(get_method(section["_target_"]))
        target.bind(
            **{key: value for key, value in section.items() if key != "_target_"}
            | (
                {"device": "cpu", "work_dir": Path(), "progress": None}
                if section is config.source
                else {}
            )
        )


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name.startswith("cifar")])
def test_the_ready_made_logits_are_those_of_the_configured_model(
    name: str, benchmark_config: Callable[..., Any], shared_dir: Path
) -> None:
    config = benchmark_config(name)
    assert config.precomputed == f"{config.source.dataset}_{config.source.model}"
    with np.load(shared_dir / "logits" / f"{config.precomputed}.npz") as file:
        accuracy = 100 * (file["logits"].argmax(axis=1) == file["labels"]).mean()
    assert abs(accuracy - config.published_accuracy) < 0.33
