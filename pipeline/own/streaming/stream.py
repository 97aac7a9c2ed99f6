"""Score points beyond memory in one pass over their shards: the program behind `score --stream`.

What is scored is the forecast as it is, or what a saved calibrator makes of it. A shard is a task
of the pipeline (`harness/task.py`), so all cores work, and a run that was killed goes on.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shlex import join
from typing import Any

from utility_calibration.metrics import StreamingCalibration
from utility_calibration.metrics.registry import metric
from utility_calibration.metrics.shown import tie_note

from ...harness.artifacts import sha256_of, sha256_of_json, write_json, write_text
from ...harness.parallel import FEW_LOGITS, run_tasks
from ...harness.progress import say
from ...harness.settings import Settings
from ...harness.task import Task
from ...harness.workers import UnitsFailed
from ...reporting.keeping import CALIBRATOR, how_to_apply, how_to_repair
from ...reporting.wording import markdown_table, p_value
from ...scoring.choice import PRESENT
from ...tasks import sums_task
from ..applying.deployed import note_on_places
from ..points.by_parts import check_ignored, first_rows_of
from ..reading.parts import ROWS
from ..request.folder import STREAMED, give_back, names_of_stream, only_run, remove_others
from ..request.job import settings_of
from ..request.options import READING, Options, as_typed
from ..words.file_options import FileOptions
from ..words.forms import PARTED, check_is_file, ending_of, left_out_below
from .shards import Shard, all_shards
from .sums import Reading, merged, notes_of

MOST_ON_DISK = 2 << 30
"""Bytes that the sums of all shards may take. Where they would take more, shards share a file."""
BYTES_PER_CELL = 8
LARGE_POWER = 3
"""From 10^3 on evidence is shown as a power of ten."""
HEADINGS = (
    *("Forecast", "Metric", "At least", "At most", "By chance, mean", "p-value"),
    *("True error, from", "to", "Evidence at any look"),
)
EVIDENCE_NOTE = (
    "The p-value is for one look at cases that are not looked at before. Evidence may be looked "
    "at after every shard, in the order of their names, which must be that of time. If the "
    "forecast is calibrated, the chance that the evidence reaches 20 at any time is at most 5 %."
)


def score_streamed(options: Options, files: Sequence[Path]) -> None:
    """Score the shards in some files; write and print streaming.json and streaming.md.

    Raises:
        InputError, MissingResource, UsageError, UnitsFailed: what cannot be used, in one line.
    """
    settings = settings_of(options, [PRESENT])[PRESENT]
    shards = all_shards(files)
    deeper = left_out_below(options.file)
    if deeper is not None:
        say(str(deeper))
    reading = reading_of(options, shards)
    tasks = tasks_of(settings, shards, reading)
    is_new = not options.output.exists()
    names = names_of_stream(settings.benchmark.name)
    with only_run(options.output, names, options.wait):
        try:
            _add_up(tasks)
        except UnitsFailed:
            if is_new and not any(task.is_up_to_date() for task in tasks):
                give_back(options.output)
            raise
        paths = [task.path for task in tasks]
        sums = merged(paths, reading)
        for shard in shards:
            shard.check_unchanged()  # also one that was read long before the last one
        for note in notes_of(paths, reading):
            say(note)
        _write(options, {_forecast(reading): numbers_of(sums)}, shards[0].path)


def reading_of(options: Options, shards: Sequence[Shard]) -> Reading:
    """How the shards are read, by the first rows of the first one; the calibrator must fit them."""
    file_options = FileOptions.of(options)
    if options.calibrator is not None:
        check_is_file(options.calibrator, "a saved calibrator")
    if file_options.ignore is not None:
        check_ignored([shard.path for shard in shards], file_options)
    layout, notes = first_rows_of([shard.path for shard in shards], file_options)
    reading = Reading(file_options, layout, options.calibrator, notes)
    reading.check_calibrator()
    if options.calibrator is not None:
        note = note_on_places(options.calibrator, layout)
        if note is not None:
            notes["places"] = f"{options.file.name}: {note}"
    return reading


def tasks_of(settings: Settings, shards: Sequence[Shard], reading: Reading) -> list[Task]:
    """A task per shard, or per several that follow each other where the sums would fill a disk."""
    calibrator = reading.calibrator
    common = {
        "file_options": vars(reading.file_options),
        "layout": asdict(reading.layout),
        "calibrator": None if calibrator is None else sha256_of(calibrator),
    }
    # Sums have one size, however many points they are of, so many small shards could fill a disk.
    size = sum(streaming.nbytes for streaming in reading.empty().values())
    most_files = max(1, MOST_ON_DISK // size)
    shards_per_file = math.ceil(len(shards) / most_files)
    classes = len(reading.layout.class_names)
    tasks = []
    for start in range(0, len(shards), shards_per_file):
        part = list(shards[start : start + shards_per_file])
        states = [[str(shard.path), shard.state] for shard in part]
        content = {**common, "shards": states}
        cells = sum(_cells_at_once(shard.path, classes) for shard in part)
        paths = [shard.path for shard in part]
        place = f"{_safe(_forecast(reading))}/{_file_name(paths)}"
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        name = f"{paths[0].name}{more}"
        tasks.append(sums_task(settings, name, place, content, cells, part, reading))
    return tasks


def _cells_at_once(path: Path, classes: int) -> int:
    """About how many numbers a process holds of a shard; a large one counts as much work, too."""
    files = path.rglob("*") if path.is_dir() else [path]
    cells = sum(file.stat().st_size for file in files) // BYTES_PER_CELL
    is_by_rows = not path.is_dir() and ending_of(path) in PARTED
    if is_by_rows or _is_uncompressed(path):
        return min(cells, max(FEW_LOGITS, ROWS * classes))
    return cells


def _is_uncompressed(path: Path) -> bool:
    """Whether a file is an npz whose arrays are read some rows at a time."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return all(one.compress_type == zipfile.ZIP_STORED for one in archive.infolist())


