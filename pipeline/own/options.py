"""The command line of scripts/score.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pipeline.harness.command import CONF, Parser, known_instead
from pipeline.reporting.names import METHODS
from pipeline.sources.own_utilities import OWN, takes_utilities

DEFAULT_SPLITS, QUICK_SPLITS = 10, 3
QUICK_METHODS = ("uncalibrated", "temperature", "vector")
QUICK_EVALUATION = (
    "evaluation.utilities=200",
    "evaluation.floor_repetitions=100",
    "evaluation.bootstrap_repetitions=100",
)


def parsed(doc: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, each method once. `doc` is the program's docstring, for its help."""
    parser = Parser(doc)
    _add_input(parser)
    _add_work(parser)
    _add_own_utilities(parser)
    options = parser.parse_args(arguments)
    options.own = {}  # known once the classes are
    options.draws = None  # known once the points are
    options.given_splits = []  # known once the file is read
    options.evaluation = QUICK_EVALUATION if options.quick else ()
    options.may_add = not options.methods
    methods = options.methods or (QUICK_METHODS if options.quick else METHODS)
    options.methods = list(dict.fromkeys(methods))
    if options.splits is None:
        options.splits = QUICK_SPLITS if options.quick else DEFAULT_SPLITS
    for check in (_what_to_calibrate_for, _what_to_save):
        if mistake := check(options):
            parser.error(mistake)
    return options


def _add_input(parser: Parser) -> None:
    add = parser.add_argument
    add("file", type=Path, help="npz, CSV, TSV, JSON lines or parquet with labels and answers")
    add(
        "--test",
        type=Path,
        metavar="FILE",
        help="a second such file: its points test, and all of the first one calibrate",
    )
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
    add(
        "--clusters",
        metavar="COLUMN",
        help="column or array with the cluster (patient, image, …) of points that depend on each "
        "other (default: `cluster` or `clusters`)",
    )
    add_class_options(parser)
    add("--similarity", type=Path, help="class similarity [C, C] for u_w2v: npz `matrix` or CSV")


def add_class_options(parser: Parser) -> None:
    """--classes and --ignore, which settle what a table's columns are."""
    add = parser.add_argument
    add(
        "--classes",
        metavar="COLUMNS",
        help="columns of the classes: a pattern such as 'prob_*', or names: cat,dog,bird",
    )
    add("--ignore", metavar="COLUMNS", help="columns to leave out: names or patterns: id,pred_*")


def _add_work(parser: Parser) -> None:
    add = parser.add_argument
    add("--output", type=Path, default=Path("out"), help="folder (default: out)")
    add("--title", help="heading of table and figure (default: the file's name)")
    add(
        "--methods",
        nargs="+",
        type=_method,
        metavar="METHOD",
        help=f"files of conf/calibrator, or how they begin (default: {' '.join(METHODS)})",
    )
    add(
        "--save",
        type=Path,
        metavar="FILE.npz",
        help="refit --method and save it for scripts/apply.py: on all points, or on the "
        "calibration points where the file says which those are",
    )
    add(
        "--save-on",
        choices=("calibration", "all"),
        help="the points that --save fits on; calibration: those of the first split",
    )
    add("--method", type=_method, help="the method to save (default: the only one of --methods)")
    add("--wide", action="store_true", help="print all columns, however long the lines are")
    add("--splits", type=int, help="random splits, where the file gives none (default: 10)")
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


def _what_to_calibrate_for(options: argparse.Namespace) -> str | None:
    """What is wrong with --calibrate-for, or None."""
    for kind in options.calibrate_for:
        if getattr(options, kind) is None:
            return f"--calibrate-for {kind}: give its file, too: --{kind} FILE.csv"
    used = {*options.methods, options.method}
    if options.calibrate_for and not any(takes_utilities(method) for method in used if method):
        return "--calibrate-for: only patching and logit_shift calibrate for a utility; add one"
    return None


def _what_to_save(options: argparse.Namespace) -> str | None:
    """Fill in `options.method`; return what is wrong with --save and --method, or None."""
    if options.save is None:
        return "--method: say where to with --save FILE.npz" if options.method else None
    if options.method is None:
        if len(options.methods) > 1:
            return "--save: which of the methods? add --method NAME"
        options.method = options.methods[0]
    if options.save.suffix != ".npz":
        return f"--save {options.save}: end its name with .npz"
    return None


def _method(text: str) -> str:
    """A method of conf/calibrator; the beginning of one of METHODS is enough: temp."""
    fitting = [name for name in METHODS if name.startswith(text)]
    method = fitting[0] if len(fitting) == 1 else text
    known = sorted(path.stem for path in (CONF / "calibrator").glob("*.yaml"))
    if method not in known:
        raise argparse.ArgumentTypeError(f"{method}: no such method{known_instead(method, known)}")
    return method
