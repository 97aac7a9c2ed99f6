"""Backtracking: how far a patch of the paper moves its points (line 8 of Algorithm 1).

The paper names JAXopt's backtracking with Armijo's rule. `JAXOPT` has its documented defaults.
`CAPPED` is our default: it leaves out long trials and asks for half of the predicted decrease.
docs/internals.md compares the two.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.option_checks import check_whole

from ..inputs import check_choices

ROUNDING = 1e-9  # share by which a decrease may fail Armijo's test, so rounding does not decide
THEORY = "theory"


class Step(NamedTuple):
    """A step size η and the change of the summed loss that it brings."""

    size: float
    change: float


@dataclass(frozen=True)
class LineSearch:
    """Try η, then η times `decrease`, and so on, until the Brier score falls enough.

    Args:
        first_trial: "step_size" tries the given step size first. "capped" leaves out the trials
            above four times the step that would be best without the simplex's borders.
        decrease: the factor from one trial to the next, between 0 and 1.
        armijo: c₁ of Armijo's rule, the share of the linearly predicted decrease that is required.
            The best step on a parabola achieves .5; the usual 1e-4 accepts steps twice as long.
        trials: how many η are tried at most.
        on_failure: what follows if no trial lowers the score enough. "stop" ends the run.
            "last_trial" takes the last η that was tried and goes on, as JAXopt does. The score may
            then rise a little.
    """

    first_trial: Literal["capped", "step_size"] = "capped"
    decrease: float = 0.5
    armijo: float = 0.5
    trials: int = 40
    on_failure: Literal["stop", "last_trial"] = "stop"

    def first(self, error_on_rows: float, spread: float, step_size: float) -> float:
        """Return the first η to try: `step_size` times a power of `decrease`.

        `spread` is the mean of ‖u⃗ - mean u⃗‖² over the rows. Without the simplex's borders the
        Brier score would fall most at η* = mean error / `spread`, and would not fall beyond 2η*.
        Borders shorten the displacement and so allow longer steps; the cap is 4η*.
        """
        if self.first_trial == "step_size" or spread <= 0:
            return step_size
        decreases = math.log(step_size * spread / (4 * error_on_rows)) / -math.log(self.decrease)
        return step_size * self.decrease ** max(0, math.ceil(decreases - ROUNDING))

    def step(self, try_step: Callable[[float], tuple[float, float]], first: float) -> Step | None:
        """Return the first η from `first` on whose decrease is large enough.

        If there is none, return the last one, or None, as `on_failure` says.

        `try_step` maps η to (Σ<p - y, d>, Σ‖d‖²), where d are the displacements after projection.
        The summed Brier score then changes by exactly twice the first plus the second.
        """
        eta = first
        step = None
        for _ in range(self.trials):
            slope, square = try_step(eta)
            step = Step(eta, 2 * slope + square)
            # Projection bends the path; the decrease is measured against the displacement itself.
            if slope < 0 and step.change <= (self.armijo - ROUNDING) * 2 * slope:
                return step
            eta *= self.decrease
        return step if self.on_failure == "last_trial" else None


CAPPED = LineSearch()
JAXOPT = LineSearch(
    first_trial="step_size", decrease=0.8, armijo=1e-4, trials=30, on_failure="last_trial"
)
NAMED = {"capped": CAPPED, "jaxopt": JAXOPT, THEORY: None}


def line_search(choice: str | Mapping[str, Any]) -> LineSearch | None:
    """Return the search of a name or of options, whose defaults are those of `CAPPED`.

    "theory" is no search: None. `InputError` says what is wrong with a name or an option.
    """
    names = ", ".join(NAMED)
    if isinstance(choice, str):
        if choice not in NAMED:
            raise InputError(
                f"{choice!r}", field="line_search", fixes=f"choose {names}, or give options"
            )
        return NAMED[choice]
    options = [option.name for option in fields(LineSearch)]
    if not isinstance(choice, Mapping) or not set(choice) <= set(options):
        raise InputError(
            f"{choice!r}", field="line_search", fixes=f"choose {names}, or of {', '.join(options)}"
        )
    search = LineSearch(**choice)
    check_choices(search)
    check_whole(search.trials, "line_search.trials", 1)
    for name in ("decrease", "armijo"):
        share = getattr(search, name)
        if not 0 < share < 1:
            message = f"{share}, expected a number between 0 and 1"
            raise InputError(message, field=f"line_search.{name}")
    return search
