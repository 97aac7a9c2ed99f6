"""A formatted table before it takes the syntax of a file format."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.registry import Metric
from metrics.scores import LIKELIHOOD_FLOOR


@dataclass(frozen=True)
class Cell:
    """Rounded text of a mean and of its spread ("" where there is none), and whether it is best.

    In the noise-floor row `spread` holds the 95 % quantile instead.
    """

    mean: str
    spread: str
    best: bool


@dataclass(frozen=True)
class Row:
    """One method's cells, in the order of the table's metrics."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ResultTable:
    """One benchmark's table; `floor_source` is the method whose probabilities made `floor`.

    `within_floor` names the columns in which no method exceeds the floor's 95 % quantile.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    floor: Row | None
    floor_source: str
    splits: int
    remarks: tuple[str, ...] = ()
    within_floor: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence or two each."""
        return self.notes_with("Best in bold.")

    def notes_with(self, best: str) -> tuple[str, ...]:
        """The notes, with a sentence on how the best cells are marked."""
        first = f"{self.spread_note} {best}"
        found = (first, self.floor_note, self.within_note, self.likelihood_note, *self.remarks)
        return tuple(note for note in found if note)

    @property
    def spread_note(self) -> str:
        """What the numbers after ± are."""
        if self.splits < 2:
            return "One train/test split, so no spread."
        return f"Mean ± 2 standard errors over {self.splits} train/test splits."

    @property
    def likelihood_note(self) -> str:
        """Why a negative log-likelihood is finite."""
        if all(metric.key != "nll" for metric in self.metrics):
            return ""
        return (
            f"NLL: probabilities below {LIKELIHOOD_FLOOR:g} count as that; isotonic regression and "
            "patching give some classes exactly 0."
        )

    @property
    def floor_note(self) -> str:
        """What the noise-floor row says."""
        if self.floor is None:
            return ""
        return (
            "Noise floor: the same metric with labels redrawn from the probabilities of "
            f"{self.floor_source}, mean [95 % quantile]; what a perfectly calibrated classifier "
            "would show on as many points."
        )

    @property
    def within_note(self) -> str:
        """Where a best cell may be best by chance."""
        if not self.within_floor:
            return ""
        columns = ", ".join(self.within_floor)
        return (
            f"No method exceeds the noise floor's 95 % quantile in {columns}: nothing there speaks "
            "against the calibration of any of them."
        )
