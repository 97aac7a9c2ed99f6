"""The stages, one module each, in the order data flows: logits, fit, evaluate, report.

Each runs by itself (`python -m pipeline.fit benchmark=digits calibrator=temperature split=3`) and
as a stage of `dvc repro`. Results are files under `results/`, one small folder per unit of work.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # as in `metrics`, where a stage loads torch first
