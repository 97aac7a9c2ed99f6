"""A calibrator that `score` saves, applied by `apply` to points without labels."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.refusals import refuses
from tests.scripts.conftest import quick
from utility_calibration.calibrators import (
    LogitShiftPatching,
    TemperatureScaling,
    VectorScaling,
    estimate_prior,
    from_probabilities,
    reweight,
)
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.own.applying.new_points import write_calibrated
from utility_calibration.pipeline.own.reading import parts
from utility_calibration.scripts import apply as program

ONE = ("--methods", "temperature", "--splits", "1")


def problem(n: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return (2 * np.eye(3)[labels] + 2 * rng.normal(size=(n, 3))).astype(np.float32), labels


def run(calibrator, file, output, *options):
    write_calibrated(program.parse([str(calibrator), str(file), "--output", str(output), *options]))


def written(path):
    """The calibrated probabilities [n, C] in a file that `apply` wrote."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["calibrated"]
    read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
    return read(path).filter(regex="^calibrated_").to_numpy()


@pytest.fixture
def saved(tmp_path):
    logits, labels = problem(500, 0)
    return VectorScaling().fit(logits, labels).save(tmp_path / "calibrator.npz")


def test_new_logits_come_out_as_the_calibrator_says_in_every_form(saved, tmp_path):
    logits, _ = problem(50, 1)
    finer = logits.astype(float) + 1e-12  # of which `score` and `apply` take float32
    np.savez(tmp_path / "new.npz", logits=finer)
    table = pd.DataFrame(finer, columns=["z_0", "z_1", "z_2"])
    table[["z_2", "z_0", "z_1"]].to_csv(tmp_path / "new.csv", index=False)
    run(saved, tmp_path / "new.npz", tmp_path / "deep" / "calibrated.npz")
    run(saved, tmp_path / "new.csv", tmp_path / "calibrated.csv")
    run(saved, tmp_path / "new.csv", tmp_path / "calibrated.parquet")
    expected = Calibrator.load(saved).predict_proba(logits)
    for name in ("deep/calibrated.npz", "calibrated.csv", "calibrated.parquet"):  # with all digits
        np.testing.assert_array_equal(written(tmp_path / name), expected)
    table = pd.read_csv(tmp_path / "calibrated.csv")
    new = ["calibrated_0", "calibrated_1", "calibrated_2", "predicted_class"]
    assert table.columns.tolist() == ["z_2", "z_0", "z_1", *new]
    np.testing.assert_array_equal(table["predicted_class"], expected.argmax(axis=1))


def test_a_file_is_read_some_rows_at_a_time(saved, tmp_path, monkeypatch):
    logits, _ = problem(205, 1)
    expected = Calibrator.load(saved).predict_proba(logits)
    np.savez(tmp_path / "rows.npz", logits=logits)
    np.savez(tmp_path / "columns.npz", logits=np.asfortranarray(logits))
    np.savez_compressed(tmp_path / "packed.npz", logits=logits.astype(">f4"))
    table = pd.DataFrame(logits.astype(float), columns=["z_0", "z_1", "z_2"])
    table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.setattr(parts, "ROWS", 50)
    for name in ("rows.npz", "columns.npz", "packed.npz", "table.csv"):
        for ending in ("npz", "csv", "parquet"):
            run(saved, tmp_path / name, tmp_path / f"out.{ending}")
            np.testing.assert_array_equal(written(tmp_path / f"out.{ending}"), expected)
            (tmp_path / f"out.{ending}").rename(tmp_path / f"whole.{ending}")
    table.loc[77, "z_1"] = np.nan
    table.to_csv(tmp_path / "gap.csv", index=False)
    before = (tmp_path / "whole.csv").read_bytes()
    with refuses(row=77, column="z_1"):  # in the second part of the file
        run(saved, tmp_path / "gap.csv", tmp_path / "whole.csv")
    assert (tmp_path / "whole.csv").read_bytes() == before


def test_lists_that_lack_a_class_in_some_batch_are_those_of_the_whole_file(tmp_path, monkeypatch):
    logits, labels = problem(300, 0)
    p = softmax(logits.astype(float), axis=1)
    fitted = TemperatureScaling().fit(np.log(p), labels)
    fitted.takes_, fitted.class_names_ = "probabilities", np.array(["A", "B", "C"])
    path = fitted.save(tmp_path / "calibrator.npz")
    p = np.c_[p[:40, :2] / p[:40, :2].sum(axis=1, keepdims=True), np.zeros(40)]
    p[0] = 0.2, 0.3, 0.5
    rows = [{name: v for name, v in zip("ABC", row, strict=True) if v} for row in p.tolist()]
    lines = [json.dumps({"id": k, "probabilities": row}) for k, row in enumerate(rows)]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    run(path, tmp_path / "new.jsonl", tmp_path / "whole.csv", "--ignore", "id")
    monkeypatch.setattr(parts, "ROWS", 10)
    run(path, tmp_path / "new.jsonl", tmp_path / "parts.csv", "--ignore", "id")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_calibrator_of_probabilities_made_in_python_is_applied(tmp_path):
    logits, labels = problem(300, 0)
    p = softmax(logits.astype(float), axis=1)
    fitted = TemperatureScaling(inputs="probabilities").fit(p, labels)
    path = fitted.save(tmp_path / "calibrator.npz")
    np.savez(tmp_path / "new.npz", probabilities=p)
    run(path, tmp_path / "new.npz", tmp_path / "out.npz")
    np.testing.assert_allclose(written(tmp_path / "out.npz"), fitted.predict_proba(p), atol=1e-6)


