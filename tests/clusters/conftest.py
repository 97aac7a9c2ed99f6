"""Sweeps on a benchmark of 200 points, with and without a cluster."""

import subprocess
import sys

import pytest

from pipeline.harness.command import CONF
from tests.pipeline.conftest import files_below, tiny_overrides, write_example

PAIRS = "calibrator=temperature,vector"


class Sweep:
    """Command lines on one folder of data and results."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.settings = tiny_overrides(folder / "tiny.npz", self.folder)

    def command(self, stage, *more):
        sweeps = f"hydra.sweep.dir={self.folder / 'multirun'}"
        flags = [word for word in more if word.startswith("--")]  # Hydra reads them first
        others = [word for word in more if not word.startswith("--")]
        program = [sys.executable, "-m", f"pipeline.{stage}"]
        return [*program, *flags, *self.settings, sweeps, *others]

    def run(self, stage, *more):
        return subprocess.run(
            self.command(stage, *more),
            cwd=CONF.parent, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    def files(self):
        """Fits, scores and results by name."""
        folders = ("data/fits", "data/scores", "results")
        return {
            f"{folder}/{name}": content
            for folder in folders
            for name, content in files_below(self.folder / folder).items()
        }


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same units without a cluster."""
    folder = tmp_path_factory.mktemp("sweep")
    write_example(folder / "tiny.npz")
    sweep = Sweep(folder, "plain")
    for stage in ("logits", "fit", "evaluate"):
        done = sweep.run(stage, "suite.calibrators=[temperature,vector]")
        assert done.returncode == 0, done.stderr
    return sweep


def check_a_sweep(plain, name, launcher):
    """A failed job costs itself alone, and the same command gives the files of a plain run."""
    sweep = Sweep(plain.folder.parent, name)
    assert sweep.run("logits").returncode == 0
    failed = sweep.run("fit", "--multirun", PAIRS, "split=0,7", *launcher)  # there are three splits
    assert failed.returncode != 0
    assert {file.rpartition("/")[2] for file in sweep.files()} == {"0.npz"}
    for stage in ("fit", "evaluate"):
        done = sweep.run(stage, "--multirun", PAIRS, *launcher)
        assert done.returncode == 0, done.stdout + done.stderr
    assert sweep.files() == plain.files()
