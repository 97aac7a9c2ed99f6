"""U_rank (Example 3.6): a value for each rank of the outcome."""

from __future__ import annotations

from typing import Any

from metrics.utilities.payoffs import GivenPayoffs
from metrics.utilities.sampling import sample_unit_sphere_infinity


class Rank(GivenPayoffs):
    """U_rank (Example 3.6): u(p, e_j) = θ_rank(p, j), v = Σ_i p_i θ_rank(p, i).

    Args:
        valuations: [m, C] (or [C]), the value of each rank, best rank first.
    """

    coordinate = "rank"

    def __init__(self, valuations: Any) -> None:
        super().__init__(valuations, "valuations")

    @classmethod
    def sample(cls, count: int, classes: int, seed: int) -> Rank:
        """Draw `count` valuations uniformly from {‖θ‖_∞ = 1, θ_1 >= … >= θ_C}."""
        vectors = sample_unit_sphere_infinity(count, classes, seed)
        return cls(vectors.sort(dim=1, descending=True).values)
