"""Stage 5 of 5: a suite's tables, eCDF figures, comparison with the paper and its page.

python -m pipeline.report suite=digits
python -m pipeline.report suite=cifar evaluation=paper_batches

It reads the scores in results/scores, which `pipeline.evaluate` writes, and results/dynamics. The
page of suite=cifar is results/cifar.html, the same as text results/cifar.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig

from pipeline.harness.artifacts import write_json
from pipeline.harness.command import UsageError, command
from pipeline.harness.progress import say, say_files
from pipeline.harness.settings import Settings
from pipeline.harness.units import Request
from pipeline.reporting.comparison import (
    SUMMARY_HEADING,
    paper_cells,
    printed_values,
    summary_lines,
    write_comparison,
)
from pipeline.reporting.dynamics_figures import dynamics_drawings
from pipeline.reporting.figures import drawings_of
from pipeline.reporting.leaderboard import leaderboard_figure, leaderboard_of
from pipeline.reporting.names import ordered
from pipeline.reporting.page import STUDY_CAPTIONS
from pipeline.reporting.sections import provenance_of, section_of
from pipeline.reporting.style import Drawings, draw_all
from pipeline.reporting.tables import Look, TableSpec
from pipeline.reporting.write import Part, print_parts, write_page
from pipeline.scoring.files import (
    DEFAULT_EVALUATION,
    ScoreFiles,
    Scores,
    columns_of,
    write_all_scores,
)
from pipeline.scoring.scores import wanted_scores

TITLE = "Utility calibration of multiclass classifiers"
INTRODUCTION = (
    "This page compares calibration methods on the benchmarks of the suite {suite}. All scores are "
    "from points that no method was fitted on. A column's heading has its scale. Smaller is "
    "better, except for accuracy."
)


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
    results, evaluation = settings[0].paths.results, settings[0].evaluation.name
    scores = wanted_scores(request.units(), _command(request))
    methods = ordered(request.calibrators)
    parts: list[Part] = []
    written: list[Path] = []
    drawings: dict[str, Any] = {}
    for benchmark in settings:
        of_benchmark = scores[benchmark.benchmark.name]
        part, figures = part_of(benchmark, of_benchmark, methods, results)
        stem = part.section.spec.name
        written += part.write(results / "tables", f"{stem}_")
        drawings |= {**drawings_of(part.section, f"_{stem}"), **figures}
        parts.append(part)
    is_part = list(request.benchmarks) != list(settings[0].suite.benchmarks)
    end = "" if evaluation == DEFAULT_EVALUATION else f"-{evaluation}"
    leaderboard = leaderboard_of({p.section.spec.name: p.section.decisions for p in parts})
    if leaderboard and not is_part:
        written += leaderboard.write(results / "tables", f"leaderboard{end}")
        drawings[f"leaderboard{end}"] = partial(leaderboard_figure, leaderboard)
    written += [*draw_all(drawings, results / "figures"), *write_all_scores(results)]
    files, comparison = write_paper_comparison(settings, results)
    heads = TITLE, INTRODUCTION.format(suite=request.suite)
    made = provenance_of(f"Suite {request.suite}.", list(scores.values()), methods)
    stem = f"{page_stem(request) if is_part else request.suite}{end}"
    written += [*files, *write_page(results, stem, heads, parts, made, leaderboard, comparison)]
    if not (is_part or end):
        written.append(write_metrics(parts, results / "metrics.json"))
    print_parts(parts)
    for title, default, preset in comparison[1:]:
        say(f"{title}: {default}" + (f"; preset=paper: {preset}" if preset else ""))
    say_files(written)


def page_stem(request: Request) -> str:
    """The name of the page of a part of a suite."""
    benchmarks = request.benchmarks if len(request.benchmarks) < 4 else ["selection"]
    return "-".join(["report", *benchmarks])


def _command(request: Request) -> str:
    """The command line that makes what is missing."""
    arguments = [f"suite={request.suite}"]
    if len(request.benchmarks) == 1:
        arguments.append(f"benchmark={request.benchmarks[0]}")
    arguments += [text for text in request.overrides if not text.startswith("suite=")]
    stages = ("python -m pipeline.fit", "python -m pipeline.evaluate")
    return " && ".join(f"{stage} {shlex.join(arguments)}" for stage in stages)


def part_of(
    settings: Settings, scores: Scores, methods: Sequence[str], results: Path
) -> tuple[Part, Drawings]:
    """One benchmark's part of the report, and the figures of its appendix study, if any."""
    stem = ScoreFiles(results, scores.benchmark, settings.evaluation.name).stem
    study = study_drawings(scores, settings.benchmark.title, results)
    figures = {
        kind: results / "figures" / f"{name}.png" for kind, name in zip(STUDY_CAPTIONS, study)
    }
    specs = table_specs(settings, stem)
    section = section_of(scores, methods, specs, columns_of(settings), figures)
    return Part.of(section, scores), study


def study_drawings(scores: Scores, title: str, results: Path) -> Drawings:
    """The figures of the appendix study of this benchmark, where the dynamics stage ran it."""
    folder = results / "dynamics" / scores.benchmark
    families = {path.parent.name: path.parent for path in sorted(folder.glob("*/dynamics.json"))}
    return dynamics_drawings(families, title, scores.benchmark) if families else {}


def table_specs(settings: Settings, stem: str) -> list[TableSpec]:
    """The tables of one benchmark: the main table, and Table 1 if the paper prints it there."""
    benchmark, look = settings.benchmark, cast(Look, settings.tables)
    title, columns, printed = benchmark.title, columns_of(settings), printed_values()
    table = printed[printed["table"] == benchmark.paper_key]
    if look == "paper" and not table.empty:
        columns = tuple(dict.fromkeys(table["metric"]))
    specs = [TableSpec(stem, title, columns, look=look)]
    short = printed[printed["table"] == f"{benchmark.paper_key}_table1"]
    if not short.empty:
        keys = tuple(dict.fromkeys(short["metric"]))
        specs.append(TableSpec(f"{stem}_table1", f"{title} (Table 1)", keys, look=look))
    return specs


def write_metrics(parts: Iterable[Part], path: Path) -> Path:
    """All means as {benchmark: {method: {metric: mean}}}, for `dvc metrics`."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for section in (part.section for part in parts):
        for (method, key), row in section.decisions.rows.items():
            methods = content.setdefault(section.spec.name, {})
            methods.setdefault(method, {})[key] = row.mean
    return write_json(path, content)


def write_paper_comparison(
    settings: Sequence[Settings], results: Path
) -> tuple[list[Path], list[Sequence[str]]]:
    """Compare all scores of the folder with the paper, if the suite has a benchmark of the paper.

    The comparison has the benchmarks of all suites, so the report of one suite keeps the others.

    Returns:
        The files, and the lines of the summary, its heading first; both are empty if the paper
        prints nothing.
    """
    if not any(benchmark.benchmark.paper_key for benchmark in settings):
        return [], []
    cells = paper_cells(results, settings[0].splits.count)
    files = write_comparison(cells, results / "tables")
    return files, [SUMMARY_HEADING, *summary_lines(cells)]


if __name__ == "__main__":
    main()
