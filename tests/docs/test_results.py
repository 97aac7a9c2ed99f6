"""Every committed table and page of results/ is what the report makes of the committed scores."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from utility_calibration.pipeline.harness.units import Request, composed
from utility_calibration.pipeline.report import run_report

RESULTS = ROOT / "results"
KINDS = ("*.html", "*.md", "tables/*", "scores/all.csv")
MADE_BY_SEEDS = [
    f"tables/paper_{what}.{end}" for what in ("seeds", "choices") for end in ("md", "csv")
]
BY_HAND = {"README.md", *MADE_BY_SEEDS}
"""What the report does not write."""
REPORTS = [("", [("suite=cifar",), ("suite=paper_closest",)]), ("extended", [("suite=extended",)])]
"""Per folder of results the overrides of the reports that fill it."""


def texts(folder: Path) -> dict[str, str]:
    paths = [path for kind in KINDS for path in folder.glob(kind)]
    found = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: found[name].read_text(encoding="utf-8") for name in found.keys() - BY_HAND}


@pytest.mark.parametrize(("folder", "reports"), REPORTS)
def test_committed_tables_and_pages_are_rebuilt(folder, reports, tmp_path, monkeypatch) -> None:
    """Images are not drawn again: their data are those of the pages and tables."""
    committed = RESULTS / folder
    if not (committed / "scores").is_dir():
        pytest.skip(f"results/{folder} has no scores, from which its tables could be rebuilt")
    for name in ("scores", "dynamics", "figures"):
        if (committed / name).is_dir():
            shutil.copytree(committed / name, tmp_path / name)
    (tmp_path / "scores" / "all.csv").unlink(missing_ok=True)
    monkeypatch.setattr("utility_calibration.pipeline.report.draw_all", lambda *_: [])
    # Whether today's settings would give other scores is for `utility-calibration status` to say.
    monkeypatch.setattr(
        "utility_calibration.pipeline.scoring.scores._why_not", lambda unit, scores: ""
    )
    for overrides in reports:
        overrides = (*overrides, f"paths.results={tmp_path}", f"paths.data={tmp_path / 'data'}")
        config = composed(list(overrides))
        run_report(
            Request(
                config.suite.name,
                tuple(config.suite.benchmarks),
                tuple(config.suite.calibrators),
                tuple(range(config.splits.count)),
                overrides,
            )
        )
    # A run of another suite, such as `make repro`, leaves files there that git ignores.
    listed = subprocess.run(["git", "ls-files"], cwd=committed, capture_output=True, text=True)
    rebuilt, tracked = texts(tmp_path), set(listed.stdout.splitlines())
    held = {name: text for name, text in texts(committed).items() if name in tracked}
    assert {name: text for name, text in held.items() if rebuilt.get(name) != text} == {}
    assert held
