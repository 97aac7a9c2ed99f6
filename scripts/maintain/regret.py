"""Compare calibrators on 172 small problems: how much worse is each than the best one there?

    python -m utility_calibration.scripts.maintain.regret --precomputed /folder/with/logits

The problems are those of `regret_problems`: 15 sources, up to four numbers of calibration points,
four seeds. What is computed stays in --data: a second run continues, and another version of the
code computes everything anew. Written to --output:

    regret.csv    NLL and Brier score of every method on every problem
    regret.md     the regret of each method, by number of points and by source

The regret of a method is the geometric mean of its loss over the best method's loss. Problems of
one source are alike, so the standard errors take the sources as the units that were drawn.
With --peers the calibrators of probmetrics take part, too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from utility_calibration import calibrators
from utility_calibration.pipeline.harness.artifacts import read_json, write_json, write_text
from utility_calibration.pipeline.harness.code_digest import code_digest
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import Bar, say
from utility_calibration.pipeline.reporting.wording import markdown_table
from utility_calibration.pipeline.scoring.files import csv_text

from .regret_problems import SOURCES, Cell, Problem, cells

DEFAULT = "Logit-shift patching"
SEEDS = 4
LOSSES = {"nll": "NLL", "brier": "Brier"}
KEY = ["source", "n_points", "seed"]
PROBLEMS = Cell.__module__
"""The module that makes the problems, whose code decides the numbers as the calibrators' does."""
SMALLEST = 1e-12
"""What a probability of 0 counts as in the NLL."""


class Method(NamedTuple):
    """A calibrator: what makes it, and the dotted name or the version that computes it."""

    make: Callable[[], calibrators.Calibrator]
    code: str


def _ours(name: str) -> Method:
    target = f"utility_calibration.calibrators.{name}"
    return Method(getattr(calibrators, name), code_digest(target, PROBLEMS))


def methods(with_peers: bool) -> dict[str, Method]:
    """The methods by the names of the table."""
    found = {
        "Uncalibrated": _ours("Uncalibrated"),
        "Temp. Scaling": _ours("TemperatureScaling"),
        "Vector Scaling": _ours("VectorScaling"),
        "SVS": _ours("StructuredVectorScaling"),
        "SMS": _ours("StructuredMatrixScaling"),
        DEFAULT: _ours("LogitShiftPatching"),
    }
    if with_peers:
        code = f"probmetrics {version('probmetrics')} {code_digest(PROBLEMS)}"
        for name in ("TemperatureScaling", "SVS", "SMS"):
            target = {"_target_": f"probmetrics.calibrators.{name}Calibrator"}
            found[f"probmetrics {name}"] = Method(partial(calibrators.Wrapped, target), code)
    return found


