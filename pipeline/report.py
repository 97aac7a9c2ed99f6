"""Stage 6 of 6: a suite's tables, eCDF figures, comparison with the paper and its page.

utility-calibration report suite=digits
utility-calibration report suite=cifar evaluation=paper_batches

It reads results/scores, which `pipeline/evaluate.py` writes, results/dynamics and results/users.
The page of suite=cifar is results/cifar.html, the same as text results/cifar.md.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig

from .harness.artifacts import write_texts
from .harness.command import command
from .harness.parameters import UsageError
from .harness.progress import console, say, say_files
from .harness.settings import Settings
from .harness.units import Request
from .logits import left_out, skips_absent
from .plan import Plan
from .reporting import comparison
from .reporting.agreement import CLOSEST
from .reporting.claims import Claim, claims_of_tables, write_claims
from .reporting.claims_of_users import claims_of_users
from .reporting.figures import drawings_of, leaderboard_figure, svg_files
from .reporting.leaderboard import leaderboard_of
from .reporting.names import ordered
from .reporting.page import provenance_of
from .reporting.paired import write_paired
from .reporting.sections import Section, section_of
from .reporting.style import Drawings, draw_all
from .reporting.tables import TableSpec
from .reporting.wording import TextTable
from .reporting.write import (
    page_texts,
    print_sections,
    print_tables,
    section_texts,
    write_metrics,
)
from .scoring.files import Scores, columns_of, score_files, write_all_scores
from .scoring.scores import wanted_scores, writes_results

TITLE = "Utility calibration of multiclass classifiers"


@command
def main(config: DictConfig) -> None:
    """Write the report of the requested benchmarks, all splits."""
    if config.split is not None:
        raise UsageError(f"split={config.split}: a report covers all splits; leave it out")
    run_report(Request.from_hydra(config))


def run_report(request: Request) -> None:
    """Write tables, figures, comparison and page; print the tables and what was written."""
    plan = with_scores(Plan(request.units()))
    with writes_results(plan.units[0].settings):
        _write(request, plan)


def with_scores(plan: Plan) -> Plan:
    """The plan without the benchmarks that have no scores, if its suite leaves them out."""
    if not skips_absent(plan):
        return plan
    absent = []
    for name, settings in plan.settings.items():
        if not score_files(settings).rows.is_file():
            absent.append(name)
    return left_out(plan, absent, "no scores")


class _Part(NamedTuple):
    """What a report has of one benchmark."""

    section: Section
    texts: dict[str, str]
    """Tables by the names of their files."""
    drawings: Drawings
    """Figures of the section by the names of their files."""
    study_drawings: Drawings
    """Figures of the studies of users."""


def _part_of(benchmark: Settings, scores: Scores, methods: list[str]) -> _Part:
    """Make tables and figures of a benchmark from its scores and studies; nothing is drawn yet."""
    from .reporting.studies import studies_of  # with numba

    results = benchmark.paths.results
    stem = score_files(benchmark).stem
    studies = studies_of(results, scores, benchmark.benchmark.title, methods)
    specs = table_specs(benchmark, stem)
    images = studies.images(results / "figures")
    section = section_of(scores, methods, specs, columns_of(benchmark), images)
    section = replace(section, study_tables=studies.tables)
    texts = {**section_texts(section, f"{stem}_"), **studies.texts}
    return _Part(section, texts, drawings_of(section, f"_{stem}"), studies.drawings)


def _write(request: Request, plan: Plan) -> None:
    settings = list(plan.settings.values())
    results, suffix = settings[0].paths.results, settings[0].evaluation.suffix
    scores = wanted_scores(plan.units, _command(request))
    methods = ordered(request.calibrators)
    is_part = list(request.benchmarks) != list(settings[0].suite.benchmarks)
    parts = [_part_of(each, scores[each.benchmark.name], methods) for each in settings]
    sections = [part.section for part in parts]
    written: list[Path] = []
    drawings: dict[str, Any] = {}
    for part in parts:
        written += write_texts(results / "tables", part.texts)
        drawings |= {**part.drawings, **part.study_drawings}
    leaderboard = leaderboard_of({section.spec.name: section.decisions for section in sections})
    if leaderboard and not is_part:
        written += leaderboard.write(results / "tables", f"leaderboard{suffix}")
        drawings[f"leaderboard{suffix}"] = partial(leaderboard_figure, leaderboard)
    image_files = draw_all(drawings, results / "figures", settings[0].jobs)
    written += image_files
    figures = {}
    for benchmark, part in zip(settings, parts, strict=True):
        end = f"_{score_files(benchmark).stem}"
        figures[part.section.spec.name] = svg_files(part.drawings, image_files, end)
    written += write_all_scores(results)
    summary: TextTable | None = None
    if any(benchmark.benchmark.paper_key for benchmark in settings):
        summary, files = _compare(request, settings, scores, is_part)
        written += files
    heads = TITLE, f"the benchmarks of the suite {request.suite}"
    made = provenance_of(f"Suite {request.suite}.", list(scores.values()), methods)
    name = _page_name(request, list(scores), is_part) + suffix
    page = page_texts(results, name, heads, sections, made, leaderboard, summary, figures)
    written += write_texts(results, page)
    if not is_part:
        folder = results / "metrics" / f"{request.suite}{suffix}"
        written.append(write_metrics(folder, [section.decisions for section in sections]))
    print_sections(sections)
    print_tables([table for section in sections for table in section.tables], console)
    if summary is not None:
        for title, default, preset in summary.rows:
            say(f"{title}: {default}" + (f"; suite=paper_closest: {preset}" if preset else ""))
    say_files(written)


def _compare(
    request: Request, settings: Sequence[Settings], scores: Mapping[str, Scores], is_part: bool
) -> tuple[TextTable, list[Path]]:
    """Write the comparison with the paper; return its summary, and the files."""
    results = settings[0].paths.results
    # Of the benchmarks of all suites, so the report of one suite keeps the others.
    cells = comparison.paper_cells(results, settings[0].splits.count, request)
    written = comparison.write_comparison(cells, results / "tables")
    written += write_paired(cells, results / "tables")
    if request.suite == CLOSEST and not is_part:
        claims = claims_of_tables(cells) + _claims_of_studies(settings, scores)
        written += write_claims(claims, results / "tables")
    return comparison.summary_of(cells), written


def _page_name(request: Request, benchmarks: Sequence[str], is_part: bool) -> str:
    """The name of the page without an ending: that of the suite, or of a few benchmarks."""
    if not is_part:
        return request.suite
    # By the names of their results, such as calarena_imagenet_beit.
    return "-".join(["report", *(benchmarks if len(benchmarks) < 4 else ["selection"])])


def _claims_of_studies(settings: Sequence[Settings], scores: Mapping[str, Scores]) -> list[Claim]:
    """The claims about eCDFs, dynamics and bounds; `scores` by the name of the benchmark."""
    from .reporting.claims_of_bounds import claims_of_bounds  # with numba
    from .reporting.studies import facts_of_users

    results, names = settings[0].paths.results, list(scores)
    curves = {each.benchmark.title: scores[each.benchmark.name].own_curves() for each in settings}
    claims = claims_of_users(curves, results / "dynamics", names)
    # A study of other logits is no evidence about these.
    users = results / "users"
    studied = [name for name in names if facts_of_users(users / name, scores[name]) is not None]
    return claims + claims_of_bounds(users, studied)


def _command(request: Request) -> str:
    """The command that makes the scores of a request."""
    arguments = [f"suite={request.suite}"]
    if len(request.benchmarks) == 1:
        arguments.append(f"benchmark={request.benchmarks[0]}")
    arguments += [text for text in request.overrides if not text.startswith("suite=")]
    stages = ("utility-calibration fit", "utility-calibration evaluate")
    return " && ".join(f"{stage} {shlex.join(arguments)}" for stage in stages)


def table_specs(settings: Settings, stem: str) -> list[TableSpec]:
    """The tables of one benchmark: the main table, and Table 1 if the paper prints it there."""
    benchmark, look = settings.benchmark, settings.tables.value
    printed = comparison.printed_values()

    def printed_metrics(end: str) -> tuple[str, ...]:
        """The columns of a printed table; none where the paper has no such table."""
        rows = printed["table"] == f"{benchmark.paper_key}{end}"
        return tuple(printed["metric"][rows].unique())

    columns = columns_of(settings)
    if look == "paper":
        columns = printed_metrics("") or columns
    specs = [TableSpec(stem, benchmark.title, columns, look=look)]
    short = printed_metrics(comparison.TABLE_ONE_SUFFIX)
    if short:
        name = f"{stem}{comparison.TABLE_ONE_SUFFIX}"
        specs.append(TableSpec(name, f"{benchmark.title} (Table 1)", short, look=look))
    return specs
