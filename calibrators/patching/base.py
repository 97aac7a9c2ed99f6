"""What the two patching calibrators share: a start, and patches, which are kept as arrays."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.option_checks import check_whole
from utility_calibration.metrics.utilities.base import UtilityClass

from ..base import Calibrator
from ..stored import POSITIVE, Learned, Stored
from .algorithm import Algorithm1, Patch
from .audit import Auditor, Family, StandardFamilies, class_family
from .start import restored, stored
from .state import PatchedForecast
from .update import ProjectedDescent, Update
from .utilities import KINDS, SAMPLED, Utility, classes_of, described


@dataclass(eq=False, repr=False)
class Patching(Calibrator):
    """Base of the patching calibrators.

    If points have weights, every mean is weighted: errors, losses, step sizes, and the scores of
    hold-outs and folds. A fold is a share of the rows: a point of weight 3 is in one fold, while
    three rows may be in three.

    Attributes:
        kinds_: int64 [T] index into ("class", "top_k", "linear", "rank", "own"); indices_: int64
        [T]: the class, K - 1, or the utility's number, which counts through all of `utilities`;
        vectors_: float64 [T', C] payoffs of the sampled utilities, in the order of their patches;
        lows_, highs_, shifts_: float64 [T] interval of v and signed step -ξ η along u⃗;
        errors_: float64 [T] UC before each patch;
        losses_: float64 [T + 1] calibration loss before the first and after each patch;
        start_*: the values that the start learned.
    """

    learned: ClassVar[Learned] = {
        "kinds_": Stored(("K",), low=0, high=len(KINDS) - 1, kinds="i"),
        "indices_": Stored(("K",), low=0, kinds="i"),
        "vectors_": Stored(("V", "P")),
        "lows_": Stored(("K",), low=-math.inf, high=math.inf),
        "highs_": Stored(("K",), low=-math.inf, high=math.inf),
        "shifts_": Stored(("K",)),
        "start_temperature_": POSITIVE,
        "group_utilities_": Stored(("G", 2), low=0, kinds="i"),
        "group_numbers_": Stored(("G", 3), low=-math.inf, high=math.inf),
    }

    takes_utilities = True
    takes_weights = True
    _: KW_ONLY
    tolerance: float = 1e-4
    seed: int = 0
    utilities: Sequence[Any] | None = None
    standard: bool = True
    verbose: bool = False

    def save(self, path: str | Path) -> Path:
        """Save like every calibrator; the classes of `utilities` are written as numbers."""
        written = copy(self)
        if self.utilities is not None:
            written.utilities = [described(utilities) for utilities in self.utilities]
        return Calibrator.save(written, path)

    def _check_shared(self, least: Mapping[str, int]) -> None:
        """Check shared arguments, and those in `least`: whole numbers of at least its values."""
        classes_of(self.utilities, self.standard)
        if not self.tolerance >= 0:
            raise InputError(f"{self.tolerance}, expected 0 or more", field="tolerance")
        for name, bound in least.items():
            value = getattr(self, name)
            if name == "steps" and value is None:  # it is tuned
                continue
            check_whole(value, name, bound)

    def _numbered_utilities(self, classes: int) -> list[tuple[int, UtilityClass]]:
        """Return each of `utilities` with the number of its first utility."""
        numbered = []
        first = 0
        for utilities in classes_of(self.utilities, self.standard):
            numbered.append((first, utilities))
            first += utilities.count(classes)
        return numbered

    def _auditor(self, state: PatchedForecast, sampled_count: int) -> Auditor:
        """Return the families that compete on `state`: the standard ones and those of `utilities`.

        They compete by their errors, each in its own unit. So a payoff of 100 outweighs one of 1.
        """
        numbered = self._numbered_utilities(state.probabilities.shape[1])
        standard = StandardFamilies(sampled_count, self.seed)

        def families(state: PatchedForecast, number: int) -> list[Family]:
            fixed = standard(state, number) if self.standard else []
            return fixed + [class_family(utilities, state, first) for first, utilities in numbered]

        return families

    @abstractmethod
    def _update(self) -> Update:
        """Return how patches move points."""

    def _patch(self, start: Calibrator, run: Algorithm1, most: int) -> None:
        """Make at most `most` patches; store the start and the patches as arrays."""
        loss_before = run.state.mean_loss(run.update.loss)
        classes = run.state.probabilities.shape[1]
        kinds, indices, payoffs, numbers, changes = [], [], [], [], [0.0]
        for patch in islice(run, most):
            utility = patch.utility
            kinds.append(KINDS.index(utility.kind))
            indices.append(utility.index)
            if utility.kind in SAMPLED:  # those of other kinds follow from kind and index
                payoffs.append(utility.payoff(classes))
            numbers.append((patch.low, patch.high, patch.shift, patch.error))
            changes.append(patch.loss_change)
        self.stopped_: str = run.stopped or "limit"
        self.__dict__.update(stored(start))
        self.kinds_ = np.array(kinds, dtype=np.int64)
        self.indices_ = np.array(indices, dtype=np.int64)
        self.vectors_ = np.stack(payoffs) if payoffs else np.empty((0, classes))
        self.lows_, self.highs_, self.shifts_, self.errors_ = (
            np.array(numbers).reshape(-1, 4).T.copy()
        )
        self.losses_ = loss_before + np.cumsum(changes)

    def patches(self) -> list[Patch]:
        """Return the fitted patches in the order of their application."""
        numbered = self._numbered_utilities(self.vectors_.shape[1])
        sampled = iter(self.vectors_)
        numbers = self.lows_, self.highs_, self.shifts_, self.errors_, np.diff(self.losses_)
        columns = (column.tolist() for column in (self.kinds_, self.indices_, *numbers))
        patches = []
        for number, index, *row in zip(*columns, strict=True):
            kind = KINDS[number]
            if kind == "own":
                first, utilities = [pair for pair in numbered if pair[0] <= index][-1]
                utility = Utility(kind, index, utilities, index - first)
            else:
                payoff = next(sampled) if kind in SAMPLED else None
                utility = Utility.standard(kind, index, payoff)
            patches.append(Patch(utility, *row))
        return patches

    def _predict_proba(self, logits: Array) -> Array:
        update = self._update()
        state = PatchedForecast(restored(vars(self))._predict_proba(logits))
        for patch in self.patches():
            patch.apply(state, update)
        return state.probabilities

    def _to_module(self, dtype: Any) -> Any:
        from ..export.patched import PatchedModule

        start = restored(vars(self))._to_module(dtype)
        projected = isinstance(self._update(), ProjectedDescent)
        return PatchedModule(start, self.patches(), self.vectors_.shape[1], projected, dtype)