def test_names_that_a_fit_in_python_had_are_those_of_columns_and_shares(tmp_path):
    names = np.array(["owl", "cat", "dog"])
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(90, 3))
    labels = names[rng.integers(3, size=90)]
    fitted = TemperatureScaling().fit(logits, labels, classes=names)
    path = fitted.save(tmp_path / "fitted.npz")
    pd.DataFrame(logits, columns=names).to_csv(tmp_path / "new.csv", index=False)
    run(path, tmp_path / "new.csv", tmp_path / "out.csv", "--prior", "cat=.2,dog=.3,owl=.5")
    expected = reweight(fitted.predict_proba(logits), [0.5, 0.2, 0.3], fitted.shares_)
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table) == [*names, *(f"calibrated_{name}" for name in names), "predicted_class"]
    np.testing.assert_array_equal(table["predicted_class"], names[expected.argmax(axis=1)])
    np.testing.assert_allclose(written(tmp_path / "out.csv"), expected, atol=1e-6)


def test_score_saves_a_calibrator_of_probabilities_with_its_class_names(tmp_path):
    logits, labels = problem(300, 0)
    p = softmax(logits, axis=1)
    names = np.array(["ant", "bee", "cat"])
    np.savez(tmp_path / "my.npz", probabilities=p, labels=names[labels], class_names=names)
    target = tmp_path / "calibrator.npz"
    quick(tmp_path / "my.npz", tmp_path / "out", *ONE, "--save", str(target))
    calibrator = Calibrator.load(target)
    by_hand = TemperatureScaling().fit(from_probabilities(p).astype(np.float32), labels)
    assert calibrator.temperature_ == by_hand.temperature_
    new = pd.DataFrame(p[:20].astype(float), columns=names)[["cat", "ant", "bee"]]
    new.assign(id=range(20)).to_csv(tmp_path / "new.csv", index=False)
    run(target, tmp_path / "new.csv", tmp_path / "calibrated.csv")
    found = pd.read_csv(tmp_path / "calibrated.csv")
    assert found.columns.tolist()[:4] == ["cat", "ant", "bee", "id"]
    found = found[[f"calibrated_{name}" for name in names]]
    np.testing.assert_allclose(found, by_hand.predict_proba(from_probabilities(p[:20])), atol=1e-6)
    np.savez(tmp_path / "logits.npz", logits=logits)
    with refuses("probabilities", fix="--probabilities NAME"):
        run(target, tmp_path / "logits.npz", tmp_path / "x.npz")


def test_columns_without_names_are_told_their_order(tmp_path, capsys):
    logits, labels = problem(300, 0)
    names = np.array(["cat", "ant", "bee"])
    saved = VectorScaling().fit(logits, names[labels], classes=names).save(tmp_path / "c.npz")
    for content, is_told in (({}, True), ({"class_names": names}, False)):
        np.savez(tmp_path / "new.npz", logits=logits, **content)
        capsys.readouterr()
        run(saved, tmp_path / "new.npz", tmp_path / "calibrated.npz")
        assert ("cat, ant, bee" in capsys.readouterr().out) is is_told


@pytest.mark.parametrize("column", ["p_healthy", "score"])
def test_the_probability_of_one_of_two_classes_is_taken_as_in_scoring(tmp_path, column):
    random = np.random.default_rng(0)
    p = random.beta(0.6, 0.9, size=300)  # of being sick
    labels = np.where(random.random(300) < p**1.3, "sick", "healthy")
    table = pd.DataFrame({column: 1 - p if column == "p_healthy" else p})
    table.assign(label=labels).to_csv(tmp_path / "my.csv", index=False)
    keep = ("--save", str(tmp_path / "saved.npz"))
    quick(tmp_path / "my.csv", tmp_path / "out", *ONE, *keep)
    table[:20].to_csv(tmp_path / "new.csv", index=False)
    run(tmp_path / "saved.npz", tmp_path / "new.csv", tmp_path / "calibrated.csv")
    found = pd.read_csv(tmp_path / "calibrated.csv")
    fitted = TemperatureScaling().fit(from_probabilities(p).astype(np.float32), labels == "sick")
    expected = fitted.predict_proba(from_probabilities(p[:20]))
    np.testing.assert_allclose(
        found[["calibrated_healthy", "calibrated_sick"]], expected, atol=1e-6
    )


