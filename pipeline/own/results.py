"""Write the results of utility-calibration score: tables, figures, verdict and page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from utility_calibration.metrics.registry import METRICS

from ..harness.artifacts import CorruptFile, write_json, write_text
from ..reporting.costs import costs_table
from ..reporting.names import PRESENT, method_name
from ..reporting.sections import Section, provenance_of, section_of
from ..reporting.tables import TableSpec
from ..reporting.worst import left_words
from ..reporting.write import write_page, write_section
from ..scoring.costs import costs_of
from ..scoring.files import ON_REQUEST, Scores, score_files
from ..scoring.left import left_to_gain
from .job import Job
from .utilities import actions_of

MADE = (
    "utility-calibration score made this page. The fitted parameters of every split are in "
    "data/fits."
)


def write_results(job: Job) -> Section:
    """Write all into the folder of output; return what is to be printed."""
    files, folder, is_whole = score_files(job.first), job.options.output, not job.options.quick
    scores = Scores.read(files)
    if scores is None:
        raise CorruptFile(f"{files.rows}: removed by another run; score the file again")
    methods = list(dict.fromkeys(unit.calibrator for unit in job.plan.units))
    losses, costs = job.first.evaluation.own.get("u_losses"), None
    if losses is not None:
        costs = costs_of(losses, actions_of(losses["path"]), job.plan.units)
    section = _section(job, scores, methods, costs)
    if is_whole:
        section = _with_what_is_left(section, job, methods)
    if costs is not None:
        section = replace(section, priced=costs_table(costs))
        write_json(folder / "decisions.json", costs)
        write_text(folder / "decisions.md", costs_table(costs).markdown() + "\n")
    write_section(section, folder)
    if is_whole:
        from ..reporting.figures import drawings_of  # matplotlib takes half a second to import
        from ..reporting.style import draw_all

        draw_all(drawings_of(section, curve=(costs or {}).get("curve")), folder)
    source = job.first.benchmark.source
    read = [Path(file).name for file in (source["path"], source["test"]) if file is not None]
    heads = job.first.benchmark.title, " and ".join(read)
    write_page(folder, "report", heads, [section], provenance_of(MADE, [scores], methods))
    write_json(folder / "metrics.json", _numbers(section))
    return section


def _section(
    job: Job, scores: Scores, methods: Sequence[str], costs: Mapping[str, Any] | None
) -> Section:
    """Tables and verdict; their metrics are those that were measured, in the order of METRICS."""
    measured = scores.own_rows()["metric"].unique().tolist()
    keys = sorted(measured, key=list(dict.fromkeys([*METRICS, *measured])).index)
    columns = [key for key in keys if key not in ON_REQUEST]
    spec = TableSpec("table", job.first.benchmark.title, columns, tuple(_remarks(job)))
    return section_of(scores, methods, [spec], keys, priced=costs)


def _with_what_is_left(section: Section, job: Job, methods: list[str]) -> Section:
    """The section whose verdict also says what recalibration could still gain."""
    verdict = section.verdict
    taken = [verdict.overall, *(use.take for use in verdict.uses)]
    compared = [method for method in dict.fromkeys([PRESENT, *taken]) if method in methods]
    said = left_words(left_to_gain(job.plan.units, compared))
    return replace(section, verdict=replace(verdict, summary=[*verdict.summary, *said]))


def _numbers(section: Section) -> dict[str, Any]:
    """By method and metric the columns of the table's CSV; unknown ones are None."""
    numbers = section.decisions.frame()
    plain = numbers.astype(object).where(numbers.notna(), None).groupby("method", sort=False)
    tables = {str(m): rows.drop(columns="method").set_index("metric") for m, rows in plain}
    return {method: rows.to_dict("index") for method, rows in tables.items()}


def _remarks(job: Job) -> Iterator[str]:
    for method, its in {unit.calibrator: unit.settings for unit in job.plan.units}.items():
        aims = its.calibrator.get("utilities") or []
        if keys := [key for key, entry in its.evaluation.own.items() if entry in aims]:
            yield f"{method_name(method)} calibrates to {', '.join(keys)} alone."
    splits = job.logits.details.get("given_splits")
    if splits is None:
        share = 100 * job.first.splits.calibration_fraction
        yield f"Splits are random: {share:.0f} % calibrate. Choose your own by --test or `split`."
    else:
        sizes = "; ".join(f"{one['calibration']} and {one['test']}" for one in splits[:5])
        more = ", …" if len(splits) > 5 else ""
        yield f"Calibration and test points are the file's own: {sizes}{more}."
