"""Dirichlet calibration with off-diagonal and intercept regularisation (Kull et al. 2019)."""

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.option_checks import check_whole

from ..losses import Loss, mean_logit, row_weights
from ..solvers.lbfgs import warn_unless_converged
from ..solvers.search import How, LogUniform, Run, best_run, run_and_log, search, with_progress
from ..solvers.temperature import fit_temperature
from . import linear_map
from .adam import fit_by_adam
from .linear_map import LinearMapCalibrator, LinearMapProblem
from .tuning import HOPELESS, TuningFits

PRINTED = 1e-7  # hold-out losses that differ by less than this share are equal
FALLBACK = 1.02
"""Temperature scaling replaces a map that is worse than this many times its loss on the hold-out.
Tuning fits see only a share of the points, so the map of all points may be better nevertheless."""


@dataclass(eq=False, repr=False)
class DirichletCalibration(LinearMapCalibrator):
    """softmax(W x + b), W [C, C] and b [C], with the ODIR penalty of Kull et al. (2019).

    With `on="log_probabilities"` the inputs x are ln p. This is Dirichlet calibration as Kull et
    al. define it; for two classes it is beta calibration, that is, logistic regression on ln p_1
    and ln p_2. With `on="logits"` the inputs are the logits z. This is matrix scaling (Guo et al.
    2017) with the ODIR penalty. The two differ because ln p = z - log Σ exp z, and W acts on the
    last term, too. So a number added to all logits of a row changes the prediction of matrix
    scaling, but not that of Dirichlet calibration. A number added to all logits of all points
    changes neither: matrix scaling subtracts the mean of all logits before the fit, and the
    intercepts that the penalty weighs belong to these centred logits.

    The fit minimises

        loss + odir / (C (C - 1)) · Σ_{j≠k} W_jk² + l2 / C · Σ_j b_j² + ridge,

    where the loss is the mean NLL in nats, or with `loss="brier"` the Brier score. It is a weighted
    mean if `fit` is given weights. λ = `odir` weighs the mean squared off-diagonal entry, μ = `l2`
    the mean squared intercept. The ridge 1e-8 / 2 · [s² ‖W - βI‖² + ‖b‖²], with s the root mean
    square of the row-centred logits, only makes the optimum unique. Full-batch L-BFGS starts at the
    temperature-scaled solution W = βI, b = 0, where the penalties are zero. So the fit's loss is at
    most that of temperature scaling, up to rounding. The Brier score is not convex; such a fit ends
    in a minimum below that start.

    If λ or μ is None, it is chosen by the loss on a seeded hold-out (`TuningFits`), and the map
    is refitted on all data. The search is log-uniform over `odir_range` times C (C - 1) and
    `l2_range` times C. So a range is that of the penalty per entry, which does not depend on C.
    If no penalty that was tried beats temperature scaling on the hold-out, `fit` warns. If the best
    one is clearly worse there (`FALLBACK`), the temperature-scaled solution is taken instead of the
    map, unless `fallback` is False.

    With `solver="adam"` the map is the one that the public baseline code would train (`adam.py`):
    Adam on batches, stopped early, from W = I and b = 0, with the inputs as they are, not centred.
    It is not the optimum of the formula above, has no ridge, and needs `odir` and `l2`.

    By default up to 81 fits tune λ and μ. `verbose=True` shows a progress bar, which stays
    unfinished where the path of λ ends early. With `odir` and `l2` given there is one fit.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> calibrator = DirichletCalibration(odir=1.0, l2=1.0)
    >>> calibrator.fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.67, 0.33]])

    Args:
        on: what the map acts on.
        l2, odir: μ and λ, >= 0; None means that it is tuned.
        tuning_runs: number of pairs to try.
        holdout: share of the calibration data that scores the tuning runs, in (0, 1).
        seed: of the hold-out and the tuning, and of the order of points in Adam's epochs.
        odir_range, l2_range: (low, high), search ranges per entry.
        max_iterations: of L-BFGS in the final fit.
        solver: "exact" is L-BFGS, up to the optimum; "adam" is the baseline code's early stop.
        loss: the loss that W and b minimise.
        search: "even", points spread evenly over the ranges, or "bayes", scikit-optimize's Gaussian
            process as in the paper, which takes longer and found no better λ and μ.
        fallback: whether temperature scaling replaces a clearly worse map.
        inputs: what X is.
        verbose: whether tuning shows a progress bar on stderr.

    Attributes:
        matrix_, intercept_: float64 [C, C] and [C], W and b.
        odir_, l2_: the λ and μ used.
        loss_, nll_: mean loss and mean NLL of the calibration data.
        worse_than_temperature_: whether temperature scaling was better on the hold-out than all
            tuned maps; False if nothing was tuned.
        fell_back_: whether the fit is temperature scaling, because it was clearly better there.
        n_evaluations_: passes over the data in the final fit, Adam's epochs included.
    """

    on: Literal["log_probabilities", "logits"] = "log_probabilities"
    l2: float | None = None
    odir: float | None = None
    tuning_runs: int = 80
    holdout: float = 0.3
    seed: int = 0
    odir_range: tuple[float, float] = (1e-4, 1e2)
    l2_range: tuple[float, float] = (1e-5, 1e2)
    max_iterations: int = 1000
    loss: Loss = "nll"
    search: How = "even"
    fallback: bool = True
    solver: Literal["exact", "adam"] = "exact"
    verbose: bool = False

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        for name in ("l2", "odir"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                fix = "give a number >= 0, or None to tune it"
                raise InputError(value, field=name, fixes=fix)
            low, high = getattr(self, f"{name}_range")
            if not 0 < low < high < math.inf:
                raise InputError(
                    f"{low} … {high}", field=f"{name}_range", fixes="give 0 < low < high"
                )
        for name in ("tuning_runs", "max_iterations"):
            check_whole(getattr(self, name), name, 1)
        if self.solver == "adam":
            self._fit_by_adam(logits, labels, weights)
            return
        n, classes = logits.shape
        centre = mean_logit(logits, weights) if self.on == "logits" else 0.0
        inputs = self._map_inputs(logits) - centre
        strengths = {"odir": self.odir, "l2": self.l2}
        self.worse_than_temperature_ = self.fell_back_ = False
        fast: Array = inputs.astype(linear_map.products_type(n, classes), copy=False)
        if None in strengths.values():
            strengths |= self._tuned(fast, labels, weights)
        self.odir_, self.l2_ = float(strengths["odir"] or 0), float(strengths["l2"] or 0)
        begin = fit_temperature(logits, labels, self.loss, weights)
        if self.fell_back_:
            point = linear_map.start_point(classes, begin.beta)
            self.n_evaluations_ = 0
        else:
            problem = LinearMapProblem(fast, labels, begin.beta, begin.spread, self.loss, weights)
            penalties = linear_map.odir_weights(classes, self.odir_, self.l2_)
            fit = problem.solve_renewed(penalties, self.max_iterations)
            warn_unless_converged(fit, "DirichletCalibration")
            point, self.n_evaluations_ = fit.point, fit.evaluations
        self.nll_ = linear_map.map_loss(inputs, labels, point, counts=weights)
        self.loss_ = linear_map.map_loss(inputs, labels, point, loss=self.loss, counts=weights)
        point[:, classes] -= centre * point[:, :classes].sum(axis=1)
        self._keep(point)

    def _fit_by_adam(self, logits: Array, labels: Array, weights: Array | None) -> None:
        """Train the map as the baseline code does.

        Raises:
            InputError: λ or μ is missing, because the search for them compares exact optima.
        """
        absent = [name for name in ("odir", "l2") if getattr(self, name) is None]
        if absent:
            message = f"adam does not tune {' and '.join(absent)}"
            fix = "give odir and l2, or choose the solver exact"
            raise InputError(message, field="solver", fixes=fix)
        odir, l2 = float(self.odir or 0), float(self.l2 or 0)
        inputs = self._map_inputs(logits)
        shares = row_weights(weights, inputs)
        penalties = linear_map.odir_weights(inputs.shape[1], odir, l2)
        relative = shares / shares.mean()
        data = inputs, labels, relative, penalties
        point, self.n_evaluations_ = fit_by_adam(*data, self.loss, self.seed)
        self.odir_, self.l2_ = odir, l2
        self.worse_than_temperature_ = self.fell_back_ = False
        self.nll_ = linear_map.map_loss(inputs, labels, point, counts=weights)
        self.loss_ = linear_map.map_loss(inputs, labels, point, loss=self.loss, counts=weights)
        self._keep(point)

    def _tuned(self, inputs: Array, labels: Array, weights: Array | None) -> dict[str, float]:
        """Return the λ and μ of least hold-out loss, without those that the user gave."""
        classes = inputs.shape[1]
        scales = {"odir": classes * (classes - 1), "l2": classes}
        space, fixed = {}, {}
        for name, scale in scales.items():
            value = getattr(self, name)
            if value is None:
                low, high = getattr(self, f"{name}_range")
                space[name] = LogUniform(low * scale, high * scale)
            else:
                fixed[name] = value
        fits = TuningFits(inputs, labels, weights, self.loss, self.holdout, self.seed)
        total = self.tuning_runs + 1
        counted = with_progress(fits.score, "DirichletCalibration: fits", total, self.verbose)
        score = partial(counted, **fixed)
        log: list[Run] = []
        strongest = {name: values.high for name, values in space.items()}
        run_and_log(score, strongest, log)
        if not fits.hopeless:

            def is_over() -> bool:
                return fits.hopeless >= HOPELESS

            log = search(score, space, self.tuning_runs, self.seed, self.search, is_over)
        self.tuning_log_ = log
        best = best_run(self.tuning_log_)
        self.worse_than_temperature_ = best["score"] > fits.temperature_loss * (1 + PRINTED)
        self.fell_back_ = self.fallback and best["score"] > fits.temperature_loss * FALLBACK
        if self.worse_than_temperature_:
            near = ", because it is less than 2 % worse" if self.fallback else ""
            then = f"the best setting is used all the same{near}"
            if self.fell_back_:
                then = "temperature scaling is used in its place"
            warnings.warn(
                "DirichletCalibration: no setting was better than temperature scaling on held-out "
                f"points (loss {best['score']:.4f}, with temperature scaling "
                f"{fits.temperature_loss:.4f}); {then}",
                stacklevel=5,  # the caller of fit
            )
        return dict(best["parameters"])

    def _map_inputs(self, logits: Array) -> Array:
        double = logits.astype(np.float64, copy=False)
        return double if self.on == "logits" else log_softmax(double, axis=1)

    def _to_module(self, dtype: Any) -> Any:
        linear = super()._to_module(dtype)
        if self.on == "logits":
            return linear
        from ..export.affine import after_log_softmax

        return after_log_softmax(linear)
