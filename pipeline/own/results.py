"""Write the results of scripts/score.py: tables, figures, verdict and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from metrics.registry import METRICS
from pipeline.harness.artifacts import CorruptFile, write_json, write_text
from pipeline.harness.code import as_typed
from pipeline.harness.progress import console
from pipeline.harness.settings import Settings
from pipeline.harness.units import Unit
from pipeline.own.decisions import decisions_of, write_decisions
from pipeline.own.decisions_text import decisions_table
from pipeline.reporting.collect import Scores, summarise
from pipeline.reporting.groups import Groups, groups_of
from pipeline.reporting.names import method_name
from pipeline.reporting.pages import report_html, report_markdown
from pipeline.reporting.sections import Section, provenance_of, section_of
from pipeline.reporting.style import draw_all
from pipeline.reporting.table_model import TableSpec
from pipeline.reporting.tables import long_form, remarks_of, write_tables
from pipeline.reporting.terminal import print_lines, print_tables, print_verdict
from pipeline.scoring.cached_logits import find_logits
from pipeline.scoring.files import score_files
from pipeline.sources.own_utilities import aim_of

INTRODUCTION = (
    "This page compares calibration methods on {files}. All scores are from points that no method "
    "was fitted on. A column's heading has its scale. Smaller is better, except for accuracy."
)
MADE = "scripts/score.py made this page. The fitted parameters of every split are in data/fits."


def write_results(
    settings: Settings,
    units: Sequence[Unit],
    folder: Path,
    figures: bool = True,
    wide: bool = False,
) -> None:
    """Write everything into `folder` from evaluated units; print tables and verdict.

    Args:
        figures: write image files, too; the page draws its own.
        wide: print all columns, however wide the terminal is.

    Raises:
        CorruptFile: there are no scores.
    """
    files = score_files(settings)
    scores = Scores.read(files)
    if scores is None:
        raise CorruptFile(f"{files.rows}: removed by another run; score the file again")
    methods = list(dict.fromkeys(unit.calibrator for unit in units))
    spec = TableSpec(
        scores.benchmark,
        settings.benchmark.title,
        _metrics(scores),
        methods,
        "table",
        (*remarks_of(scores.facts, methods), *_aims(units), *_splits(settings)),
    )
    losses = settings.evaluation.own.get("u_losses")
    record = None if losses is None else decisions_of(losses, units)
    section = section_of(scores, [spec], decisions=record)
    groups = groups_of(scores, section)
    section = replace(section, groups=groups.sentences)
    if record is not None:
        write_decisions(record, folder, figures)
        section = replace(section, decisions=decisions_table(record))
    write_tables(section.tables, folder)
    if figures:
        from pipeline.reporting.figures import drawings_of

        draw_all(drawings_of(section), folder)
    _write_pages(settings, scores, section, groups, folder)
    groups.write(folder / "groups.csv")
    write_json(folder / "metrics.json", nested(long_form(section.tables[0])))
    print_tables(section.tables, console, wide)
    print_verdict(section.verdict, "", console)
    print_lines(groups.sentences, console)


def _metrics(scores: Scores) -> list[str]:
    """The measured metrics in the order of the tables, own utilities last."""
    measured = summarise(scores)["metric"].unique().tolist()
    return sorted(measured, key=list(dict.fromkeys([*METRICS, *measured])).index)


def _aims(units: Sequence[Unit]) -> list[str]:
    """A remark for each patching that calibrates to own utilities."""
    aims = {unit.calibrator: aim_of(unit.settings) for unit in units}
    return [
        f"{method_name(method)} calibrates to {', '.join(keys)} alone."
        for method, keys in aims.items()
        if keys
    ]


def _splits(settings: Settings) -> list[str]:
    """A remark on which points calibrate and test."""
    splits = find_logits(settings).details.get("given_splits")
    if splits is None:
        share = 100 * settings.splits.calibration_fraction
        return [
            f"Splits are random: {share:.0f} % calibrate. Choose your own by --test or `split`."
        ]
    numbers = "; ".join(f"{sizes['calibration']} and {sizes['test']}" for sizes in splits[:5])
    more = ", …" if len(splits) > 5 else ""
    return [f"Calibration and test points are the file's own: {numbers}{more}."]


def _write_pages(
    settings: Settings, scores: Scores, section: Section, groups: Groups, folder: Path
) -> None:
    """report.html, report.md and verdict.json."""
    title = settings.benchmark.title
    source = settings.benchmark.source
    files = [Path(file).name for file in (source["path"], source["test"]) if file is not None]
    introduction = INTRODUCTION.format(files=" and ".join(files))
    sections = [section, *groups.sections.values()]
    made = provenance_of(as_typed(MADE), [scores], section.spec.methods)
    write_text(folder / "report.html", report_html(title, introduction, sections, made))
    write_text(folder / "report.md", report_markdown(title, sections))
    write_json(folder / "verdict.json", groups.added_to(section.verdict))


def nested(table: pd.DataFrame) -> dict[str, Any]:
    """{method: {metric: {"mean", "two_se", …}}} from the table's CSV; unknown numbers are null."""
    plain = table.astype(object).where(table.notna(), None)
    return {
        str(method): rows.drop(columns="method").set_index("metric").to_dict("index")
        for method, rows in plain.groupby("method", sort=False)
    }
