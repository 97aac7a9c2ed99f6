"""What scripts/score.py writes of one person's file: tables, figures, verdict and page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metrics.registry import METRICS
from pipeline.decisions import write_decisions
from pipeline.failures import find_failures
from pipeline.groups import find_groups
from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.paths import runs_folder
from pipeline.harness.progress import console, say
from pipeline.harness.units import Settings, Unit
from pipeline.own_utilities import aim_of
from pipeline.report import curves_of, drawings_of, remarks_of
from pipeline.reporting.collect import Runs, UnitResult
from pipeline.reporting.drawings import draw_all
from pipeline.reporting.names import method_name
from pipeline.reporting.provenance import file_provenance
from pipeline.reporting.report_markdown import report_markdown
from pipeline.reporting.report_page import Section, report_html
from pipeline.reporting.tables import TableSpec, long_form, write_tables
from pipeline.reporting.terminal import print_tables
from pipeline.sections import Groups, groups_of, section_of

INTRODUCTION = (
    "Post-hoc calibration methods on the file {file}, scored on held-out points. Errors are shares "
    "or units of utility, scaled as the column says; smaller is better except for accuracy."
)


def write_results(
    settings: Settings, units: Sequence[Unit], folder: Path, figures: bool = True
) -> None:
    """Write everything into `folder` from evaluated units; print tables and verdict.

    `figures`: with image files; the page draws its own.
    """
    benchmark = settings["benchmark"]
    methods = list(dict.fromkeys(unit.calibrator for unit in units))
    splits = sorted({unit.split for unit in units})
    runs = Runs(runs_folder(settings["paths"]["results"]))
    results = runs.read_all(benchmark["name"], methods, splits)
    spec = TableSpec(
        benchmark["name"],
        benchmark["title"],
        _metrics(results),
        methods,
        "table",
        (
            *(remarks_of(settings) if any(_is_tuned(method) for method in methods) else ()),
            *_aims(units),
        ),
    )
    curves = curves_of(results, methods, settings)
    found = find_failures(units)
    records = {
        method: found[key] for method in methods if (key := (spec.benchmark, method)) in found
    }
    section = section_of(settings, results, [spec], curves, records)
    groups = groups_of(settings, section, find_groups(units).get(spec.benchmark, []))
    section = replace(section, groups=groups.sentences)
    write_tables(section.tables, folder)
    if figures:
        draw_all(drawings_of(section, folder), settings["jobs"])
    write_pages(settings, section, groups, folder)
    groups.write(folder / "groups.csv")
    rows = long_form(section.tables[0]).to_dict("records")
    write_json(folder / "metrics.json", nested(rows))
    print_tables(section.tables, console)
    for sentence in [*section.verdict.sentences, *groups.sentences]:
        say(sentence)
    for key in settings["evaluation"]["own"]:
        for method, failure in section.failures[key].items():
            say(f"{key}, {method_name(method)}: {failure.words}")
    if settings["evaluation"]["own"] and section.pooled:
        say(section.pooled)
    if (losses := settings["evaluation"]["own"].get("u_losses")) is not None:
        say(write_decisions(losses, units, folder, figures))


def _metrics(results: Sequence[UnitResult]) -> list[str]:
    """What was measured, in the order of the tables, own utilities last."""
    measured = dict.fromkeys(metric for unit in results for metric in unit.metrics)
    return sorted(measured, key=list(dict.fromkeys([*METRICS, *measured])).index)


def _aims(units: Sequence[Unit]) -> list[str]:
    """A remark where patching calibrates to own utilities."""
    aims = {unit.calibrator: aim_of(unit.settings) for unit in units}
    return [
        f"{method_name(method)} calibrates to {', '.join(keys)} alone."
        for method, keys in aims.items()
        if keys
    ]


def _is_tuned(method: str) -> bool:
    return method.startswith(("dirichlet", "patching"))


def write_pages(settings: Settings, section: Section, groups: Groups, folder: Path) -> None:
    """report.html, report.md and verdict.json."""
    title = settings["benchmark"]["title"]
    introduction = INTRODUCTION.format(file=Path(settings["benchmark"]["source"]["path"]).name)
    sections = [section, *groups.sections.values()]
    html = report_html(title, introduction, sections, file_provenance(settings))
    write_text(folder / "report.html", html)
    write_text(folder / "report.md", report_markdown(title, sections))
    write_json(folder / "verdict.json", groups.added_to(section.verdict))


def nested(rows: Sequence[Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """{method: {metric: {"mean", "two_se", …}}} of the table's CSV; what is unknown is null."""
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        values = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
            if name not in ("method", "metric")
        }
        result.setdefault(row["method"], {})[row["metric"]] = values
    return result
