"""How torch's threads wait is set before torch is loaded, whatever is imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPY = """
import importlib, importlib.abc, os, sys

class Spy(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            print("set" if "GOMP_SPINCOUNT" in os.environ else "not set")

sys.meta_path.insert(0, Spy())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize("module", ["metrics", "calibrators", "pipeline.dynamics_study"])
def test_torch_is_told_not_to_spin_before_it_is_loaded(module: str) -> None:
    environment = {name: v for name, v in os.environ.items() if name != "GOMP_SPINCOUNT"}
    command = [sys.executable, "-c", SPY, module]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["set"], done.stderr
