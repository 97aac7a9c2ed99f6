"""The stages, one module each, in the order data flows: logits, fit, evaluate, dynamics, report.

Each runs by itself (`python -m pipeline.fit benchmark=digits calibrator=temperature split=3`) and
as a stage of `dvc repro`.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

is_script = Path(sys.argv[0]).absolute().parent.name == "scripts"
is_stage = sys.argv[:1] == ["-m"] and "pipeline.repro" not in sys.orig_argv
if (is_script or is_stage) and not find_spec("hydra"):
    fix = "run 'make setup' once, then 'source .venv/bin/activate'"
    sys.exit(f"error: this Python has not the project's packages; {fix}")

# torch's and NumPy's threads busy-wait after each matrix product and would occupy the cores that
# the compiled kernels use next. These shorten the wait; both are read when the libraries load.
# OPENBLAS_THREAD_TIMEOUT is the logarithm to base 2 of a number of cycles.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
