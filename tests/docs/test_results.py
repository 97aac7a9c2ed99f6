"""Every committed table and page of results/ is what the report makes of the committed scores."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from utility_calibration.pipeline.harness.units import Request, composed
from utility_calibration.pipeline.report import run_report
from utility_calibration.pipeline.reporting.style import Drawings, draw_all

RESULTS = ROOT / "results"
KINDS = ("*.html", "*.md", "tables/*", "scores/all.csv")
MADE_BY_SEEDS = [
    f"tables/paper_{what}.{end}" for what in ("seeds", "choices") for end in ("md", "csv")
]
MADE_BY_REGRET = [f"tables/regret.{end}" for end in ("md", "csv")]
BY_HAND = {"README.md", *MADE_BY_SEEDS, *MADE_BY_REGRET}
"""What the report does not write."""
REPORTS = [("", [("suite=cifar",), ("suite=paper_closest",)]), ("extended", [("suite=extended",)])]
"""Per folder of results the overrides of the reports that fill it."""
DRAWN = "ecdf_cifar10_resnet"
"""The figure that is drawn anew, because drawing all of them would take a minute."""
EMPTY = "<svg></svg>"
ANY_FIGURE = r"(?><svg\b.*?</svg>)"


def texts(folder: Path) -> dict[str, str]:
    paths = [path for kind in KINDS for path in folder.glob(kind)]
    found = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: found[name].read_text(encoding="utf-8") for name in found.keys() - BY_HAND}


def draw_one(drawings: Drawings, folder: Path, jobs: int | str) -> Sequence[Path]:
    """Draw one figure as the report does, and write empty ones in place of the others."""
    drawn = {stem: make for stem, make in drawings.items() if stem == DRAWN}
    files = draw_all(drawn, folder, jobs, ["svg"])
    for stem in drawings.keys() - drawn.keys():
        path = folder / f"{stem}.svg"
        path.write_text(f"{EMPTY}\n", encoding="utf-8")
        files.append(path)
    return files


def is_rebuilt(committed: str, rebuilt: str) -> bool:
    """Whether the texts are equal, where any figure is equal to an empty one of `rebuilt`."""
    parts = map(re.escape, rebuilt.split(EMPTY))
    return re.fullmatch(ANY_FIGURE.join(parts), committed, re.DOTALL) is not None


@pytest.mark.parametrize(("folder", "reports"), REPORTS)
def test_committed_tables_and_pages_are_rebuilt(folder, reports, tmp_path, monkeypatch) -> None:
    """One figure is drawn again; the data of the others are those of the pages and tables."""
    committed = RESULTS / folder
    if not (committed / "scores").is_dir():
        pytest.skip(f"results/{folder} has no scores, from which its tables could be rebuilt")
    for name in ("scores", "dynamics", "users", "figures"):
        if (committed / name).is_dir():
            shutil.copytree(committed / name, tmp_path / name)
    (tmp_path / "scores" / "all.csv").unlink(missing_ok=True)
    seeds = committed / "tables" / "paper_seeds.csv"  # which the comparison counts
    if seeds.is_file():
        (tmp_path / "tables").mkdir()
        shutil.copy(seeds, tmp_path / "tables")
    monkeypatch.setattr("utility_calibration.pipeline.report.draw_all", draw_one)
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
    shown = {name: text for name, text in texts(committed).items() if name in tracked}
    changed = [name for name, text in shown.items() if not is_rebuilt(text, rebuilt.get(name, ""))]
    assert shown
    assert changed == []
