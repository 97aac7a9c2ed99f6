"""Run the CIFAR half of suite=paper_closest for several seeds, and with each choice replaced.

    python -m utility_calibration.scripts.maintain.paper_seeds --precomputed /folder/with/logits

Everything is fitted and scored here, on all cores, and kept in --data: a second run continues. The
noise floors, which the paper does not have, are left out. Written to --output:

    paper_seeds.csv     every printed cell beside ours, for every seed
    paper_seeds.md      how many agree, by printed table and by method
    paper_choices.csv   the cells that change when one choice of suite=paper_closest is replaced
    paper_choices.md    how many agree then, and what the choice gains
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from utility_calibration.pipeline.fit import run_fit
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.cache import record_of
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.parallel import run_tasks
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.harness.task import Task
from utility_calibration.pipeline.harness.units import Request, Unit, composed
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.reporting.agreement import CELL, LIMIT, between, rms
from utility_calibration.pipeline.reporting.comparison import compare, printed_values
from utility_calibration.pipeline.reporting.names import method_name
from utility_calibration.pipeline.reporting.wording import markdown_table
from utility_calibration.pipeline.scoring.files import csv_text
from utility_calibration.pipeline.scoring.inference import two_standard_errors

PRESET = "suite=paper_closest"
CHEAP = ("evaluation.floor_repetitions=0", "evaluation.bootstrap_repetitions=0",
         "evaluation.utilities=0")  # fmt: skip
UNIT = ["seed", "benchmark", "variant"]
COLUMNS = [*CELL, "benchmark", "variant", "printed", "printed_two_se", "ours", "ours_two_se", "z"]


@dataclass(frozen=True, eq=False)
class Choice:
    """What replaces one choice of suite=paper_closest."""

    preset: str
    """What the suite has."""
    instead: str
    """What replaces it; both are for the table."""
    calibrators: Mapping[str, str] = field(default_factory=dict)
    """From the suite's names to those in their place; only these are run, or all without any."""
    benchmarks: Mapping[str, str] = field(default_factory=dict)
    """The same of benchmarks."""
    overrides: tuple[str, ...] = ()
    """Further settings of these runs."""


def same(name: str) -> dict[str, str]:
    """The preset's calibrator itself, with other settings."""
    return {name: name}


CHOICES = (
    Choice("Temperature by squared error", "by likelihood", {"temperature_brier": "temperature"}),
    Choice("Vector by squared error", "by likelihood", {"vector_brier": "vector"}),
    Choice("Dirichlet by squared error", "by likelihood", same("dirichlet_adam"),
           overrides=("calibrator.loss=nll",)),
    Choice("Dirichlet on raw logits", "on log-probabilities", same("dirichlet_adam"),
           overrides=("calibrator.on=log_probabilities",)),
    Choice("Dirichlet with μ = 0", "μ = λ", same("dirichlet_adam"),
           overrides=("calibrator.l2=300",)),
    Choice("Dirichlet by Adam", "its optimum on ln p, λ = 100",
           {"dirichlet_adam": "dirichlet_brier"}),
    Choice("IR unnormalised", "normalised", {"isotonic_raw": "isotonic"}),
    Choice("IR one-vs-all", "global", {"isotonic_raw": "isotonic_global"}),
    Choice("JAXopt's line search", "our capped one", same("patching_60"),
           overrides=("calibrator.line_search=capped",)),
    Choice("60 untuned patches", "tuned by 20 runs", {"patching_60": "patching_jaxopt"}),
    Choice("60 untuned patches", "tuned by scikit-optimize", {"patching_60": "patching_jaxopt"},
           overrides=("calibrator.search=bayes",)),
    Choice("ResNet-44", "ResNet-56", benchmarks={"cifar10_resnet44": "cifar10_resnet"}),
    Choice("Utilities over batches of 1,000", "over all points", overrides=("evaluation=default",)),
)  # fmt: skip


