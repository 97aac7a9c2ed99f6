"""What the two patching calibrators share: a start, and patches that are applied to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.patching.algorithm import Algorithm1, Patch
from calibrators.patching.audit import Auditor, Family, StandardFamilies, class_family
from calibrators.patching.module import PatchedModule
from calibrators.patching.start import Start, restored, stored
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent, Update, on_grid
from calibrators.patching.utilities import (
    KINDS,
    ClassUtility,
    Kind,
    PayoffUtility,
    Utility,
    classes_of,
    described,
    numbered,
)

SAMPLED = ("linear", "rank")


class Patching(Calibrator):
    """Base of the patching calibrators. It keeps patches as arrays, so that `save` can store them.

    Weights are not supported: the audit could use weighted residuals, but the error bounds, step
    sizes, hold-outs and folds would all need weighted versions. Draw points in proportion to their
    weights instead.

    Attributes:
        kinds_: int64 [T] index into ("class", "top_k", "linear", "rank", "own"); indices_: int64
        [T]: the class, K - 1, or the utility's number, which counts through all of `utilities`;
        vectors_: float64 [T', C] payoffs of the sampled utilities, in the order of their patches;
        lows_, highs_, steps_: float64 [T] interval of v and signed step -ξ η along u⃗;
        errors_: float64 [T] UC before each patch;
        losses_: float64 [T + 1] calibration loss before the first and after each patch;
        start_*: the values that the start learned.
    """

    start: Start
    utilities: Sequence[Any] | None
    standard: bool
    seed: int
    kinds_: NDArray[np.int64]
    indices_: NDArray[np.int64]
    vectors_: NDArray[np.float64]
    lows_: NDArray[np.float64]
    highs_: NDArray[np.float64]
    steps_: NDArray[np.float64]
    errors_: NDArray[np.float64]
    losses_: NDArray[np.float64]

    def save(self, path: str | Path) -> Path:
        """Save like every calibrator; the classes of `utilities` are written as numbers.

        `InputError` if a class is not given by numbers (but by a function, for example), because
        predicting needs the object.
        """
        written = copy(self)
        if self.utilities is not None:
            written.utilities = [described(utilities) for utilities in self.utilities]
        return Calibrator.save(written, path)

    def _upgrade(self) -> None:
        if self.start == "dirichlet":
            start = restored(self.start, vars(self))
            start._upgrade()
            self.start_matrix_ = start.matrix_

    def _auditor(self, state: PatchedForecast, sampled_count: int) -> Auditor:
        """Return the families that compete on `state`: the standard ones and those of `utilities`.

        They compete by their errors, each in its own unit. So a payoff of 100 outweighs one of 1.
        """
        classes = state.probabilities.shape[1]
        added = numbered(classes_of(self.utilities, self.standard), classes)
        standard = StandardFamilies(sampled_count, self.seed)

        def families(state: PatchedForecast, number: int) -> list[Family]:
            fixed = standard(state, number) if self.standard else []
            return fixed + [class_family(utilities, state, first) for first, utilities in added]

        return families

    @abstractmethod
    def _update(self) -> Update:
        """Return how patches move points."""

    def _patch(self, start: Calibrator, run: Algorithm1, steps: int) -> None:
        """Run at most `steps` rounds; store the start and the patches as arrays."""
        loss, classes = run.update.loss(run.state), run.state.probabilities.shape[1]
        fitted = list(islice(run, steps))
        self.stopped_: str = run.stopped
        for name, value in stored(start).items():
            setattr(self, name, value)
        utilities = [patch.utility for patch in fitted]
        payoffs = [
            u.payoff for u in utilities if isinstance(u, PayoffUtility) and u.kind in SAMPLED
        ]
        self.kinds_ = np.array([KINDS.index(u.kind) for u in utilities], dtype=np.int64)
        self.indices_ = np.array([u.index for u in utilities], dtype=np.int64)
        self.vectors_ = torch.stack(payoffs).numpy() if payoffs else np.empty((0, classes))
        for name in ("low", "high", "step", "error"):
            values = [getattr(patch, name) for patch in fitted]
            setattr(self, f"{name}s_", np.array(values, dtype=np.float64))
        self.losses_ = loss + np.cumsum([0.0, *(p.loss_change for p in fitted)])

    def patches(self) -> list[Patch]:
        """Return the fitted patches in the order of their application."""
        classes = int(self.n_features_in_)
        added = numbered(classes_of(self.utilities, self.standard), classes)
        sampled = iter(torch.from_numpy(self.vectors_))

        def utility_of(kind: Kind, index: int) -> Utility:
            if kind == "own":
                first, utilities = [pair for pair in added if pair[0] <= index][-1]
                return ClassUtility(utilities, index, first)
            if kind in SAMPLED:
                return PayoffUtility(kind, index, next(sampled))
            make = PayoffUtility.of_class if kind == "class" else PayoffUtility.of_top_k
            return make(index, classes)

        utilities = [
            utility_of(KINDS[kind], index)
            for kind, index in zip(self.kinds_.tolist(), self.indices_.tolist(), strict=True)
        ]
        columns = (self.lows_, self.highs_, self.steps_, self.errors_, np.diff(self.losses_))
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [Patch(utility, *row) for utility, row in zip(utilities, numbers, strict=True)]

    def _predict_proba(self, logits: Tensor) -> Tensor:
        start = restored(self.start, vars(self))._predict_proba(logits)
        update = self._update()
        state = PatchedForecast(start)
        for patch in self.patches():
            patch.apply(state, update)
        moved = state.probabilities
        return on_grid(moved, start) if isinstance(update, ProjectedDescent) else moved

    def _to_module(self, dtype: torch.dtype) -> PatchedModule:
        start = restored(self.start, vars(self))._to_module(dtype)
        projected = isinstance(self._update(), ProjectedDescent)
        return PatchedModule(start, self.patches(), projected, dtype)
