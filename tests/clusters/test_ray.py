"""--multirun on Ray: a job that fails stops no other; results are those of a plain run."""

import pytest

from tests.clusters.conftest import check_a_sweep

pytest.importorskip("ray", reason="Ray is not installed here (make test-ray installs it)")

RAY = (
    "hydra/launcher=ray_cluster",
    "+hydra.launcher.ray.init.include_dashboard=false",
    "+hydra.launcher.ray.init.num_cpus=2",
)


def test_a_failed_job_costs_itself_and_the_same_command_makes_the_rest(plain):
    check_a_sweep(plain, "ray", RAY)
