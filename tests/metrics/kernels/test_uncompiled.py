"""Compiled kernels answer what their Python says, on small inputs that reach all their branches.

`NUMBA_DISABLE_JIT=1 python -m tests.metrics.kernels.test_uncompiled answers.npz` has Python itself
run them: the same answers must come out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.calibrators.patching.test_state import project_rows
from utility_calibration import calibrators
from utility_calibration.calibrators.losses import residuals
from utility_calibration.calibrators.patching.bounds import indicator_bounds
from utility_calibration.metrics.kernels.prefix_range import prefix_range
from utility_calibration.metrics.kernels.ranks import descending_order, places_of
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.uniforms import hashed_uniforms, stream_keys

Named = tuple[str, NDArray | Tensor | float]
ROOT = Path(__file__).resolve().parents[3]
SHAPES = ((60, 3), (25, 9))
"""Points and classes."""


def columns_of(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Predictions [12, n] that spread, crowd, tie, are near-equal, extreme or all the same."""
    uniform = random.random(n)
    return np.stack(
        [
            uniform,
            -uniform.round(1),
            10.0 ** (-20 * uniform),
            1 - 10.0 ** (-16 * uniform),
            0.5 + 1e-13 * uniform,
            np.where(uniform < 0.1, uniform, 0.5 + 1e-13 * uniform.round(1)),
            np.full(n, 0.25),
            np.where(uniform < 0.5, 0.0, -0.0),
            5e-324 * random.integers(3, size=n),
            np.arange(n) / n,
            np.arange(n)[::-1] * 2.0**-50 + 1.0,
            np.sort(random.integers(3, size=n)) / 3 - 0.5,
        ]
    )


def sorts() -> Iterator[Named]:
    """Rows short and long, with ties."""
    random = np.random.default_rng(0)
    for n in (1, 9, 200, 700):
        values = columns_of(n, random)
        yield f"descending {n}", descending_order(torch.from_numpy(values))
        yield f"tied {n}", descending_order(torch.from_numpy(values), 1e-3)


def ranges() -> Iterator[Named]:
    """Running sums for one and several draws of the labels, with and without weights and edges."""
    random = np.random.default_rng(1)
    for n in (1, 40, 300):
        v = torch.from_numpy(columns_of(n, random))
        payoffs = torch.from_numpy(random.uniform(-1, 1, size=(len(v), 3)))
        payoffs[::2, 0] = payoffs[::2, 1]  # some pay the same for two outcomes
        codes = torch.from_numpy(random.integers(3, size=(2, n)))
        weights = torch.from_numpy(random.integers(3, size=(2, n)).astype(float)) / 2
        edges = (torch.arange(5) * n // 4)[None]
        passed = weights.sum(dim=1, keepdim=True) * torch.tensor([0.0, 0.3, 0.31, 1.0])
        for name, sums in {
            "one": prefix_range(v, payoffs, codes[:1]),
            "one in bins": prefix_range(v, payoffs, codes[:1], edges),
            "columns": prefix_range(v.T.contiguous().T, payoffs, codes[:1]),
            "two": prefix_range(v, payoffs, codes, edges),
            "weighted": prefix_range(v, payoffs, codes[:1], weights=weights),
            "edges": prefix_range(v, payoffs, codes[:1], passed, weights),
            "weighted draws": prefix_range(v, payoffs, codes, passed[:1], weights[:1]),
        }.items():
            for part in ("low", "high", "at_edges"):
                yield f"{name} {part} {n}", getattr(sums, part)
        yield f"gaps {n}", prefix_range(v, payoffs, codes[:1], tolerance=1e-9).high


def rows() -> Iterator[Named]:
    """Softmax and its gradients, ranks, sums and projections, row by row."""
    random = np.random.default_rng(2)
    for n, classes in SHAPES:
        z = torch.from_numpy(random.normal(scale=3, size=(n, classes)).round(1))
        z[0, 0] = -2000
        y = torch.from_numpy(random.integers(classes, size=n))
        for loss in ("nll", "brier"):
            gradient = z.clone()
            yield f"{loss} {n}", residuals(gradient, y, loss=loss)
            yield f"gradient {loss} {n}", gradient
        p = softmax(z, 0.5)
        yield f"softmax {n}", p
        top_sums = p.sort(dim=1, descending=True).values.cumsum(dim=1)
        yield f"class bounds {n}", indicator_bounds(p, y)
        ranks = places_of(y, descending_order(p))
        yield f"top-K bounds {n}", indicator_bounds(top_sums, ranks, by_rank=True)
        yield f"projected {n}", project_rows(z)
    keys = stream_keys(0, 7)
    yield "uniforms", hashed_uniforms(keys, torch.arange(3)[:, None])
    yield "uniforms by stream", hashed_uniforms(keys, torch.arange(21).reshape(3, 7), high=2.0)


def fits() -> Iterator[Named]:
    """Every calibrator that has kernels of its own.

    Not vector scaling by the Brier score: on so few points it has no unique minimum.
    """
    random = np.random.default_rng(3)
    methods = {
        "temperature": calibrators.TemperatureScaling(),
        "temperature brier": calibrators.TemperatureScaling(loss="brier"),
        "vector": calibrators.VectorScaling(),
        "isotonic": calibrators.IsotonicCalibration(),
        "isotonic global": calibrators.IsotonicCalibration(mode="global", normalize=False),
        "patching": calibrators.UtilityPatching(step_size=1.0, steps=3, sampled_count=2),
        "logit shift": calibrators.LogitShiftPatching(),
    }
    for n, classes in SHAPES:
        z = random.normal(scale=2, size=(n, classes)).round(1)
        y = random.integers(classes, size=n)
        new = np.vstack([z, z[:3] + 50 * y[0]])
        for name, calibrator in methods.items():
            yield f"fit {name} {n}", calibrator.fit(z, y).predict_proba(new)


def answers() -> dict[str, NDArray]:
    """All of them by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's arithmetic, which says what wraps around
        named = [*sorts(), *ranges(), *rows(), *fits()]
    return {name: np.asarray(answer) for name, answer in named}


@pytest.mark.slow
def test_compiled_kernels_answer_what_python_answers(tmp_path):
    path = tmp_path / "answers.npz"
    command = [sys.executable, "-m", "tests.metrics.kernels.test_uncompiled", str(path)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True)
    with np.load(path) as python:
        compiled = answers()
        assert set(python.files) == set(compiled)
        for name, expected in compiled.items():
            atol = 1e-4 if name.startswith("fit ") else 1e-12  # a flat optimum, or one expression
            np.testing.assert_allclose(python[name], expected, rtol=1e-9, atol=atol, err_msg=name)


if __name__ == "__main__":
    np.savez(Path(sys.argv[1]), **answers())
