"""A forecast under patching: probabilities that move, with their ranking kept up to date.

A patch moves the points whose predicted utility lies in an interval along the witness u⃗ and
projects them back onto the simplex (Algorithm 1 of the paper). Only those rows are touched: their
order is repaired (`row_order`) and their sums of the K largest probabilities are renewed. Every
number of a row depends on that row alone, so replaying patches on the calibration points gives
their fitted probabilities bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.forecast import Forecast
from metrics.kernels.bounds import class_wise_sums, top_k_sums
from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.projection import project_row, project_rows_torch
from metrics.kernels.row_order import repair_order
from metrics.kernels.threads import over_row_blocks

Kind = Literal["class", "top_k", "linear", "rank"]
KINDS: tuple[Kind, ...] = ("class", "top_k", "linear", "rank")
ROWS_PER_CHUNK = 128
"""Rows whose changes are summed before they are added to the others': the same on any number of
threads."""


@dataclass(frozen=True)
class Witness:
    """A utility to audit or patch: payoff float64 [C] by class ("class", "linear") or by rank.

    index: the class, K - 1, or the number among the sampled utilities.
    """

    kind: Kind
    index: int
    payoff: Tensor

    @property
    def by_rank(self) -> bool:
        """Whether the payoff belongs to ranks rather than to classes."""
        return self.kind in ("top_k", "rank")

    @classmethod
    def of_class(cls, index: int, classes: int) -> Witness:
        """U_CWE: probability of class `index`."""
        payoff = torch.zeros(classes, dtype=torch.float64)
        payoff[index] = 1
        return cls("class", index, payoff)

    @classmethod
    def of_top_k(cls, index: int, classes: int) -> Witness:
        """U_topK with K = `index` + 1."""
        ranks = torch.arange(classes)
        return cls("top_k", index, (ranks <= index).to(torch.float64))


@compiled
def _moved_row(p: Any, order: Any, payoff: Any, by_rank: bool, step: float, x: Any) -> None:
    """x = projection of p + step · u⃗ onto the simplex; payoffs beyond `payoff`'s end are zero."""
    if by_rank:
        for j in range(p.size):
            x[j] = p[j]
        for k in range(payoff.size):
            x[order[k]] += step * payoff[k]
    else:
        for j in range(p.size):
            x[j] = p[j] + step * payoff[j]
    project_row(x)


@compiled_sums
def _displacement(p: Any, x: Any) -> tuple[float, float]:
    """Return <p, x - p> and ‖x - p‖²."""
    slope = square = 0.0
    for j in range(x.size):
        moved = x[j] - p[j]
        slope += moved * p[j]
        square += moved * moved
    return slope, square


@compiled
def _try_rows(
    p: Any, order: Any, labels: Any, rows: Any, payoff: Any, by_rank: bool, step: float, out: Any
) -> None:
    x = np.empty(p.shape[1])
    for k in range(rows.size):
        i = rows[k]
        _moved_row(p[i], order[i], payoff, by_rank, step, x)
        slope, square = _displacement(p[i], x)
        out[k, 0] = slope - (x[labels[i]] - p[i, labels[i]])
        out[k, 1] = square


@compiled
def _replace_row(p: Any, x: Any, change: Any) -> None:
    """p = x; add what that changes to `change` [C]."""
    for j in range(p.size):
        change[j] += x[j] - p[j]
        p[j] = x[j]


@compiled
def _running_sums(ranked: Any, sums: Any) -> None:
    """Write the sums of the K first entries, one after the other as `Forecast` does.

    Where the first K are all there is, their sum is one but for rounding, which then decides how
    points are told apart. Adding four at a time is twice as fast, and gave other patches.
    """
    total = 0.0
    for k in range(ranked.size):
        total += ranked[k]
        sums[k] = total


@compiled
def _rank_of(label: int, order: Any) -> int:
    """Return where `label` stands in `order`; -1 if nowhere."""
    rank = -1
    for k in range(order.size):
        rank = k if order[k] == label else rank
    return rank


