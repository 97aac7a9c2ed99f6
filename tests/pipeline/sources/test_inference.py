"""The shared forward pass: same logits whatever the batches, and nothing lost when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrics.validation import InputError
from pipeline.sources.inference import Run, forward_logits

ROWS, CLASSES = 23, 4
KEY = {"data": "points"}
ROOT = Path(__file__).resolve().parents[3]


class Points:
    """23 items (features [5], label)."""

    def __init__(self, rows: int = ROWS) -> None:
        generator = torch.Generator().manual_seed(3)
        self.inputs = torch.randn(rows, 5, generator=generator)
        self.labels = torch.randint(CLASSES, (rows,), generator=generator)
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.read.append(index)
        return self.inputs[index], int(self.labels[index])


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, CLASSES)
    )


def logits_of(work_dir: Path, data: Any = None, **options: Any) -> tuple[Any, Any]:
    run = Run(work_dir, **{"device": "cpu", "batch_size": 4, "shard_size": 10, **options})
    return forward_logits(network(), data if data is not None else Points(), KEY, run)


def test_logits_and_labels_in_the_order_of_the_data(tmp_path: Path) -> None:
    data, seen = Points(), []
    logits, labels = logits_of(
        tmp_path, data, progress=lambda done, total, what="": seen.append((done, total))
    )
    with torch.inference_mode():
        expected = network().eval()(data.inputs)
    assert logits.dtype == np.float32 and labels.dtype == np.int64
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-6)
    np.testing.assert_array_equal(labels, data.labels.numpy())
    assert seen[0] == (0, ROWS) and seen[-1] == (ROWS, ROWS)
    assert seen == sorted(seen)


def test_batches_shards_and_workers_do_not_change_the_logits(tmp_path: Path) -> None:
    reference, _ = logits_of(tmp_path / "a")
    logits, labels = logits_of(tmp_path / "b", batch_size=7, shard_size=3, workers=2)
    np.testing.assert_allclose(logits, reference, atol=1e-6)
    np.testing.assert_array_equal(labels, Points().labels.numpy())


def test_a_killed_process_leaves_whole_shards_only(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_inference as t\n"
        "def kill(done, total, what=''):\n"
        "    if done > 21: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"t.logits_of(Path({str(tmp_path)!r}), progress=kill)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    data = Points()
    logits, labels = logits_of(tmp_path, data)
    assert data.read == [20, 21, 22]
    np.testing.assert_allclose(logits, logits_of(tmp_path / "whole")[0], atol=1e-6)
    np.testing.assert_array_equal(labels, Points().labels.numpy())


def test_a_damaged_shard_is_computed_again(tmp_path: Path) -> None:
    reference, labels = logits_of(tmp_path)
    shard = sorted(tmp_path.rglob("*.npz"))[1]
    content = shard.read_bytes()
    middle = content.index(b"\x93NUMPY") + 150  # inside the logits' numbers
    shard.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    data = Points()
    again, again_labels = logits_of(tmp_path, data)
    assert data.read == list(range(10, 20)), "only the damaged shard is redone"
    np.testing.assert_allclose(again, reference, atol=1e-6)
    np.testing.assert_array_equal(again_labels, labels)


def test_nothing_is_reused_for_other_weights_data_or_precision(tmp_path: Path) -> None:
    logits_of(tmp_path)
    run = Run(tmp_path, "cpu", 4, shard_size=10)
    other = network()
    with torch.no_grad():
        other[0].weight[0, 0] += 1e-3
    for model, key, options in (
        (other, KEY, run),
        (network(), {"data": "others"}, run),
        (network(), KEY, Run(tmp_path, "cpu", 4, "bf16", shard_size=10)),
    ):
        data = Points()
        forward_logits(model, data, key, options)
        assert len(data.read) == ROWS
    data = Points()
    logits_of(tmp_path, data)
    assert data.read == [], "the first run's shards are still there"


def test_an_unreadable_item_is_one_line_also_from_a_worker(tmp_path: Path) -> None:
    class Broken(Points):
        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            if index == 5:
                raise InputError("a.JPEG: not a readable image")
            return super().__getitem__(index)

    with pytest.raises(InputError) as caught:
        logits_of(tmp_path, Broken(), workers=2)
    assert str(caught.value) == "a.JPEG: not a readable image"


def test_mixed_precision_is_an_option_and_comes_back_as_float32(tmp_path: Path) -> None:
    exact, _ = logits_of(tmp_path)
    rounded, _ = logits_of(tmp_path, precision="bf16")
    assert rounded.dtype == np.float32
    assert 1e-5 < np.abs(rounded - exact).max() < 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_gpu_and_cpu_agree(tmp_path: Path) -> None:
    on_gpu, _ = logits_of(tmp_path / "gpu", device="cuda")
    np.testing.assert_allclose(on_gpu, logits_of(tmp_path / "cpu")[0], atol=1e-5)
