"""The options of utility-calibration score: its command line, and what the file adds to it."""

# ruff: noqa: RUF009 (`option` returns a field)
import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ...harness.command import Parser
from ...harness.parameters import known_instead, names_in
from ...reporting.names import METHODS
from ..words.file_options import FileOptions, option

QUICK_METHODS = ("uncalibrated", "temperature", "vector")
QUICK_SPLITS = 3
SPLITS = 10
"""Random splits, where neither file nor person says how many."""
OWN_UTILITIES = {
    "payoffs": "users paid by class: CSV, a line per user, a column per class",
    "valuations": "users paid by rank: CSV, a line per user, columns 1, 2, … for the ranks",
    "losses": "a decision: CSV, a line per class (named first), a column per action",
    "gain": "gains in [0, 1]: CSV, a line per true class (named first), a column per predicted one",
    "utility": "a function of probabilities [n, C] to u(p, e_j) [n, C], NumPy arrays",
}
"""Options for own utilities; each adds the metric u_<option>."""
READING = ("logits", "probabilities", "classes", "ignore", "decimal", "predictions")
"""Options that say how a file's answers are read, with labels and without."""


def _method(text: str) -> str:
    """A method of conf/calibrator; the beginning of one of METHODS is enough: temp."""
    # Only the usual methods may be shortened: a further one must not change what `temp` means.
    fitting = [name for name in METHODS if name.startswith(text)]
    method = fitting[0] if len(fitting) == 1 else text
    known = names_in("calibrator")
    if method not in known:
        raise argparse.ArgumentTypeError(f"{method}: no such method{known_instead(method, known)}")
    return method


@dataclass(frozen=True, kw_only=True)
class Options(FileOptions):
    """What a person says; `job.py` adds what the file says."""

    file: Path = option(
        "npz, CSV, TSV, JSON lines or parquet with labels and answers; with --stream also a folder "
        "of such files, or a pattern in quotes",
        type=Path,
    )
    test: Path | None = option(
        "a second such file: its cases test, the first one's calibrate", type=Path, metavar="FILE"
    )
    similarity: Path | None = option(
        "similarity [C, C] for u_w2v: npz `matrix` or CSV, with names if the classes have any",
        type=Path,
    )
    output: Path = option("folder (default: out)", default=Path("out"), type=Path)
    wait: bool = option(
        "wait while another run writes into the folder", default=False, action="store_true"
    )
    title: str | None = option("heading of table and figure (default: the file's name)")
    methods: tuple[str, ...] = option(
        f"files of conf/calibrator, or how they begin (default: {' '.join(METHODS)})",
        default=(),
        nargs="+",
        type=_method,
        metavar="METHOD",
    )
    save: Path | None = option(
        "refit --method and save it for utility-calibration apply: on all cases, or on the "
        "calibration cases where the file says which those are",
        type=Path,
        metavar="FILE.npz",
    )
    save_on: str | None = option(
        "what --save fits on; calibration: the first split's cases", choices=("calibration", "all")
    )
    method: str | None = option("the method to save (default: the only one)", type=_method)
    wide: bool = option("print the table of all numbers, too", default=False, action="store_true")
    splits: int | None = option("random splits, where the file gives none (default: 10)", type=int)
    quick: bool = option(
        f"a first look: {', '.join(QUICK_METHODS)}; {QUICK_SPLITS} splits, images as SVG alone",
        default=False,
        action="store_true",
    )
    tuning: str = option(
        "effort for dirichlet and patching: conf/tuning (default: quick)",
        default="quick",
        choices=("quick", "paper"),
    )
    seed: int = option("of splits and tuning (default: 0)", default=0, type=int)
    jobs: str = option("processes (default: auto)", default="auto")
    stream: bool = option(
        "one pass over files of any size (docs/streaming.md), of the forecast or of --calibrator",
        default=False,
        action="store_true",
    )
    calibrator: Path | None = option(
        "score what this saved calibrator makes of the forecast, in one pass",
        type=Path,
        metavar="FILE.npz",
    )
    payoffs: str | None = option(OWN_UTILITIES["payoffs"], metavar="FILE.csv")
    valuations: str | None = option(OWN_UTILITIES["valuations"], metavar="FILE.csv")
    losses: str | None = option(OWN_UTILITIES["losses"], metavar="FILE.csv")
    gain: str | None = option(OWN_UTILITIES["gain"], metavar="FILE.csv")
    utility: str | None = option(OWN_UTILITIES["utility"], metavar="MODULE:FUNCTION")
    calibrate_for: tuple[str, ...] = option(
        "own utilities that both patchings calibrate to, instead of the standard ones",
        default=(),
        nargs="+",
        choices=[kind for kind in OWN_UTILITIES if kind != "utility"],
    )
    evaluation: tuple[str, ...] = ()
    """Further settings of the evaluation; tests take few draws."""
    may_add: bool = True
    """Whether the methods are the default ones, to which a repair of groups may be added."""

    @property
    def split_count(self) -> int:
        """The number of random splits, where the file gives none."""
        if self.splits is not None:
            return self.splits
        return QUICK_SPLITS if self.quick else SPLITS

    @property
    def used(self) -> list[str]:
        """The methods to score, and the one to save."""
        methods = list(self.methods)
        if self.method is not None and self.method not in methods:
            methods.append(self.method)
        return methods

    @property
    def own_utilities(self) -> dict[str, str]:
        """The file or function of each own utility."""
        values = {kind: getattr(self, kind) for kind in OWN_UTILITIES}
        return {kind: value for kind, value in values.items() if value is not None}


