"""--multirun on Ray: a job that fails stops no other; results are those of a plain run."""

import pytest

from tests.clusters.conftest import PAIRS, Sweep

pytest.importorskip("ray", reason="Ray is not installed here (make test-ray installs it)")

RAY = (
    "hydra/launcher=ray_cluster",
    "+hydra.launcher.ray.init.include_dashboard=false",
    "+hydra.launcher.ray.init.num_cpus=2",
)


def test_a_failed_job_costs_itself_and_the_same_command_makes_the_rest(plain):
    sweep = Sweep(plain.folder.parent, "ray")
    failed = sweep.run("fit", "--multirun", PAIRS, "split=0,7", *RAY)  # there are three splits
    assert failed.returncode != 0
    assert {name.rpartition("/")[2] for name in sweep.files()} == {"0.npz"}
    for stage in ("fit", "evaluate"):
        done = sweep.run(stage, "--multirun", PAIRS, *RAY)
        assert done.returncode == 0, done.stdout + done.stderr
    assert sweep.files() == plain.files()
