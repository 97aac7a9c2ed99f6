"""How many patches: chosen by cross-validation with a proper score, none at all allowed.

The algorithm runs on all points but a fifth, and its patches are replayed on that fifth. The fewest
patches win whose mean held-out loss lies within one standard error of the smallest (of the paired
difference, point by point): a few hundred points cannot tell a gain from noise, and patches that
gain nothing cost time in every replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor

from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.state import PatchedForecast
from metrics.scores import LIKELIHOOD_FLOOR

Score = Literal["nll", "brier"]
FOLDS = 5
ENOUGH = 4000
"""Held-out points; once so many are held out, further folds would tell little more."""
PATIENCE = 25
"""The search ends once the winner has so many patches more behind it."""
ROUNDING = 1e-9
"""Mean losses that differ by less are equal."""


def point_losses(state: PatchedForecast, score: Score) -> Tensor:
    """Return each point's -log p_y, or Σ_c (p_c - y_c)²: float64 [n]."""
    of_label = state.probabilities.gather(1, state.labels[:, None])[:, 0]
    if score == "nll":
        return -of_label.clamp(min=LIKELIHOOD_FLOOR).log()
    return state.probabilities.square().sum(dim=1) - 2 * of_label + 1


def held_out_losses(
    probabilities: Tensor,
    labels: Tensor,
    run: Callable[[PatchedForecast], Algorithm1],
    score: Score,
    max_steps: int,
    seed: int,
) -> Tensor:
    """Return the losses of held-out points after 0, 1, … patches: float64 [T + 1, held].

    Args:
        probabilities, labels: [n, C] and [n], all points, before any patch.
        run: begins the algorithm on a forecast.
        max_steps: T at most; fewer where all runs end, or the winner is known.
        seed: of the folds.
    """
    runs = list(_folds(probabilities, labels, run, seed))
    losses = torch.cat([point_losses(state, score) for _, state in runs])[None]
    while len(losses) <= min(max_steps, fewest_steps(losses) + PATIENCE):
        patches = [algorithm.round() for algorithm, _ in runs]
        if all(patch is None for patch in patches):
            break
        for patch, (algorithm, state) in zip(patches, runs, strict=True):
            if patch is not None:
                patch.apply(state, algorithm.update)
        now = torch.cat([point_losses(state, score) for _, state in runs])
        losses = torch.cat([losses, now[None]])
    return losses


def _folds(
    probabilities: Tensor, labels: Tensor, run: Callable[[PatchedForecast], Algorithm1], seed: int
) -> Iterator[tuple[Algorithm1, PatchedForecast]]:
    """Yield the algorithm on the kept points, and the held-out forecast, of as many as it takes."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    folds = [order[k::FOLDS].to(labels.device) for k in range(FOLDS)]
    for k in range(min(FOLDS, -(-ENOUGH // len(folds[0])))):
        kept = torch.cat([fold for other, fold in enumerate(folds) if other != k])
        held = PatchedForecast(probabilities[folds[k]], labels[folds[k]])
        yield run(PatchedForecast(probabilities[kept], labels[kept])), held


def fewest_steps(losses: Tensor) -> int:
    """Return the smallest t whose mean of `losses` [T + 1, n] is within noise of the smallest."""
    means = losses.mean(dim=1)
    best = int(torch.nonzero(means <= means.min() + ROUNDING)[0])
    excess = losses[: best + 1] - losses[best]
    noise = excess.std(dim=1) / losses.shape[1] ** 0.5 if losses.shape[1] > 1 else torch.inf
    return int(torch.nonzero(excess.mean(dim=1) <= noise + ROUNDING)[0])
