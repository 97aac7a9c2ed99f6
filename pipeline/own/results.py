"""Write the results of utility-calibration score: tables, figures, verdict and page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from utility_calibration.metrics.registry import METRICS

from ..harness.artifacts import CorruptFile, write_json, write_text
from ..reporting.costs import decisions_table
from ..reporting.names import PRESENT, method_name
from ..reporting.sections import Section, provenance_of, section_of
from ..reporting.tables import TableSpec
from ..reporting.worst import left_words
from ..reporting.write import write_page, write_section
from ..scoring.costs import decisions_of
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
    settings, units, folder = job.first, job.plan.units, job.options.output
    files, figures = score_files(settings), not job.options.quick
    scores = Scores.read(files)
    if scores is None:
        raise CorruptFile(f"{files.rows}: removed by another run; score the file again")
    methods = list(dict.fromkeys(unit.calibrator for unit in units))
    title, source = settings.benchmark.title, settings.benchmark.source
    measured = scores.own_rows()["metric"].unique().tolist()
    keys = sorted(measured, key=list(dict.fromkeys([*METRICS, *measured])).index)
    columns = [key for key in keys if key not in ON_REQUEST]
    spec = TableSpec("table", title, columns, tuple(_remarks(job)))
    losses = settings.evaluation.own.get("u_losses")
    record = losses and decisions_of(losses, actions_of(losses["path"]), units)
    section = section_of(scores, methods, [spec], keys, priced=record)
    if figures:
        taken = [section.verdict.overall, *(use.take for use in section.verdict.uses)]
        compared = [m for m in dict.fromkeys([PRESENT, *taken]) if m in methods]
        said = left_words(left_to_gain(units, compared))
        summary = [*section.verdict.summary, *said]
        section = replace(section, verdict=replace(section.verdict, summary=summary))
    if record is not None:
        priced = decisions_table(record)
        write_json(folder / "decisions.json", record)
        write_text(folder / "decisions.md", priced.markdown() + "\n")
        section = replace(section, priced=priced)
    write_section(section, folder)
    if figures:
        from ..reporting.figures import drawings_of  # matplotlib takes half a second to import
        from ..reporting.style import draw_all

        draw_all(drawings_of(section, curve=(record or {}).get("curve")), folder)
    read = [Path(file).name for file in (source["path"], source["test"]) if file is not None]
    heads = title, " and ".join(read)
    write_page(folder, "report", heads, [section], provenance_of(MADE, [scores], methods))
    # By method and metric the columns of the table's CSV; unknown ones are null.
    numbers = section.decisions.frame()
    plain = numbers.astype(object).where(numbers.notna(), None).groupby("method", sort=False)
    tables = {str(m): rows.drop(columns="method").set_index("metric") for m, rows in plain}
    write_json(folder / "metrics.json", {m: rows.to_dict("index") for m, rows in tables.items()})
    return section


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
