"""What `import metrics` does to the process that imports it."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys
before = dict(os.environ)
import metrics, metrics.diagram
assert os.environ == before
assert "matplotlib" not in sys.modules
"""


def test_it_leaves_the_environment_as_it_is_and_loads_no_matplotlib():
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
