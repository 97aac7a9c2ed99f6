"""Lemma 3.3 on drawn points (docs/studies); tests/pipeline/test_users.py has Proposition 3.1."""

from importlib.util import module_from_spec, spec_from_file_location

import numpy as np

from tests.docs.pages import ROOT
from utility_calibration.pipeline.reporting.claims_of_bounds import LAW_UC

SPEC = spec_from_file_location("study", ROOT / "docs/studies/paper_statements.py")
study = module_from_spec(SPEC)
SPEC.loader.exec_module(study)


def test_the_sample_bound_of_the_paper_holds_and_the_deviation_falls_with_the_root_of_n():
    distances = {n: np.quantile(study.deviations(n), 1 - study.SHARE) for n in (400, 6400)}
    assert all(value <= study.sample_bound(n) for n, value in distances.items())
    assert 2.5 < distances[400] / distances[6400] < 5.5  # √16 = 4
    assert study.deviations(100_000, repetitions=2).max() < 0.1 * LAW_UC


def test_the_study_draws_its_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "SIZES", [100, 400])
    assert study.main(["--output", str(tmp_path / "out")]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["sample_bound.png"]
