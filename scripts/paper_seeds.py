"""How many printed cells agree with preset=paper, for the repository's splits and for other seeds.

python scripts/paper_seeds.py --precomputed /folder/with/logits
python scripts/paper_seeds.py --precomputed /folder --seeds 0 1 --methods temperature vector

Fits and scores the preset's calibrators, and the likelihood fits beside them, on ten splits of each
seed (`splits.seed`), and compares with the printed tables. Writes paper_seeds.csv (every cell) and
paper_seeds.md (counts) into --output after each method; what the CSV already holds is kept, so a
killed run continues. After a change to a calibrator delete the CSV. A few minutes a seed, most of
them patching, Dirichlet and vector scaling at 100 classes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a plain checkout, not installed

import pandas as pd
import torch
from joblib import Parallel, delayed

from metrics import scorecard
from pipeline.fit import logits_of
from pipeline.harness.artifacts import write_text
from pipeline.harness.cached_logits import load_logits
from pipeline.harness.command import Parser
from pipeline.harness.progress import say
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.units import Settings, composed, resolved
from pipeline.reporting.comparison import LIMIT, Candidate, compare, printed_values
from pipeline.reporting.intervals import two_standard_errors
from pipeline.reporting.markdown import markdown_table
from pipeline.reporting.names import family, method_name

BESIDE = ("temperature", "vector")
"""Likelihood fits, to see what squared error changes."""
COLUMNS = (
    *("seed", "table", "variant", "metric"),
    *("printed", "printed_two_se", "ours", "ours_two_se", "z"),
)
KEPT_DIGITS = "%.6g"


def settings_of(benchmark: str, method: str, seed: int, precomputed: str) -> Settings:
    """preset=paper for one benchmark and method, with the splits of `seed`."""
    asked = [f"benchmark={benchmark}", f"calibrator={method}", f"splits.seed={seed}"]
    folder = [f"paths.precomputed='{precomputed}'"] if precomputed else []
    return resolved(composed(["preset=paper", *asked, *folder]))


def summary_of(settings: Settings, method: str) -> pd.DataFrame:
    """Mean and spread of one method's metrics over all splits, without floors and curves."""
    cached = logits_of(settings)
    logits, labels = load_logits(cached.path, cached.sha256)
    options = {key: value for key, value in settings["evaluation"].items() if key != "name"}
    options |= {"utilities": 0, "floor_repetitions": 0}
    rows_sum_to_one = settings["calibrator"].get("normalize", True)
    found = []
    for k in range(settings["splits"]["count"]):
        calibration, test = indices_of(settings, len(labels), k)
        calibrator = made_of(settings["calibrator"])
        calibrator.fit(logits[calibration], labels[calibration])
        p = calibrator.predict_proba(logits[test])
        card = scorecard(p, labels[test], rows_sum_to_one=rows_sum_to_one, **options)
        found.append(card.metrics)
    values = pd.DataFrame(found)
    return pd.DataFrame(
        {
            "benchmark": settings["benchmark"]["name"],
            "method": method,
            "metric": values.columns,
            "mean": values.mean().to_numpy(),
            "two_se": [two_standard_errors(values[key]) for key in values],
        }
    )


def cells_of(settings: Settings, method: str) -> pd.DataFrame:
    """COLUMNS of one method on one benchmark."""
    torch.set_num_threads(1)  # processes, not threads, share the cores
    benchmark = settings["benchmark"]
    summary = summary_of(settings, method)
    candidate = Candidate(benchmark["paper_key"], benchmark["name"], summary)
    cells = compare([candidate], printed_values())
    return cells.assign(seed=settings["splits"]["seed"])[list(COLUMNS)]


