"""The search over a calibrator's settings, the log of its runs, and a progress bar.

The default search spreads the points evenly over the space (a Halton sequence). The points depend
on neither the scores nor the processor, so every machine tries the same ones. The hold-out losses
are flat around their minimum, and a Gaussian process gained nothing measurable there. With
`how="bayes"` scikit-optimize's `Optimizer` chooses every point, as in the paper's BayesSearchCV.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Literal

import numpy as np

How = Literal["even", "bayes"]
Run = dict[str, Any]  # its `parameters`, `score` (smaller is better) and `seconds`
WIDTH = 40  # characters of a progress bar


def evenly_spread(space: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """Return `number` points of `space`, which maps names to scikit-optimize dimensions."""
    from skopt.sampler import Halton  # imported only for tuning, because it takes a second
    from skopt.space import Space

    return [_named(space, at) for at in Halton().generate(Space(space.values()), number)]


def search(
    score: Callable[..., float],
    space: Mapping[str, Any],
    number: int,
    seed: int,
    how: How = "even",
    is_over: Callable[[], bool] = lambda: False,
) -> list[Run]:
    """Return the log of `number` runs of `score`; only the Bayesian search uses `seed`.

    Evenly spread points are tried in descending order, so that each is near to earlier ones. They
    end early once `is_over()`.
    """
    log: list[Run] = []
    if how == "even":
        points = evenly_spread(space, number)
        for tried in sorted(points, key=lambda point: tuple(point.values()), reverse=True):
            if is_over():
                break
            run_and_log(score, tried, log)
        return log
    from skopt import Optimizer

    optimizer = Optimizer(list(space.values()), random_state=seed)
    for _ in range(number):
        point = optimizer.ask()
        optimizer.tell(point, run_and_log(score, _named(space, point), log))
    return log


def run_and_log(score: Callable[..., float], parameters: dict[str, Any], log: list[Run]) -> float:
    """Append a run to `log`; return its score to 8 digits, so that rounding errors do not count."""
    begin = time.perf_counter()
    value = float(f"{score(**parameters):.8g}")
    log.append({"parameters": parameters, "score": value, "seconds": time.perf_counter() - begin})
    return value


def best_run(log: list[Run]) -> Run:
    """Return the run of lowest finite score, the first of equal ones; `ValueError` if none is."""
    finite = [run for run in log if math.isfinite(run["score"])]
    if not finite:
        raise ValueError(f"tuning: none of {len(log)} runs gave a finite score")
    return min(finite, key=lambda run: float(run["score"]))


def with_progress(
    function: Callable[..., Any], what: str, total: int, shown: bool = True
) -> Callable[..., Any]:
    """Return `function`, with a progress bar of `total` calls on stderr if `shown`."""
    calls = count(1)

    def counted(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        done = next(calls)
        bar = "#" * (WIDTH * min(done, total) // total)
        end = "\n" if done == total else ""
        print(f"\r{what} [{bar:<{WIDTH}}] {done}/{total}", end=end, file=sys.stderr, flush=True)
        return answer

    return counted if shown else function


def _named(space: Mapping[str, Any], point: list[Any]) -> dict[str, Any]:
    """Return the values of `point` by name, as Python's numbers instead of NumPy's."""
    values = (value.item() if isinstance(value, np.generic) else value for value in point)
    return dict(zip(space, values, strict=True))
