"""Stage 4, unit: suite. Tables, eCDF figures, the comparison with the paper and report.html.

python -m pipeline.report suite=digits
python -m pipeline.report suite=cifar evaluation=paper_batches
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from calibrators.files import atomic_path
from pipeline.evaluate import adopt_scores
from pipeline.failures import find_failures
from pipeline.groups import GroupResult, find_groups
from pipeline.harness.artifacts import read_record, sha256_of, write_json, write_text
from pipeline.harness.columns import columns_of
from pipeline.harness.command import CONF, command
from pipeline.harness.paths import DEFAULT_EVALUATION, runs_folder
from pipeline.harness.progress import console, say, say_files
from pipeline.harness.receipts import write_receipt
from pipeline.harness.units import Request, SelectionError, Settings, Unit
from pipeline.reporting.candidates import (
    candidates,
    known_benchmarks,
    known_evaluations,
    paper_rule,
    table_titles,
)
from pipeline.reporting.collect import Runs, UnitResult
from pipeline.reporting.comparison import compare, printed_values
from pipeline.reporting.comparison_pages import summary_html, summary_lines, write_comparison
from pipeline.reporting.curves import FAMILIES, Curves, pooled_curves
from pipeline.reporting.drawings import Drawing, draw_all
from pipeline.reporting.evidence import Ranks, ranks_of
from pipeline.reporting.names import family, ordered
from pipeline.reporting.provenance import provenance_of, write_sidecars
from pipeline.reporting.report_markdown import report_markdown
from pipeline.reporting.report_page import STUDY_CAPTIONS, Section, report_html
from pipeline.reporting.tables import TableSpec, write_tables
from pipeline.reporting.terminal import print_tables
from pipeline.sections import Groups, groups_of, section_of

PAPER_RUNS = {"dirichlet": 80, "patching": 20}
"""The paper's tuning runs (app. C.1)."""
TITLE = "Utility calibration of multiclass classifiers"
OVERVIEW = ("u_cwe", "u_topk", "u_dcg", "brier", "nll", "accuracy")
"""Metrics by which the overview ranks the methods."""


@dataclass(frozen=True)
class BenchmarkReport:
    """What the report says of one benchmark, the files it wrote, and the figures to draw."""

    section: Section
    groups: Groups
    files: Sequence[Path]
    drawings: Sequence[Drawing]


@command
def main(config: DictConfig) -> None:
    """Write the report of the benchmarks asked for, all splits."""
    if config.split is not None:
        raise SelectionError(f"split={config.split}: a report covers all splits; leave it out")
    run_report(Request.from_hydra(config))


def run_report(request: Request) -> None:
    """Write tables, figures, comparison and page; print the tables and what was written.

    Raises:
        MissingUnits: units that have not been evaluated, and the command for them.
    """
    settings = request.benchmark_settings()
    results = Path(settings[0]["paths"]["results"])
    runs = Runs(runs_folder(results), settings[0]["evaluation"]["name"])
    units = request.units()
    adopt_scores(units)
    runs.require([(u.benchmark, u.calibrator, u.split) for u in units], _command(request))
    found = find_failures(units), find_groups(units)
    reports = [report_benchmark(one, runs, request, results, *found) for one in settings]
    written = [path for report in reports for path in report.files]
    drawings = [drawing for report in reports for drawing in report.drawings]
    written += draw_all(drawings, settings[0]["jobs"])
    written += write_sidecars(settings, results / "logits")
    comparison = write_paper_comparison(settings, request, results)
    written += comparison.files
    written += write_pages(reports, comparison.html, settings, request)
    if page_stem(settings[0], request) == "report":
        written.append(write_metrics(reports, results / "metrics.json"))
        copy_images(written, results / "plots" / "figures")
    content = {path.relative_to(results).as_posix(): sha256_of(path) for path in written}
    write_receipt(request, settings[0], "report", content)
    print_report(reports, comparison.lines, written)


def page_stem(settings: Settings, request: Request) -> str:
    """`report` for a whole suite; a page of less, or of another evaluation, has its own name."""
    evaluation = settings["evaluation"]["name"]
    parts = ["report"]
    if not request.whole_suite and list(request.benchmarks) != settings["suite"]["benchmarks"]:
        parts += request.benchmarks if len(request.benchmarks) < 4 else ["selection"]
    if evaluation != DEFAULT_EVALUATION:
        parts.append(evaluation)
    return "-".join(parts)


