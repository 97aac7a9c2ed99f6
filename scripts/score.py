"""Score your own classifier: all calibrators, every metric, a verdict, the eCDF figure.

utility-calibration score my.npz --output out/

my.npz holds `labels` [n] (numbers or names) and `logits` or `probabilities` [n, classes], perhaps
`class_names` [classes] and `groups` [n]; a CSV or parquet file has the column `label` and a column
per class, named by it. Points must be held out: not used for training.

Ten random splits choose which points calibrate and which test, unless you choose them: by a second
file (--test test.npz), or by an array or column `split` of the words calibration and test (split_1,
split_2, … are several splits). An array or column `weight` has the weights of points for fits and
scores; patching and logit_shift cannot be fitted with weights, and are left out then. With groups,
the default methods include logit_shift_groups, and the report says whether it closed their gaps.

Written: out/report.html (open it in a browser) and report.md with the verdict, out/verdict.json,
out/metrics.json {method: {metric: {"mean", "two_se", "p_value", …}}}, out/table.{tex,md,csv},
out/ecdf.* and out/worst_*.{pdf,svg,png}, per split all numbers in out/scores/*.csv and the fitted
parameters under out/data/fits. Run it again after an interruption or with other options: it keeps
what is up to date.

Your own utilities (--payoffs, --valuations, --losses, --gain, --utility) get a column each, such as
u_payoffs, with noise floor and certificate. The reports give their worst intervals in their own
unit. docs/your-data.md describes their files. --calibrate-for losses makes patching and logit_shift
calibrate for the losses alone. With --losses, out/decisions.{json,md} say what acting on each
method's probabilities costs; for two classes out/decision_curve.* shows it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache
from itertools import chain
from typing import Any

if __name__ == "__main__":
    raise SystemExit("error: type: utility-calibration score")

from omegaconf import open_dict

from utility_calibration.pipeline.evaluate import run_evaluate
from utility_calibration.pipeline.fit import run_fit
from utility_calibration.pipeline.harness.command import (
    UnitsFailed,
    UsageError,
    user_errors_in_one_line,
)
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.harness.settings import Settings
from utility_calibration.pipeline.harness.units import Unit, composed, resolved, units_of
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.own.cells import Choices
from utility_calibration.pipeline.own.deployed import fit_to_keep
from utility_calibration.pipeline.own.folder import (
    check_replaceable,
    give_back,
    names_of,
    names_of_options,
    only_run,
    take,
)
from utility_calibration.pipeline.own.options import Options, parsed
from utility_calibration.pipeline.own.read import check_is_file, check_is_given
from utility_calibration.pipeline.own.results import write_results
from utility_calibration.pipeline.own.size import affordable_draws, check_fits
from utility_calibration.pipeline.own.utilities import own_utilities, takes
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.reporting.write import print_sections
from utility_calibration.pipeline.scoring.choice import REPAIRS
from utility_calibration.pipeline.scoring.files import score_files
from utility_calibration.pipeline.scoring.points import absent_in_calibration, find_logits

_composed = cache(composed)  # each stage asks for the settings again


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The command line."""
    return parsed(__doc__, arguments)


def settings_of(options: Options, calibrator: str = "uncalibrated") -> Settings:
    """The pipeline's configuration for this file, as the stages take it."""
    overrides = (
        *("benchmark=file", f"tuning={options.tuning}", f"splits.count={options.splits}"),
        *(f"seed={options.seed}", f"jobs={options.jobs}", *options.evaluation),
        f"calibrator={calibrator}",
    )
    config = deepcopy(_composed(overrides))
    # What follows is set after composing: it needs no quoting for Hydra's grammar then.
    config.device = options.device
    config.evaluation.own = options.own
    if options.calibrate_for and options.own and takes(calibrator, "utilities"):
        with open_dict(config.calibrator):
            config.calibrator.utilities = [options.own[f"u_{k}"] for k in options.calibrate_for]
            config.calibrator.standard = False
    if options.draws is not None:
        config.evaluation.floor_repetitions = options.draws
    if options.given_splits:
        shares = [sizes["calibration"] / sum(sizes.values()) for sizes in options.given_splits]
        config.splits.count = len(shares)
        config.splits.calibration_fraction = sum(shares) / len(shares)
    config.benchmark.name = re.sub(r"[^\w-]+", "_", options.file.stem) or "file"
    config.benchmark.precomputed = None
    config.benchmark.source.path = "set last"
    if options.similarity is not None:
        config.benchmark.similarity = {
            "_target_": "utility_calibration.pipeline.sources.similarity.file_similarity",
            "path": str(options.similarity),
        }
    settings = resolved(config)
    # The person's paths and texts are set last: OmegaConf would resolve `${…}` and `???` in them.
    texts: dict[str, Any] = {held.name: getattr(options, held.name) for held in fields(Choices)}
    texts |= {"path": str(options.file), "test": options.test and str(options.test)}
    files = filter(None, (options.file, options.test))
    title = options.title or ", tested on ".join(path.stem for path in files)
    source = {**settings.benchmark.source, **texts}
    benchmark = replace(settings.benchmark, title=title, source=source)
    paths = replace(settings.paths, data=options.output / "data", results=options.output)
    return replace(settings, benchmark=benchmark, paths=paths)


