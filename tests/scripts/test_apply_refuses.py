"""What `apply` refuses: each fix that a message names works when it is typed."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.refusals import refuses
from tests.scripts.test_apply_keeps_rows import FITTED, LABELS, NAMES, N, P, run
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling

CERTAIN = np.eye(3)[LABELS]
"""Probabilities of 0 and 1, as an unpruned tree has them."""


@pytest.fixture
def saved(tmp_path):
    return FITTED.save(tmp_path / "saved.npz")


@pytest.fixture
def of_logits(tmp_path):
    fitted = TemperatureScaling().fit(np.log(P), NAMES[LABELS], classes=NAMES)
    return fitted.save(tmp_path / "of_logits.npz")


def write(path, p):
    if path.suffix == ".npz":
        np.savez(path, probabilities=p)
    else:
        pd.DataFrame(p, columns=NAMES).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
@pytest.mark.parametrize("kind", [int, float])
def test_rows_of_certain_classes_are_taken_when_the_person_says_so(saved, tmp_path, name, kind):
    file = write(tmp_path / name, CERTAIN.astype(kind))
    with refuses(fix="--values probabilities"):
        run(saved, file, tmp_path / "out.csv")
    run(saved, file, tmp_path / "out.csv", "--values", "probabilities")
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["predicted_class"].tolist() == NAMES[LABELS].tolist()
    expected = FITTED.predict_proba(CERTAIN)
    np.testing.assert_allclose(table.filter(regex="^calibrated"), expected, atol=1e-6)


def test_a_few_rows_of_certain_classes_need_no_word(saved, tmp_path):
    run(saved, write(tmp_path / "a.csv", CERTAIN[:3]), tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["predicted_class"].tolist() == NAMES[LABELS[:3]].tolist()


def test_a_calibrator_says_the_kind_and_no_option_another_one(saved, of_logits, tmp_path):
    np.savez(tmp_path / "logits.npz", logits=np.log(P))
    np.savez(tmp_path / "p.npz", probabilities=P)
    np.savez(tmp_path / "x.npz", x=P)
    out = tmp_path / "out.csv"
    for options in ((), ("--logits", "logits"), ("--values", "logits")):
        with refuses(fix="--probabilities NAME"):
            run(saved, tmp_path / "logits.npz", out, *options)
    for options in (("--probabilities", "probabilities"), ("--values", "probabilities")):
        with refuses("values", fix="--logits NAME"):
            run(of_logits, tmp_path / "p.npz", out, *options)
    with refuses("logits", fix="give logits"):
        run(of_logits, tmp_path / "p.npz", out)
    with refuses(fix="--probabilities NAME"):
        run(saved, tmp_path / "x.npz", out)
    with refuses("values", fix="--probabilities NAME"):
        run(saved, tmp_path / "x.npz", out, "--logits", "x")
    run(saved, tmp_path / "x.npz", out, "--probabilities", "x")
    out = tmp_path / "of_logits.csv"
    run(of_logits, tmp_path / "logits.npz", out, "--logits", "logits", "--values", "logits")


@pytest.mark.parametrize("absent", [None, float("nan"), "", " "])
def test_a_point_without_a_group_is_refused_in_every_form(tmp_path, absent):
    ward = np.where(np.arange(N) % 2, "north", "south")
    fitted = LogitShiftPatching(steps=1).fit(np.log(P), NAMES[LABELS], groups=ward, classes=NAMES)
    calibrator = fitted.save(tmp_path / "patched.npz")
    groups = [*ward.tolist()[:-1], absent]
    table = pd.DataFrame(np.log(P), columns=NAMES).assign(groups=groups)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        with refuses("groups", row=N - 1):
            run(calibrator, tmp_path / name, tmp_path / "out.csv")
    for form in (groups, np.array(groups, dtype=object), pd.Series(groups)):
        with refuses("groups", row=N - 1):
            fitted.predict_proba(np.log(P), groups=form)
        with refuses("groups", row=N - 1):
            LogitShiftPatching(steps=1).fit(np.log(P), LABELS, groups=form)


@pytest.mark.parametrize("form", ["{}", "p_{}", "prob {} (%)"])
@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_the_class_that_no_column_bears_is_named(saved, tmp_path, form, lacking):
    p = np.delete(P, lacking, axis=1)
    names = [form.format(name) for name in np.delete(NAMES, lacking)]
    pd.DataFrame(p, columns=names).assign(id=range(N), note="x").to_csv(
        tmp_path / "a.csv", index=False
    )
    with refuses("columns", fix="add", number=f"bears {NAMES[lacking]}"):
        run(saved, tmp_path / "a.csv", tmp_path / "out.csv")


def test_objects_that_lack_a_class_must_sum_to_one_without_it(saved, tmp_path, capsys):
    def write_objects(p):
        rows = [dict(zip(NAMES[:2].tolist(), row, strict=True)) for row in p.tolist()]
        lines = "\n".join(json.dumps({"probabilities": row}) for row in rows)
        (tmp_path / "a.jsonl").write_text(lines)

    write_objects(P[:, :2])
    with refuses("probabilities", fix="of all classes"):
        run(saved, tmp_path / "a.jsonl", tmp_path / "out.csv")
    write_objects(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True))
    run(saved, tmp_path / "a.jsonl", tmp_path / "out.csv")
    assert f"{N} cases have fewer than 3 entries" in capsys.readouterr().out


def test_an_output_of_other_arrays_is_replaced_once_it_is_removed(saved, tmp_path):
    np.savez(tmp_path / "a.npz", probabilities=P)
    np.savez(tmp_path / "b.npz", probabilities=P, id=np.arange(N))
    out = tmp_path / "out.npz"
    run(saved, tmp_path / "a.npz", out)
    with refuses("--output", fix="remove it"):
        run(saved, tmp_path / "b.npz", out)
    out.unlink()
    run(saved, tmp_path / "b.npz", out)
    with np.load(out) as arrays:
        assert arrays["id"].tolist() == list(range(N))


def test_a_space_before_a_cell_stays_only_in_quotes(saved, tmp_path):
    rows = [", ".join([*map(str, row), '" a, b"', " c "]) for row in P.tolist()]
    (tmp_path / "a.csv").write_text("\n".join(["cat,dog,owl,quoted,plain", *rows]))
    run(saved, tmp_path / "a.csv", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert set(table["quoted"]) == {" a, b"}
    assert set(table["plain"]) == {"c "}
