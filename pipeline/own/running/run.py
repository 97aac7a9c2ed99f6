"""Score a person's file: read it, run the stages on it, and write the reports."""

import time
from collections.abc import Iterator, Mapping, Sequence

from utility_calibration import BEGAN
from utility_calibration.metrics.errors import InputError

from ...evaluate import run_evaluate
from ...fit import run_fit
from ...harness.parameters import UsageError
from ...harness.progress import console, hushed, say
from ...harness.settings import Settings
from ...harness.units import units_of
from ...harness.workers import UnitsFailed
from ...logits import run_logits
from ...plan import Plan
from ...reporting.write import print_lines, print_sections, print_tables
from ...scoring.files import score_files
from ...scoring.groups import REPAIRS
from ...scoring.points import absent_in_calibration
from ..request.folder import check_replaceable, give_back, names_of, only_run
from ..request.job import Job, settings_of, takes
from ..request.one_pass import shards_to_stream
from ..request.options import Options
from ..words.forms import check_is_file, is_table
from .results import WITHOUT_DEFAULT, lacks_default, write_results
from .size import check_fits

SAID_BY_NOTES = "no setting was better than temperature scaling"
"""Of a warning that the notes below the table of numbers say more plainly."""
MOST_NAMED = 5  # classes without calibration points that are named


def run(options: Options) -> None:
    """Score a file, in one pass where its points are too many for the memory."""
    shards = shards_to_stream(options)
    if shards:
        from ..streaming.stream import score_streamed  # with the modules of streams

        score_streamed(options, shards)
    else:
        score_whole(options)


def score_whole(options: Options) -> None:
    """Run the stages on all points at once, and write the reports."""
    is_new = not options.output.exists()
    settings_by_method = checked(options)
    benchmark = next(iter(settings_by_method.values())).benchmark.name
    names = names_of(benchmark, options.losses is not None)
    with only_run(options.output, names, options.wait), hushed():
        try:
            job = read(options, settings_by_method)
        except Exception:
            if is_new:  # it has the log and the locks of a run that made nothing
                give_back(options.output)
            raise
        _score(job)


def checked(options: Options) -> dict[str, Settings]:
    """The settings of each method that may run, after what can be checked before any writing.

    Raises:
        InputError, UsageError, MissingResource: what cannot be used, in one line.
    """
    # The method that repairs groups may be added, once the file turns out to have them.
    addable = [REPAIRS] if options.may_add else []
    settings_by_method = settings_of(options, list(dict.fromkeys([*options.used, *addable])))
    # Utilities that no method calibrates to would be dropped without a word.
    can_aim = [name for name in options.used if takes(settings_by_method[name], "utilities")]
    if options.calibrate_for and not can_aim:
        fix = "only patching and logit_shift calibrate for a utility; add one"
        raise UsageError(f"--calibrate-for: {fix}")
    _check_test(options)
    if options.similarity is not None:
        check_is_file(options.similarity, "a similarity")
    if options.save is not None:
        check_replaceable(options.save, "--save")
    return settings_by_method


def _check_test(options: Options) -> None:
    """Raise `InputError` if the points that test are those that calibrate, also by a link."""
    test = options.test
    if test is not None and test.exists() and test.samefile(options.file):
        message = "the test cases are the calibration cases"
        raise InputError(message, field="--test", fixes="leave it out: splits are drawn")


def read(options: Options, settings_by_method: Mapping[str, Settings]) -> Job:
    """Read all files, and print what a person must know before the run.

    Raises:
        InputError, UsageError, UnitsFailed: what cannot be used, in one line.
    """
    files = [path for path in (options.file, options.test) if path is not None]
    if not any(map(is_table, files)):
        check_fits(options.file, {name: settings_by_method[name] for name in options.used})
    method, settings = next(iter(settings_by_method.items()))
    reading = Plan(units_of(settings, method, [0]))
    name = settings.benchmark.name
    try:
        run_logits(reading)
    except UnitsFailed as error:  # the message names the file, and so does the benchmark
        raise UnitsFailed(str(error).removeprefix(f"{name}: ")) from error
    logits = reading.found(name)
    job = Job.of(options, settings_by_method, logits)
    for note in _notes(job, settings_by_method):
        say(note)
    return job


