"""Each kind of page equals the one recorded in this folder. `make golden` records them anew.

Other tests ask for facts. Whether the sentences are good is seen here, in what a commit changes.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.reporting.conftest import decided, request_of
from tests.pipeline.reporting.conftest import write_scores as write_scores
from tests.pipeline.reporting.test_verdict import CASES, cell, verdict
from tests.printed import check_printed
from tests.scripts.conftest import quick
from utility_calibration.pipeline.report import run_report
from utility_calibration.pipeline.reporting.worst import Worst, left_words, present_of

HERE = Path(__file__).parent
FEW = ("uncalibrated", "temperature", "patching")


@pytest.fixture
def golden(request, tmp_path):
    """`golden(name, text)`: the text is that of the file of this name, but for the last digits."""

    def check(name, text):
        text = re.sub(r"; [\d.]+ s\n", "; … s\n", text.replace(str(tmp_path), "…"))
        text = "".join(f"{line.rstrip()}\n" for line in text.strip().splitlines())
        if request.config.getoption("--record"):
            (HERE / name).write_text(text, encoding="utf-8")
        check_printed(text, (HERE / name).read_text(encoding="utf-8"))

    return check


def seen(html):
    """What a page says: without style, script, diagrams, settings, and the sections of groups."""
    html = re.sub(r"<(style|script|svg|details)\b.*?</\1>\n?", "", html, flags=re.DOTALL)
    return re.sub(r'<section data-section="\w+_group_.*?</section>', "", html, flags=re.DOTALL)


def test_the_verdicts(golden):
    parts = []
    for case, (columns, known, *_) in CASES.items():
        found = verdict(columns, **known)
        grid = ["  ".join(row) for row in found.grid]
        parts += [f"## {case}", found.headline, found.legend, *grid, *found.summary, ""]
    for beyond, gain, act_from in (
        (True, 0.013, 0.4713),
        (True, 0.002, 0.4713),
        (True, 0.013, None),
        (True, 0.01, 0.4003),
        (True, 0.01, 0.4),
        (True, 0.01, 0.1),
        (False, 0.01, 0.1),
    ):
        noise = {"beyond_floor": beyond, "within_noise": not beyond, "floor_q95": 0.011}
        table = {"u_topk": {"uncalibrated": cell(0.17, not beyond, **noise)}}
        numbers = {"utility": 2, "error": 0.2, "floor": 0.01, "low": 0.1, "high": 0.9, "share": 0.5}
        at = {"gap": 0.1, "gain": 0.02, "threshold": 0.4, "act_from": act_from, "diagram": {}}
        at |= {"fresh_gain": gain, "fresh_half_width": 0.004}
        worst = {"u_topk": {"uncalibrated": Worst("class cat", **numbers, **at)}}
        parts += ["## the present forecast", *present_of(decided(table), worst), ""]
    gains = {"uncalibrated": (0.26, 0.04), "temperature": (0.001, 0.002)}
    parts += ["## what is left to gain", *left_words(gains)]
    golden("verdicts.md", "\n".join(parts))


def test_the_report_of_a_suite(golden, write_scores, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("utility_calibration.pipeline.report.draw_all", lambda *_: [])
    write_scores("digits", "yahoo", FEW, suite="digits", splits=5)
    run_report(request_of(tmp_path, "digits", suite="digits", splits=5, methods=FEW))
    golden("suite.txt", capsys.readouterr().out)
    for file in ("digits.md", "tables/digits.tex"):
        golden(f"suite{Path(file).suffix}", (tmp_path / "results" / file).read_text())


def test_the_report_of_a_file(golden, tmp_path, capsys):
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
    golden("score.txt", capsys.readouterr().out.partition(".ecdf.csv\n")[2])
    golden("score.md", (tmp_path / "out/report.md").read_text())
    golden("score.html", seen((tmp_path / "out/report.html").read_text()))
