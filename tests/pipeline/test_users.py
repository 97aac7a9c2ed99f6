"""The users stage on stand-in logits: what it writes, skips and refuses, and what reports show."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hydra.errors import ConfigCompositionException

from tests.pipeline.conftest import files_below, times
from tests.refusals import fails
from utility_calibration.metrics import TopK
from utility_calibration.metrics.acting import largest_gain
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.priors import PRIORS, linear_users
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.harness.units import ALLOWED_VALUES, LISTS, Request
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.report import run_report
from utility_calibration.pipeline.reporting.claims_of_bounds import claims_of_bounds
from utility_calibration.pipeline.reporting.studies import facts_of_users
from utility_calibration.pipeline.reporting.user_priors import Priors, stability_of
from utility_calibration.pipeline.scoring.held_out import held_out
from utility_calibration.pipeline.users import run_users

SMALL = (
    "users.sampled=3", "users.shortlists=2", "users.risk_floor_draws=2", "users.utilities=12",
    "users.prior_floor_draws=3", "users.prior_splits=2",
)  # fmt: skip


@pytest.fixture
def request_study(request_made):
    return lambda *overrides: request_made(*SMALL, *overrides)


def test_the_numbers_are_those_of_the_test_points(request_study, tmp_path):
    request: Request = request_study()
    run_users(request)
    folder = tmp_path / "results/users/tiny"
    units = [unit for unit in Plan(request.units()).units if unit.calibrator == "vector"]
    tests = [held_out(unit) for unit in units]
    forecasts = [Forecast(test.probabilities) for test in tests]
    labels = [test.labels for test in tests]

    utility = pd.read_csv(folder / "risk_gap.csv")
    row = utility[(utility["calibrator"] == "vector") & (utility["kind"] == "shortlists")].iloc[1]
    outcomes = [f.outcomes(y) for f, y in zip(forecasts, labels, strict=True)]
    pairs = [
        TopK((2,)).predicted_and_realized(f, o, 0) for f, o in zip(forecasts, outcomes, strict=True)
    ]
    assert row["gap"] == pytest.approx(np.mean([largest_gain(*pair)["gain"] for pair in pairs]))
    splits = pd.read_csv(folder / "risk_gap_splits.csv")
    assert splits.groupby("calibrator", sort=False).size().to_dict() == {
        "temperature": 3, "vector": 3, "all methods": 3, "noise floor": 3,
    }  # fmt: skip
    assert (splits["largest_ratio"].dropna() <= 1 + 1e-9).all()

    medians = pd.read_csv(folder / "priors_medians.csv")
    assert list(medians["prior"].unique()) == list(PRIORS)
    chosen = medians[(medians["family"] == "linear") & (medians["prior"] == "sparse")]
    of_vector = chosen[chosen["calibrator"] == "vector"]["median"]
    users = linear_users("sparse", 12, 3, 0)
    errors = [users.calibration_errors(t.probabilities, t.labels) for t in tests[:2]]
    assert of_vector.tolist() == pytest.approx([np.median(e) for e in errors], rel=1e-6)
    curves = pd.read_csv(folder / "priors.csv")
    has_floor = curves["floor_low"].notna().groupby(curves["calibrator"]).all()
    assert has_floor.to_dict() == {"temperature": True, "vector": False}
    assert (curves["floor_low"].dropna() <= curves["floor_high"].dropna()).all()


def test_a_second_run_makes_nothing_and_other_options_make_it_again(request_study, tmp_path):
    run_users(request_study())
    before = files_below(tmp_path / "results"), times(tmp_path / "data/users")
    run_users(request_study())
    assert (files_below(tmp_path / "results"), times(tmp_path / "data/users")) == before
    run_users(request_study("users.priors=[uniform,graded]"))
    record = read_json(tmp_path / "results/users/tiny/users.json")
    assert record["options"]["priors"] == ["uniform", "graded"]


def test_a_part_of_the_suite_writes_no_text(request_study, tmp_path):
    run_users(request_study("calibrator=vector"))
    assert not (tmp_path / "results/users").exists()
    assert len(list((tmp_path / "data/users/tiny/vector").glob("*.npz"))) == 3


def test_units_without_a_fit_are_named(request_study):
    with fails(UnitsFailed, "isotonic", "fit"):
        run_users(request_study("suite.calibrators=[temperature,isotonic]"))


def test_the_report_has_tables_figures_and_claims(request_study, tmp_path):
    run_users(request_study())
    run_report(request_study())
    results = tmp_path / "results"
    for stem in ("risk_gap_tiny", "priors_tiny"):
        assert (results / f"tables/{stem}.md").is_file()
        assert (results / f"tables/{stem}.csv").is_file()
        assert (results / f"figures/{stem}.png").is_file()
    page = next(results.glob("*.html")).read_text()
    assert page.count("utility-risk gap") >= 1 and page.count("data:image/png") == 2
    priors = Priors.read(results / "users/tiny")
    assert set(stability_of(priors, "rank").tau) == set(PRIORS[1:])
    bounds = claims_of_bounds(results / "users", ["tiny"])
    assert [claim.where.split(",")[0] for claim in bounds] == [
        "Proposition 3.1", "Proposition 3.1", "Lemma 3.3",
    ]  # fmt: skip
    assert bounds[0].verdict == bounds[2].verdict == "agrees"
    assert claims_of_bounds(results / "users", ["another"]) == []


def test_studies_of_other_logits_or_other_methods_are_not_shown(request_study, tmp_path):
    run_users(request_study())
    run_report(request_study("suite.calibrators=[temperature]"))
    assert not (tmp_path / "results/tables/risk_gap_tiny.md").exists()


def test_a_study_is_of_the_logits_that_were_scored_or_no_study_of_them(tmp_path):
    scores = SimpleNamespace(facts={"logits": {"sha256": "new"}})
    assert facts_of_users(tmp_path, scores) is None
    for sha256, is_current in (("new", True), ("old", False)):
        (tmp_path / "users.json").write_text(f'{{"logits_sha256": "{sha256}"}}')
        assert (facts_of_users(tmp_path, scores) is not None) is is_current


def test_the_command_line_knows_the_priors():
    pattern, _ = ALLOWED_VALUES["evaluation.prior"]
    assert pattern.split("|") == list(PRIORS)
    assert LISTS["users.priors"] == PRIORS


@pytest.mark.parametrize(
    "override",
    [
        "users.priors=[]", "users.priors=[uniform,sprase]", "users.priors=[uniform,uniform]",
        "users.priors=null", "users.priors=uniform", "users.shortlists=0", "users.sampled=0",
        "users.utilities=-5", "users.risk_floor_draws=-1", "users.prior_floor_draws=2.5",
        "users.seed=-1", "users.risk_splits=0", "users.prior_splits=0", "users.name=a/b",
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_before_any_work(request_study, tmp_path, override):
    name = override.partition("=")[0]
    with fails((UsageError, ConfigCompositionException), name):
        run_users(request_study(override))
    assert not (tmp_path / "data/users").exists()


def test_all_impossible_settings_are_told_at_once(request_study):
    overrides = "users.priors=[]", "users.sampled=0", "dynamics.iterations=-1"
    with fails(UsageError, *overrides):
        request_study(*overrides)
