"""The audit of Algorithm 1: the utility with the largest empirical UC, found without sorting all.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them. Cheap upper bounds (`metrics.kernels.bounds`) order the
utilities: sums of columns for these, buckets of float32 products for sampled ones. Exact errors
are computed in rounds, the largest bounds of each family first, until none left can win.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibrators.patching.screened_products import LinearProducts, Products, RankProducts, drops
from calibrators.patching.state import Kind, PatchedForecast, Witness
from metrics.kernels.bounds import (
    BUCKETS,
    calibration_error_bounds,
    indicator_bounds,
    largest_margin,
    most_buckets,
)
from metrics.kernels.columns import errors_of_columns
from metrics.kernels.prefix_range import prefix_range
from metrics.utilities.sampling import sample_unit_sphere_infinity

EXACT_AT_ONCE = 16
"""Utilities of a family computed exactly in the first round."""
MORE_AT_ONCE = 4
"""How many times as many in each next one: a few columns cost as much as many."""
EXACT_AT_ONCE_ON_GPU = 256
FINE_BUCKETS = 8192
"""At most so many after the first round: their sums still fit into the cache of a core."""
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
    """The same, by predictions in float32 that are off by at most `margin`.

    That is enough to tell which utilities can be the worst. Those are computed in float64.
    """

    margin: float
    exact: Callable[[Tensor], Tensor]
    """Returns the predictions [k, n] of some utilities in float64."""

    def bounds(self) -> Tensor:
        """From buckets."""
        return self._bounds(self.predicted, self.payoffs, BUCKETS)

    def errors(self, chosen: Tensor, worth: float = -1.0) -> Tensor:
        """In float64; after the first round only where finer buckets cannot rule it out."""
        errors = torch.zeros(len(chosen), dtype=torch.float64)
        kept = torch.arange(len(chosen))
        if worth > 0 and len(chosen) > EXACT_AT_ONCE:
            buckets = min(most_buckets(*SCALE, self.margin), FINE_BUCKETS)
            bounds = self._bounds(self.predicted[chosen], self.payoffs[chosen], buckets)
            kept = kept[bounds > worth]
        if len(kept):
            some = chosen[kept]
            errors[kept] = _errors(self.exact(some), self.payoffs[some], self.codes)
        return errors

    def _bounds(self, predicted: Tensor, payoffs: Tensor, buckets: int) -> Tensor:
        return calibration_error_bounds(
            predicted, payoffs, self.codes, *SCALE, self.margin, buckets
        )


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
        # NumPy sorts rows in vector lanes, five times as fast as torch.
        return linear, torch.from_numpy(-np.sort(-rank.numpy(), axis=1))

    def sampled_families(self, state: PatchedForecast, step: int) -> list[Family]:
        """U_lin and U_rank, drawn for audit number `step`.

        Valid until the forecast moves or the next call, which takes over their memory.
        """
        if not self.sampled_count:
            return []
        linear, rank = (payoffs.to(state.probabilities.device) for payoffs in self.draw(step))
        if state.on_cpu and torch.get_float32_matmul_precision() == "highest":
            by_class, by_rank = LinearProducts(state, linear), RankProducts(state, rank)
            if max(by_class.margin, by_rank.margin) <= largest_margin(*SCALE):
                return [self._screened("linear", by_class), self._screened("rank", by_rank)]
        p, sums = state.probabilities, state.top_sums
        return [
            Sampled("linear", linear @ p.T, linear, state.labels),
            Sampled("rank", drops(rank) @ sums.T, rank, state.ranks),
        ]

    def _screened(self, kind: Kind, products: Products) -> Family:
        # Fresh memory would cost a tenth of the products.
        shape, spare = (len(products.payoffs), len(products.codes)), self._spare.get(kind)
        if spare is None or spare.shape != shape:
            spare = self._spare[kind] = torch.empty(shape, dtype=torch.float32)
        products.write_single(spare)
        given = products.payoffs, products.codes, products.margin, products.exact
        return Screened(kind, spare, *given)

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
    """Return (family, column, UC) of the utility with the largest exact UC.

    In rounds: each family's largest bounds that exceed the largest exact error so far come next.
    """
    bounds = [family.bounds().cpu() for family in families]
    orders = [each.argsort(descending=True, stable=True) for each in bounds]
    waiting = sorted(range(len(families)), key=lambda k: -float(bounds[k].max()))
    size = EXACT_AT_ONCE if families[0].codes.device.type == "cpu" else EXACT_AT_ONCE_ON_GPU
    best = (0, 0, -1.0)
    while waiting:
        for k in waiting.copy():
            part, orders[k] = orders[k][:size], orders[k][size:]
            part = part[bounds[k][part] > best[2]]
            if not len(part):  # nor do the bounds of any after these exceed it
                waiting.remove(k)
                continue
            columns = part.sort().values  # neighbours are read together
            errors = families[k].errors(columns.to(families[k].codes.device), best[2])
            top = int(errors.argmax())
            if float(errors[top]) > best[2]:
                best = (k, int(columns[top]), float(errors[top]))
        size *= MORE_AT_ONCE
    return best


def combined_error(state: PatchedForecast, auditor: Auditor) -> float:
    """Return U_comb = UC over U_CWE ∪ U_topK of the current forecast."""
    return find_worst(auditor.fixed_families(state))[2]
