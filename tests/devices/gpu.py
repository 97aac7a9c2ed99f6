"""Compare forward passes on a GPU with the CPU's, and write results/speed/gpu.md.

python -m tests.devices.gpu        (`make test-gpu`; it says so where there is no GPU)
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tests.paper import standins
from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.sources.cifar import NETWORKS
from utility_calibration.pipeline.sources.forward_pass import Run, forward_logits
from utility_calibration.pipeline.sources.imagenet import imagenet_logits
from utility_calibration.pipeline.sources.yahoo import yahoo_logits

ITEMS, TOLERANCE, RESNET = 1024, 1e-4, "resnet50.a1_in1k"
REPORT = Path("results/speed/gpu.md")


def sources(folder: Path) -> dict[str, Callable[..., NDArray[np.float32]]]:
    """The logits [n, C] of the three kinds of source, each as a function of device and workers."""
    images = standins.images(folder / "images", ITEMS)
    weights = standins.weights(folder / "weights", RESNET)
    model = standins.yahoo_model(folder / "model")
    data = standins.yahoo_data(folder / "test-0.parquet", ITEMS)

    def imagenet(device: str, workers: int) -> NDArray[np.float32]:
        run: Any = {"device": device, "workers": workers, "expected_images": None}
        return imagenet_logits(model=RESNET, data_dir=images, checkpoints=weights, **run).logits

    def yahoo(device: str, workers: int) -> NDArray[np.float32]:
        run: Any = {"device": device, "expected_rows": None}  # it has no workers
        return yahoo_logits(model=str(model), data=str(data), **run).logits

    return {
        "ImageNet, ResNet-50": imagenet,
        "Yahoo, small DistilBERT": yahoo,
        "CIFAR, ResNet-56": cifar_network,
    }


def cifar_network(device: str, workers: int) -> NDArray[np.float32]:
    """The logits of the CIFAR network with random weights over random images."""
    torch.manual_seed(0)
    network, images = NETWORKS["resnet56"](10), torch.randn(ITEMS, 3, 32, 32)
    logits, *_ = forward_logits(network, [(x, 0) for x in images], Run(device, 64, workers))
    return logits


def rows_of_sources(folder: Path, device: str = "cuda", workers: int = 8) -> list[str]:
    """Items per second on the device and on the CPU, and two runs on the device."""
    rows = []
    for name, run in sources(folder).items():
        run(device, workers)  # the first one starts the GPU's libraries
        first, seconds = timed(run, device, workers)
        same = np.array_equal(first, run(device, workers))
        there, on_cpu = timed(run, "cpu", workers)
        # TF32, which the environment may ask for, would be off by about 1e-3 of the largest logit.
        away = float(np.abs(first - there).max() / np.abs(there).max())
        assert away <= TOLERANCE, (name, away)
        speeds = f"{ITEMS / seconds:.0f} | {ITEMS / on_cpu:.0f}"
        rows.append(f"| {name} | {speeds} | {away:.1e} | {'yes' if same else 'NO'} |")
    return rows


def timed(work: Callable[..., NDArray[Any]], *arguments: Any) -> tuple[NDArray[Any], float]:
    """What the work returns, and its seconds; it ends on the CPU, so the GPU has ended, too."""
    began = time.perf_counter()
    result = work(*arguments)
    return result, time.perf_counter() - began


def force_out_of_memory() -> str:
    """The line that a batch too large for the GPU ends with."""
    torch.cuda.empty_cache()  # memory that torch keeps for later does not count
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        cifar_network("cuda", 0)
    except InputError as error:
        return str(error)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    raise AssertionError("a GPU with almost no memory gave no error")


def main() -> None:
    """Run everything in at most eight minutes."""
    if not torch.cuda.is_available():
        print(f"test-gpu: skipped, torch {torch.__version__} sees no CUDA GPU")
        return
    if "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE" not in os.environ:
        again = os.environ | {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
        subprocess.run([sys.executable, "-m", "tests.devices.gpu"], env=again, check=True)
    out_of_memory = force_out_of_memory()
    with tempfile.TemporaryDirectory() as folder:
        of_sources = rows_of_sources(Path(folder))
    if "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE" in os.environ:
        print("with TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 the logits are those of the CPU, too")
        return
    lines = [
        f"# On a GPU: {torch.cuda.get_device_name()}, torch {torch.__version__}",
        "",
        f"{os.cpu_count()} CPU cores, 8 workers, {ITEMS} items:",
        "",
        "| Source | Items per second, GPU | CPU | Difference, of the largest logit | "
        "Two runs equal |",
        "| --- | --: | --: | --: | --- |",
        *of_sources,
        "",
        f"Out of memory says: {out_of_memory}",
    ]
    write_text(REPORT, "\n".join(lines) + "\n")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