def _notes(job: Job, settings_by_method: Mapping[str, Settings]) -> Iterator[str]:
    """What a person must know before the run: what is done otherwise or left out."""
    options = job.options
    absent = absent_in_calibration(job.first, job.logits)
    if absent:
        yield _words_on_absent(job, absent)
    left_out = [name for name in options.methods if name not in job.settings]
    too_large = [name for name in left_out if takes(settings_by_method[name], "weights")]
    if too_large:
        yield (
            f"{', '.join(too_large)}: left out of a quick look, with more parameters than there "
            "are cases (to include it, name all with --methods)"
        )
    unweighted = [name for name in left_out if name not in too_large]
    if unweighted:
        yield (
            f"weights: {', '.join(unweighted)} cannot be fitted with weights; left out (to include "
            "them, draw cases in proportion to their weights)"
        )
    if options.splits is not None and "given_splits" in job.logits.details:
        yield f"--splits {options.splits}: not used, because the file says which cases test"


def _words_on_absent(job: Job, absent: Mapping[int, int]) -> str:
    """Which classes have no calibration point, and in how many splits."""
    names = [job.class_names[number] for number in absent]
    shown = ", ".join(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown += f" and {len(names) - MOST_NAMED:,} others"
    return (
        f"class {shown} has no calibration case in {max(absent.values())} of "
        f"{job.first.splits.count} splits; a method that learns class by class (vector, isotonic, "
        "dirichlet) cannot learn it there"
    )


def _score(job: Job) -> None:
    """Make and write all results, and then print them: a closed terminal loses none of them."""
    options, plan = job.options, job.plan
    # These scores may be of other options. Numbers that are up to date come again from out/data.
    files = score_files(job.first)
    for path in (files.rows, files.curves, files.facts):
        path.unlink(missing_ok=True)
    warned = list[str]()
    run_fit(plan, warned)
    run_evaluate(plan)
    saved = _saved(job)  # first, so that a report that fails does not lose it
    section = write_results(job)
    print_sections([section])
    if options.wide:
        print_tables(section.tables, console, options.wide)
    lines = [*_in_short(warned)]
    if lacks_default(job):
        lines.append(WITHOUT_DEFAULT)
    lines.append(_what_was_done(job))
    print_lines(lines, console)
    seconds = time.monotonic() - BEGAN
    say(f"Done in {seconds:.0f} s. All else (pictures, numbers, limits, methods) is on this page:")
    say(str(options.output / "report.html"))
    if saved:
        say(saved)


def _in_short(warned: Sequence[str]) -> Iterator[str]:
    """The warnings that the page's notes do not say more plainly."""
    for line in warned:
        if SAID_BY_NOTES not in line:
            yield line


def _what_was_done(job: Job) -> str:
    """How many methods were compared, on how many cases, and how."""
    splits = job.first.splits.count
    count = len(job.plan.units) // splits
    methods = "One method was" if count == 1 else f"{count} methods were"
    text = f"{methods} tested on {job.logits.n:,} cases."
    splits_of_file = job.logits.details.get("given_splits")
    if splits_of_file is not None:
        first = splits_of_file[0]
        others = "" if splits == 1 else f" in the first of its {splits} splits"
        return (
            f"{text} As the file says, {first['calibration']:,} of them fit the methods and "
            f"{first['test']:,} others test them{others}."
        )
    times = "once" if splits == 1 else f"{splits} times"
    clusters = job.logits.details.get("clusters", 0)
    together = (
        f"; all cases of a cluster (there are {clusters:,}) stay together" if clusters else ""
    )
    return (
        f"{text} The file was divided {times} at random: one part fits the methods, the other one "
        f"tests them{together}."
    )


def _saved(job: Job) -> str:
    """Save a calibrator, if asked to; a line that says what it was fitted on."""
    options = job.options
    if options.save is None:
        return ""
    from ..applying.deployed import fit_to_keep

    is_random = "given_splits" not in job.logits.details
    on_all = is_random if options.save_on is None else options.save_on == "all"
    calibrator = fit_to_keep(job.settings[str(options.method)], job.logits, on_all)
    fitted = "all cases" if on_all else "the calibration cases"
    is_scored = any(unit.calibrator == options.method for unit in job.plan.units)
    fitted += "" if is_scored else " and not scored here"
    saved = calibrator.save(str(options.save))
    return f"wrote {saved}: {options.method} fitted on {fitted}; see utility-calibration apply"
