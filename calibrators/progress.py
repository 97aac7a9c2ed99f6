"""A progress bar on stderr, for fits that take more than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

WIDTH = 40


def with_progress(
    function: Callable[..., Any], what: str, total: int, shown: bool = True
) -> Callable[..., Any]:
    """Return `function`, each call of which adds one of `total` steps to a bar if it is `shown`."""
    done = 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal done
        answer = function(*given, **named)
        done += 1
        bar = "#" * (WIDTH * min(done, total) // total)
        end = "\n" if done == total else ""
        print(f"\r{what} [{bar:<{WIDTH}}] {done}/{total}", end=end, file=sys.stderr, flush=True)
        return answer

    return counted if shown else function
