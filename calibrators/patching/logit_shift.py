"""Logit-shift patching: Algorithm 1's audits, and patches that minimise the NLL.

    start   a cross-fitted pool of maps (`calibrators/pooled/`)
    audit   the utility u and interval I of largest |mean((u - v) · 1{v in I})|, as in Algorithm 1
    patch   f_j ← f_j exp(ν δ u⃗_j) / Z for the points with v in I, δ the minimiser of their NLL
    stop    when cross-validation by a proper score says so, possibly before the first patch

docs/methods/logit_shift.md explains what this minimises, why it stops, what it guarantees and what
was tried.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError

from ..losses import Loss
from ..solvers.search import with_progress
from . import groups as by_group
from .algorithm import Algorithm1
from .audit import StandardFamilies
from .base import Patching
from .groups import Members, apply_to, group_patches
from .start import Start, fit_start
from .state import PatchedForecast
from .tuning import FOLDS, PATIENCE, fewest_patches, held_out_losses
from .update import ExponentialTilting

FEW = 500
"""Points at which the patches of a pooled start must gain one standard error, as all patches must
of other starts. With n points they must gain FEW / n of one, because little is left to gain."""
POOLED_PATIENCE = 15  # `PATIENCE` for the pooled start; more chose no better numbers


@dataclass(eq=False, repr=False)
class LogitShiftPatching(Patching):
    """Shift the logits of the worst utilities' events until held-out points gain no more.

    Let err be the utility calibration error that an audit finds. The patch then lowers the NLL of
    the calibration points by at least 2 ν err² for an event, and by ν err²/2 for a utility with a
    range of 2. So at most NLL / (2 ν ε²) events can exceed the tolerance ε, for any number of
    classes. Probabilities stay positive and smooth, and there is no step size to tune.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> calibrator = LogitShiftPatching(steps=10)
    >>> calibrator.fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.67, 0.33]])

    Args:
        start: the map before the first patch: "pooled", "temperature" or "softmax".
        steps: the number of patches; chosen by cross-validation if None, see `tuning.py`.
        shrinkage: ν in (0, 1], the share of the minimising shift that a patch applies.
        sampled_count: utilities drawn from each of U_lin and U_rank for every audit.
        tolerance: ε; the run stops once the worst utility calibration error is at most this.
        objective: the score that chooses `steps`.
        max_steps: the largest number of patches that is tried.
        needs_groups: whether `fit` refuses to go without groups.
        seed: of the folds and the sampled utilities.
        utilities, standard, inputs: as in `UtilityPatching`.
        verbose: whether cross-validation shows a progress bar on stderr; the bar stays unfinished
            where more patches gain nothing.

    Attributes:
        kinds_, indices_, vectors_, lows_, highs_, shifts_, errors_: the patches, see `Patching`;
            `shifts_` holds the signed shifts ν δ.
        losses_: float64 [T + 1], calibration NLL before the first and after each patch; it falls.
        held_out_: float64, held-out mean score after 0, 1, … patches; empty if `steps` was given.
        stopped_: "limit" (as many patches as chosen), "calibrated" (UC <= ε) or "no step".
        groups_: [G], names of the groups of the fit.
        group_names_, group_utilities_, group_numbers_: the patches of groups, which `to_module`
            leaves out.
        start_*: the name of the start's class, `start_kind_`, and the values that it learned.
    """

    takes_groups = True
    start: Start = "pooled"
    steps: int | None = None
    shrinkage: float = 0.3
    sampled_count: int = 0
    objective: Loss = "nll"
    max_steps: int = 150
    needs_groups: bool = False

    def _predict_proba(self, logits: Array, names: Array | None = None) -> Array:
        p = super()._predict_proba(logits)
        if names is not None and hasattr(self, "group_names_"):
            apply_to(p, names, by_group.restored_patches(self), self._update())
        return p

    def _trial(self, z: Array) -> Array:
        if hasattr(self, "group_names_") or hasattr(self, "group_numbers_"):
            patches = by_group.restored_patches(self)  # to see whether a file has all of them
            if not {group for group, _ in patches} <= set(self.groups_.tolist()):
                raise InputError("group_names_ has other groups than groups_")
        return super()._trial(z)

    def _to_module(self, dtype: Any) -> Any:
        if len(getattr(self, "group_names_", ())):
            warnings.warn("to_module: leaves out the patches of groups", stacklevel=3)
        return super()._to_module(dtype)

    def _fit(
        self,
        logits: Array,
        labels: Array,
        weights: Array | None = None,
        names: Array | None = None,
    ) -> None:
        if names is not None and not self.standard:
            raise InputError(
                "patches are for standard=True", field="groups", fixes="leave out standard=False"
            )
        self._check_shared({"steps": 0, "max_steps": 0, "sampled_count": 0})
        if not 0 < self.shrinkage <= 1:
            raise InputError(
                f"{self.shrinkage}, expected a number above 0, at most 1", field="shrinkage"
            )
        start, probabilities = fit_start(self.start, logits, labels, weights, self.seed)
        patched = PatchedForecast(probabilities, labels, weights)
        self.held_out_ = np.empty(0)
        steps = self.steps
        if steps is None and len(labels) < 2 * FOLDS:
            steps = 0  # too few points for folds
        elif steps is None:
            steps = self._chosen_steps(patched)
        self._patch(start, self._run(patched), steps)
        patches = []
        if names is not None:
            p, families = patched.probabilities, StandardFamilies(0, self.seed)

            def begin(state: PatchedForecast) -> Algorithm1:
                return Algorithm1(state, families, self._update(), self.tolerance)

            members = Members(p, labels, weights, names)
            patches = group_patches(members, begin, self.max_steps, self.seed)
        self.__dict__.update(by_group.stored_patches(patches))

    def _chosen_steps(self, state: PatchedForecast) -> int:
        """Return the number of patches that cross-validation chooses before any is made."""
        is_pooled = self.start == "pooled"
        best = partial(fewest_patches, errors=FEW / state.points if is_pooled else 1.0)
        most = max(1, self.max_steps)
        counted = with_progress(best, "LogitShiftPatching: patches", most, self.verbose)
        losses, shares = held_out_losses(
            state.probabilities,
            state.labels,
            state.weights,
            self._run,
            self.objective,
            self.max_steps,
            self.seed,
            counted,
            patience=POOLED_PATIENCE if is_pooled else PATIENCE,
        )
        self.held_out_ = np.average(losses, axis=1, weights=shares)
        return int(best(losses, shares))

    def _run(self, state: PatchedForecast) -> Algorithm1:
        auditor = self._auditor(state, self.sampled_count)
        return Algorithm1(state, auditor, self._update(), self.tolerance)

    def _update(self) -> ExponentialTilting:
        return ExponentialTilting(self.shrinkage)
