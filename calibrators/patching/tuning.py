"""How the patching calibrators choose their settings: by scores of points held out of the fit.

*UtilityPatching: a hold-out.* The settings to try are spread evenly over the space. Settings with
the same step size and sampling share a run of the algorithm, because a run passes all smaller
numbers of patches on its way. Each number is scored, and the best setting of all runs is taken.
Settings are not proposed by a model of the scores: a Gaussian process would find most untried
numbers of patches equally good, and rounding would choose among them.

Sampled utilities make a run several times as long, so only one run has them: that with the step
size that is best without. After 25 patches the best three runs continue, after 50 the best one
(`CUTS`; successive halving, Jamieson & Talwalkar 2016). In 60 fits to CIFAR logits (six models, ten
splits) this took a third of the time that all six runs take to their ends. The worst error on test
points was .2 % larger on average, with a standard error of 1.9 %.

*LogitShiftPatching: cross-validation.* The algorithm runs on all points except one fifth, and its
patches are applied to that fifth, too. The chosen number of patches is the smallest whose mean
held-out loss lies within one standard error of the smallest loss (the standard error of the paired
difference, point by point). It may be zero. A few hundred points cannot distinguish a gain from
noise, and patches that gain nothing cost time in every prediction.

A pool of maps leaves little likelihood to gain, so one standard error would admit too few patches
at a hundred classes. It gets 500/n of one (`logit_shift.FEW`, docs/methods/logit_shift.md).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.draws import Draws

from ..losses import Loss
from ..solvers.search import Run, best_run, run_and_log
from .algorithm import Algorithm1
from .state import PatchedForecast

STEP_SIZES = (1.0, 0.1, 0.03)  # of the line search at first; few, so that settings share runs
SCORED_EVERY = 5  # tuning tries multiples of this (or `max_steps`, if smaller)
CUTS = ((25, 3), (50, 1))  # numbers of patches after which runs are compared, and of survivors
FOLDS = 5
ENOUGH = 4000  # once this many points are held out, further folds would add little information
PATIENCE = 25  # the search ends this many patches after the best number of patches
ROUNDING = 1e-9  # mean losses that differ by less are equal


@dataclass(eq=False)
class TuningRun:
    """A run of the algorithm on the kept points, scored on the held-out points on its way."""

    step_size: float
    sampled: bool
    """Whether audits have sampled utilities."""
    limits: Sequence[int]
    """The numbers of patches to score, increasing."""
    log: list[Run] = field(default_factory=list)
    """The scores so far."""
    made: int = 0
    """While it waits: the number of patches so far."""
    reached: list[Array] = field(default_factory=list)
    """While it waits: the probabilities of the kept and of the held-out points."""


@dataclass(eq=False)
class HoldOut:
    """The points that runs are fitted on, and the points that they are scored on."""

    probabilities: Array
    """[n, C], of all calibration points."""
    labels: Array
    """[n]"""
    weights: Array | None
    """[n]"""
    share: float
    """Of the rows that is held out."""
    seed: int
    """Draws these rows."""
    begin: Callable[[float, bool, PatchedForecast], Algorithm1]
    """Begins the algorithm for a step size, sampled utilities or not, and a forecast."""
    score: Callable[[PatchedForecast], float]
    """Scores a held-out forecast; smaller is better."""

    def __post_init__(self) -> None:
        n = len(self.labels)
        if n < 2:
            raise InputError(
                "tuning needs at least two points",
                field="labels",
                fixes="give step_size, steps, sampled",
            )
        order = shuffled(self.labels, self.seed)
        scored = min(max(1, round(self.share * n)), n - 1)
        self.parts = order[scored:], order[:scored]

    def race(self, runs: Sequence[TuningRun]) -> list[TuningRun]:
        """Score all runs up to the first cut, its survivors up to the next cut, and so on.

        Return the runs that were begun. If some of `runs` have sampled utilities and some do not,
        those without begin. A single run with them follows. It has the step size that is best so
        far, and the most patches that any of them tries.
        """
        begun = [run for run in runs if not run.sampled] or list(runs)
        sampled = [run.limits for run in runs if run not in begun]
        # Runs that are first scored after a cut are compared at their first scores.
        cuts = [(max(patches, runs[0].limits[0]), survivors) for patches, survivors in CUTS]
        if sampled:
            best = self._best(begun, cuts[0][0], len(begun))[0]
            begun.append(TuningRun(best.step_size, True, max(sampled, key=len)))
        left = begun
        for cut in cuts:
            left = self._best(left, *cut)
        for run in left:
            self.go_on(run)
        return begun

    def _best(self, runs: list[TuningRun], patches: int, survivors: int) -> list[TuningRun]:
        """Score runs up to so many patches; return the best, and forget the others' forecasts."""
        for run in runs:
            self.go_on(run, patches)
        ranked = sorted(runs, key=lambda run: float(best_run(run.log)["score"]))
        for run in ranked[survivors:]:
            run.reached = []
        return ranked[:survivors]

    def go_on(self, run: TuningRun, last: float = math.inf) -> None:
        """Score a run at its limits up to `last`, from where it waited."""
        limits = [limit for limit in run.limits[len(run.log) :] if limit <= last]
        if not limits:
            return
        kept, held_out = self.parts
        reached = run.reached or [self.probabilities[kept], self.probabilities[held_out]]
        run.reached = []
        fitted = forecast_of(reached[0], self.labels, self.weights, kept)
        scored = forecast_of(reached[1], self.labels, self.weights, held_out)
        del reached  # forecasts of many classes are large
        algorithm = self.begin(run.step_size, run.sampled, fitted)
        algorithm.number = run.made

        def score(steps: int, **_: Any) -> float:
            """Return the score after so many patches, or after fewer if the run has ended."""
            if algorithm.stopped is None:
                for patch in islice(algorithm, steps - algorithm.number):
                    patch.apply(scored, algorithm.update)
            return self.score(scored)

        for limit in limits:
            tried = {"step_size": run.step_size, "steps": limit, "sampled": run.sampled}
            run_and_log(score, tried, run.log)
        if len(run.log) < len(run.limits):
            run.made, run.reached = algorithm.number, [fitted.probabilities, scored.probabilities]


