"""The paper's statements on real and drawn points (docs/studies)."""

from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest

from tests.docs.pages import ROOT

SPEC = spec_from_file_location("study", ROOT / "docs/studies/paper_statements.py")
study = module_from_spec(SPEC)
SPEC.loader.exec_module(study)


@pytest.mark.parametrize("name", ["cifar10_repvgg_a0", "cifar100_resnet56"])
def test_no_monotone_map_of_the_utility_gains_more_than_twice_the_error(name, shared_dir):
    """Proposition 3.1: single classes, shortlists and the graded gain at three temperatures."""
    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"][:3000].astype(float), archive["labels"][:3000]
    found = np.concatenate([study.gaps_of(logits, labels, t) for t in (1.0, 0.5, 2.5)])
    assert found.shape == (27, 2) and found[:, 1].min() >= -1e-12
    assert (found[:, 1] <= 2 * found[:, 0] + 1e-12).all()
    assert (found[:, 1] / found[:, 0]).max() > 0.3  # acting on these forecasts does lose something


def test_the_sample_bound_of_the_paper_holds_and_the_deviation_falls_with_the_root_of_n():
    """Lemma 3.3."""
    found = {n: np.quantile(study.deviations(n), 1 - study.SHARE) for n in (400, 6400)}
    assert all(value <= study.sample_bound(n) for n, value in found.items())
    assert 2.5 < found[400] / found[6400] < 5.5  # √16 = 4


def test_the_study_reads_logits_and_draws_its_two_figures(tmp_path):
    p = np.random.default_rng(0).dirichlet(np.ones(6), size=120)
    np.savez(tmp_path / "a.npz", logits=np.log(p), labels=np.arange(120) % 6)
    assert study.main([str(tmp_path / "a.npz"), "--output", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"risk_gap.png", "sample_bound.png"}
