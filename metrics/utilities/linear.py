"""U_lin (Example 3.5): a payoff for each class."""

from __future__ import annotations

from typing import Any

from metrics.utilities.payoffs import GivenPayoffs
from metrics.utilities.sampling import sample_unit_sphere_infinity


class Linear(GivenPayoffs):
    """U_lin (Example 3.5): u(p, e_j) = a_j, v = <p, a>.

    Args:
        payoffs: [m, C] (or [C]), one payoff vector per row.
    """

    coordinate = "class"

    def __init__(self, payoffs: Any) -> None:
        super().__init__(payoffs, "payoffs")

    @classmethod
    def sample(cls, count: int, classes: int, seed: int) -> Linear:
        """Draw `count` payoff vectors uniformly from {‖a‖_∞ = 1}."""
        return cls(sample_unit_sphere_infinity(count, classes, seed))
