"""Who wins over all benchmarks: one line per method, counted from tests and floors; a figure.

Also the scores of all benchmarks in one file, and how long a fit took.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metrics.plots.ecdf import plain
from metrics.registry import metric
from pipeline.harness.artifacts import read_json, write_text
from pipeline.reporting.markdown import markdown_table
from pipeline.reporting.names import method_name
from pipeline.reporting.style import NOTE_COLOR, house_style
from pipeline.reporting.wording import bound
from pipeline.scoring.files import (
    ALL_SPLITS,
    DEFAULT_EVALUATION,
    ROW_COLUMNS,
    ScoreFiles,
    csv_text,
    read_table,
)

PURPOSES = {"u_cwe": "classes", "u_topk": "shortlists", "u_dcg": "graded gains"}
"""The metrics whose noise floor and bound are counted, and what they are for."""
GAINS = ("nll", "brier")
"""Scores whose mean gain over the uncalibrated forecast is shown, in percent."""
BASE = "uncalibrated"
TESTED = (
    "A method loses a cell, one metric on one benchmark, where a paired test over the splits finds "
    "it worse than the best method. "
)
NOT_TESTED = (
    "With a single split there is no test: a method loses a cell, one metric on one benchmark, "
    "where its number is not the best. "
)
NOTE = (
    "The bound is the largest 95 % upper bound on an error of these three purposes, on average "
    "over the splits. Savings are against the uncalibrated forecast, on average over the "
    "benchmarks."
)
MARKS = (("o", "#0072B2"), ("s", "#E69F00"), ("^", "#009E73"))
"""Markers and colours of the figure's kinds of numbers (Okabe-Ito)."""
LOG_KEY = ["stage", "benchmark", "calibrator"]
"""The parts of a unit's name in the log. For dynamics, `calibrator` is the family of utilities."""


@dataclass(frozen=True)
class Leaderboard:
    """`heading` and `lines` as people read them; `frame` has the numbers, a row per method."""

    benchmarks: Sequence[str]
    heading: Sequence[str]
    lines: Sequence[Sequence[str]]
    frame: pd.DataFrame
    note: str

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.heading, self.lines)

    def with_seconds(self, log: Path) -> Leaderboard:
        """The table with the seconds of a fit, where `log` has any of these benchmarks.

        Seconds differ from run to run, so the page shows them, and no committed file has them.
        """
        times = read_times(log)
        if times.empty:
            return self
        fits = times[(times["stage"] == "fits") & times["benchmark"].isin(self.benchmarks)]
        median = fits.groupby("calibrator")["seconds"].median()
        seconds = [median.get(method, np.nan) for method in self.frame["method"]]
        if np.isnan(seconds).all():
            return self
        return replace(
            self,
            heading=[*self.heading, "Seconds of a fit"],
            lines=[
                [*line, "–" if np.isnan(value) else f"{value:.2g}"]
                for line, value in zip(self.lines, seconds)
            ],
            note=f"{self.note} Seconds are the median core time of a fit, tuning included.",
        )

    def write(self, folder: Path, stem: str) -> list[Path]:
        """Write the table as <stem>.md and <stem>.csv; return their paths."""
        return [
            write_text(folder / f"{stem}.md", f"{self.markdown()}\n\n{self.note}\n"),
            write_text(folder / f"{stem}.csv", csv_text(self.frame)),
        ]


def leaderboard_of(tables: Mapping[str, pd.DataFrame], methods: Sequence[str]) -> Leaderboard:
    """Count over benchmarks; the methods with the fewest losses come first.

    Args:
        tables: by benchmark the numbers of its table (tables.long_form).
    """
    cells = pd.concat(tables, names=["benchmark", None]).reset_index("benchmark")
    by_metric = dict(list(cells.groupby("metric")))
    purposes = [key for key in PURPOSES if key in by_metric]
    gains = [key for key in GAINS if key in by_metric]
    frame = pd.DataFrame(index=pd.Index(methods, name="method"))
    frame["cells"] = cells["method"].value_counts()
    frame["worse"] = _answered_no(cells, "not_worse")
    for key in purposes:
        frame[f"within_{key}"] = _answered_no(by_metric[key], "beyond_floor")
    uppers = cells[cells["metric"].isin(purposes)].groupby("method")["upper"]
    frame["largest_bound"] = uppers.max()
    for key in gains:
        means = by_metric[key].pivot(index="method", columns="benchmark", values="mean")
        if BASE in means.index:
            frame[f"{key}_saved"] = (1 - means / means.loc[BASE]).mean(axis="columns")
    frame = frame.sort_values("worse", kind="stable").reset_index()
    saved = [key for key in gains if f"{key}_saved" in frame]
    heading = [
        "Method",
        f"Worse than the best, of {frame['cells'].max()}",
        *(f"Within noise, of {len(tables)}: {PURPOSES[key]}" for key in purposes),
        "Largest bound",
        *(f"{metric(key).text} saved" for key in saved),
    ]
    lines = [
        [
            method_name(row["method"]),
            str(row["worse"]),
            *(str(row[f"within_{key}"]) for key in purposes),
            bound(row["largest_bound"]),
            *(f"{100 * row[f'{key}_saved']:.1f} %" for key in saved),
        ]
        for row in frame.to_dict("records")
    ]
    single = cells["splits"] == 1
    note = TESTED * (not single.all()) + NOT_TESTED * bool(single.any()) + NOTE
    return Leaderboard(list(tables), heading, lines, frame, note)


