"""Score your own classifier: every calibrator, every metric, the eCDF figure.

python scripts/score.py my.npz --output out/

my.npz holds `labels` [n] (numbers or names) and `logits` or `probabilities` [n, classes], perhaps
`class_names` [classes] and `groups` [n]; a CSV or parquet file has the column `label` and a column
per class, named by it. Points must be held out: not used for training.

Written: out/report.html (open it in a browser) and report.md with the verdict, out/verdict.json,
out/metrics.json {method: {metric: {"mean", "two_se", "p_value", …}}}, out/table.{tex,md,csv},
out/ecdf.* and out/worst_*.{pdf,svg,png}, per split all numbers in out/scores/*.csv and the fitted
parameters under out/data/fits. Run it again to go on after an interruption, or with other options:
what they leave alone is kept.

Your own utilities (--payoffs, --valuations, --losses, --gain, --utility; their files are described
in pipeline/sources/own_utilities.py) get a column each, u_payoffs and so on, with noise floor and
certificate, and in the reports their worst intervals in their own unit; --calibrate-for losses
makes one the target of patching and logit_shift. With --losses
out/decisions.{json,md} price what is done on each method's probabilities, for two classes with
out/decision_curve.*.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a plain checkout, not installed
import pipeline  # noqa: F401  (before NumPy and torch: it says how their threads wait)

# isort: split

from omegaconf import DictConfig

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import read_json
from pipeline.harness.cached_logits import sidecar_path
from pipeline.harness.command import CONF, Parser, known_instead, user_errors_in_one_line
from pipeline.harness.progress import say, say_written
from pipeline.harness.units import MOST_SPLITS, Settings, Unit, composed, resolved, units_of
from pipeline.logits import run_logits
from pipeline.own.all_or_nothing import all_or_nothing
from pipeline.own.deployed import check_is_loaded, fit_on_all
from pipeline.own.results import write_results
from pipeline.own.size import affordable_draws, check_fits
from pipeline.reporting.names import METHODS
from pipeline.sources.file import check_is_file
from pipeline.sources.own_utilities import OWN, aim_at, is_patching, own_utilities, remarks

DEFAULT_SPLITS, QUICK_SPLITS = 10, 3
QUICK_METHODS = ("uncalibrated", "temperature", "vector")
QUICK_EVALUATION = (
    "evaluation.utilities=200",
    "evaluation.floor_repetitions=100",
    "evaluation.bootstrap_repetitions=100",
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; every method once."""
    parser = Parser(__doc__)
    _add_input(parser)
    _add_work(parser)
    _add_own_utilities(parser)
    options = parser.parse_args(arguments)
    options.own = {}  # known once the classes are
    options.draws = None  # known once the points are
    options.evaluation = ()
    if options.quick:
        _make_quick(options)
    options.methods = list(dict.fromkeys(options.methods))
    for check in (_what_is_out_of_range, _what_to_calibrate_for, _what_to_save):
        if mistake := check(options):
            parser.error(mistake)
    return options


def _add_input(parser: Parser) -> None:
    add = parser.add_argument
    add("file", type=Path, help="npz, CSV or parquet with labels and logits/probabilities")
    add(
        "--values",
        choices=("auto", "logits", "probabilities"),
        default="auto",
        help="what the matrix holds; auto: the npz says so, a CSV by whether its rows sum to one",
    )
    add(
        "--groups",
        metavar="COLUMN",
        help="column of a table or array of an npz with the groups (default: an npz's `groups`)",
    )
    add("--similarity", type=Path, help="class similarity [C, C] for u_w2v: npz `matrix` or CSV")


