"""Write the results of utility-calibration score: tables, figures, verdict and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from utility_calibration.metrics.registry import METRICS

from ...harness.artifacts import CorruptFile, json_text, write_texts
from ...harness.cache import record_of
from ...harness.parallel import run_tasks
from ...reporting.keeping import CALIBRATOR, how_to_keep
from ...reporting.limits import left_words
from ...reporting.names import method_name
from ...reporting.page import provenance_of
from ...reporting.sections import Section, section_of
from ...reporting.tables import TableSpec
from ...reporting.verdict import LEFT
from ...reporting.write import page_texts, section_texts
from ...scoring.choice import PRESENT
from ...scoring.decisions import INFINITE
from ...scoring.files import ON_REQUEST, Scores, score_files
from ...scoring.left_to_gain import left_to_gain
from ...scoring.recommended import DEFAULT
from ...tasks import costs_task
from ..request.folder import remove_others
from ..request.job import Job
from ..request.options import READING, as_typed

if TYPE_CHECKING:
    from ...reporting.style import Drawings

MADE = (
    "utility-calibration score made this page. The fitted parameters of every split are in "
    "data/fits."
)
WITHOUT_DEFAULT = (
    f"This was a quick look. It leaves out the default method, {method_name(DEFAULT)}, whose fits "
    "take longest. Score without --quick to compare all methods."
)


def lacks_default(job: Job) -> bool:
    """Whether the run is a quick look whose methods the person did not name."""
    return job.options.quick and job.options.may_add


def write_results(job: Job) -> Section:
    """Write all into the folder of output; return what is to be printed."""
    folder, costs = job.options.output, _costs(job)
    files = score_files(job.first)
    scores = Scores.read(files)
    if scores is None:
        raise CorruptFile(f"{files.rows}: removed by another run; score the file again")
    methods = list(dict.fromkeys(unit.calibrator for unit in job.plan.units))
    section = _section(job, scores, methods, costs)
    section = _with_commands(section, job)
    if not job.options.quick:
        section = _with_what_is_left(section, job, methods)
    texts = section_texts(section)
    if section.costs is not None:
        texts["decisions.json"] = json_text(costs)
        texts["decisions.md"] = section.costs.markdown() + "\n"
    texts["metrics.json"] = json_text(_numbers(section))
    written = write_texts(folder, texts)  # first, so that a figure that cannot be drawn loses none
    from ...reporting.figures import drawings_of, svg_files  # matplotlib takes half a second
    from ...reporting.style import draw_all

    drawings = drawings_of(section, curve=(costs or {}).get("curve"))
    formats: tuple[str, ...] = ("pdf", "svg", "png")
    if job.options.quick:
        drawings, formats = _few_of(drawings), ("svg",)
    images = draw_all(drawings, folder, job.first.jobs, formats)
    written += images
    source = job.first.benchmark.source
    read = [Path(file).name for file in (source["path"], source["test"]) if file is not None]
    heads = job.first.benchmark.title, " and ".join(read)
    made = provenance_of(MADE, [scores], methods)
    figures = {section.spec.name: svg_files(drawings, images)}
    texts = page_texts(folder, "report", heads, [section], made, figures=figures)
    written += write_texts(folder, texts)
    remove_others(folder, written)
    return section


def _few_of(drawings: Drawings) -> Drawings:
    """What a quick look draws: the worst place, and the decision curve that was asked for.

    A figure takes as long as a tenth of a small run.
    """
    worst = [name for name in drawings if name not in ("ecdf", "decision_curve")]
    return {name: drawings[name] for name in drawings if name in (*worst[:1], "decision_curve")}


def _costs(job: Job) -> Mapping[str, Any] | None:
    """What decisions by the person's losses cost; None without losses."""
    if job.options.losses is None:
        return None
    task = costs_task(job.plan.units, job.logits)
    run_tasks("decisions", [task], one_by_one=True)
    costs: Mapping[str, Any] = (record_of(task.path) or {})["costs"]
    return costs


def _section(
    job: Job, scores: Scores, methods: Sequence[str], costs: Mapping[str, Any] | None
) -> Section:
    """Tables and verdict; their metrics are those that were measured, in the order of METRICS."""
    measured = scores.own_rows()["metric"].unique().tolist()
    order = list(dict.fromkeys([*METRICS, *measured]))  # a person's own utilities come last
    keys = sorted(measured, key=order.index)
    columns = [key for key in keys if key not in ON_REQUEST]
    spec = TableSpec("table", job.first.benchmark.title, columns, tuple(_remarks(job)))
    return section_of(scores, methods, [spec], keys, costs=costs)


def _with_commands(section: Section, job: Job) -> Section:
    """The section whose verdict also says how to save and apply the method that it takes."""
    verdict, options = section.verdict, job.options
    if verdict.overall is None or verdict.overall == PRESENT:
        return section
    # Without a saved file the commands begin with this run once more, and --save.
    saved = options.save if options.method == verdict.overall else None
    kept = replace(options, method=verdict.overall, save=CALIBRATOR)
    scored = f"utility-calibration score {join(as_typed(kept))}"
    reading = as_typed(options, READING)
    commands = how_to_keep(verdict.overall, options.file, saved, scored, reading)
    return replace(section, verdict=replace(verdict, commands=commands))


def _with_what_is_left(section: Section, job: Job, methods: list[str]) -> Section:
    """The section whose verdict also says what recalibration could still gain."""
    verdict = section.verdict
    recommended = [use.take for use in verdict.uses]
    if verdict.overall:
        recommended = [verdict.overall]
    compared = [PRESENT] if PRESENT in methods else []
    for method in recommended:
        if method in methods and method not in compared:
            compared.append(method)
    losses = {method: row.mean for method, row in section.decisions.column("nll").items()}
    gains = left_to_gain(job.plan.units, compared)
    sentences = left_words(gains, losses, section.decisions.marked(INFINITE))
    return replace(section, verdict=verdict.with_detail(LEFT, sentences))


def _numbers(section: Section) -> dict[str, Any]:
    """By method and metric the columns of the table's CSV; unknown ones are None."""
    numbers = section.decisions.frame()
    plain = numbers.astype(object).where(numbers.notna(), None)
    by_method = {}
    # Unknown numbers are None, because JSON has no NaN.
    for method, rows in plain.groupby("method", sort=False):
        by_method[str(method)] = rows.drop(columns="method").set_index("metric").to_dict("index")
    return by_method


def _remarks(job: Job) -> Iterator[str]:
    """What the table's notes say about this run alone."""
    settings_of = {unit.calibrator: unit.settings for unit in job.plan.units}
    for method, settings in settings_of.items():
        aims = settings.calibrator.get("utilities") or []
        keys = [key for key, entry in settings.evaluation.own.items() if entry in aims]
        if keys:
            yield f"{method_name(method)} calibrates to {', '.join(keys)} alone."
    splits = job.logits.details.get("given_splits")
    if splits is None:
        share = 100 * job.first.splits.calibration_fraction
        yield (
            f"{share:.0f} % of the cases, drawn at random, fit the methods; {100 - share:.0f} % "
            "test them. To choose the test cases yourself, use --test or add a column “split”."
        )
    else:
        sizes = "; ".join(f"{one['calibration']} and {one['test']}" for one in splits[:5])
        more = ", …" if len(splits) > 5 else ""
        yield f"The file says which cases fit the methods and which ones test them: {sizes}{more}."
    if lacks_default(job):
        yield WITHOUT_DEFAULT