@compiled
def _move_rows(
    p: Any,
    order: Any,
    top_sums: Any,
    labels: Any,
    ranks: Any,
    rows: Any,
    payoff: Any,
    by_rank: bool,
    step: float,
    changes: Any,
) -> None:
    """Move `rows`; add to `changes` [2, 2, C] what that changes in `indicator_sums`.

    Of classes: the sums over all points, and over the points of that class.
    """
    classes = p.shape[1]
    x, ranked, sums = np.empty(classes), np.empty(classes), np.empty(classes)
    values, keys = np.empty(classes), np.empty(classes)
    uints, ints = np.empty(classes, np.uint64), np.empty((3, classes), np.int32)
    shuffled = not by_rank and np.count_nonzero(payoff) > 1
    by_class, own = changes[0, 0], changes[0, 1]
    by_top, missed = changes[1, 0], changes[1, 1]
    for i in rows:
        label = labels[i]
        _moved_row(p[i], order[i], payoff, by_rank, step, x)
        if label >= 0:
            own[label] += x[label] - p[i, label]
        _replace_row(p[i], x, by_class)
        repair_order(x, order[i], ranked, shuffled, values, keys, uints, ints)
        _running_sums(ranked, sums)
        for k in range(ranks[i]):
            missed[k] -= top_sums[i, k]
        _replace_row(top_sums[i], sums, by_top)
        ranks[i] = _rank_of(label, order[i])
        for k in range(ranks[i]):
            missed[k] += sums[k]


@compiled_sums
def _dot(p: Any, order: Any, payoff: Any, by_rank: bool) -> float:
    total = 0.0
    if by_rank:
        for k in range(payoff.size):
            total += payoff[k] * p[order[k]]
    else:
        for k in range(payoff.size):
            total += payoff[k] * p[k]
    return total


@compiled
def _dot_rows(p: Any, order: Any, payoff: Any, by_rank: bool, out: Any) -> None:
    for i in range(p.shape[0]):
        out[i] = _dot(p[i], order[i], payoff, by_rank)


def _payoff(witness: Witness) -> NDArray[np.float64]:
    """The payoffs, by rank only as far as they are not zero: one rank for top-1."""
    payoff = witness.payoff.numpy()
    return np.trim_zeros(payoff, "b") if witness.by_rank else payoff