def _answered_no(cells: pd.DataFrame, test: str) -> pd.Series:
    """Per method in how many cells a test was made and its answer is no."""
    return (cells[test] == False).groupby(cells["method"]).sum()  # noqa: E712  (not NaN, not None)


def leaderboard_figure(leaderboard: Leaderboard) -> Figure:
    """Methods from best to worst: lost cells, purposes within noise, savings."""
    frame, benchmarks = leaderboard.frame.iloc[::-1], len(leaderboard.benchmarks)
    within = {f"within_{key}": text for key, text in PURPOSES.items() if f"within_{key}" in frame}
    saved = {f"{key}_saved": metric(key).text for key in GAINS if f"{key}_saved" in frame}
    with house_style():
        figure = Figure(figsize=(8.0, 1.3 + 0.26 * len(frame)), layout="constrained")
        worse, noise, gains = figure.subplots(1, 3, sharey=True)
        place = np.arange(len(frame))
        worse.barh(place, frame["worse"], height=0.6, color=NOTE_COLOR)
        worse.set(
            title=f"Worse than the best,\nof {frame['cells'].max()} cells",
            yticks=place,
            yticklabels=[plain(method_name(method)) for method in frame["method"]],
            xlim=(0, None),
        )
        worse.grid(visible=False, axis="y")
        _draw_marks(noise, {text: frame[column] for column, text in within.items()})
        noise.set(
            title=f"Within noise,\nof {benchmarks} benchmarks",
            xlim=(-0.3, benchmarks + 0.3),
            xticks=range(benchmarks + 1),
        )
        _draw_marks(gains, {text: 100 * frame[column] for column, text in saved.items()})
        gains.axvline(0, color=NOTE_COLOR, linewidth=0.8)
        gains.set(title="Saved against uncalibrated,\n% on average")
    return figure


def _draw_marks(axes: Axes, columns: Mapping[str, pd.Series]) -> None:
    """A kind of marker per column, side by side on each method's line, and their legend below."""
    for number, (text, values) in enumerate(columns.items()):
        marker, color = MARKS[number]
        shift = 0.22 * ((len(columns) - 1) / 2 - number)
        places = np.arange(len(values)) + shift
        axes.scatter(values, places, s=22, marker=marker, color=color, label=plain(text), zorder=3)
    if columns:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=1)


def write_all_scores(results: Path) -> list[Path]:
    """Write scores/all.csv: of every benchmark in scores/ the rows of all splits together.

    It is the same file after the report of any suite. Returns its path, if there are any scores.
    """
    tables = []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        if facts["evaluation"]["name"] == DEFAULT_EVALUATION:
            rows = read_table(ScoreFiles(results, facts["benchmark"]).rows, ROW_COLUMNS)
            rows = rows[rows["split"] == ALL_SPLITS].drop(columns="split")
            rows.insert(0, "benchmark", facts["benchmark"])
            tables.append(rows)
    if not tables:
        return []
    return [write_text(results / "scores" / "all.csv", csv_text(pd.concat(tables)))]


def read_times(folder: Path) -> pd.DataFrame:
    """Of every unit that ended well its last line in the log: LOG_KEY, split, seconds, memory_mib.

    Seconds are those of a core. The table is empty where no unit ran.
    """
    lines = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a full disk may have cut a line
                lines.append(json.loads(line))
    times = pd.DataFrame(lines)
    if times.empty:
        return times
    times = times[times["error"] == ""].drop_duplicates("unit", keep="last")
    places = times["unit"].str.split("/", expand=True).reindex(columns=range(4)).fillna("")
    places.columns = pd.Index([*LOG_KEY, "split"])
    numbers = times[["core_seconds", "memory_mib"]].rename(columns={"core_seconds": "seconds"})
    return pd.concat([places, numbers], axis=1)
