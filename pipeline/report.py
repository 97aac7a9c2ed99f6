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
from typing import Any

from omegaconf import DictConfig

from .harness.artifacts import write_texts
from .harness.command import command
from .harness.parameters import UsageError
from .harness.progress import say, say_files
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
from .reporting.sections import section_of
from .reporting.style import Drawings, draw_all
from .reporting.tables import TableSpec
from .reporting.wording import TextTable
from .reporting.write import page_texts, print_sections, section_texts, write_metrics
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
    files = {name: score_files(settings).rows for name, settings in plan.settings.items()}
    return left_out(plan, [name for name, path in files.items() if not path.is_file()], "no scores")


def _write(request: Request, plan: Plan) -> None:
    from .reporting.studies import studies_of  # with numba

    settings = list(plan.settings.values())
    results = settings[0].paths.results
    scores = wanted_scores(plan.units, _command(request))
    methods, sections = ordered(request.calibrators), []
    written: list[Path] = []
    drawings: dict[str, Any] = {}
    drawings_by_stem: dict[str, Drawings] = {}
    for benchmark in settings:
        name, title = benchmark.benchmark.name, benchmark.benchmark.title
        stem = score_files(benchmark).stem
        studies = studies_of(results, scores[name], title, methods)
        images = studies.images(results / "figures")
        specs, columns = table_specs(benchmark, stem), columns_of(benchmark)
        section = section_of(scores[name], methods, specs, columns, images)
        section = replace(section, study_tables=studies.tables)
        sections.append(section)
        texts = {**section_texts(section, f"{stem}_"), **studies.texts}
        written += write_texts(results / "tables", texts)
        drawn = drawings_of(section, f"_{stem}")
        drawings_by_stem[stem] = drawn
        drawings |= {**drawn, **studies.drawings}
    is_part = list(request.benchmarks) != list(settings[0].suite.benchmarks)
    end = settings[0].evaluation.suffix
    leaderboard = leaderboard_of({s.spec.name: s.decisions for s in sections})
    if leaderboard and not is_part:
        written += leaderboard.write(results / "tables", f"leaderboard{end}")
        drawings[f"leaderboard{end}"] = partial(leaderboard_figure, leaderboard)
    image_files = draw_all(drawings, results / "figures", settings[0].jobs)
    written += image_files
    figures = {
        section.spec.name: svg_files(drawn, image_files, f"_{stem}")
        for section, (stem, drawn) in zip(sections, drawings_by_stem.items(), strict=True)
    }
    written += write_all_scores(results)
    summary: TextTable | None = None
    if any(benchmark.benchmark.paper_key for benchmark in settings):
        # Of the benchmarks of all suites, so the report of one suite keeps the others.
        cells = comparison.paper_cells(results, settings[0].splits.count, request)
        written += comparison.write_comparison(cells, results / "tables")
        written += write_paired(cells, results / "tables")
        summary = comparison.summary_of(cells)
        if request.suite == CLOSEST and not is_part:
            claims = claims_of_tables(cells) + _claims_of_studies(settings, scores)
            written += write_claims(claims, results / "tables")
    heads = TITLE, f"the benchmarks of the suite {request.suite}"
    made = provenance_of(f"Suite {request.suite}.", list(scores.values()), methods)
    some = list(scores) if len(scores) < 4 else ["selection"]  # by name: calarena_imagenet_beit
    stem = "-".join(["report", *some]) if is_part else request.suite
    page = page_texts(results, stem + end, heads, sections, made, leaderboard, summary, figures)
    written += write_texts(results, page)
    if not is_part:
        decisions = [section.decisions for section in sections]
        written.append(write_metrics(results / "metrics" / f"{request.suite}{end}", decisions))
    print_sections(sections)
    for title, default, preset in summary.rows if summary else ():
        say(f"{title}: {default}" + (f"; suite=paper_closest: {preset}" if preset else ""))
    say_files(written)


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
    arguments = [f"suite={request.suite}"]
    if len(request.benchmarks) == 1:
        arguments.append(f"benchmark={request.benchmarks[0]}")
    arguments += [text for text in request.overrides if not text.startswith("suite=")]
    stages = ("utility-calibration fit", "utility-calibration evaluate")
    return " && ".join(f"{stage} {shlex.join(arguments)}" for stage in stages)


def table_specs(settings: Settings, stem: str) -> list[TableSpec]:
    """The tables of one benchmark: the main table, and Table 1 if the paper prints it there."""
    benchmark, look = settings.benchmark, settings.tables.value
    title, columns, printed = benchmark.title, columns_of(settings), comparison.printed_values()
    ends = "", comparison.TABLE_ONE_SUFFIX
    of_table = [printed["table"] == f"{benchmark.paper_key}{end}" for end in ends]
    whole, short = (tuple(printed["metric"][rows].unique()) for rows in of_table)
    specs = [TableSpec(stem, title, (look == "paper" and whole) or columns, look=look)]
    if short:
        name, title = f"{stem}{comparison.TABLE_ONE_SUFFIX}", f"{title} (Table 1)"
        specs.append(TableSpec(name, title, short, look=look))
    return specs
