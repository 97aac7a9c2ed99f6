"""Bayesian optimisation of a calibrator's own parameters, through scikit-optimize's ask and tell.

Expected improvement is maximised over random candidates, and the kernel of the Gaussian process is
fitted now and then: BayesSearchCV's defaults (a portfolio of acquisition functions, each
maximised with L-BFGS, after a kernel fitted with restarts) would take longer than the fits that
they choose.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

CANDIDATES = 1000
"""Random points at which the acquisition function is compared."""
GROWTH = 1.25
"""The kernel is fitted anew to this many times as many scores as before: from run to run it hardly
moves, and its fit takes longer than all else that a proposal needs."""
DIGITS = 8
"""Significant digits of a score that count. The Gaussian process would turn a difference of one
rounding error, between thread counts or devices, into other proposals and another result."""


def tune(
    objective: Callable[[dict[str, Any]], float],
    space: Mapping[str, Any],
    runs: int,
    seed: int = 0,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Minimise `objective` over `space` in `runs` evaluations; return (best parameters, log).

    `space` maps names to scikit-optimize dimensions (`Real`, `Integer`, `Categorical`, or the
    tuples and lists that it accepts for them). The first quarter of the runs, at least four, is
    spread evenly by a Halton sequence; each other one is proposed from all scores before it. The
    log has one entry per run, in order: `parameters`, `score`, `seconds`. Scores count to 8
    digits. The same seed and scores give the same points. A score that is not finite counts as
    the worst finite one.
    `ValueError` if `runs` < 1 or no run gave a finite score.
    """
    if runs < 1:
        raise ValueError(f"runs: {runs}; tuning needs at least one run")
    log: list[dict[str, Any]] = []

    def evaluate(point: list[Any]) -> float:
        tried = _named(space, point)
        return run_and_log(partial(objective, tried), tried, log)

    spread = min(runs, max(4, runs // 4))
    dimensions, points = _halton(space, spread, seed)
    scores = [evaluate(point) for point in points]
    search = _Search(dimensions, spread, seed)
    while len(log) < runs:
        points.append(search.propose(points, _finite(scores)))
        scores.append(evaluate(points[-1]))
    return dict(best_run(log)["parameters"]), log


def evenly_spread(space: Mapping[str, Any], count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return `count` points of `space`, spread evenly by a Halton sequence; `space` as in `tune`.

    No scores and no linear algebra have a part in it: the same points on any processor.
    """
    return [_named(space, point) for point in _halton(space, count, seed)[1]]


def _halton(space: Mapping[str, Any], count: int, seed: int) -> tuple[list[Any], list[list[Any]]]:
    """The dimensions of `space`, and points spread evenly in them."""
    from skopt.sampler import Halton  # slow to import: only where something is tuned
    from skopt.utils import normalize_dimensions

    dimensions = normalize_dimensions(list(space.values()))
    return dimensions, Halton().generate(dimensions, count, random_state=seed)


def _named(space: Mapping[str, Any], point: list[Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in zip(space, point, strict=True)}


def run_and_log(
    score_of_run: Callable[[], float], parameters: dict[str, Any], log: list[dict[str, Any]]
) -> float:
    """Append one run to `log` as `tune` does; return its score, to 8 digits."""
    begin = time.perf_counter()
    score = float(f"{score_of_run():.{DIGITS}g}")
    seconds = time.perf_counter() - begin
    log.append({"parameters": parameters, "score": score, "seconds": seconds})
    return score


def best_runs(log: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The `count` runs of the lowest finite scores, best first; of equal ones the earlier."""
    finite = [run for run in log if math.isfinite(run["score"])]
    return sorted(finite, key=lambda run: float(run["score"]))[:count]


def best_run(log: list[dict[str, Any]]) -> dict[str, Any]:
    """The first of `best_runs`; `ValueError` if no run gave a finite score."""
    best = best_runs(log, 1)
    if not best:
        raise ValueError(f"tuning: none of {len(log)} runs gave a finite score")
    return best[0]


class _Search:
    """scikit-optimize's optimizer, `told` evenly spread points before its first proposal.

    Its Gaussian process is given every score; its kernel is fitted by `fitting`, and else kept. All
    on one thread: its matrices are tiny, and threads that spin on them cost more than the work
    where the processor is shared.
    """

    def __init__(self, dimensions: list[Any], told: int, seed: int) -> None:
        from skopt import Optimizer
        from skopt.utils import cook_estimator

        process = cook_estimator("GP", space=dimensions, random_state=seed, n_restarts_optimizer=0)
        self.optimizer = Optimizer(
            dimensions,
            base_estimator=process,
            n_initial_points=told,
            acq_func="EI",
            acq_optimizer="sampling",
            acq_optimizer_kwargs={"n_points": CANDIDATES},
            model_queue_size=1,
            random_state=seed,
        )
        self.fitting = self.optimizer.base_estimator_
        self.fitted_to = 0
        self.threads = ThreadpoolController()

    def propose(self, points: list[list[Any]], scores: list[float]) -> list[Any]:
        """Return the next point after `points`, all so far, with their scores.

        The library warns where it replaces a point that was evaluated before (a small discrete
        space) and where a kernel's length hits its bound: neither is the caller's concern.
        """
        fit_kernel = len(scores) >= GROWTH * self.fitted_to
        if fit_kernel:
            self.optimizer.base_estimator_, self.fitted_to = self.fitting, len(scores)
        told = len(self.optimizer.yi)
        self.optimizer.yi = scores[:told]  # the worst of all may have changed
        with warnings.catch_warnings(), self.threads.limit(limits=1, user_api="blas"):
            warnings.simplefilter("ignore")
            self.optimizer.tell(points[told:], scores[told:])
            point: list[Any] = self.optimizer.ask()
        if fit_kernel:
            self.optimizer.base_estimator_ = _with_kernel_of(self.optimizer.models[-1])
        return point


def _with_kernel_of(fitted: Any) -> Any:
    """A Gaussian process with the kernel and the noise that `fitted` found; its fit finds none."""
    kept = clone(fitted).set_params(kernel=clone(fitted.kernel_), optimizer=None)
    # scikit-optimize takes the noise, the last summand, out of the kernel that it has fitted.
    return kept.set_params(kernel__k2__noise_level=fitted.noise_)


def _finite(scores: list[float]) -> list[float]:
    """Scores for the Gaussian process: those that are not finite become the worst finite one."""
    finite = [score for score in scores if math.isfinite(score)]
    worst = max(finite, default=0.0)
    return [score if math.isfinite(score) else worst for score in scores]


def _plain(value: Any) -> Any:
    """scikit-optimize returns NumPy scalars; JSON and users want Python's."""
    return value.item() if isinstance(value, np.generic) else value
