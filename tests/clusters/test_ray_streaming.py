"""The recipe of docs/streaming.md for Ray: two workers, one of them killed, equal one process."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tests.clusters.test_clusters import NEEDS_RAY
from utility_calibration.metrics import StreamingCalibration, TopK

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streaming.md"
START = """
import os
import ray
ray.init(num_cpus=2, include_dashboard=False)

def update(streaming, *given):
    if not os.path.exists(KILLED):
        open(KILLED, "w").close()
        os._exit(1)
    streaming.update(*given)
"""


@NEEDS_RAY
def test_the_recipe_for_ray_with_a_killed_worker_equals_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(3), size=2000), rng.integers(3, size=2000)
    (tmp_path / "shards").mkdir()
    for k, rows in enumerate(np.split(np.arange(2000), 4)):
        table = pd.DataFrame(p[rows], columns=["p0", "p1", "p2"]).assign(label=labels[rows])
        table.to_parquet(tmp_path / "shards" / f"{k}.parquet")
    (code,) = re.findall(r"```ray\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    code = code.replace("streaming.update(", "update(streaming, ")
    text = f"KILLED = {str(tmp_path / 'killed')!r}\n{START}\n{code}\nwhole.save('whole.npz')\n"
    (tmp_path / "recipe.py").write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "recipe.py"], cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "killed").exists()
    expected = StreamingCalibration(TopK(), 3)
    expected.update(p, labels)
    found = StreamingCalibration(TopK(), 3).load(tmp_path / "whole.npz").result()
    assert found.n == 2000
    np.testing.assert_allclose(found.lower, expected.result().lower, atol=1e-12)
    np.testing.assert_allclose(found.upper, expected.result().upper, atol=1e-12)