def test_what_does_not_fit_or_would_be_replaced_is_refused_in_one_line(saved, tmp_path):
    logits, _ = problem(5, 1)
    values = softmax(logits.astype(float), axis=1)
    wide = np.hstack([logits, logits])
    np.savez(tmp_path / "wide.npz", logits=wide)
    np.savez(tmp_path / "odd.npz", logits=values)
    columns = ["z_0", "z_1", "z_2", "z_3"]
    pd.DataFrame(wide[:, :4], columns=columns).to_csv(tmp_path / "four.csv", index=False)
    for name, target, options, field, fix in (
        ("wide.npz", "x.npz", (), "logits", "one per class"),
        ("wide.npz", "x.xlsx", (), "--output", ".parquet"),
        ("wide.npz", "wide.npz", (), "--output", "name another"),
        ("wide.npz", saved.name, (), "--output", "name another"),
        ("four.csv", "x.npz", (), "columns", "--ignore z_3"),
        ("four.csv", "x.npz", ("--classes", "z_*"), "--classes", "as its label"),
        ("odd.npz", "x.npz", (), "logits", "--values logits"),
    ):
        before = (tmp_path / name).read_bytes(), saved.read_bytes()
        with refuses(field, fix=fix):
            run(saved, tmp_path / name, tmp_path / target, *options)
        assert ((tmp_path / name).read_bytes(), saved.read_bytes()) == before
    assert not (tmp_path / "x.npz").exists()
    run(saved, tmp_path / "odd.npz", tmp_path / "x.npz", "--values", "logits")
    with np.load(tmp_path / "x.npz") as found:
        expected = Calibrator.load(saved).predict_proba(values.astype(np.float32))
        np.testing.assert_array_equal(found["calibrated"], expected)


def test_groups_are_scored_saved_and_applied_by_the_name_of_their_column(tmp_path):
    logits, labels = problem(700, 0)
    ward = np.where(np.arange(700) % 2, "north", "south")
    labels = np.where(ward == "south", (labels + (np.arange(700) % 4 == 0)) % 3, labels)
    table = pd.DataFrame(logits, columns=["a", "b", "c"]).assign(ward=ward)
    table.assign(label=np.array(["a", "b", "c"])[labels]).to_csv(tmp_path / "my.csv", index=False)
    target = tmp_path / "kept.npz"
    keep = ("--splits", "1", "--save", str(target), "--method", "logit_shift_groups")
    quick(tmp_path / "my.csv", tmp_path / "out", "--groups", "ward", *keep)
    said = read_json(tmp_path / "out/verdict.json")["groups"]["repairs"]
    assert {(one["plain"], one["group"]) for one in said} == {
        ("temperature", "north"),
        ("temperature", "south"),
    }
    kept = Calibrator.load(target)
    assert "south" in kept.group_names_
    new = table[["ward", "c", "a", "b"]].head(60)
    new.to_csv(tmp_path / "new.csv", index=False)
    run(target, tmp_path / "new.csv", tmp_path / "by.csv")
    expected = kept.predict_proba(logits[:60], groups=ward[:60])
    np.testing.assert_allclose(written(tmp_path / "by.csv"), expected, atol=1e-6)
    with pytest.warns(UserWarning, match="east"):
        plain = kept.predict_proba(logits[:60], groups=np.full(60, "east"))
    assert np.abs(expected - plain).max() > 0.01
    run(target, tmp_path / "new.csv", tmp_path / "by.csv", "--prior", "estimate")
    prior = estimate_prior(expected, kept.shares_, kept.n_points_).shares
    shifted = reweight(expected, prior, kept.shares_)
    np.testing.assert_allclose(written(tmp_path / "by.csv"), shifted, atol=1e-6)
    by_hand = LogitShiftPatching(steps=1).fit(logits, labels, groups=ward)
    names = {"ward": "groups", "a": "0", "b": "1", "c": "2"}
    new.rename(columns=names).to_csv(tmp_path / "hand.csv", index=False)
    run(by_hand.save(tmp_path / "hand.npz"), tmp_path / "hand.csv", tmp_path / "c.csv")
    new.drop(columns="ward").to_csv(tmp_path / "new.csv", index=False)
    with refuses("ward", fix="add"):
        run(target, tmp_path / "new.csv", tmp_path / "by.csv")


def test_shares_of_the_classes_are_stated_by_place_or_name_or_estimated(saved, tmp_path, capsys):
    logits, _ = problem(400, 1)
    np.savez(tmp_path / "new.npz", logits=logits.astype(float))
    fitted = Calibrator.load(saved)
    p = fitted.predict_proba(logits.astype(float))
    estimate = estimate_prior(p, fitted.shares_, fitted.n_points_).shares
    for text, shares in {
        ".2,.3,.5": [0.2, 0.3, 0.5],
        "2=.5, 0=.2,1=.3": [0.2, 0.3, 0.5],
        "estimate": estimate,
    }.items():
        run(saved, tmp_path / "new.npz", tmp_path / "out.npz", "--prior", text)
        expected = reweight(p, shares, fitted.shares_)
        np.testing.assert_array_equal(written(tmp_path / "out.npz"), expected)
    assert "95 %" in capsys.readouterr().out
    for text in (".2,.8", "0=.5,1=.5", "0=.5,.5,2=0", "some", ""):
        with pytest.raises(InputError, match="prior") as caught:
            run(saved, tmp_path / "new.npz", tmp_path / "out.npz", "--prior", text)
        assert "\n" not in str(caught.value)