def units_of(choice: Choice | None, seeds: int, overrides: Sequence[str]) -> list[Unit]:
    """The units of suite=paper_closest, or of what replaces a choice, for every seed of the splits.

    Beside the calibrator's name the folder of a unit's fit bears its other settings and the seed.
    """
    preset = composed([PRESET, *overrides])
    calibrators = list(preset.suite.calibrators)
    benchmarks = [name for name in preset.suite.benchmarks if name.startswith("cifar")]
    changed: tuple[str, ...] = ()
    if choice is not None:
        calibrators = list(choice.calibrators.values()) or calibrators
        benchmarks = list(choice.benchmarks.values()) or benchmarks
        changed = choice.overrides
    splits = tuple(range(preset.splits.count))
    settings = (PRESET, *overrides, *changed, *CHEAP)
    units = Request("", tuple(benchmarks), tuple(calibrators), splits, settings).units()
    ends = [text.partition(".")[2] for text in changed if text.startswith("calibrator.")]
    units_of_seeds = []
    for seed in range(seeds):
        for unit in units:
            name = "-".join([unit.calibrator, *ends, f"seed{seed}"])
            with_seed = replace(unit.settings.splits, seed=seed)
            changed_settings = replace(unit.settings, splits=with_seed)
            units_of_seeds.append(replace(unit, calibrator=name, settings=changed_settings))
    return units_of_seeds


def cells_of(units: Iterable[Unit], keys: Mapping[str, str]) -> pd.DataFrame:
    """The printed cells beside the means over the splits of `units`, with their seed (COLUMNS).

    `keys` has the printed table of each benchmark.
    """
    rows = []
    for unit in units:
        record = record_of(unit.scores_path) or {}
        about = {
            "seed": unit.settings.splits.seed,
            "benchmark": unit.benchmark,
            "variant": unit.calibrator.partition("-")[0],
        }
        for metric, value in record["metrics"].items():
            rows.append({**about, "metric": metric, "value": value})
    by_cell = pd.DataFrame(rows).groupby([*UNIT, "metric"], sort=False)["value"]
    ours = by_cell.agg(ours="mean", ours_two_se=two_standard_errors).reset_index()
    ours = ours.assign(paper_key=ours["benchmark"].map(keys), candidate=0, configuration="")
    parts = {}
    for seed, of_seed in ours.groupby("seed"):
        parts[seed] = compare(of_seed, printed_values(), {})
    return pd.concat(parts, names=["seed"]).reset_index("seed")[["seed", *COLUMNS]]


def replaced(base: pd.DataFrame, choice: Choice, changed: pd.DataFrame) -> pd.DataFrame:
    """The cells of suite=paper_closest with those that a choice changes in their place."""
    keys = ["seed", *CELL]
    stay = base.set_index(keys).index.difference(changed.set_index(keys).index)
    return pd.concat([base.set_index(keys).loc[stay].reset_index(), changed])


def seeds_text(cells: pd.DataFrame) -> str:
    """How many cells agree for each seed: by printed table, by method, and of two seeds of ours."""
    parts = [f"# Printed cells within {LIMIT:g} s.e. of ours, {PRESET}, by the seed of the splits"]
    for by in ("table", "method"):
        agree = (cells["z"].abs() <= LIMIT).groupby([cells["seed"], cells[by]], sort=False)
        counts, totals = agree.sum().unstack(), agree.size().unstack().iloc[0]
        counts["all"], totals["all"] = counts.sum(axis=1), totals.sum()
        names = [name if by == "table" else method_name(name) for name in map(str, counts)]
        heading = [f"{name} (of {total})" for name, total in zip(names, totals, strict=True)]
        sizes = cells.groupby("seed")["z"].agg(rms).to_numpy()
        rows = zip(counts.index, counts.to_numpy(), sizes, strict=True)
        lines = [[f"{seed}", *map(str, row), f"{size:.2f}"] for seed, row, size in rows]
        lines.append(["Mean", *(f"{mean:.1f}" for mean in counts.mean()), f"{sizes.mean():.2f}"])
        ends = zip(counts.min(), counts.max(), strict=True)
        lines.append(["Range", *(f"{low} … {high}" for low, high in ends), ""])
        parts.append(markdown_table(["Seed", *heading, "rms z"], lines))
    return "\n\n".join([*parts, between_seeds(cells)]) + "\n"


