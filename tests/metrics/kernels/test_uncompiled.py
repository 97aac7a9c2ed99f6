"""Compiled kernels answer what their Python says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.metrics.kernels.uncompiled import answers

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_compiled_kernels_answer_what_python_answers(tmp_path, measured_child):
    path = tmp_path / "answers.npz"
    command = [sys.executable, "-m", "tests.metrics.kernels.uncompiled", str(path)]
    subprocess.run(command, cwd=ROOT, env={**measured_child, "NUMBA_DISABLE_JIT": "1"}, check=True)
    with np.load(path) as python:
        compiled = answers()
        assert set(python.files) == set(compiled)
        for name, expected in compiled.items():
            atol = 5e-4 if name.startswith("fit ") else 1e-12  # a flat optimum, or one expression
            np.testing.assert_allclose(python[name], expected, rtol=1e-9, atol=atol, err_msg=name)
