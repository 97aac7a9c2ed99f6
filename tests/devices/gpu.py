"""Compare a GPU with the CPU on stand-ins, and write results/speed/gpu.md with the card's name.

python -m tests.devices.gpu        (`make test-gpu`; it says so where there is no GPU)
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.paper import standins
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling
from utility_calibration.metrics import TopK
from utility_calibration.metrics.validation import InputError
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.sources.imagenet import imagenet_logits
from utility_calibration.pipeline.sources.inference import Run, forward_logits
from utility_calibration.pipeline.sources.synthetic import synthetic_logits
from utility_calibration.pipeline.sources.yahoo import yahoo_logits

ITEMS, TOLERANCE, RESNET = 256, 1e-4, "resnet50.a1_in1k"
REPORT = Path("results/speed/gpu.md")


def sources(folder: Path) -> dict[str, Any]:
    """The three kinds of source, each as a function of device and workers."""
    images = standins.images(folder / "images", ITEMS)
    weights = standins.weights(folder / "weights", RESNET)
    model = standins.yahoo_model(folder / "model")
    data = standins.yahoo_data(folder / "test-0.parquet", ITEMS)
    return {
        "ImageNet, ResNet-50": lambda **run: imagenet_logits(
            model=RESNET, data_dir=images, checkpoints=weights, expected_images=None, **run
        ),
        "Yahoo, small DistilBERT": lambda device, **_: yahoo_logits(
            model=str(model), data=str(data), expected_rows=None, device=device
        ),
        "CIFAR, ResNet-56": lambda **run: cifar_network(**run),
    }


def cifar_network(device: str, workers: int) -> Any:
    """The CIFAR network with random weights over random images."""
    from utility_calibration.pipeline.sources.cifar import NETWORKS

    torch.manual_seed(0)
    network, images = NETWORKS["resnet56"](10), torch.randn(ITEMS, 3, 32, 32)
    return forward_logits(network, [(image, 0) for image in images], Run(device, 64, workers))


def rows_of_sources(folder: Path) -> list[str]:
    """Items per second with 8 workers; GPU against CPU, and two runs on the GPU."""
    rows = []
    for name, run in sources(folder).items():
        run(device="cuda", workers=8)  # the first one starts the GPU's libraries
        began = time.perf_counter()
        first = run(device="cuda", workers=8).logits
        seconds = time.perf_counter() - began
        same = np.array_equal(first, run(device="cuda", workers=8).logits)
        there = run(device="cpu", workers=8).logits
        # TF32, which the environment may ask for, would be off by about 1e-3 of the largest logit.
        away = float(np.abs(first - there).max() / np.abs(there).max())
        assert away <= TOLERANCE, (name, away)
        rows.append(f"| {name} | {ITEMS / seconds:.0f} | {away:.1e} | {'yes' if same else 'NO'} |")
    return rows


def rows_of_fits() -> list[str]:
    """Seconds and peak memory of fits with 1,000 classes, and equal errors."""
    result = synthetic_logits(samples=5000, classes=1000)
    rows = []
    for fitted in (TemperatureScaling(), LogitShiftPatching(steps=8)):
        errors = {}
        for device in ("cpu", "cuda"):
            logits = torch.from_numpy(result.logits).to(device)
            labels = torch.from_numpy(result.labels).to(device)
            began = time.perf_counter()
            p = fitted.fit(logits, labels).predict_proba(logits)
            errors[device] = TopK().calibration_errors(p, labels).cpu().numpy()
            seconds = time.perf_counter() - began
            peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0
            name = type(fitted).__name__
            rows.append(f"| {name} | {device} | {seconds:.1f} | {peak:.0f} |")
        np.testing.assert_allclose(errors["cuda"], errors["cpu"], atol=TOLERANCE)
    return rows


def force_out_of_memory() -> str:
    """The line that a batch too large for the GPU ends with."""
    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        cifar_network("cuda", 0)
    except InputError as error:
        return str(error)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    raise AssertionError("a GPU with almost no memory gave no error")


def main() -> None:
    """Run everything in at most eight minutes, the device tests first."""
    if not torch.cuda.is_available():
        print(f"test-gpu: skipped, torch {torch.__version__} sees no CUDA GPU")
        return
    if "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE" not in os.environ:
        tests = [sys.executable, "-m", "pytest", "-q", "tests/devices"]
        subprocess.run(tests, check=True)
        again = os.environ | {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
        subprocess.run([sys.executable, "-m", "tests.devices.gpu"], env=again, check=True)
    with tempfile.TemporaryDirectory() as folder:
        of_sources = rows_of_sources(Path(folder))
    if "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE" in os.environ:
        print("with TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 the logits are those of the CPU, too")
        return
    lines = [
        f"# On a GPU: {torch.cuda.get_device_name()}, torch {torch.__version__}",
        "",
        "| Source | Items per second, 8 workers | Difference from the CPU, of the largest logit | "
        "Two runs equal |",
        "| --- | --: | --: | --- |",
        *of_sources,
        "",
        "| Fit, 5,000 points of 1,000 classes | Device | Seconds | Peak MiB on the GPU |",
        "| --- | --- | --: | --: |",
        *rows_of_fits(),
        "",
        f"Out of memory says: {force_out_of_memory()}",
    ]
    write_text(REPORT, "\n".join(lines) + "\n")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