def forecast_of(p: Array, labels: Array, weights: Array | None, rows: Array) -> PatchedForecast:
    """Return the forecast of some `rows`, whose probabilities are `p`."""
    return PatchedForecast(p, labels[rows], None if weights is None else weights[rows])


def shuffled(labels: Array, seed: int) -> Array:
    """Return the numbers of the points in random order, int64 [n]."""
    return Draws(seed).permutation(len(labels))


def folds_of(labels: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield for every fold the numbers of the points outside and inside it, both int64."""
    order = shuffled(labels, seed)
    folds = [order[k::FOLDS] for k in range(FOLDS)]
    for k, inside in enumerate(folds):
        yield np.concatenate(folds[:k] + folds[k + 1 :]), inside


def held_out_losses(
    probabilities: Array,
    labels: Array,
    weights: Array | None,
    run: Callable[[PatchedForecast], Algorithm1],
    loss: Loss,
    most: int,
    seed: int,
    best: Callable[[Array, Array], int],
    patience: int = PATIENCE,
) -> tuple[Array, Array]:
    """Return the losses of held-out points after 0, 1, … patches, and the points' weights.

    Args:
        probabilities: [n, C], of all points before any patch.
        labels, weights: [n].
        run: begins the algorithm on a forecast.
        loss: what is measured.
        most: the largest number of patches.
        seed: of the folds.
        best: chooses a number of patches from the losses so far, such as `fewest_patches`.
        patience: how many more patches are tried after that number.

    Returns:
        Losses, float64 [T + 1, m], and weights [m], ones without `weights`. T is `most`, or smaller
        if all runs end, or if patience does.
    """
    algorithms: list[Algorithm1] = []
    states: list[PatchedForecast] = []  # of the held-out points
    for outside, inside in folds_of(labels, seed):
        if sum(state.points for state in states) < ENOUGH:
            fitted = forecast_of(probabilities[outside], labels, weights, outside)
            algorithms.append(run(fitted))
            states.append(forecast_of(probabilities[inside], labels, weights, inside))
    shares = np.concatenate([state.shares for state in states])
    losses = np.concatenate([state.losses(loss) for state in states])[None]
    while len(losses) <= min(most, best(losses, shares) + patience):
        patches = [algorithm.round() for algorithm in algorithms]
        if not any(patches):
            break
        for patch, algorithm, state in zip(patches, algorithms, states, strict=True):
            if patch is not None:
                patch.apply(state, algorithm.update)
        now = np.concatenate([state.losses(loss) for state in states])
        losses = np.concatenate([losses, now[None]])
    return losses, shares


def fewest_patches(losses: Array, weights: Array, errors: float = 1.0) -> int:
    """Return the smallest t whose mean of `losses` [T + 1, n] is within noise of the smallest.

    Noise is so many standard `errors` of the paired difference. The means are weighted by
    `weights` [n], whose sum is a number of points.
    """
    points = float(weights.sum())
    means = np.average(losses, axis=1, weights=weights)
    best = int((means <= means.min() + ROUNDING).argmax())
    excess = losses[: best + 1] - losses[best]
    mean_excess = np.average(excess, axis=1, weights=weights)
    squares = weights * np.square(excess - mean_excess[:, None])
    noise: Any = np.inf
    if points > 1:
        noise = errors * np.sqrt(squares.sum(axis=1) / (points - 1) / points)
    return int((mean_excess <= noise + ROUNDING).argmax())