def counts(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells within 3 s.e. per seed (rows) and table and method (columns)."""
    within = cells.assign(within=cells["z"].abs() <= LIMIT)
    return within.pivot_table(
        index="seed", columns=["variant", "table"], values="within", aggfunc="sum", sort=False
    )


def summary_text(cells: pd.DataFrame, preset: Sequence[str]) -> str:
    """Two Markdown tables: by table for the preset, by method over all tables."""
    by_both = counts(cells)
    whole = by_both.dropna()
    chosen = whole[[m for m in preset if m in whole.columns.get_level_values(0)]]
    tables = chosen.T.groupby(level="table", sort=False).sum().T
    methods = by_both.T.groupby(level="variant", sort=False).sum(min_count=4).T
    totals = _sizes(cells, preset)
    parts = [
        "# Cells within 3 s.e. of the printed ones, preset=paper, by the seed of the splits",
        "Made by `python scripts/paper_seeds.py`; every cell is in `paper_seeds.csv`. Seed 0 is "
        "the repository's. The tables below count the preset's calibrators, then each calibrator "
        "on all four tables, the likelihood fits beside those by squared error.",
        _markdown(tables.assign(All=tables.sum(axis=1)), totals),
        _markdown(methods.rename(columns=_shown), {}),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(method: str) -> str:
    return f"{method_name(method)} `{method}`" if method != family(method) else method_name(method)


def _sizes(cells: pd.DataFrame, preset: Sequence[str]) -> dict[str, int]:
    one = cells[(cells["seed"] == cells["seed"].iloc[0]) & cells["variant"].isin(preset)]
    sizes = {str(table): int(count) for table, count in one.groupby("table").size().items()}
    return sizes | {"All": sum(sizes.values())}


def _markdown(numbers: pd.DataFrame, totals: dict[str, int]) -> str:
    """One line per seed, then mean and range over the other seeds than 0."""
    others = numbers[numbers.index != 0].dropna()
    heading = [f"{c} (of {totals[c]})" if c in totals else str(c) for c in numbers.columns]
    lines = [
        [str(seed), *("" if pd.isna(v) else f"{v:.0f}" for v in row)]
        for seed, row in numbers.iterrows()
    ]
    if len(others):
        name = f"Mean of {len(others)} other seeds"
        lines.append([name, *(f"{v:.1f}" for v in others.mean())])
        ends = zip(others.min(), others.max(), strict=True)
        lines.append(["Range", *(f"{low:.0f} … {high:.0f}" for low, high in ends)])
    return markdown_table(["Seed", *heading], lines)


Key = tuple[int, str, str]
"""Seed, calibrator, printed table."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Add what is missing to the CSV and write the counts."""
    asked = _parser().parse_args(arguments)
    suite: Any = composed(["preset=paper"]).suite
    preset = list(suite.calibrators)
    path = asked.output / "paper_seeds.csv"
    parts = [pd.read_csv(path)] if path.is_file() else []
    done = {key for part in parts for key in zip(part["seed"], part["variant"], part["table"])}
    tasks: dict[Key, Settings] = {}
    for seed, method, benchmark in product(
        asked.seeds, asked.methods or [*preset, *BESIDE], suite.benchmarks
    ):
        settings = settings_of(benchmark, method, seed, asked.precomputed)
        key = (seed, method, settings["benchmark"]["paper_key"])
        if key not in done:
            logits_of(settings)  # made once, before the processes start
            tasks[key] = settings
    work = Parallel(n_jobs=asked.jobs, return_as="generator")
    results = work(delayed(cells_of)(settings, key[1]) for key, settings in tasks.items())
    for key, found in zip(tasks, results, strict=True):
        parts.append(found)
        say(f"seed {key[0]}, {key[1]}, {key[2]}: {(found['z'].abs() <= LIMIT).sum()}")
        _write(path, parts)
    cells = _write(path, parts)
    write_text(path.with_suffix(".md"), summary_text(cells, preset))
    say(f"wrote {path} and .md")


def _write(path: Path, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Write all cells by seed, calibrators and tables in the order in which they came."""
    cells = pd.concat(parts).sort_values("seed", kind="stable")
    write_text(path, cells.to_csv(index=False, float_format=KEPT_DIGITS))
    return cells


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)))
    parser.add_argument("--methods", nargs="+", help="default: the preset's, temperature, vector")
    parser.add_argument("--precomputed", default="", help="a folder with <data>_<model>.npz")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path("results/tables"))
    return parser


if __name__ == "__main__":
    main()