def add_options(parser: Parser, names: Sequence[str]) -> None:
    """The options of the command line that have these names of fields."""
    field_of = {field.name: field for field in fields(Options)}
    for name in names:
        field = field_of[name]
        if name == "file":
            parser.add_argument(name, **field.metadata)
        else:
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, default=field.default, **field.metadata)


def as_typed(options: Options, names: Sequence[str] = ()) -> list[str]:
    """The words of a command line that say these options, the file first; defaults are left out.

    Args:
        names: of the fields to say; all that have an option, if not given.
    """
    words = []
    for field in fields(Options):
        value = getattr(options, field.name)
        is_default = value == field.default or (field.name == "methods" and options.may_add)
        is_asked = field.name in names if names else bool(field.metadata)
        if field.name == "file" or is_default or not is_asked:
            continue
        words.append(f"--{field.name.replace('_', '-')}")
        if isinstance(value, tuple):
            words += value
        elif value is not True:  # a flag has no value
            words.append(str(value))
    # An option of several values would take the file for one more.
    return words if names else [str(options.file), *words]


def parsed(doc: str | None, arguments: Sequence[str] | None = None) -> Options:
    """The options, each method once. `doc` is the program's docstring, for its help."""
    parser = Parser(doc)
    add_options(parser, [field.name for field in fields(Options) if field.metadata])
    values = vars(parser.parse_args(arguments))
    named = tuple(dict.fromkeys(values["methods"]))
    default = QUICK_METHODS if values["quick"] else tuple(METHODS)
    methods = named or default
    values["methods"] = methods
    values["may_add"] = not named
    values["calibrate_for"] = tuple(dict.fromkeys(values["calibrate_for"]))
    saves_the_only_one = values["save"] is not None and len(methods) == 1
    if saves_the_only_one and values["method"] is None:
        values["method"] = methods[0]
    options = Options(**values)
    # argparse checks each option by itself only.
    _check_together(options, parser)
    return options


def _check_together(options: Options, parser: Parser) -> None:
    """End the program in one line if one option needs another one."""
    for kind in options.calibrate_for:
        if kind not in options.own_utilities:
            parser.error(f"--calibrate-for {kind}: give its file, too: --{kind} FILE.csv")
    if options.save is not None:
        if options.method is None:
            parser.error("--save: which of the methods? add --method NAME")
        if options.save.suffix != ".npz":
            parser.error(f"--save {options.save}: end its name with .npz")
        return
    if options.method is not None:
        parser.error("--method: say where to with --save FILE.npz")
    if options.save_on is not None:
        parser.error("--save-on: say where to with --save FILE.npz")
