"""The commands that a report shows can be copied: they save and apply the method that it takes."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.scripts.conftest import FEW_DRAWS, quick
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.own.request.options import as_typed
from utility_calibration.scripts import apply, score

NAMES = ("fine", "my ill", "$dead")


@pytest.mark.parametrize(
    "arguments",
    [
        "my.csv",
        "'my file.csv' --quick --output 'my out'",
        "my.csv --methods temperature vector --splits 3 --classes 'p_*' --labels truth",
        "my.csv --losses l.csv --calibrate-for losses --wide --seed 1 --decimal ,",
        "my.csv --quick --methods temperature --save c.npz --ignore id --ignore day",
    ],
)
def test_options_are_typed_as_they_were_read(arguments):
    options = score.parse(shlex.split(arguments))
    assert score.parse(as_typed(options)) == options


@pytest.fixture
def overconfident(tmp_path):
    """A table whose probabilities are far too sure, with names that a shell must not read."""
    random = np.random.default_rng(0)
    logits = 1.5 * random.normal(size=(900, 3))
    labels = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    p = np.exp(3 * logits)
    p /= p.sum(axis=1, keepdims=True)
    lines = [",".join([*(f"p {name}" for name in NAMES), "truth", "day"])]
    lines += [
        ",".join([*(f"{value:.6f}" for value in row), NAMES[label], str(day)])
        for day, (row, label) in enumerate(zip(p, labels, strict=True))
    ]
    path = tmp_path / "my points.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_commands_of_a_report_run_as_they_are(overconfident, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = ["--labels", "truth", "--classes", "p *", "--ignore", "day"]
    quick(overconfident, tmp_path / "out", *chosen)
    verdict = read_json(tmp_path / "out/verdict.json")
    assert verdict["answer"]["word"] == "no" and verdict["overall"] in ("temperature", "vector")
    lines = [shlex.split(line, comments=True) for line in verdict["commands"]]
    saving, applying = filter(None, lines)
    assert saving[:2] == ["utility-calibration", "score"] and "--quick" in saving
    options = score.parse(saving[2:])
    score.score(replace(options, evaluation=FEW_DRAWS))
    monkeypatch.setattr("sys.argv", applying[1:])
    overconfident.rename(tmp_path / "new.csv")
    apply.main()
    written = (tmp_path / "calibrated.csv").read_text().splitlines()
    assert len(written) == 901 and "predicted_class" in written[0]


def test_below_a_stream_stand_commands_that_repair_and_apply(overconfident, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = tmp_path / "my shards"
    shards.mkdir()
    lines = overconfident.read_text().splitlines(keepends=True)
    (shards / "a.csv").write_text("".join(lines[:500]))
    (shards / "b.csv").write_text("".join([lines[0], *lines[500:]]))
    chosen = ["my shards", "--stream", "--labels", "truth", "--classes", "p *", "--ignore", "day"]
    score.score(score.parse([*chosen, "--output", "all", "--jobs", "1"]))
    fitting, scoring = commands_below("all/streaming.md")
    fitted = score.parse(fitting[2:])
    assert (str(fitted.file), fitted.labels, fitted.ignore) == ("sample.csv", "truth", "day")
    assert fitted.save is not None and fitted.method == "logit_shift"
    overconfident.rename(tmp_path / "sample.csv")
    temperature = ("uncalibrated", "temperature")
    quicker = replace(fitted, method="temperature", methods=temperature, splits=2, quick=True)
    score.score(replace(quicker, evaluation=FEW_DRAWS))
    score.score(score.parse(scoring[2:]))
    (applying,) = commands_below("all_calibrated/streaming.md")
    assert apply.parse(applying[2:]).calibrator == fitted.save


def commands_below(page):
    """The commands of a page of Markdown, as words."""
    block = Path(page).read_text().split("```bash\n")[1].split("```")[0]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [words for words in lines if words]
