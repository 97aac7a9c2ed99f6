"""Read the scores of a benchmark from results/scores and summarise them for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from metrics.scorecard import ALL_CLASSES
from pipeline.harness.artifacts import read_json
from pipeline.harness.command import UnitsFailed
from pipeline.harness.units import Unit
from pipeline.reporting.intervals import SIZE, corrected_half_width, two_standard_errors
from pipeline.reporting.names import ordered
from pipeline.scoring.files import (
    ALL_SPLITS,
    CURVE_COLUMNS,
    ROW_COLUMNS,
    ScoreFiles,
    difference,
    read_table,
    score_files,
    without_folders,
)

Statistics = Mapping[tuple[str, str], Mapping[str, Any]]
"""The rows of a tidy summary by method and metric."""


@dataclass(frozen=True)
class Scores:
    """What results/scores says of one benchmark, of all points or of one group of them.

    `rows` and `curves` have the columns of pipeline.scoring.files; `facts` are the settings, the
    logits, and per calibrator its configuration and worst intervals.
    """

    benchmark: str
    rows: pd.DataFrame
    curves: pd.DataFrame
    facts: Mapping[str, Any]
    group: str = ""

    @classmethod
    def read(cls, files: ScoreFiles) -> Scores | None:
        """The scores of all points; None where they have not been written.

        Raises:
            CorruptFile: a file is damaged or of another version.
        """
        if not files.facts.is_file():
            return None
        return cls(
            files.benchmark,
            read_table(files.rows, ROW_COLUMNS),
            read_table(files.curves, CURVE_COLUMNS),
            read_json(files.facts),
        )

    @property
    def methods(self) -> list[str]:
        """The calibrators that were scored, in the order of tables."""
        return ordered(self.own_rows()["calibrator"].unique())

    @property
    def splits(self) -> int:
        """The number of splits behind each mean."""
        return int(self.facts["splits"]["count"])

    @property
    def groups(self) -> dict[str, int]:
        """The groups of points and how many points each has; most benchmarks have none."""
        return dict(self.facts["logits"].get("groups", {}))

    def of_group(self, name: str) -> Scores:
        """The scores of one group of points; without rows where it was too small."""
        return replace(self, group=name)

    def own_rows(self) -> pd.DataFrame:
        """The rows of these points."""
        return self.rows[self.rows["group"] == self.group]

    def own_curves(self) -> pd.DataFrame:
        """The eCDF levels of these points."""
        return self.curves[self.curves["group"] == self.group]

    def worst(self, method: str) -> Mapping[str, Mapping[str, Any]]:
        """The worst intervals of one calibrator, by metric."""
        record: Mapping[str, Any] = self.facts["calibrators"].get(method, {})
        where = record.get("groups", {}).get(self.group) if self.group else record.get("worst")
        return where or {}

    @property
    def test_share(self) -> float:
        """Test points of a split over all points."""
        if self.group:
            return 1.0 - float(self.facts["splits"]["calibration_fraction"])
        return float(self.rows["n_test"].iloc[0]) / float(self.facts["logits"]["n"])


def summarise(scores: Scores) -> pd.DataFrame:
    """Tidy summary over splits: one row per `method` and `metric`.

    `mean`, `two_se`: the paper's spread; `half_width`: of the 95 % `interval`, "bootstrap" where
    the points were resampled, else "corrected" (pipeline.reporting.intervals), and both of them;
    `floor_mean`, `floor_q95`, `p_value`: of the mean over splits, from the method's own
    probabilities; `beyond_floor`: p_value <= 0.05, None where the method has no floor for the
    metric; `zero_likelihood`: points per split whose label had probability 0 (of the NLL);
    `values`: one per split; CERTIFICATE, means over splits of bounds on the true UC, each of 95 %
    confidence; `upper_all`: of all classes of utilities together;
    `splits`, `test_points`, `test_share`.
    """
    rows = scores.own_rows().rename(columns={"calibrator": "method"})
    is_mean = rows["split"] == ALL_SPLITS
    upper_all = rows[is_mean & (rows["metric"] == ALL_CLASSES)].set_index("method")["upper"]
    has_value = rows["value"].notna()
    values = rows[~is_mean & has_value].groupby(["method", "metric"])["value"].agg(tuple)
    table = rows[is_mean & has_value].join(values.rename("values"), on=["method", "metric"])
    share = scores.test_share
    corrected = [corrected_half_width(of_splits, share) for of_splits in table["values"]]
    summary = table.assign(
        mean=table["value"],
        two_se=table["values"].map(two_standard_errors).astype(np.float64),
        half_width=table["half_width"].fillna(pd.Series(corrected, table.index, np.float64)),
        interval=np.where(table["half_width"].isna(), "corrected", "bootstrap"),
        half_width_corrected=corrected,
        half_width_bootstrap=table["half_width"],
        splits=table["values"].map(len),
        beyond_floor=(table["p_value"] <= SIZE)
        .astype(object)
        .where(table["p_value"].notna(), None),
        upper_all=table["method"].map(upper_all),
        test_points=table["n_test"].astype(int),
        test_share=share,
    )
    return summary.reset_index(drop=True)


def statistics_of(summary: pd.DataFrame) -> Statistics:
    """The rows of one benchmark's summary by method and metric."""
    rows = summary.to_dict("records")
    return {(row["method"], row["metric"]): {str(k): v for k, v in row.items()} for row in rows}


class MissingScores(UnitsFailed):
    """Scores that the report needs are missing. One line, with the command that makes them."""


def wanted_scores(units: Sequence[Unit], command: str) -> dict[str, Scores]:
    """The scores of every benchmark among `units`, which name the requested calibrators.

    Raises:
        MissingScores: a calibrator has no rows, or rows of other settings; `command` makes them.
        CorruptFile: a file is damaged.
    """
    by_benchmark: dict[str, Scores] = {}
    for unit in units:
        files = score_files(unit.settings)
        scores = by_benchmark.get(unit.benchmark) or Scores.read(files)
        if scores is None:
            raise MissingScores(f"{files.rows}: not there; make it with: {command}")
        if reason := _why_not(unit, scores):
            without = "(or list the other methods in suite.calibrators)"
            raise MissingScores(f"{files.rows}: {reason}; make them with: {command} {without}")
        by_benchmark[unit.benchmark] = scores
    return by_benchmark


def _why_not(unit: Unit, scores: Scores) -> str:
    """Why the scores are not those of the unit's settings; empty where they are."""
    name, configured = unit.calibrator, scores.facts["calibrators"]
    if name not in configured or name not in scores.methods:
        return f"no rows of {name}"
    if configured[name]["config"] != without_folders(unit.settings.calibrator):
        return f"the rows of {name} are of another configuration of it"
    settings = {
        "splits": asdict(unit.settings.splits),
        "evaluation": without_folders(asdict(unit.settings.evaluation)),
        "logits": {"sha256": scores.facts["logits"].get("sha256")},
    }
    other = difference(scores.facts, settings)
    return f"its rows were made with {other}" if other else ""