def units_for(options: Options) -> list[Unit]:
    """The units of all methods and splits."""
    splits = range(len(options.given_splits) or options.splits)
    of_methods = (units_of(settings_of(options, name), name, splits) for name in options.methods)
    return list(chain.from_iterable(of_methods))


def score(options: Options) -> None:
    """Run the stages on the file and write what the module's docstring lists."""
    is_new = not options.output.exists()
    names = names_of(started(options).benchmark.name)
    with only_run(options.output, names, options.wait):
        try:
            options, points = prepared(options)
        except Exception:
            if is_new:  # it has the log and the locks of a run that made nothing
                give_back(options.output)
            raise
        _score(options, points)


def _score(options: Options, points: int) -> None:
    """Make and write all results, and then print them: a closed terminal loses none of them."""
    began = time.monotonic()
    units = units_for(options)
    # These scores may be of other options. Numbers that are up to date come again from out/data.
    files = score_files(settings_of(options))
    for path in (files.rows, files.curves, files.facts):
        path.unlink(missing_ok=True)
    plan = Plan(units)
    run_fit(plan)
    run_evaluate(plan)
    section = write_results(settings_of(options), units, options.output, not options.quick)
    saved = _saved(options)
    print_sections([section], options.wide)
    say(
        f"methods: {len(options.methods)}, splits: {len(units) // len(options.methods)}, points: "
        f"{points:,}; {time.monotonic() - began:.0f} s"
    )
    say(f"wrote {options.output / 'report.html'}, the page, and the files beside it")
    if saved:
        say(saved)


def _saved(options: Options) -> str:
    """Save a calibrator, if asked to; a line that says what it was fitted on."""
    if options.save is None:
        return ""
    on_all = not options.given_splits if options.save_on is None else options.save_on == "all"
    calibrator = fit_to_keep(settings_of(options, str(options.method)), on_all)
    fitted = "all points" if on_all else "the calibration points"
    fitted += "" if options.method in options.methods else " and not scored here"
    saved = calibrator.save(str(options.save))
    return f"wrote {saved}: {options.method} fitted on {fitted}; see utility-calibration apply"


def started(options: Options) -> Settings:
    """The settings, after what can be checked before anything is written; errors as `prepared`."""
    settings = settings_of(options)
    units_for(options)
    for path in filter(None, (options.file, options.test)):
        check_is_given(path)
    if options.similarity is not None:
        check_is_file(options.similarity, "a similarity")
    if options.save is not None:
        check_replaceable(options.save, "--save")
    return settings


def prepared(options: Options) -> tuple[Options, int]:
    """Read all files; return the options completed by what they hold, and the number of points.

    Raises:
        InputError, UsageError, UnitsFailed: what cannot be used, in one line.
    """
    settings = settings_of(options)
    general = any(getattr(options, kind) for kind in ("similarity", "losses", "gain", "utility"))
    check_fits(options.file, {name: settings_of(options, name) for name in options.used}, general)
    try:
        run_logits(Plan(units_of(settings, "uncalibrated", [0])))
    except UnitsFailed as error:  # the benchmark has the name of the file, which is told
        told = str(error).removeprefix(f"{settings.benchmark.name}: ")
        raise UnitsFailed(told) from error
    draws = affordable_draws(settings)
    if draws < settings.evaluation.floor_repetitions:
        say(f"many points: {draws} redrawn label vectors behind each noise floor")
    cached = find_logits(settings)
    record = cached.details
    options = replace(options, draws=draws, given_splits=tuple(record.get("given_splits", ())))
    figures, priced = not options.quick, options.losses is not None
    take(options.output, names_of_options(figures, priced, "groups" in record))
    names = record.get("class_names") or [str(k) for k in range(record["classes"])]
    settings = settings_of(options)
    for number, splits in absent_in_calibration(settings, cached).items():
        say(
            f"class {names[number]} has no calibration point in {splits} of "
            f"{settings.splits.count} splits; a method that learns class by class (vector, "
            "isotonic, dirichlet) cannot learn it there"
        )
    options = replace(options, methods=_fitting_methods(options, record))
    return replace(options, own=own_utilities(options.own_files, names)), int(record["n"])


def _fitting_methods(options: Options, record: Mapping[str, Any]) -> tuple[str, ...]:
    """The methods that can be fitted to the points, with the one that repairs groups."""
    if "groups" not in record:
        for method in options.used:
            if settings_of(options, method).calibrator.get("needs_groups"):
                raise UsageError(f"{method}: needs groups; name their column: --groups NAME")
    elif options.may_add and not options.calibrate_for:
        options = replace(options, methods=(*options.methods, REPAIRS))
    if "weights" not in record:
        return options.methods
    saved = options.method
    if saved is not None and not takes(saved, "weights"):
        raise UsageError(f"--method {saved}: cannot be fitted with weights; save another one")
    methods = tuple(method for method in options.methods if takes(method, "weights"))
    if not methods:
        raise UsageError(f"{options.file}: weights, which no method takes that --methods names")
    if left_out := [method for method in options.methods if method not in methods]:
        say(
            f"weights: {', '.join(left_out)} cannot be fitted with weights; left out (to include "
            "them, draw points in proportion to their weights)"
        )
    return methods


def main() -> None:
    """The program."""
    with user_errors_in_one_line():
        score(parse())
