"""Each kind of page equals the recorded one. `make golden` records them anew.

Other tests ask for facts. Whether the sentences are good is seen here, in what a commit changes.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from tests.golden.refusals import refusals
from tests.golden.sentences import page_of_sentences
from tests.pipeline.reporting.conftest import request_of
from tests.pipeline.reporting.conftest import write_scores as write_scores
from tests.printed import check_printed
from tests.scripts.conftest import quick
from utility_calibration.pipeline.harness import progress
from utility_calibration.pipeline.report import run_report

HERE = Path(__file__).parent
FEW = ("uncalibrated", "temperature", "patching")


@pytest.fixture
def golden(request, tmp_path):
    """`golden(name, text)`: the text is that of the file of this name, but for the last digits."""

    def check(name, text):
        text = re.sub(r"in [\d.]+ s\b", "in … s", text.replace(str(tmp_path), "…"))
        text = "".join(f"{line.rstrip()}\n" for line in text.strip().splitlines())
        if request.config.getoption("--record"):
            (HERE / name).write_text(text, encoding="utf-8")
        check_printed(text, (HERE / name).read_text(encoding="utf-8"))

    return check


def seen(html):
    """What a page says: without style, script, diagrams, settings, and the sections of groups."""
    html = re.sub(r"<(style|script|svg|details)\b.*?</\1>\n?", "", html, flags=re.DOTALL)
    return re.sub(r'<section data-section="\w+_group_.*?</section>', "", html, flags=re.DOTALL)


def test_what_programs_say(golden, tmp_path, monkeypatch, capsys):
    """The page of docs/ with every sentence of a report, an example each, and some refusals."""
    monkeypatch.chdir(tmp_path)
    refused = refusals(lambda: capsys.readouterr().err)
    golden("../../docs/what-programs-say.md", "\n".join(page_of_sentences(refused)))


def test_the_report_of_a_suite(golden, write_scores, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("utility_calibration.pipeline.report.draw_all", lambda *_: [])
    write_scores("digits", "yahoo", FEW, suite="digits", splits=5)
    run_report(request_of(tmp_path, "digits", suite="digits", splits=5, methods=FEW))
    golden("suite.txt", capsys.readouterr().out)
    for file in ("digits.md", "tables/digits.tex"):
        golden(f"suite{Path(file).suffix}", (tmp_path / "results" / file).read_text())


def test_the_report_of_a_file(golden, tmp_path, capsys, monkeypatch):
    # A busy machine would print lines of progress.
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", math.inf)
    random = np.random.default_rng(0)
    names = np.array(["ant", "bee", "cat"])
    logits = 3 * random.normal(size=(600, 3))
    labels = (logits / 2 + random.gumbel(size=logits.shape)).argmax(axis=1)
    groups = np.where(labels + random.random(600) > 1, "north", "south")
    groups[:9] = "tiny"
    arrays = {"logits": logits, "labels": names[labels], "class_names": names, "groups": groups}
    np.savez(tmp_path / "my.npz", **arrays)
    (tmp_path / "losses.csv").write_text("class,stay,go\nant,0,3\nbee,5,0\ncat,1,1\n")
    chosen = ["--methods", "uncalibrated", "temperature", "logit_shift_groups", "--splits", "2"]
    chosen += ["--losses", str(tmp_path / "losses.csv"), "--save", str(tmp_path / "kept.npz")]
    quick(tmp_path / "my.npz", tmp_path / "out", *chosen, "--method", "temperature")
    golden("score.txt", capsys.readouterr().out)
    golden("score.md", (tmp_path / "out/report.md").read_text())
    golden("score.html", seen((tmp_path / "out/report.html").read_text()))