def between_seeds(cells: pd.DataFrame) -> str:
    """How many cells of one seed agree with those of another: a count for the same protocol."""
    pairs = between(cells)
    counts = [pair.within_three for pair in pairs]
    if not counts:
        return ""
    return (
        "If the authors' protocol were this one, their numbers would differ from ours like those "
        f"of two seeds: of {pairs[0].cells} cells then {min(counts)} to {max(counts)} "
        f"agree, {np.mean(counts):.1f} in the mean of {len(counts) // 2} pairs."
    )


def choices_text(base: pd.DataFrame, changed: Mapping[Choice, pd.DataFrame]) -> str:
    """For each choice how many cells agree when it is replaced, and what the choice gains."""

    def counts(cells: pd.DataFrame) -> pd.Series:
        return (cells["z"].abs() <= LIMIT).groupby(cells["seed"]).sum()

    whole, seeds = counts(base), base["seed"].nunique()
    lines = [["–", "–", f"{whole.mean():.4g}", "", f"{rms(base['z']):.2f}"]]
    for choice, cells in changed.items():
        other = replaced(base, choice, cells)
        gained = whole - counts(other)
        ends = f" ({gained.min():+d} … {gained.max():+d})" if seeds > 1 else ""
        numbers = f"{counts(other).mean():.4g}", f"{gained.mean():+.3g}{ends}"
        lines.append([choice.preset, choice.instead, *numbers, f"{rms(other['z']):.2f}"])
    behind = f"mean of {seeds} seeds" if seeds > 1 else "seed 0"
    heading = ["Choice", "Replaced by", f"Agree, of {len(base) // seeds} ({behind})",
               "Cells that the choice gains", "rms z"]  # fmt: skip
    title = f"# What each choice of {PRESET} gains, one by one"
    return "\n\n".join([title, markdown_table(heading, lines, text=2)]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, score, count, write; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument(
        "--precomputed", type=Path, required=True, help="folder of ready-made logits"
    )
    parser.add_argument("--seeds", type=int, default=6, help="0, 1, … (default: 6 seeds)")
    parser.add_argument("--choice-seeds", type=int, help="of the choices (default: as --seeds)")
    parser.add_argument("--data", type=Path, default=Path("data/seeds"))
    parser.add_argument("--output", type=Path, default=Path("results/tables"))
    parser.add_argument("settings", nargs="*", help="further settings, such as splits.count=2")
    options = parser.parse_args(arguments)
    places = f"paths.data={options.data}", f"paths.precomputed={options.precomputed}"
    with user_errors_in_one_line():
        choices = options.seeds if options.choice_seeds is None else options.choice_seeds
        write(options.output, options.seeds, choices, (*places, *options.settings))
    return 0


def write(output: Path, seeds: int, choice_seeds: int, settings: Sequence[str]) -> None:
    """Run everything and write the files: of the seeds, and of the choices if these have seeds."""
    runs: dict[Choice | None, list[Unit]] = {None: units_of(None, seeds, settings)}
    if choice_seeds:
        for choice in CHOICES:
            runs[choice] = units_of(choice, choice_seeds, settings)
    every = list(chain.from_iterable(runs.values()))
    # Choices share fits and scores, of which each is made once.
    fits = Plan(list({unit.fit_path: unit for unit in every}.values()))
    run_logits(fits)
    run_fit(fits)
    steps: dict[Path, Task] = {}
    for units in runs.values():
        plan = Plan(units)  # one of each run: units of the same name may have other settings
        for unit in units:
            step = plan.score(unit)
            steps[step.path] = step
    run_tasks("evaluate", list(steps.values()))
    keys = {unit.benchmark: str(unit.settings.benchmark.paper_key) for unit in every}
    base, *others = (cells_of(units, keys) for units in runs.values())
    texts = {"paper_seeds.csv": csv_text(base), "paper_seeds.md": seeds_text(base)}
    if others:
        changed = dict(zip(CHOICES, others, strict=True))
        tables = {}
        for choice, cells in changed.items():
            tables[choice] = cells.assign(choice=choice.preset, instead=choice.instead)
        columns = ["choice", "instead", *base]
        texts["paper_choices.csv"] = csv_text(pd.concat(tables.values())[columns])
        compared = base[base["seed"] < choice_seeds]
        texts["paper_choices.md"] = choices_text(compared, changed)
    for name, text in texts.items():
        say(f"wrote {write_text(output / name, text)}")


if __name__ == "__main__":
    sys.exit(main())
