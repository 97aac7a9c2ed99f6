"""A scorecard for other tools: plain numbers for a tracker, a table for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .certificate import CalibrationInterval

if TYPE_CHECKING:
    import pandas as pd


class CardExports:
    """What `Scorecard` inherits; its fields are those of the scorecard."""

    metrics: dict[str, float]
    noise_floor: dict[str, dict[str, float]]
    worst: dict[str, dict[str, float]]
    certificates: dict[str, CalibrationInterval]

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers by name, as MLflow, Weights & Biases and a Trainer take them.

        Beside each metric `<key>` are, where they were computed, `<key>_by_chance` (the 95 %
        quantile of its noise floor), `<key>_p_value` and `<key>_upper`, the bound on fresh points.
        """
        numbers: dict[str, float] = {}
        for key, row in self._rows().items():
            values = (row["value"], row.get("q95"), row.get("p_value"), row.get("upper"))
            names = (key, f"{key}_by_chance", f"{key}_p_value", f"{key}_upper")
            numbers |= {n: float(v) for n, v in zip(names, values, strict=True) if v is not None}
        return numbers

    def frame(self) -> pd.DataFrame:
        """Return a data frame with a row per metric; what does not apply to a metric is NaN.

        Columns: value; mean, q95 and p_value of the noise floor; lower and upper bound on the true
        value; the number of the worst utility, and low, high, sign and error of its interval.
        """
        import pandas as pd  # it takes half a second

        return pd.DataFrame.from_dict(self._rows(), orient="index").rename_axis("metric")

    def _rows(self) -> dict[str, dict[str, float]]:
        return {
            key: {
                "value": value,
                **self.noise_floor.get(key, {}),
                **_bounds(self.certificates, key),
                **self.worst.get(key, {}),
            }
            for key, value in self.metrics.items()
        }


def _bounds(certificates: Mapping[str, CalibrationInterval], key: str) -> dict[str, Any]:
    found = certificates.get(key)
    return {} if found is None else {"lower": found.lower, "upper": found.upper}
