"""The search over a calibrator's settings, the log of its runs, and a progress bar.

The default search spreads the points evenly over the space (a Halton sequence). The points depend
on neither the scores nor the processor, so every machine tries the same ones. The hold-out losses
are flat around their minimum, and a Gaussian process gained nothing measurable there. With
`how="bayes"` scikit-optimize's `Optimizer` chooses every point, as in the paper's BayesSearchCV. It
is an optional package: the extra `bayes`.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

How = Literal["even", "bayes"]
Run = dict[str, Any]  # its `parameters`, `score` (smaller is better) and `seconds`
WIDTH = 40  # characters of a progress bar


class LogUniform(NamedTuple):
    """The positive numbers from `low` to `high`, spread evenly on a logarithmic scale."""

    low: float
    high: float


Space = Mapping[str, LogUniform | Sequence[Any]]
"""The values to try, by name: a range of numbers, whole numbers as a `range`, or choices."""


def evenly_spread(space: Space, number: int) -> list[dict[str, Any]]:
    """Return `number` points of `space`: those of a Halton sequence, the first at its low ends."""
    from scipy.stats.qmc import Halton  # imported only for tuning, because it takes half a second

    places = Halton(len(space), scramble=False).random(number).T
    columns = [_values(values, at) for values, at in zip(space.values(), places, strict=True)]
    return [dict(zip(space, point, strict=True)) for point in zip(*columns, strict=True)]


def _values(values: LogUniform | Sequence[Any], places: NDArray[np.float64]) -> list[Any]:
    """Return the entries of `values` at `places` [n] from 0, its first, to 1, its last."""
    if isinstance(values, LogUniform):
        low, high = np.log10(values)
        numbers: list[float] = (10 ** (places * (high - low) + low)).clip(*values).tolist()
        return numbers
    return [values[place] for place in np.round(places * (len(values) - 1)).astype(int)]


def search(
    score: Callable[..., float],
    space: Space,
    number: int,
    seed: int,
    how: How = "even",
    is_over: Callable[[], bool] = lambda: False,
) -> list[Run]:
    """Return the log of `number` runs of `score`; only the Bayesian search uses `seed`.

    Evenly spread points are tried in descending order, so that each is near to earlier ones. They
    end early once `is_over()`. `InputError` if the Bayesian search lacks scikit-optimize.
    """
    log: list[Run] = []
    if how == "even":
        points = evenly_spread(space, number)
        for tried in sorted(points, key=lambda point: tuple(point.values()), reverse=True):
            if is_over():
                break
            run_and_log(score, tried, log)
        return log
    optimizer = _optimizer(space, seed)
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


def _optimizer(space: Space, seed: int) -> Any:
    """Return scikit-optimize's `Optimizer` over `space`."""
    try:
        from skopt import Optimizer
        from skopt.space import Categorical, Integer, Real
    except ModuleNotFoundError as error:
        raise InputError(
            "bayes needs scikit-optimize",
            field="search",
            fixes="pip install scikit-optimize, or take even",
        ) from error

    def dimension(values: LogUniform | Sequence[Any]) -> Any:
        if isinstance(values, LogUniform):
            return Real(*values, prior="log-uniform")
        if isinstance(values, range) and len(values) > 1:
            return Integer(values[0], values[-1])
        return Categorical(list(values))

    return Optimizer([dimension(values) for values in space.values()], random_state=seed)


def _named(space: Space, point: list[Any]) -> dict[str, Any]:
    """Return the values of `point` by name, as Python's numbers instead of NumPy's."""
    named = dict(zip(space, point, strict=True))
    for name, value in named.items():
        if isinstance(value, np.generic):
            named[name] = value.item()
    return named
