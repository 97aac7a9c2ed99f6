"""How `LogitShiftPatching` chooses the number of patches: cross-validation with a proper score.

The algorithm runs on all points except one fifth, and its patches are applied to that fifth, too.
The chosen number of patches is the smallest whose mean held-out loss lies within one standard error
of the smallest loss (the standard error of the paired difference, point by point). It may be zero.
A few hundred points cannot distinguish a gain from noise, and patches that gain nothing cost time
in every prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.state import PatchedForecast, Score

FOLDS = 5
ENOUGH = 4000
"""Once this many points are held out, further folds would add little information."""
PATIENCE = 25
"""The search ends this many patches after the best number of patches."""
ROUNDING = 1e-9
"""Mean losses that differ by less are equal."""


def folds_of(labels: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield for every fold the numbers of the points outside and inside it, both int64."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    folds = [order[k::FOLDS].to(labels.device) for k in range(FOLDS)]
    for k, held in enumerate(folds):
        yield torch.cat([fold for other, fold in enumerate(folds) if other != k]), held


def held_out_losses(
    probabilities: Tensor,
    labels: Tensor,
    run: Callable[[PatchedForecast], Algorithm1],
    score: Score,
    max_steps: int,
    seed: int,
    fewest: Callable[[Tensor], int],
) -> Tensor:
    """Return the losses of held-out points after 0, 1, … patches: float64 [T + 1, held].

    Args:
        probabilities, labels: [n, C] and [n], all points, before any patch.
        run: begins the algorithm on a forecast.
        max_steps: the largest T; T is smaller if all runs end, or if the best number is clear.
        seed: the seed of the folds.
        fewest: `fewest_steps`, or the same with a progress bar.
    """
    runs: list[tuple[Algorithm1, PatchedForecast]] = []
    for kept, held in folds_of(labels, seed):
        if sum(len(state.labels) for _, state in runs) < ENOUGH:
            fitted, scored = (PatchedForecast(probabilities[k], labels[k]) for k in (kept, held))
            runs.append((run(fitted), scored))
    losses = torch.cat([state.losses(score) for _, state in runs])[None]
    while len(losses) <= min(max_steps, fewest(losses) + PATIENCE):
        patches = [algorithm.round() for algorithm, _ in runs]
        if all(patch is None for patch in patches):
            break
        for patch, (algorithm, state) in zip(patches, runs, strict=True):
            if patch is not None:
                patch.apply(state, algorithm.update)
        now = torch.cat([state.losses(score) for _, state in runs])
        losses = torch.cat([losses, now[None]])
    return losses


def fewest_steps(losses: Tensor) -> int:
    """Return the smallest t whose mean of `losses` [T + 1, n] is within noise of the smallest."""
    means = losses.mean(dim=1)
    best = int(torch.nonzero(means <= means.min() + ROUNDING)[0])
    excess = losses[: best + 1] - losses[best]
    noise = excess.std(dim=1) / losses.shape[1] ** 0.5 if losses.shape[1] > 1 else torch.inf
    return int(torch.nonzero(excess.mean(dim=1) <= noise + ROUNDING)[0])