class PatchedForecast:
    """Probabilities float64 [n, C], their order [n, C] and top-K sums [n, C]; see the module.

    Args:
        probabilities: the forecast before patching; copied.
        labels: int64 [n], needed by `ranks`, `try_step` and `indicator_sums` only.

    Attributes:
        ranks: int64 [n], the rank of each point's label.
    """

    def __init__(self, probabilities: Tensor, labels: Tensor | None = None) -> None:
        forecast = Forecast(probabilities.to(torch.float64).contiguous().clone())
        self.probabilities = forecast.probabilities
        self.order = forecast.order
        self.top_sums = forecast.top_sums.contiguous()
        n, device = len(probabilities), probabilities.device
        if labels is None:
            self.labels = torch.full((n,), -1, device=device)
            self.ranks = self.labels.clone()
        else:
            self.labels = labels
            self.ranks = forecast.outcomes(labels).ranks[0]
        self.on_cpu = device.type == "cpu"
        self._sums: Tensor | None = None
        self._asked: tuple[Witness, Tensor] | None = None

    def indicator_sums(self) -> Tensor:
        """Return the sums that bound UC of U_CWE and U_topK (`metrics.kernels.bounds`): [2, 2, C].

        On the CPU moves keep them up to date once they have been asked for, off by rounding: two
        passes over all points would cost more than half of what moving half of them does.
        """
        if self._sums is None:
            by_class = class_wise_sums(self.probabilities, self.labels)
            self._sums = torch.stack([by_class, top_k_sums(self.top_sums, self.ranks)])
        return self._sums

    def predicted(self, witness: Witness) -> Tensor:
        """Return v = <p, u⃗> of every point: float64 [n]; kept for the next call until a move."""
        if self._asked is None or self._asked[0] is not witness:
            self._asked = witness, self._predicted(witness)
        return self._asked[1]

    def _predicted(self, witness: Witness) -> Tensor:
        if witness.kind == "class":
            return self.probabilities[:, witness.index].contiguous()
        if witness.kind == "top_k":
            return self.top_sums[:, witness.index].contiguous()
        payoff = witness.payoff.to(self.probabilities.device)
        if not self.on_cpu:
            q = self.probabilities
            q = q.gather(1, self.order) if witness.by_rank else q
            return (q * payoff).sum(dim=1)
        out = np.empty(len(self.probabilities))
        p, order, table = self.probabilities.numpy(), self.order.numpy(), payoff.numpy()

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            _dot_rows(p[part], order[part], table, witness.by_rank, out[part])

        over_row_blocks(work, len(out), int(p.size))
        return torch.from_numpy(out)

    def try_step(self, rows: Tensor, witness: Witness, step: float) -> tuple[float, float]:
        """Return Σ<p - y, d> and Σ‖d‖² over `rows` for d, the displacement by this step.

        The sum of Brier scores would change by exactly 2 Σ<p - y, d> + Σ‖d‖².
        """
        if not self.on_cpu:
            d = self._displaced(rows, witness, step) - self.probabilities[rows]
            slope = (d * self.probabilities[rows]).sum() - d.gather(
                1, self.labels[rows][:, None]
            ).sum()
            return float(slope), float(d.square().sum())
        p, order, labels = self.probabilities.numpy(), self.order.numpy(), self.labels.numpy()
        chosen, payoff = rows.numpy(), _payoff(witness)
        out = np.empty((len(chosen), 2))

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            _try_rows(p, order, labels, chosen[part], payoff, witness.by_rank, step, out[part])

        over_row_blocks(work, len(chosen), len(chosen) * p.shape[1])
        slope_sum, square_sum = out.sum(axis=0)
        return float(slope_sum), float(square_sum)

    def move(self, rows: Tensor, witness: Witness, step: float) -> None:
        """Replace the probabilities of `rows` by the projection of p + step · u⃗."""
        self._asked = None
        if not self.on_cpu:
            moved = Forecast(self._displaced(rows, witness, step))
            self.probabilities[rows] = moved.probabilities
            self.order[rows] = moved.order
            self.top_sums[rows] = moved.top_sums
            here = moved.order == self.labels[rows][:, None]
            self.ranks[rows] = here.to(torch.uint8).argmax(dim=1)
            self._sums = None
            return
        p, order, sums = self.probabilities.numpy(), self.order.numpy(), self.top_sums.numpy()
        labels, ranks = self.labels.numpy(), self.ranks.numpy()
        chosen, payoff = rows.numpy(), _payoff(witness)
        chunks = -(-len(chosen) // ROWS_PER_CHUNK)
        changes = np.zeros((chunks, 2, 2, p.shape[1]))

        def work(start: int, stop: int) -> None:
            for chunk in range(start, stop):
                part = chosen[chunk * ROWS_PER_CHUNK : (chunk + 1) * ROWS_PER_CHUNK]
                given = p, order, sums, labels, ranks, part, payoff, witness.by_rank, step
                _move_rows(*given, changes[chunk])

        over_row_blocks(work, chunks, len(chosen) * p.shape[1])
        if self._sums is not None:
            change = changes.sum(axis=0)
            change[0, 1] = change[0, 0] - change[0, 1]
            self._sums += torch.from_numpy(change)

    def _displaced(self, rows: Tensor, witness: Witness, step: float) -> Tensor:
        p = self.probabilities[rows]
        push = (step * witness.payoff.to(p.device)).expand_as(p)
        if witness.by_rank:
            return project_rows_torch(p.scatter_add(1, self.order[rows].to(torch.int64), push))
        return project_rows_torch(p + push)
