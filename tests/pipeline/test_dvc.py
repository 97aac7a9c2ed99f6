"""dvc.yaml is a valid pipeline with one fit and one evaluation stage per calibrator."""

import subprocess
import sys

from pipeline.harness.command import CONF


def test_stages_are_listed():
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "stage", "list", "--name-only"],
        cwd=CONF.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    names = set(result.stdout.split())
    assert {"logits", "fit@vector", "evaluate@patching", "dynamics", "report"} <= names
    assert len(names) == 15