def losses_of(method: Method, problem: Problem) -> dict[str, float]:
    """Fit, and return NLL and Brier score on the new points, expected under their truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of absent classes, which small samples have
        fitted = method.make().fit(problem.logits, problem.labels)
        p = np.asarray(fitted.predict_proba(problem.new_logits), float)
    return expected_losses(p, problem.truth)


def expected_losses(p: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """The mean NLL and Brier score of forecasts [m, C] where labels follow `truth` [m, C]."""
    nll = -(truth * np.log(p.clip(min=SMALLEST))).sum(axis=1)
    brier = ((p - truth) ** 2).sum(axis=1) + (truth * (1 - truth)).sum(axis=1)
    return {"nll": float(nll.mean()), "brier": float(brier.mean())}


def computed(cell: Cell, wanted: Mapping[str, Method], data: Path, folder: Path) -> dict[str, Any]:
    """The losses of the `wanted` methods on a problem, out of the file in `data` or computed."""
    name = "".join(letter if letter.isalnum() else "_" for letter in cell.source)
    path = data / f"{name}-{cell.n_points}-{cell.seed}.json"
    stored = read_json(path) if path.exists() else {}
    kept = {}
    for key, method in wanted.items():
        if stored.get(key, {}).get("code") == method.code:
            kept[key] = stored[key]
    if len(kept) < len(wanted):
        problem = cell.problem(folder)
        for key in wanted.keys() - kept.keys():
            kept[key] = {"code": wanted[key].code, **losses_of(wanted[key], problem)}
        write_json(path, {**stored, **kept})
    return {key: kept[key] for key in wanted}


def table_of(results: Mapping[Cell, Mapping[str, Any]]) -> pd.DataFrame:
    """A row for every problem and method: KEY, `method`, and the losses."""
    lines = []
    for cell, rows in results.items():
        for name, row in rows.items():
            losses = {loss: row[loss] for loss in LOSSES}
            lines.append({**cell._asdict(), "method": name, **losses})
    return pd.DataFrame(lines)


def ratios_of(table: pd.DataFrame, loss: str, without: str = "") -> pd.DataFrame:
    """Each method's loss over the smallest: problems × methods.

    `without`: a method that does not count among the best ones, so that its own ratio may be < 1.
    """
    values = table.pivot(index=KEY, columns="method", values=loss)
    rivals = values.drop(columns=without) if without else values
    return values.div(rivals.min(axis=1), axis=0)


def geometric_mean(ratios: pd.Series) -> tuple[float, float]:
    """The geometric mean over problems and its standard error, with sources as drawn units."""
    logs = pd.Series(np.log(ratios), ratios.index)
    of_source = (logs - logs.mean()).groupby(level="source").sum()
    count = len(of_source)
    factor = count / (count - 1) if count > 1 else np.nan
    error = np.sqrt(factor * (of_source**2).sum()) / len(logs)
    mean = float(np.exp(logs.mean()))
    return mean, mean * float(error)


def _shown(ratios: pd.Series) -> str:
    mean, error = geometric_mean(ratios)
    return f"{mean:.3f} ± {error:.3f}"


def text_of(table: pd.DataFrame) -> str:
    """The page: regret of every method, of each number of points, and of each source."""
    order = list(dict.fromkeys(table["method"]))
    ratios = {loss: ratios_of(table, loss) for loss in LOSSES}
    lines = []
    for name in order:
        cells_of_row = [name]
        for loss in LOSSES:
            column = ratios[loss][name]
            best = (column == 1).mean()
            cells_of_row += [_shown(column), f"{column.max():.2f}", f"{100 * best:.0f} %"]
        lines.append(cells_of_row)
    heading = ["Method"]
    for title in LOSSES.values():
        heading += [f"{title}: regret", "largest", "best in"]
    count = len(next(iter(ratios.values())))
    parts = [
        f"# Regret on {count} small problems",
        "A method's loss over the smallest loss of any method on the same problem: geometric mean "
        "over the problems ± one standard error, with the sources of the problems as the units.",
        markdown_table(heading, lines),
    ]
    if DEFAULT in order:
        against = [_shown(ratios_of(table, loss, DEFAULT)[DEFAULT]) for loss in LOSSES]
        parts.append(
            f"{DEFAULT} over the best of its rivals: NLL {against[0]}, Brier score {against[1]}."
        )
    for level, title in (("n_points", "Calibration points"), ("source", "Source")):
        for loss, loss_title in LOSSES.items():
            parts.append(f"## {loss_title} by {title.lower()}")
            parts.append(_by(ratios[loss][order], level, title))
    return "\n\n".join(parts) + "\n"


def _by(ratios: pd.DataFrame, level: str, title: str) -> str:
    """The geometric means of all methods for each value of a part of KEY."""
    logs = pd.DataFrame(np.log(ratios), ratios.index, ratios.columns)
    groups = logs.groupby(level=level, sort=level == "n_points").mean()
    lines = []
    for name, means in zip(groups.index, np.exp(groups.to_numpy()), strict=True):
        lines.append([f"{name}", *(f"{mean:.3f}" for mean in means)])
    return markdown_table([title, *groups.columns], lines)


def _is_asked(cell: Cell, words: Sequence[str]) -> bool:
    """Whether the name of a problem's source has one of the words."""
    source = cell.source.lower()
    return any(word.lower() in source for word in words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, write the tables; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--precomputed", type=Path, required=True, help="folder of real logits")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default: {SEEDS}")
    parser.add_argument("--sources", nargs="+", default=[""], metavar="WORD", help="of their names")
    parser.add_argument("--peers", action="store_true", help="also calibrators of probmetrics")
    parser.add_argument("--data", type=Path, default=Path("data/regret"))
    parser.add_argument("--output", type=Path, default=Path("results/tables"))
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        wanted = methods(options.peers)
        chosen = [cell for cell in cells(options.seeds) if _is_asked(cell, options.sources)]
        if not chosen:
            parser.error(f"--sources: none of {', '.join(SOURCES)} has such a word")
        results = {}
        with Bar("regret", len(chosen)) as bar:
            for cell in chosen:
                results[cell] = computed(cell, wanted, options.data, options.precomputed)
                bar.advance(f"{cell.source}, {cell.n_points} points")
        table = table_of(results)
        for name, text in {"regret.csv": csv_text(table), "regret.md": text_of(table)}.items():
            say(f"wrote {write_text(options.output / name, text)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
