"""Read the scores of a benchmark from results/scores; say which are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from pipeline.harness.artifacts import read_json
from pipeline.harness.command import UnitsFailed
from pipeline.harness.units import Unit
from pipeline.scoring.files import (
    CURVE_COLUMNS,
    ROW_COLUMNS,
    ScoreFiles,
    difference,
    read_table,
    score_files,
    without_folders,
)


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
        """The calibrators that were scored."""
        return list(self.own_rows()["calibrator"].unique())

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

    def draws(self, method: str) -> Mapping[str, Sequence[float]]:
        """By metric the mean over few splits under resampled points (tidy.draws_of)."""
        draws: Mapping[str, Any] = self.facts["calibrators"].get(method, {}).get("draws", {})
        return draws.get(self.group, {})

    @property
    def test_share(self) -> float:
        """Test points of a split over all points."""
        if self.group:
            return 1.0 - float(self.facts["splits"]["calibration_fraction"])
        return float(self.rows["n_test"].iloc[0]) / float(self.facts["logits"]["n"])


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
