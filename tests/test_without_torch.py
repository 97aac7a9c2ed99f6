"""The commands and the library run where torch is not installed: whoever imports it fails here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HIDE_TORCH = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Hidden())
"""
IMPORT_ALL_NAMES = """
from utility_calibration import calibrators, metrics
for package in (metrics, calibrators):
    for name in package.__all__:
        getattr(package, name)
"""
RUN_IN_TURN = """
import json, runpy
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["utility-calibration", *arguments]
    try:
        runpy.run_module("utility_calibration", run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
"""


def run_without_torch(folder: Path, program: str, *commands: list[str]) -> None:
    """Run a program, and in it the `commands` in turn, each with its arguments."""
    call = [sys.executable, "-c", HIDE_TORCH + program, json.dumps(commands)]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_imported(tmp_path: Path) -> None:
    run_without_torch(tmp_path, IMPORT_ALL_NAMES)


def test_a_file_is_scored_and_calibrated_with_every_method(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 100)
    logits = 2 * np.eye(3)[labels] + rng.normal(size=(100, 3))
    np.savez(tmp_path / "my.npz", logits=logits, labels=labels)
    save = ["--save", "saved.npz", "--method", "logit_shift", "--jobs", "1", "--splits", "1"]
    run_without_torch(
        tmp_path,
        RUN_IN_TURN,
        ["score", "my.npz", *save],
        ["score", "my.npz", "--stream", "--output", "streamed", "--jobs", "1"],
        ["apply", "saved.npz", "my.npz", "--output", "calibrated.csv"],
    )


def test_the_stages_run_on_an_offline_benchmark(tmp_path: Path) -> None:
    # In one process: a worker would find torch.
    units = ["benchmark=digits", "suite.calibrators=[uncalibrated,temperature]", "splits.count=1"]
    units.append("jobs=1")
    stages = ("logits", "fit", "evaluate", "report", "status")
    small = ["dynamics.iterations=2", "dynamics.utilities=5", "dynamics.splits=1"]
    study = ["dynamics", *units, *small, "dynamics.snapshots=[0]"]
    run_without_torch(tmp_path, RUN_IN_TURN, *([stage, *units] for stage in stages), study)
