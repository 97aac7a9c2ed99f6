"""Stage 5 of 5: a suite's tables, eCDF figures, comparison with the paper and report.html.

python -m pipeline.report suite=digits
python -m pipeline.report suite=cifar evaluation=paper_batches

It reads the scores in results/scores, which `pipeline.evaluate` writes, and results/dynamics.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from omegaconf import DictConfig

from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.command import UsageError, command
from pipeline.harness.progress import console, say, say_files
from pipeline.harness.settings import Settings
from pipeline.harness.units import Request
from pipeline.reporting.collect import Scores, wanted_scores
from pipeline.reporting.comparison import (
    SUMMARY_HEADING,
    paper_cells,
    printed_values,
    summary_lines,
    write_comparison,
)
from pipeline.reporting.dynamics_figures import dynamics_drawings
from pipeline.reporting.figures import drawings_of
from pipeline.reporting.groups import Groups, groups_of
from pipeline.reporting.leaderboard import (
    Leaderboard,
    leaderboard_figure,
    leaderboard_of,
    write_all_scores,
)
from pipeline.reporting.names import ordered
from pipeline.reporting.pages import STUDY_CAPTIONS, report_html, report_markdown
from pipeline.reporting.sections import Section, provenance_of, section_of
from pipeline.reporting.style import Drawings, draw_all
from pipeline.reporting.table_model import Look, TableSpec
from pipeline.reporting.tables import long_form, remarks_of, write_tables
from pipeline.reporting.terminal import print_lines, print_tables, print_verdict
from pipeline.scoring.files import DEFAULT_EVALUATION, ScoreFiles, columns_of

TITLE = "Utility calibration of multiclass classifiers"
INTRODUCTION = (
    "This page compares calibration methods on the benchmarks of the suite {suite}. All scores are "
    "from points that no method was fitted on. A column's heading has its scale. Smaller is "
    "better, except for accuracy."
)


@dataclass(frozen=True)
class BenchmarkReport:
    """What the report says of one benchmark, the files it wrote, and the figures to draw."""

    section: Section
    groups: Groups
    files: Sequence[Path]
    drawings: Drawings


@command
def main(config: DictConfig) -> None:
    """Write the report of the requested benchmarks, all splits."""
    if config.split is not None:
        raise UsageError(f"split={config.split}: a report covers all splits; leave it out")
    run_report(Request.from_hydra(config))


def run_report(request: Request) -> None:
    """Write tables, figures, comparison and page; print the tables and what was written.

    Raises:
        MissingScores: scores that are absent or of other settings, and the command for them.
    """
    settings = request.benchmark_settings()
    results = settings[0].paths.results
    scores = wanted_scores(request.units(), _command(request))
    methods = ordered(request.calibrators)
    reports = [
        report_benchmark(benchmark, scores[benchmark.benchmark.name], methods, results)
        for benchmark in settings
    ]
    written = [path for report in reports for path in report.files]
    drawings = {stem: make for report in reports for stem, make in report.drawings.items()}
    stem, leaderboard = page_stem(settings[0], request), who_wins(reports, methods)
    if leaderboard and "selection" not in stem:
        board = stem.replace("report", "leaderboard")
        written += leaderboard.write(results / "tables", board)
        drawings[board] = partial(leaderboard_figure, leaderboard)
    written += [*draw_all(drawings, results / "figures"), *write_all_scores(results)]
    files, comparison = write_paper_comparison(settings, results)
    written += files
    sections = [s for r in reports for s in (r.section, *r.groups.sections.values())]
    introduction = INTRODUCTION.format(suite=request.suite)
    provenance = provenance_of(f"Suite {request.suite}.", list(scores.values()), methods)
    timed = leaderboard and leaderboard.with_seconds(settings[0].paths.data / "log")
    html = report_html(TITLE, introduction, sections, provenance, comparison, timed)
    markdown = report_markdown(TITLE, sections, leaderboard)
    written.append(write_text(results / f"{stem}.html", html))
    written.append(write_text(results / f"{stem}.md", markdown))
    if stem == "report":
        written.append(write_metrics(reports, results / "metrics.json"))
    print_report(reports, comparison[1:], written)


def page_stem(settings: Settings, request: Request) -> str:
    """`report` for a whole suite; a part of one, or another evaluation, has a name of its own."""
    evaluation, parts = settings.evaluation.name, ["report"]
    if list(request.benchmarks) != settings.suite.benchmarks:
        parts += request.benchmarks if len(request.benchmarks) < 4 else ["selection"]
    if evaluation != DEFAULT_EVALUATION:
        parts.append(evaluation)
    return "-".join(parts)


def who_wins(reports: Sequence[BenchmarkReport], methods: Sequence[str]) -> Leaderboard | None:
    """The leaderboard over all benchmarks.

    None for a single benchmark or method, and for the paper's look, which has no tests.
    """
    tables = {report.section.spec.name: report.section.tables[0] for report in reports}
    tested = all(table.spec.look == "default" for table in tables.values())
    if len(tables) < 2 or len(methods) < 2 or not tested:
        return None
    return leaderboard_of({name: long_form(table) for name, table in tables.items()}, methods)


def _command(request: Request) -> str:
    """The command line that makes what is missing."""
    arguments = [f"suite={request.suite}"]
    if len(request.benchmarks) == 1:
        arguments.append(f"benchmark={request.benchmarks[0]}")
    arguments += [text for text in request.overrides if not text.startswith("suite=")]
    stages = ("python -m pipeline.fit", "python -m pipeline.evaluate")
    return " && ".join(f"{stage} {shlex.join(arguments)}" for stage in stages)


def report_benchmark(
    settings: Settings, scores: Scores, methods: Sequence[str], results: Path
) -> BenchmarkReport:
    """Tables and verdict of one benchmark, and of the groups of its points; what to draw."""
    evaluation = settings.evaluation.name
    stem = ScoreFiles(results, scores.benchmark, evaluation).stem
    specs = table_specs(settings, scores, stem, methods)
    study = study_drawings(scores, settings.benchmark.title, results)
    figures = {
        kind: results / "figures" / f"{name}.png" for kind, name in zip(STUDY_CAPTIONS, study)
    }
    section = section_of(scores, specs, figures)
    tables = results / "tables"
    files = write_tables(section.tables, tables)
    drawings = {**drawings_of(section, f"_{stem}"), **study}
    groups = groups_of(scores, section)
    section = replace(section, groups=groups.sentences)
    files.append(write_json(tables / f"{stem}_verdict.json", groups.added_to(section.verdict)))
    files += groups.write(tables / f"{stem}_groups.csv")
    return BenchmarkReport(section, groups, files, drawings)


def study_drawings(scores: Scores, title: str, results: Path) -> Drawings:
    """The figures of the appendix study of this benchmark, where the dynamics stage ran it."""
    folder = results / "dynamics" / scores.benchmark
    families = {path.parent.name: path.parent for path in sorted(folder.glob("*/dynamics.json"))}
    if not families:
        return {}
    return dynamics_drawings(families, title, scores.benchmark)


def table_specs(
    settings: Settings, scores: Scores, stem: str, methods: Sequence[str]
) -> list[TableSpec]:
    """The tables of one benchmark: the main table, and Table 1 if the paper prints it there."""
    benchmark, look = settings.benchmark, cast(Look, settings.tables)
    name, title, remarks = benchmark.name, benchmark.title, remarks_of(scores.facts, methods)
    columns, printed = columns_of(settings), printed_values()
    table = printed[printed["table"] == benchmark.paper_key]
    if look == "paper" and not table.empty:
        columns = tuple(dict.fromkeys(table["metric"]))
    specs = [TableSpec(name, title, columns, methods, stem, remarks, look)]
    short = printed[printed["table"] == f"{benchmark.paper_key}_table1"]
    if not short.empty:
        keys = tuple(dict.fromkeys(short["metric"]))
        label = f"{title} (Table 1)"
        specs.append(TableSpec(name, label, keys, methods, f"{stem}_table1", remarks, look))
    return specs


def write_metrics(reports: Iterable[BenchmarkReport], path: Path) -> Path:
    """All means as {benchmark: {method: {metric: mean}}}, for `dvc metrics`."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for section in (report.section for report in reports):
        for (method, metric), row in section.statistics.items():
            methods = content.setdefault(section.spec.name, {})
            methods.setdefault(method, {})[metric] = row["mean"]
    return write_json(path, content)


def write_paper_comparison(
    settings: Sequence[Settings], results: Path
) -> tuple[list[Path], list[Sequence[str]]]:
    """Compare all scores of the folder with the paper, if the suite has a benchmark of the paper.

    The comparison has the benchmarks of all suites, so the report of one suite keeps the others.

    Returns:
        The files, and the lines of the summary; both are empty if the paper prints nothing.
    """
    if not any(benchmark.benchmark.paper_key for benchmark in settings):
        return [], []
    cells = paper_cells(results, settings[0].splits.count)
    files = write_comparison(cells, results / "tables")
    return files, [SUMMARY_HEADING, *summary_lines(cells)]


def print_report(
    reports: Iterable[BenchmarkReport], comparison: Sequence[Sequence[str]], written: Sequence[Path]
) -> None:
    """The tables, the counts against the paper, and one line per set of files written."""
    print_tables((table for report in reports for table in report.section.tables), console)
    for report in reports:
        print_verdict(report.section.verdict, report.section.spec.title, console)
        print_lines(report.section.groups, console)
    for title, default, preset in comparison:
        say(f"{title}: {default}" + (f"; preset=paper: {preset}" if preset else ""))
    say_files(written)


if __name__ == "__main__":
    main()
