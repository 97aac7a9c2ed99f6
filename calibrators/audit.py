"""The audit of Algorithm 1: the utility with the largest empirical UC, found without sorting all.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them. Cheap upper bounds (`metrics.screening`) order the
utilities: sums of columns for these, buckets of float32 products for sampled ones. The exact
error is computed from the largest bound down until none left can win.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from calibrators.patched_forecast import Kind, PatchedForecast, Witness
from metrics.columns import errors_of_columns
from metrics.prefix_range import prefix_range
from metrics.screening import calibration_error_bounds, indicator_bounds, largest_margin
from metrics.utilities.sampling import sample_unit_sphere_infinity

EXACT_AT_ONCE = 16
"""Utilities computed exactly before the second look at the bounds."""
MORE_AT_ONCE = 4
"""How many times as many before each next one: a few columns cost as much as many."""
EXACT_AT_ONCE_ON_GPU = 256
ROWS_AT_ONCE = 4096
"""Rows of a product in float32 at a time: their copy stays in the cache."""
SCALE = (-1.0, 1.0)
"""Where the predictions of sampled utilities lie."""


@dataclass(frozen=True)
class Family(ABC):
    """Utilities audited together: predictions, payoffs [b, L], outcome codes [n]."""

    kind: Kind
    predicted: Tensor
    payoffs: Tensor
    codes: Tensor

    @abstractmethod
    def bounds(self) -> Tensor:
        """Upper bounds on UC: [b]."""

    @abstractmethod
    def errors(self, chosen: Tensor, worth: float = -1.0) -> Tensor:
        """Exact UC of some of the utilities; if at most `worth`, any smaller number will do."""


@dataclass(frozen=True)
class Indicators(Family):
    """Utilities that pay 1 or 0: predictions [n, b], with the sums [2, b] of `indicator_bounds`."""

    sums: Tensor

    def bounds(self) -> Tensor:
        """From the sums."""
        hits = torch.bincount(self.codes, minlength=len(self.payoffs))
        if self.kind == "top_k":
            hits = hits.cumsum(dim=0)
        return indicator_bounds(self.sums, hits, len(self.codes))

    def errors(self, chosen: Tensor, worth: float = -1.0) -> Tensor:
        """Columns are read in place, on the CPU."""
        payoffs = self.payoffs[chosen]
        if self.codes.device.type == "cpu":
            return errors_of_columns(self.predicted, chosen, payoffs, self.codes, worth)
        return _errors(self.predicted.T[chosen], payoffs, self.codes)


@dataclass(frozen=True)
class Sampled(Family):
    """Utilities with predictions [b, n] in float64."""

    def bounds(self) -> Tensor:
        """From buckets."""
        return calibration_error_bounds(self.predicted, self.payoffs, self.codes, *SCALE)

    def errors(self, chosen: Tensor, worth: float = -1.0) -> Tensor:
        """By rows, all without a copy."""
        if len(chosen) == len(self.payoffs):
            return _errors(self.predicted, self.payoffs, self.codes)
        return _errors(self.predicted[chosen], self.payoffs[chosen], self.codes)


@dataclass(frozen=True)
class Screened(Family):
    """The same with predictions `weights` [b, C] @ `source` [n, C]ᵀ held in float32.

    They are off by at most `margin`: enough to tell which utilities can be the worst. Those are
    computed again in float64.
    """

    source: Tensor
    weights: Tensor
    margin: float

    def bounds(self) -> Tensor:
        """From buckets."""
        return calibration_error_bounds(
            self.predicted, self.payoffs, self.codes, *SCALE, self.margin
        )

    def errors(self, chosen: Tensor, worth: float = -1.0) -> Tensor:
        """In float64."""
        return _errors(self.weights[chosen] @ self.source.T, self.payoffs[chosen], self.codes)


def sampled_family(
    kind: Kind,
    source: Tensor,
    weights: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    spare: Tensor | None = None,
) -> Family:
    """Return utilities with predictions `weights` [b, C] @ `source` [n, C]ᵀ.

    In float32 where that is faster and its margin is narrow enough for the buckets; then written to
    `spare` [b, n] if it fits, as fresh memory would cost a tenth of the product.
    """
    # Rounding of both operands and of C sums, in any order: (C + 2) u Σ |source| |weights|, where
    # each entry of `source` and the sum of each row of probabilities are at most 1.
    scale = float(weights.abs().amax() if kind == "linear" else weights.abs().sum(dim=1).max())
    margin = 1.01 * (source.shape[1] + 2) * 2.0**-24 * scale
    other = torch.get_float32_matmul_precision() != "highest" or source.device.type != "cpu"
    if other or margin > largest_margin(*SCALE):
        return Sampled(kind, weights @ source.T, payoffs, codes)
    shape = len(weights), len(source)
    if spare is None or spare.shape != shape:
        spare = torch.empty(shape, dtype=torch.float32)
    single = weights.float()
    for start in range(0, len(source), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        torch.matmul(single, source[rows].float().T, out=spare[:, rows])
    return Screened(kind, spare, payoffs, codes, source, weights, margin)


def _errors(predicted: Tensor, payoffs: Tensor, codes: Tensor) -> Tensor:
    """UC of k utilities: predicted [k, n], payoffs [k, L]."""
    sums = prefix_range(predicted, payoffs, codes[None])
    return (sums.high[0] - sums.low[0]) / predicted.shape[1]


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
        # Realized utilities by outcome: 1{y = c}, and 1{rank < K}.
        self.hits = torch.eye(classes, dtype=torch.float64, device=device)
        self.within = torch.ones_like(self.hits).tril()
        self._spare: dict[Kind, Tensor] = {}

    def fixed_families(self, state: PatchedForecast) -> list[Family]:
        """U_CWE and U_topK."""
        by_class, by_rank = state.indicator_sums()
        return [
            Indicators("class", state.probabilities, self.hits, state.labels, by_class),
            Indicators("top_k", state.top_sums, self.within, state.ranks, by_rank),
        ]

    def draw(self, step: int) -> tuple[Tensor, Tensor]:
        """Return payoffs by class and by rank for audit number `step`: float64 [count, C] each."""
        seed = (self.seed * 100_003 + step) * 2
        linear = sample_unit_sphere_infinity(self.sampled_count, self.classes, seed)
        rank = sample_unit_sphere_infinity(self.sampled_count, self.classes, seed + 1)
        return linear, rank.sort(dim=1, descending=True).values

    def sampled_families(self, state: PatchedForecast, step: int) -> list[Family]:
        """U_lin and U_rank, drawn for audit number `step`; valid until the next call.

        That one takes over the memory of their predictions.
        """
        if not self.sampled_count:
            return []
        linear, rank = (payoffs.to(state.probabilities.device) for payoffs in self.draw(step))
        # Σ_k θ_k p_(k) by parts: the sorted probabilities are held as running sums only.
        drops = rank - torch.nn.functional.pad(rank[:, 1:], (0, 1))
        spare, p, sums = self._spare, state.probabilities, state.top_sums
        families = [
            sampled_family("linear", p, linear, linear, state.labels, spare.get("linear")),
            sampled_family("rank", sums, drops, rank, state.ranks, spare.get("rank")),
        ]
        self._spare = {f.kind: f.predicted for f in families if isinstance(f, Screened)}
        return families

    def worst(self, state: PatchedForecast, step: int) -> Witness:
        """Return the utility of largest empirical UC at audit number `step`."""
        families = self.fixed_families(state) + self.sampled_families(state, step)
        family, column, _ = find_worst(families)
        chosen = families[family]
        if chosen.kind == "class":
            return Witness.of_class(column, self.classes)
        if chosen.kind == "top_k":
            return Witness.of_top_k(column, self.classes)
        return Witness(chosen.kind, column, chosen.payoffs[column].cpu().clone())


def find_worst(families: list[Family]) -> tuple[int, int, float]:
    """Return (family, column, UC) of the utility with the largest exact UC."""
    bounds = [family.bounds() for family in families]
    owner = torch.cat([torch.full((len(b),), k) for k, b in enumerate(bounds)])
    column = torch.cat([torch.arange(len(b)) for b in bounds])
    every = torch.cat(bounds).cpu()
    order = every.argsort(descending=True, stable=True)
    size = EXACT_AT_ONCE if families[0].codes.device.type == "cpu" else EXACT_AT_ONCE_ON_GPU
    best = (0, 0, -1.0)
    start = 0
    while start < len(order) and float(every[order[start]]) > best[2]:
        part = order[start : start + size]
        part = part[every[part] > best[2]]
        start += len(part)
        size *= MORE_AT_ONCE
        for k in torch.unique(owner[part]).tolist():
            columns = column[part[owner[part] == k]].sort().values  # neighbours are read together
            errors = families[k].errors(columns.to(families[k].codes.device), best[2])
            top = int(errors.argmax())
            if float(errors[top]) > best[2]:
                best = (k, int(columns[top]), float(errors[top]))
    return best


def combined_error(state: PatchedForecast, auditor: Auditor) -> float:
    """Return U_comb = UC over U_CWE ∪ U_topK of the current forecast."""
    return find_worst(auditor.fixed_families(state))[2]
