"""Every number that the paper reports about one forecast, and how much of it is noise.

Even a perfectly calibrated classifier has positive errors on a finite sample: the noise floor, the
metric under labels drawn from the forecast itself. An observed error within that range does not
speak against calibration. The scorecard also says what the points imply for other points: a
certificate for the true UC (`metrics/certificate.py`), and the metric under resampled points.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .certificate import CalibrationInterval
from .option_checks import check_known
from .registry import METRICS, PURPOSES
from .resampling import Floats
from .result import CalibrationResult
from .shown import tie_note

if TYPE_CHECKING:
    import pandas as pd

Result: TypeAlias = CalibrationResult[NDArray[np.float64]]


class ErrorCurve(NamedTuple):
    """UC of the sampled users of a family, whose eCDF section 4 shows: [M] each.

    Attributes:
        errors: of each user, in the order of the sample.
        floor_mean, floor_q05, floor_q95: mean and quantiles of the sorted errors under drawn
            labels, interpolated from those of `floor_utilities` users; empty without draws.
    """

    errors: Floats
    floor_mean: Floats
    floor_q05: Floats
    floor_q95: Floats


class Row(NamedTuple):
    """One line of a report: what people do, the error, that by chance alone, and its bound."""

    use: str
    error: float
    by_chance: float | None
    at_most: float | None

    def cells(self) -> list[str]:
        """Return the line's texts."""
        numbers = (self.error, self.by_chance, self.at_most)
        return [self.use, *("–" if x is None else f"{x:.4f}" for x in numbers)]


SCORES = ("accuracy", "brier", "nll")
HEADINGS = ("use", "error", "by chance", "at most")
NOTE = 'Observed errors up to the column "by chance" cannot be told from chance.'


@dataclass(frozen=True, repr=False)
class Scorecard:
    """The metrics of one forecast (section 4), each with what chance has to do with it.

    `card["u_topk"]` is the record of a metric by its key in `METRICS`, such as that of
    `TopK().evaluate(…)` (metrics/result.py): `.value`, `.floor`, `.interval`, `.worst`, `.gain`,
    `.floor_draws` and `.bootstrap_draws`. Parts that do not apply to a metric, or were not asked
    for, are no attributes of it. `.worst` and `.gain` are of the batch with the largest error, and
    `.gain` is that of the worst utility, without a floor.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> card = scorecard(p, labels=[0, 1, 2, 1], utilities=0, floor_repetitions=50)
    >>> round(card["u_topk"].value, 3), card["u_topk"].worst.utility, "u_cwe" in card
    (0.15, 1, True)
    >>> len(card), card.metrics["accuracy"]
    (11, 0.5)

    Attributes:
        results: the record of each metric by key.
        curves: UC of the sampled users, "linear" and "rank"; empty if none are sampled.
        interval: bounds on the true error of all utility classes together except the user's own,
            whose unit may differ; None without redrawn labels, and if utility metrics are means
            over batches.
        zero_likelihood: number of points whose label had probability 0; the NLL has a floor for
            them.
        tied_share: share of the points that have several most probable classes. These are ranked in
            the order of the columns (Example 3.6), so another order may change results.

    Raises:
        InputError: the scorecard is asked for a metric that it does not have.
    """

    results: Mapping[str, Result]
    curves: Mapping[str, ErrorCurve] = field(default_factory=dict)
    interval: CalibrationInterval | None = None
    zero_likelihood: int = 0
    tied_share: float = 0.0

    def __getitem__(self, key: str) -> Result:
        check_known([key], list(self.results), "scorecard", "metric of it")
        return self.results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, key: object) -> bool:
        return key in self.results

    @property
    def metrics(self) -> dict[str, float]:
        """The value of each metric by its key, in the order of the tables."""
        return {key: result.value for key, result in self.results.items()}

    def report(self) -> None:
        """Print the verdict: for each purpose the error, the error by chance alone, and a bound.

        A purpose is within noise if its error is at most the 95 % quantile of the errors that a
        perfectly calibrated forecast with these probabilities has. The bound holds for fresh points
        of the same kind with the confidence of the certificates, 95 % by default.
        """
        print(self)

    def _rows(self) -> list[Row]:
        uses = {key: use for key, use in PURPOSES.items() if key in self}
        uses |= {key: key for key in self if key not in METRICS}  # your own utilities
        rows = []
        for key, use in uses.items():
            result = self[key]
            by_chance = result.floor.q95 if hasattr(result, "floor") else None
            at_most = result.interval.upper if hasattr(result, "interval") else None
            rows.append(Row(use, result.value, by_chance, at_most))
        return rows

    def _verdict(self, rows: Sequence[Row]) -> str:
        within = list[str]()
        beyond = list[str]()
        for row in rows:
            if row.by_chance is not None:
                verdict = within if row.error <= row.by_chance else beyond
                verdict.append(row.use)
        parts = []
        if within:
            parts.append(f"within noise of perfectly calibrated for {', '.join(within)}")
        if beyond:
            parts.append(f"beyond noise for {', '.join(beyond)}")
        text = "; ".join(parts) or "not compared with chance: no labels were redrawn"
        return f"{text.capitalize()}."

    def _notes(self, rows: Sequence[Row]) -> list[str]:
        is_compared = any(row.by_chance is not None for row in rows)
        scores = [f"{METRICS[key].text} {self[key].value:.4f}" for key in SCORES if key in self]
        notes = [NOTE if is_compared else "", ", ".join(scores), tie_note(self.tied_share)]
        return [note for note in notes if note]

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(18, *(len(row.use) + 2 for row in rows))
        lines = [HEADINGS, *(row.cells() for row in rows)]
        table = [
            f"{use:<{width}}{error:>9}{by_chance:>12}{at_most:>10}"
            for use, error, by_chance, at_most in lines
        ]
        return "\n\n".join([self._verdict(rows), "\n".join(table), *self._notes(rows)])

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it, with a table."""
        rows = self._rows()
        lines = ["".join(f"<th>{heading}</th>" for heading in HEADINGS)]
        lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row.cells()) for row in rows]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        notes = [f"<p>{html.escape(note)}</p>" for note in self._notes(rows)]
        verdict = f"<p>{html.escape(self._verdict(rows))}</p>"
        return "\n".join([verdict, f"<table>{table}</table>", *notes])

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers by name, as MLflow, Weights & Biases and a Trainer take them.

        Beside each metric `<key>` are, where they were computed, `<key>_by_chance` (the 95 %
        quantile of its noise floor), `<key>_p_value` and `<key>_upper`, the bound on fresh points.
        """
        suffixes = {"value": "", "q95": "_by_chance", "p_value": "_p_value", "upper": "_upper"}
        numbers: dict[str, float] = {}
        for key, result in self.results.items():
            row = result.numbers()
            for part, suffix in suffixes.items():
                if part in row:
                    numbers[f"{key}{suffix}"] = float(row[part])
        return numbers

    def frame(self) -> pd.DataFrame:
        """Return a data frame with a row per metric; what does not apply to a metric is NaN.

        Columns: value; mean, q95 and p_value of the noise floor; lower and upper bound on the true
        value; the number of the worst utility, and low, high, sign and error of its interval; gain,
        threshold and act_from of acting otherwise.
        """
        import pandas as pd  # it takes half a second

        rows = {key: result.numbers() for key, result in self.results.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")
