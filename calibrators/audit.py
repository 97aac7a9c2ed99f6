"""The audit of Algorithm 1: the utility with the largest empirical UC, found without sorting all.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them. Cheap upper bounds (`metrics.screening`) order the
utilities; the exact error is computed from the largest bound down until none left can win.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibrators.patched_forecast import Kind, PatchedForecast, Witness
from metrics.prefix_range import prefix_range
from metrics.screening import calibration_error_bounds
from metrics.utilities.payoffs import Linear, Rank

EXACT_AT_ONCE = 16
"""Utilities sorted together between two looks at the bounds."""


@dataclass(frozen=True)
class Family:
    """Utilities audited together: predictions [n, b], payoffs [L, b], outcome codes [n]."""

    kind: Kind
    predicted: Tensor
    payoffs: Tensor
    codes: Tensor

    def bounds(self) -> Tensor:
        """Upper bounds on UC: [b]. Sampled utilities lie in [-1, 1], the others in [0, 1]."""
        low = 0.0 if self.kind in ("class", "top_k") else -1.0
        return calibration_error_bounds(self.predicted, self.payoffs, self.codes, low, 1.0)

    def errors(self, columns: Tensor) -> Tensor:
        """Exact UC of some of the utilities."""
        v = self.predicted.T[columns]
        u = self.payoffs.T[columns].to(v.dtype)
        sums = prefix_range(v, u, self.codes[None])
        return (sums.high[0] - sums.low[0]) / v.shape[1]


class Auditor:
    """Audits forecasts over C classes.

    Args:
        classes: C.
        sampled_count: utilities drawn from each of U_lin and U_rank for every audit; 0 for none.
        seed: of the draws; audit t draws the same utilities in every run with this seed.
    """

    def __init__(self, classes: int, sampled_count: int, seed: int, device: torch.device) -> None:
        self.classes = classes
        self.sampled_count = sampled_count
        self.seed = seed
        # Realized utilities by outcome, one byte each: 1{y = c}, and 1{rank <= K}.
        self.hits = torch.eye(classes, dtype=torch.int8, device=device)
        self.within = torch.ones(classes, classes, dtype=torch.int8, device=device).triu()

    def fixed_families(self, state: PatchedForecast) -> list[Family]:
        """U_CWE and U_topK."""
        return [
            Family("class", state.probabilities, self.hits, state.labels),
            Family("top_k", state.top_sums, self.within, state.ranks),
        ]

    def sampled_families(self, state: PatchedForecast, step: int) -> list[Family]:
        """U_lin and U_rank, drawn for audit number `step`."""
        if not self.sampled_count:
            return []
        device = state.probabilities.device
        seed = (self.seed * 100_003 + step) * 2
        linear = Linear.sample(self.sampled_count, self.classes, seed).matrix.to(device)
        rank = Rank.sample(self.sampled_count, self.classes, seed + 1).matrix.to(device)
        # Σ_k θ_k p_(k) by parts: the sorted probabilities are held as running sums only.
        drops = rank - torch.nn.functional.pad(rank[:, 1:], (0, 1))
        return [
            Family("linear", (linear @ state.probabilities.T).T, linear.T, state.labels),
            Family("rank", (drops @ state.top_sums.T).T, rank.T, state.ranks),
        ]

    def worst(self, state: PatchedForecast, step: int) -> Witness:
        """Return the utility of largest empirical UC (first of equals) at audit number `step`."""
        families = self.fixed_families(state) + self.sampled_families(state, step)
        family, column, _ = find_worst(families)
        chosen = families[family]
        if chosen.kind == "class":
            return Witness.of_class(column, self.classes)
        if chosen.kind == "top_k":
            return Witness.of_top_k(column, self.classes)
        return Witness(chosen.kind, column, chosen.payoffs[:, column].contiguous().cpu())


def find_worst(families: list[Family]) -> tuple[int, int, float]:
    """Return (family, column, UC) of the utility with the largest exact UC."""
    bounds = [family.bounds() for family in families]
    owner = torch.cat([torch.full((len(b),), k) for k, b in enumerate(bounds)])
    column = torch.cat([torch.arange(len(b)) for b in bounds])
    every = torch.cat(bounds).cpu()
    order = every.argsort(descending=True, stable=True)
    screened = bool(torch.isfinite(every).all())
    size = EXACT_AT_ONCE if screened else len(order)
    best = (0, 0, -1.0)
    for start in range(0, len(order), size):
        if float(every[order[start]]) <= best[2]:
            break
        part = order[start : start + size]
        for k in torch.unique(owner[part]).tolist():
            columns = column[part[owner[part] == k]]
            errors = families[k].errors(columns.to(families[k].predicted.device))
            top = int(errors.argmax())
            if float(errors[top]) > best[2]:
                best = (k, int(columns[top]), float(errors[top]))
    return best


def combined_error(state: PatchedForecast, auditor: Auditor) -> float:
    """Return U_comb = UC over U_CWE ∪ U_topK of the current forecast."""
    return find_worst(auditor.fixed_families(state))[2]
