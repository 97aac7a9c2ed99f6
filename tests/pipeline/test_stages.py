"""The stages on a small benchmark: what is made, what is made again, and what stays."""

import numpy as np

from tests.pipeline.conftest import files_below, run_all, times, write_example
from tests.refusals import fails, refuses
from utility_calibration.pipeline.evaluate import objective_of, run_evaluate
from utility_calibration.pipeline.fit import run_fit
from utility_calibration.pipeline.harness.artifacts import CorruptFile
from utility_calibration.pipeline.harness.cache import record_of
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.scoring.points import find_logits


def changed_below(folder, before):
    """Files that are new or written again, by their names below `folder`."""
    now = times(folder)
    return {p.relative_to(folder).as_posix() for p, at in now.items() if before.get(p) != at}


def units_of(stage, calibrator):
    return {f"{stage}/tiny/{calibrator}/{split}.npz" for split in range(3)}


def test_a_second_run_makes_no_unit(request_made, tmp_path):
    before = times(tmp_path / "data")
    run_all(request_made())
    assert not changed_below(tmp_path / "data", before)


def test_the_same_seed_gives_the_same_bytes(request_made, tmp_path):
    before = files_below(tmp_path / "data/fits") | files_below(tmp_path / "results")
    run_fit(Plan(request_made("force=true", "calibrator=vector").units()))
    run_evaluate(Plan(request_made().units()))
    assert files_below(tmp_path / "data/fits") | files_below(tmp_path / "results") == before


def test_settings_of_one_calibrator_refit_that_one_alone(request_made, tmp_path, capsys):
    data = tmp_path / "data"
    before = times(data)
    request = request_made("calibrator=vector", "calibrator.l2=0.1")
    with fails(UnitsFailed, "tiny vector split 0", "utility-calibration fit"):
        run_evaluate(Plan(request.units()))
    run_fit(Plan(request_made("calibrator=vector", "calibrator.l2=0.1", "split=1").units()))
    with fails(UnitsFailed, "tiny vector split 0"):
        run_evaluate(Plan(request.units()))
    assert "vector (1)" in capsys.readouterr().out
    one = {"fits/tiny/vector/1.npz", "scores/tiny/vector/1.npz"}
    assert changed_below(data, before) == one  # what is fitted is evaluated
    run_fit(Plan(request.units()))
    assert changed_below(data, before) == units_of("fits", "vector") | one
    run_evaluate(Plan(request.units()))
    scored = units_of("scores", "vector") | {"scores/tiny/vector/worst.npz"}
    assert changed_below(data, before) == units_of("fits", "vector") | scored


def test_scores_are_written_after_a_run_that_lacked_splits(request_made, tmp_path):
    before = files_below(tmp_path / "results")
    run_evaluate(Plan(request_made("splits.count=2").units()))
    assert files_below(tmp_path / "results") != before
    with fails(UnitsFailed, "split 3"):
        run_evaluate(Plan(request_made("splits.count=4").units()))
    run_evaluate(Plan(request_made().units()))
    assert files_below(tmp_path / "results") == before


def test_a_named_evaluation_lies_beside_the_default(request_made, tmp_path):
    before = files_below(tmp_path / "data/scores"), files_below(tmp_path / "results")
    named = ("evaluation=paper_batches", "evaluation.utility_batch=30")
    run_evaluate(Plan(request_made("calibrator=temperature", "split=0", *named).units()))
    assert files_below(tmp_path / "data/scores") == before[0]
    assert (tmp_path / "data/scores-paper_batches/tiny/temperature/0.npz").is_file()
    assert before[1].items() <= files_below(tmp_path / "results").items()


def test_other_logits_are_read_again_and_refit(request_tiny, tmp_path):
    request = request_tiny("calibrator=temperature", "split=0")
    run_all(request)
    fit = tmp_path / "data/fits/tiny/temperature/0.npz"
    before = record_of(fit)
    write_example(tmp_path / "tiny.npz", seed=1)
    run_evaluate(Plan(request.units()))  # later stages take the logits as they lie
    run_logits(Plan(request.units()))
    with fails(UnitsFailed, "utility-calibration fit"):
        run_evaluate(Plan(request.units()))
    run_fit(Plan(request.units()))
    after = record_of(fit)
    assert before is not None and after is not None
    assert before["logits_sha256"] != after["logits_sha256"]


def test_damaged_logits_are_told_with_the_fix_and_made_again(request_made, tmp_path):
    request = request_made("calibrator=temperature", "split=0")
    settings = request.units()[0].settings
    cached = tmp_path / "data/logits/tiny.npz"
    whole = cached.read_bytes()
    cached.write_bytes(whole[:-100])
    with fails(CorruptFile, "tiny.npz", "utility-calibration logits"):
        find_logits(settings)
    with fails(UnitsFailed, "tiny", "utility-calibration logits"):
        run_fit(Plan(request.units()))
    run_logits(Plan(request.units()))
    assert cached.read_bytes() == whole


def test_another_similarity_under_the_same_name_gives_another_number(request_made, tmp_path):
    path, scores = tmp_path / "s.csv", tmp_path / "data/scores/tiny/temperature/0.npz"
    similarity = (
        "+benchmark.similarity._target_=utility_calibration.pipeline.own.request.similarity.file_similarity",
        f"+benchmark.similarity.path={path}",
    )
    values = []
    for matrix in (np.eye(3), np.full((3, 3), 0.5) + np.eye(3) / 2):
        np.savetxt(path, matrix, delimiter=",")
        request = request_made(*similarity, "calibrator=temperature", "split=0")
        run_logits(Plan(request.units()))
        run_evaluate(Plan(request.units()))  # no fit: the logits are the same
        record = record_of(scores)
        assert record is not None
        values.append(record["metrics"]["u_w2v"])
    assert values[0] != values[1]


def test_a_run_with_another_seed_says_that_it_replaces_the_units(request_made, capsys):
    run_fit(Plan(request_made("calibrator=temperature", "seed=1").units()))
    told = capsys.readouterr().out
    assert "seed 0" in told and "seed 1" in told
    run_fit(Plan(request_made("calibrator=temperature", "seed=1").units()))
    assert "replaced" not in capsys.readouterr().out


def test_an_own_folder_of_data_takes_the_logits_that_lie_in_the_usual_one(
    request_made, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # where the usual folder `data` is
    own = request_made("calibrator=temperature", "split=0", "paths.data=other")
    run_fit(Plan(own.units()))
    taken, usual = (tmp_path / f"{name}/logits/tiny.npz" for name in ("other", "data"))
    assert taken.read_bytes() == usual.read_bytes()
    with fails(UnitsFailed, "logits"):  # those are of another source
        run_fit(Plan(request_made("paths.data=third", f"benchmark.source.path={taken}").units()))


def test_an_objective_fits_what_is_missing_and_is_the_mean_of_its_metric(request_made, tmp_path):
    plan = Plan(request_made("calibrator=vector", "calibrator.l2=1").units())
    value = objective_of(plan, "nll")
    scores = sorted((tmp_path / "data/scores/tiny/vector").glob("[0-9].npz"))
    assert value == np.mean([record_of(path)["metrics"]["nll"] for path in scores])
    assert value != objective_of(Plan(request_made("calibrator=vector").units()), "nll")
    for unknown in ("nlll", "u_w2v"):  # these classes have no similarity
        with refuses("objective", number=unknown):
            objective_of(plan, unknown)