def _add_work(parser: Parser) -> None:
    add = parser.add_argument
    add("--output", type=Path, default=Path("out"), help="folder (default: out)")
    add("--title", help="heading of table and figure (default: the file's name)")
    add(
        "--methods",
        nargs="+",
        type=_method,
        default=list(METHODS),
        metavar="METHOD",
        help=f"files of conf/calibrator, or how they begin (default: {' '.join(METHODS)})",
    )
    add(
        "--save",
        type=Path,
        metavar="FILE.npz",
        help="refit --method on all points and save it for scripts/apply.py",
    )
    add("--method", type=_method, help="the method to save (default: the only one of --methods)")
    add("--splits", type=int, default=DEFAULT_SPLITS, help="random splits (default: 10)")
    add(
        "--quick",
        action="store_true",
        help=f"a first look: {', '.join(QUICK_METHODS)}; {QUICK_SPLITS} splits, no images",
    )
    add(
        "--tuning",
        choices=("quick", "paper"),
        default="quick",
        help="effort for dirichlet and patching: conf/tuning (default: quick)",
    )
    add("--seed", type=int, default=0, help="of splits and tuning (default: 0)")
    add("--jobs", default="auto", help="processes (default: auto)")
    add("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def _add_own_utilities(parser: Parser) -> None:
    for kind, text in OWN.items():
        metavar = "MODULE:FUNCTION" if kind == "utility" else "FILE.csv"
        parser.add_argument(f"--{kind}", metavar=metavar, help=text)
    parser.add_argument(
        "--calibrate-for",
        nargs="+",
        default=[],
        choices=[kind for kind in OWN if kind != "utility"],
        help="own utilities that both patchings calibrate to, instead of the standard ones",
    )


def _what_is_out_of_range(options: argparse.Namespace) -> str | None:
    """What is wrong with a number or the folder, if anything."""
    if not 1 <= options.splits <= MOST_SPLITS:
        return f"--splits: 1 to {MOST_SPLITS}"
    if options.jobs != "auto" and not (options.jobs.isdecimal() and int(options.jobs) > 0):
        return "--jobs: auto or a positive number"
    existing = next(path for path in (options.output, *options.output.parents) if path.exists())
    if not existing.is_dir():
        return f"--output {options.output}: {existing} is a file; name a folder"
    return None


def _what_to_calibrate_for(options: argparse.Namespace) -> str | None:
    """What is wrong with --calibrate-for, if anything."""
    for kind in options.calibrate_for:
        if getattr(options, kind) is None:
            return f"--calibrate-for {kind}: give its file, too: --{kind} FILE.csv"
    used = {*options.methods, options.method}
    if options.calibrate_for and not any(is_patching(method) for method in used if method):
        return "--calibrate-for: only patching and logit_shift calibrate for a utility; add one"
    return None


def _what_to_save(options: argparse.Namespace) -> str | None:
    """Fill in `options.method`; what is wrong with --save and --method, if anything."""
    if options.save is None:
        return "--method: say where to with --save FILE.npz" if options.method else None
    if options.method is None:
        if len(options.methods) > 1:
            return "--save: which of the methods? add --method NAME"
        options.method = options.methods[0]
    if options.save.suffix != ".npz":
        return f"--save {options.save}: end its name with .npz"
    return None


def _make_quick(options: argparse.Namespace) -> None:
    """The methods without tuning on three splits, unless the command line names others."""
    options.evaluation = QUICK_EVALUATION
    if options.methods == list(METHODS):
        options.methods = list(QUICK_METHODS)
    if options.splits == DEFAULT_SPLITS:
        options.splits = QUICK_SPLITS


def _method(text: str) -> str:
    """A method of conf/calibrator, perhaps by its beginning, where that fits one of METHODS only.

    `temp` -> `temperature`.
    """
    fitting = [name for name in METHODS if name.startswith(text)]
    method = fitting[0] if len(fitting) == 1 else text
    known = sorted(path.stem for path in (CONF / "calibrator").glob("*.yaml"))
    if method not in known:
        raise argparse.ArgumentTypeError(f"{method}: no such method{known_instead(method, known)}")
    return method


def settings_of(options: argparse.Namespace, calibrator: str | None = None) -> Settings:
    """The pipeline's configuration for this file, as the stages take it."""
    overrides = [
        "benchmark=file",
        f"tuning={options.tuning}",
        f"splits.count={options.splits}",
        f"seed={options.seed}",
        f"jobs={options.jobs}",
        *options.evaluation,
    ]
    if calibrator is not None:
        overrides.append(f"calibrator={calibrator}")
    config = _with_paths(deepcopy(_composed(tuple(overrides))), options)
    if calibrator is not None and is_patching(calibrator) and options.own:
        aim_at(config, [f"u_{kind}" for kind in options.calibrate_for])
    return resolved(config)


@cache
def _composed(overrides: tuple[str, ...]) -> DictConfig:
    """Composed once: each stage asks for the settings again."""
    return composed(overrides)


def _with_paths(config: DictConfig, options: argparse.Namespace) -> DictConfig:
    """Paths and texts, set after composing: they need no quoting for Hydra's grammar then."""
    config.device = options.device
    config.paths.data = str(options.output / "data")
    config.paths.results = str(options.output)
    config.evaluation.own = options.own
    if options.draws is not None:
        config.evaluation.floor_repetitions = options.draws
    benchmark = config.benchmark
    benchmark.name = re.sub(r"[^\w-]+", "_", options.file.stem) or "file"
    benchmark.title = options.title or options.file.stem
    benchmark.precomputed = None
    benchmark.source.path = str(options.file)
    benchmark.source["values"] = options.values
    benchmark.source.groups = options.groups
    if options.similarity is not None:
        benchmark.similarity = {
            "_target_": "pipeline.sources.similarity_file.file_similarity",
            "path": str(options.similarity),
        }
    return config


def units_for(options: argparse.Namespace) -> list[Unit]:
    """The units of all methods and splits."""
    splits = range(options.splits)
    return [
        unit
        for method in options.methods
        for unit in units_of(settings_of(options, method), method, splits)
    ]


def class_names_of(settings: Settings) -> list[str]:
    """The classes in the order of the columns; the logits must have been made."""
    record = read_json(sidecar_path(settings))
    return record.get("class_names") or [str(k) for k in range(record["classes"])]


def score(options: argparse.Namespace) -> None:
    """Run the stages on the file and write what the module's docstring lists."""
    settings = settings_of(options)
    units_for(options)  # a mistake in any of them is told before anything is written
    for path in (options.file, options.similarity):
        if path is not None:
            check_is_file(path, "a file")
    if options.save is not None:
        check_is_loaded(settings_of(options, options.method))
    options.draws = affordable_draws(options.file, settings)
    used = dict.fromkeys([*options.methods, *filter(None, [options.method])])
    general = any(getattr(options, kind) for kind in ("similarity", "losses", "gain", "utility"))
    check_fits(options.file, {name: settings_of(options, name) for name in used}, general)
    if options.draws < settings["evaluation"]["floor_repetitions"]:
        say(f"many points: {options.draws} redrawn label vectors behind each noise floor")
    run_logits([settings])
    given = {kind: value for kind in OWN if (value := getattr(options, kind)) is not None}
    options.own = own_utilities(given, class_names_of(settings))
    for line in remarks(options.own):
        say(line)
    units = units_for(options)
    # Of other options: the numbers of what they leave alone come again from out/data.
    shutil.rmtree(options.output / "scores", ignore_errors=True)
    run_fit(units)
    run_evaluate(units)
    with all_or_nothing(options.output, last="metrics.json") as fresh:
        write_results(settings_of(options), units, fresh, figures=not options.quick)
    if options.save is not None:
        saved = fit_on_all(settings_of(options, options.method)).save(options.save)
        unscored = "" if options.method in options.methods else " and not scored here"
        fitted = f": {options.method} fitted on all points{unscored}; see scripts/apply.py"
        say_written(saved, fitted)


if __name__ == "__main__":
    with user_errors_in_one_line():
        score(parse())
