"""Iterative patching for utility calibration: Algorithm 1 of the paper as a calibrator.

The fitted object is a list of patches, and predicting applies them to new points. The step size,
the number of steps and whether to sample utilities are tuned on a hold-out of the calibration set.
Then the patches are fitted to the whole set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError

from ..losses import Loss
from ..solvers.search import (
    How,
    LogUniform,
    Space,
    best_run,
    evenly_spread,
    search,
    with_progress,
)
from .algorithm import Algorithm1
from .audit import find_worst
from .base import Patching
from .line_search import THEORY, line_search
from .start import PaperStart, fit_start
from .state import PatchedForecast
from .tuning import SCORED_EVERY, STEP_SIZES, HoldOut, TuningRun
from .update import ProjectedDescent

Objective = Literal["u_comb", Loss]


@dataclass(eq=False, repr=False)
class UtilityPatching(Patching):
    """Patch the softmax of the logits until its worst utilities are calibrated.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> calibrator = UtilityPatching(step_size=1.0, steps=10, sampled=False)
    >>> calibrator.fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.67, 0.33]])

    Args:
        step_size: largest η of the line search; tuned if None.
        steps: number of patches; tuned if None.
        sampled: whether audits add sampled utilities; tuned if None.
        tuning_runs: number of settings to try, if anything is tuned; see `tuning.py`.
        sampled_count: number of utilities drawn from each of U_lin and U_rank per audit.
        tolerance: ε of Algorithm 1; the run stops when the worst UC is at most this.
        objective: the score that tuning minimises on the hold-out: u_comb (the worst error of all
            utilities except sampled ones), brier or nll.
        holdout: share of the calibration set held out while tuning.
        max_steps: largest number of patches that tuning tries.
        line_search: how η is found. "jaxopt" is the paper's search, with JAXopt's documented
            defaults. "capped" starts at no more than four times the unprojected best step and
            requires half of the predicted decrease: smaller test errors for less time
            (docs/internals.md). "theory" is η = err / C, which needs no step size. A mapping has
            options of `LineSearch` (line_search.py), those of "capped" where it has none.
        seed: of the hold-out, the tuning and the sampled utilities.
        search: "even", settings spread evenly that share runs (`tuning.py`), or "bayes",
            scikit-optimize's Gaussian process over step size, steps and sampling as in the paper,
            each of whose settings has a run of its own.
        start: the forecast to patch, "softmax" of the logits (as in the paper) or "temperature".
        utilities: list of `UtilityClass`, to calibrate to; they compete by their errors,
            each in its own unit.
        standard: whether U_CWE, U_topK and the sampled utilities compete with them.
        inputs: "logits" or "probabilities", what X is.
        verbose: whether tuning shows a progress bar on stderr; the bar stays unfinished if settings
            are dropped early.

    Attributes:
        kinds_, indices_, vectors_, lows_, highs_, shifts_, errors_: the patches, see `Patching`;
        losses_: float64 [T + 1] calibration Brier score before the first and after each patch;
        step_size_, step_limit_, sampled_: the chosen values; T is smaller if the run ended early;
        stopped_: why it ended: "calibrated" (UC <= ε), "no step" (none lowers the Brier score), or
        "limit" (as many patches as requested).

    Three rules keep rounding from deciding, so that other processors give the same patches
    (docs/internals.md): intervals end in the middle of gaps of v that are wider than 1e-6 on the
    calibration points, probabilities of a row within 2.5e-7 of their neighbour are ranked by class,
    and of utilities, intervals or steps that are equal except for rounding the first is taken. The
    first two tie chains of neighbours, however far the ends of a chain are apart. So for K beyond
    about 90 the audited U_topK is not the paper's. `errors_` and the tuning score follow these
    rules, too, and can be slightly below the exact UC.

    By default settings are tuned on a hold-out, which takes most of the time of a fit. With
    `step_size`, `steps` and `sampled` given, nothing is tuned.
    """

    step_size: float | None = None
    steps: int | None = None
    sampled: bool | None = None
    tuning_runs: int = 20
    sampled_count: int = 264
    objective: Objective = "u_comb"
    holdout: float = 0.3
    max_steps: int = 100
    line_search: str | Mapping[str, Any] = "capped"
    start: PaperStart = "softmax"
    search: How = "even"

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        self._check_shared({"steps": 0, "max_steps": 1, "tuning_runs": 1, "sampled_count": 0})
        if not 0 < self.holdout < 1:
            raise InputError(f"{self.holdout}, expected a share between 0 and 1", field="holdout")
        if self.step_size is not None and not self.step_size > 0:
            raise InputError(f"{self.step_size}, expected a positive number", field="step_size")
        start, probabilities = fit_start(self.start, logits, labels, weights, self.seed)
        chosen = self._tuned(probabilities, labels, weights)
        self.step_size_, self.step_limit_ = chosen["step_size"], chosen["steps"]
        self.sampled_ = chosen["sampled"]
        state = PatchedForecast(probabilities, labels, weights)
        self._patch(start, self._run(self.step_size_, self.sampled_, state), self.step_limit_)

    def _run(self, step_size: float, sampled: bool, state: PatchedForecast) -> Algorithm1:
        auditor = self._auditor(state, self.sampled_count if sampled else 0)
        return Algorithm1(state, auditor, self._update(step_size), self.tolerance)

    def _score(self, state: PatchedForecast) -> float:
        """Return the objective of a held-out forecast; u_comb contains no sampled utilities."""
        if self.objective != "u_comb":
            return state.mean_loss(self.objective)
        return find_worst(self._auditor(state, sampled_count=0)(state, 0))[2]

    def _update(self, step_size: float | None = None) -> ProjectedDescent:
        size = self.step_size_ if step_size is None else step_size
        return ProjectedDescent(size, line_search(self.line_search))

    def _tuned(self, probabilities: Array, labels: Array, weights: Array | None) -> dict[str, Any]:
        """Return step_size, steps and sampled; those left at None are the hold-out's best.

        Each pair of step size and sampling has a run, up to the largest `steps` to try, unless
        `HoldOut.race` leaves it out.
        """
        fixed = {name: getattr(self, name) for name in ("step_size", "steps", "sampled")}
        if self.line_search == THEORY:
            fixed["step_size"] = 1.0  # theory's η does not depend on it
        if not self.standard:
            fixed["sampled"] = False  # only the user's utilities are audited
        if None not in fixed.values():
            return fixed
        if self.search == "bayes":
            return fixed | self._tuned_by_bayes(fixed, probabilities, labels, weights)
        limits = list(range(SCORED_EVERY, self.max_steps + 1, SCORED_EVERY)) or [self.max_steps]
        space: dict[str, Sequence[Any]] = {
            "step_size": STEP_SIZES,
            "steps": limits,
            "sampled": (False, True),
        }
        free = {name: values for name, values in space.items() if fixed[name] is None}
        settings = [fixed | tried for tried in evenly_spread(free, self.tuning_runs)]
        sizes = STEP_SIZES if fixed["step_size"] is None else [fixed["step_size"]]
        scored = limits if fixed["steps"] is None else [fixed["steps"]]
        runs = []
        for step_size, sampled in product(sizes, (False, True)):
            # Settings that differ only in the number of patches share a run up to the largest.
            pair = {"step_size": step_size, "sampled": sampled}
            steps = [setting["steps"] for setting in settings if pair.items() <= setting.items()]
            if steps:
                passed = [number for number in scored if number <= max(steps)]
                runs.append(TuningRun(step_size, sampled, passed))
        total = sum(len(run.limits) for run in runs)
        score = with_progress(self._score, "UtilityPatching: settings", total, self.verbose)
        hold_out = self.holdout, self.seed, self._run, score
        self.tuning_log_ = []
        for run in HoldOut(probabilities, labels, weights, *hold_out).race(runs):
            for entry in run.log:
                parameters = {name: entry["parameters"][name] for name in free}
                self.tuning_log_.append({**entry, "parameters": parameters})
        return {**fixed, **best_run(self.tuning_log_)["parameters"]}

    def _tuned_by_bayes(
        self,
        fixed: dict[str, Any],
        probabilities: Array,
        labels: Array,
        weights: Array | None,
    ) -> dict[str, Any]:
        """Return the best of `tuning_runs` settings that scikit-optimize proposes."""
        every: dict[str, Any] = {
            "step_size": LogUniform(min(STEP_SIZES), max(STEP_SIZES)),
            "steps": range(1, self.max_steps + 1),
            "sampled": (False, True),
        }
        space: Space = {name: every[name] for name in fixed if fixed[name] is None}
        points = probabilities, labels, weights
        hold_out = HoldOut(*points, self.holdout, self.seed, self._run, self._score)

        def score(**tried: Any) -> float:
            setting = {**fixed, **tried}
            run = TuningRun(setting["step_size"], setting["sampled"], [setting["steps"]])
            hold_out.go_on(run)
            return float(run.log[0]["score"])

        counted = with_progress(score, "UtilityPatching: settings", self.tuning_runs, self.verbose)
        self.tuning_log_ = search(counted, space, self.tuning_runs, self.seed, self.search)
        return dict(best_run(self.tuning_log_)["parameters"])