def write_pages(
    reports: Sequence[BenchmarkReport],
    comparison: str,
    settings: Sequence[Settings],
    request: Request,
) -> list[Path]:
    """The page and its Markdown."""
    stem = Path(settings[0]["paths"]["results"]) / page_stem(settings[0], request)
    sections = [report.section for report in reports]
    introduction = (
        f"Results of the suite {request.suite}: post-hoc calibration methods on cached logits, "
        "scored on held-out points. Errors are shares or units of utility, scaled as the column "
        "says; smaller is better except for accuracy."
    )
    provenance = provenance_of(settings, request)
    overview = overview_of(sections, ordered(request.calibrators)) if len(sections) > 1 else []
    shown = [one for r in reports for one in (r.section, *r.groups.sections.values())]
    html = report_html(TITLE, introduction, shown, provenance, comparison, overview)
    return [
        write_text(stem.with_suffix(".html"), html),
        write_text(stem.with_suffix(".md"), report_markdown(TITLE, shown)),
    ]


def overview_of(sections: Sequence[Section], methods: Sequence[str]) -> list[Ranks]:
    """Ranks by each metric of OVERVIEW that all benchmarks have."""
    statistics = {section.title: section.statistics for section in sections}
    everywhere = [
        key
        for key in OVERVIEW
        if all((method, key) in rows for rows in statistics.values() for method in methods)
    ]
    return [ranks_of(key, statistics, methods) for key in everywhere]


def _command(request: Request) -> str:
    """The command line that makes what is missing."""
    arguments = [f"suite={request.suite}"]
    if not request.whole_suite and len(request.benchmarks) == 1:
        arguments.append(f"benchmark={request.benchmarks[0]}")
    arguments += [text for text in request.overrides if not text.startswith("suite=")]
    stages = ("python -m pipeline.fit", "python -m pipeline.evaluate")
    return " && ".join(f"{stage} {shlex.join(arguments)}" for stage in stages)


def report_benchmark(
    settings: Settings,
    runs: Runs,
    request: Request,
    results: Path,
    records: Mapping[tuple[str, str], Mapping[str, Any]],
    groups: Mapping[str, Sequence[GroupResult]],
) -> BenchmarkReport:
    """Tables and verdict of one benchmark, and of the groups of its points; what to draw."""
    benchmark = settings["benchmark"]["name"]
    stem = benchmark if runs.is_default else f"{benchmark}-{runs.evaluation}"
    methods = ordered(runs.evaluated_methods(benchmark, request.splits))
    units = runs.read_all(benchmark, methods, request.splits)
    specs = table_specs(settings, stem, ordered(request.calibrators), methods)
    curves = curves_of(units, ordered(request.calibrators), settings)
    own = {m: records[benchmark, m] for m in request.calibrators if (benchmark, m) in records}
    studies = study_figures(benchmark, results / "figures")
    section = section_of(settings, units, specs, curves, own, studies)
    files = write_tables(section.tables, results / "tables")
    drawings = drawings_of(section, results / "figures", f"_{stem}")
    parts = groups_of(settings, section, groups.get(benchmark, []))
    section = replace(section, groups=parts.sentences)
    tables = results / "tables"
    files.append(write_json(tables / f"{stem}_verdict.json", parts.added_to(section.verdict)))
    files += parts.write(tables / f"{stem}_groups.csv")
    return BenchmarkReport(section, parts, files, drawings)


def drawings_of(section: Section, folder: Path, end: str = "") -> list[Drawing]:
    """The eCDFs (`ecdf<end>`) and the worst utilities (`worst<end>_<metric>`) as images."""
    from pipeline.reporting.failure_figures import failure_drawings
    from pipeline.reporting.figures import ecdf_figure

    curves = partial(ecdf_figure, section.curves, section.title)
    first = [Drawing(curves, folder, f"ecdf{end}")] if section.curves else []
    return first + failure_drawings(section, folder, f"worst{end}")


def study_figures(benchmark: str, folder: Path) -> dict[str, Path]:
    """What the dynamics stage drew of this benchmark, by the names of STUDY_CAPTIONS."""
    paths = {kind: folder / f"dynamics_{kind}_{benchmark}.svg" for kind in STUDY_CAPTIONS}
    return {kind: path for kind, path in paths.items() if path.is_file()}


def table_specs(
    settings: Settings, stem: str, methods: Sequence[str], available: Sequence[str]
) -> list[TableSpec]:
    """The tables of one benchmark: its own, the paper's Table 1 where printed, and variants.

    The table of variants holds the methods beside those asked for that have been evaluated, each
    family headed by its default.
    """
    benchmark = settings["benchmark"]
    name, title, remarks = benchmark["name"], benchmark["title"], remarks_of(settings)
    columns, look = columns_of(settings), settings["tables"]
    printed = printed_values()
    own = printed[printed["table"] == benchmark["paper_key"]]
    if look == "paper" and not own.empty:
        columns = tuple(dict.fromkeys(own["metric"]))
    specs = [TableSpec(name, title, columns, methods, stem, remarks, look)]
    short = printed[printed["table"] == f"{benchmark['paper_key']}_table1"]
    if not short.empty:
        keys = tuple(dict.fromkeys(short["metric"]))
        label = f"{title} (Table 1)"
        specs.append(TableSpec(name, label, keys, methods, f"{stem}_table1", remarks, look))
    variants = [method for method in available if method not in methods]
    if variants:
        families = {family(variant) for variant in variants}
        rows = [m for m in available if m in variants or m in families]
        label = f"{title}: variants"
        specs.append(TableSpec(name, label, columns, rows, f"{stem}_variants", remarks, look))
    return specs