def _file_name(paths: Sequence[Path]) -> str:
    """A name for the sums of some shards, which no others have."""
    digest = sha256_of_json([str(path) for path in paths])[:12]
    return f"{_safe(paths[0].stem)}-{digest}"


def _safe(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^\w-]+", "_", text)[:50]


def _forecast(reading: Reading) -> str:
    """What is scored, as tables call it; a calibrator has the name of its file."""
    return PRESENT if reading.calibrator is None else reading.calibrator.name


def _add_up(tasks: Sequence[Task]) -> None:
    """Make the sums that are not there; one shard alone has a bar of its own."""
    try:
        run_tasks("score", tasks, one_by_one=len(tasks) == 1)
    except UnitsFailed as error:
        if len(tasks) > 1:
            raise
        raise UnitsFailed(str(error).removeprefix(f"{tasks[0].name}: ")) from error


def numbers_of(sums: Mapping[str, StreamingCalibration]) -> dict[str, Any]:
    """All numbers of one forecast; an error lies between `lower` and `upper`."""
    results = {key: streaming.result() for key, streaming in sums.items()}
    first = results["u_topk"]
    numbers: dict[str, Any] = {
        name: getattr(first, name)
        for name in ("n", "accuracy", "brier", "nll", "zero_likelihood", "tied_share")
    }
    numbers["u_tce"] = {"lower": float(first.lower[0]), "upper": float(first.upper[0])}
    for key, result in results.items():
        floor, bounds = result.noise_floor(), result.calibration_interval()
        numbers[key] = {
            "lower": float(result.lower.max()),
            "upper": float(result.upper.max()),
            "floor": floor.mean,
            "p_value": floor.p_value,
            "interval": [bounds.lower, bounds.upper],
            "evidence": _evidence(sums[key]),
        }
    return numbers


def _evidence(sums: StreamingCalibration) -> dict[str, float] | None:
    """The logarithms of the evidence now and at any look; None for points with weights."""
    if sums.has_weights:
        return None
    evidence = sums.evidence()
    return {"log_now": evidence.log_now, "log_largest": evidence.log_largest}


def _write(options: Options, record: Mapping[str, Any], shard: Path) -> None:
    """Write and print the numbers by forecast; the report of an earlier run leaves.

    Args:
        shard: one of the files; other points are likely to come in such a file.
    """
    numbers, page = (options.output / name for name in STREAMED)
    commands = "\n".join(["```bash", *_what_to_do_next(options, shard), "```"])
    text = "\n\n".join([f"# {options.title or options.file}", *_tables(record), commands]) + "\n"
    write_json(numbers, record)
    write_text(page, text)
    remove_others(options.output, [numbers, page])
    say(text)
    say(f"wrote {page}, and {numbers.name} with all digits")


def _what_to_do_next(options: Options, shard: Path) -> Sequence[str]:
    """How to repair the forecast, or how to apply the calibrator that was scored."""
    if options.calibrator is not None:
        return how_to_apply(options.calibrator, shard, as_typed(options, READING))
    output = options.output.with_name(f"{options.output.name}_calibrated")
    repaired = replace(options, calibrator=CALIBRATOR, output=output, stream=True)
    score_repaired = f"utility-calibration score {join(as_typed(repaired))}"
    options_of_sample = as_typed(options, (*READING, "labels", "values"))
    return how_to_repair(shard, score_repaired, options_of_sample)


def _tables(record: Mapping[str, Any]) -> list[str]:
    """The numbers as two tables."""
    scores = []
    errors = []
    ties = max(its["tied_share"] for its in record.values())
    for name, its in record.items():
        shown = [f"{its[key]:.4f}" for key in ("accuracy", "brier")]
        scores.append([name, f"{its['n']:,}", *shown, nll_of(its)])
        errors += [_row(name, key, its[key]) for key in ("u_cwe", "u_topk") if key in its]
    return [
        markdown_table(("Forecast", "Points", "Accuracy", "Brier", "NLL"), scores),
        markdown_table(HEADINGS, errors, text=2),
        EVIDENCE_NOTE,
        *filter(None, [tie_note(ties)]),
    ]


def nll_of(its: Mapping[str, Any]) -> str:
    """The NLL of one forecast as text; ∞ and the number of labels that had probability 0."""
    count = its["zero_likelihood"]
    return f"∞, {count:,} labels of probability 0" if count else f"{its['nll']:.4f}"


def _row(name: str, key: str, error: Mapping[str, Any]) -> list[str]:
    """The row of a metric, which is called as in every other table."""
    low, high = error["interval"]
    return [
        name,
        metric(key).text,
        f"{error['lower']:.5f}",
        f"{error['upper']:.5f}",
        f"{error['floor']:.4f}",
        p_value(error["p_value"]).removeprefix("p ").removeprefix("= "),
        f"{low:.5f}",
        f"{high:.5f}",
        evidence_text(error["evidence"]),
    ]


def evidence_text(evidence: Mapping[str, float] | None) -> str:
    """The largest evidence in three digits, or as a power of ten: `3.14`, `10^12`."""
    if evidence is None:
        return "–"
    power = evidence["log_largest"] / math.log(10)
    return f"{10**power:.3g}" if power < LARGE_POWER else f"10^{power:.0f}"
