"""What the paper proves of UC, on real forecasts and by simulation: Proposition 3.1, Lemma 3.3."""

import numpy as np
import pytest

from utility_calibration.scripts.maintain import paper_statements
from utility_calibration.scripts.maintain.paper_statements import SHARE, deviations, gaps_of


@pytest.mark.parametrize("name", ["cifar10_repvgg_a0", "cifar100_resnet56"])
def test_no_monotone_map_of_the_utility_gains_more_than_twice_the_error(name, shared_dir):
    """Proposition 3.1: single classes, shortlists and the graded gain at three temperatures."""
    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"][:3000].astype(float), archive["labels"][:3000]
    found = np.concatenate([gaps_of(logits, labels, t) for t in (1.0, 0.5, 2.5)])
    assert found.shape == (27, 2) and found[:, 1].min() >= -1e-12
    assert (found[:, 1] <= 2 * found[:, 0] + 1e-12).all()
    assert (found[:, 1] / found[:, 0]).max() > 0.3  # acting on these forecasts does lose something


def test_the_sample_bound_of_the_paper_holds_and_the_deviation_falls_with_the_root_of_n():
    found = {n: np.quantile(deviations(n), 1 - SHARE) for n in (400, 6400)}
    assert all(value <= paper_statements.sample_bound(n) for n, value in found.items())
    assert 2.5 < found[400] / found[6400] < 5.5  # √16 = 4


def test_the_command_draws_both(tmp_path):
    random = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", logits=random.normal(size=(300, 6)), labels=np.arange(300) % 6)
    assert paper_statements.main([str(tmp_path / "a.npz"), "--output", str(tmp_path / "out")]) == 0
    names = {"risk_gap.png", "sample_bound.png"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