def remarks_of(settings: Settings) -> tuple[str, ...]:
    """Where the settings differ from the paper's, for the tables' notes."""
    remarks = []
    runs, evaluation = tuning_runs(settings), settings["evaluation"]
    if runs != PAPER_RUNS:
        remarks.append(
            f"Tuned with {runs['dirichlet']} runs for Dirichlet and {runs['patching']} for "
            f"patching; the paper: {PAPER_RUNS['dirichlet']} and {PAPER_RUNS['patching']} "
            "(tuning=paper)."
        )
    if evaluation["utility_batch"] is not None:
        points = evaluation["utility_batch"]
        remarks.append(
            f"Utility metrics: means over disjoint batches of {points} test points or a few more."
        )
    return tuple(remarks)


def tuning_runs(settings: Settings) -> dict[str, int]:
    """The tuning runs of the methods that are tuned, as their fits recorded them."""
    runs = {}
    for method in PAPER_RUNS:
        unit = Unit(settings["benchmark"]["name"], method, 0, settings)
        record = read_record(unit.files.fit.json) or {}
        asked_for = settings["tuning"][f"{method}_runs"]
        runs[method] = int(record.get("config", {}).get("tuning_runs", asked_for))
    return runs


def curves_of(
    units: Sequence[UnitResult], methods: Sequence[str], settings: Settings
) -> list[Curves]:
    """The two panels of the figure; none where the evaluation sampled no utilities."""
    if not all(key in unit.ecdf for unit in units for key in FAMILIES):
        return []
    batch = settings["evaluation"]["utility_batch"]
    return [pooled_curves(units, methods, key, batch) for key in FAMILIES]


def write_metrics(reports: Iterable[BenchmarkReport], path: Path) -> Path:
    """All means as {benchmark: {method: {metric: mean}}}, for `dvc metrics`."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for report in reports:
        own = content.setdefault(report.section.key, {})
        for (method, metric), row in report.section.statistics.items():
            own.setdefault(method, {})[metric] = row["mean"]
    return write_json(path, content)


def copy_images(written: Sequence[Path], folder: Path) -> None:
    """The figures of this suite alone, for `dvc plots`: it shows a folder's images as they are."""
    images = [path for path in written if path.suffix == ".png"]
    if folder.is_dir():
        for old in folder.glob("*.png"):
            old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for path in images:
        with atomic_path(folder / path.name) as temporary:
            temporary.write_bytes(path.read_bytes())


@dataclass(frozen=True)
class ComparisonReport:
    """Files and summary of the comparison; all empty where the suite has no printed table."""

    files: Sequence[Path] = ()
    lines: Sequence[Sequence[str]] = ()
    html: str = ""


def write_paper_comparison(
    settings: Sequence[Settings], request: Request, results: Path
) -> ComparisonReport:
    """Compare everything on disk with the paper, if the suite has a benchmark of the paper.

    Not only the suite's own benchmarks: a report of one suite takes no other off the comparison.
    """
    if not any(one["benchmark"]["paper_key"] for one in settings):
        return ComparisonReport()
    known, evaluations = known_benchmarks(CONF), known_evaluations(CONF)
    found = candidates(runs_folder(results), known, evaluations, request.splits)
    cells = compare(found, printed_values(), paper_rule())
    titles = table_titles(known)
    files = write_comparison(cells, titles, results / "tables")
    return ComparisonReport(files, summary_lines(cells, titles), summary_html(cells, titles))


def print_report(
    reports: Iterable[BenchmarkReport], comparison: Sequence[Sequence[str]], written: Sequence[Path]
) -> None:
    """The tables, the counts against the paper, and one line per set of files written."""
    print_tables((table for report in reports for table in report.section.tables), console)
    for report in reports:
        say(f"{report.section.title}:")
        for sentence in [*report.section.verdict.sentences, *report.section.groups]:
            say(f"  {sentence}")
    for title, default, preset, closest, choice in comparison:
        one_rule = f"; preset=paper: {preset}" if preset else ""
        better = f"; closest: {closest} ({choice})" if choice else ""
        say(f"{title}: {default}{one_rule}{better}")
    say_files(written)


if __name__ == "__main__":
    main()
