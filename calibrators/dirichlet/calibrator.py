"""Dirichlet calibration with off-diagonal and intercept regularisation (Kull et al. 2019)."""

from __future__ import annotations

import math
import warnings
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.dirichlet.linear_map import (
    LinearMapProblem,
    map_loss,
    penalty_weights,
    products_type,
)
from calibrators.dirichlet.penalties import HeldOut, TuningRuns, tune_penalties
from calibrators.inputs import Inputs
from calibrators.losses import Loss, check_loss
from calibrators.modules import LinearSoftmax, constant
from calibrators.solvers.search import How, with_progress
from calibrators.temperature import TemperatureFit, fit_temperature
from metrics.kernels.product import product
from metrics.kernels.softmax import softmax
from metrics.kernels.threads import row_blocks
from metrics.validation import InputError

INPUTS = ("log_probabilities", "logits")
TOLERANCE = 1e-9
"""Bound on the Newton decrement, which is about twice the gap to the minimal objective, in nats."""


class DirichletCalibration(Calibrator):
    """softmax(W x + b), W [C, C] and b [C], with the ODIR penalty of Kull et al. (2019).

    The inputs x are the log-probabilities ln p (`on="log_probabilities"`, Dirichlet calibration as
    Kull et al. define it; for two classes it is beta calibration, that is, logistic regression on
    ln p_1 and ln p_2), or the logits as they are (`on="logits"`). The latter is not Dirichlet
    calibration but matrix scaling (Guo et al. 2017) with the ODIR penalty. The two differ because
    ln p = z - log Σ exp z, and W acts on that last term, too. So adding a number to all logits of a
    row changes matrix scaling's prediction, and not Dirichlet calibration's.

    The fit minimises

        loss + odir / (C (C - 1)) · Σ_{j≠k} W_jk² + l2 / C · Σ_j b_j² + ridge,

    where the loss is the mean NLL in nats, or with `loss="brier"` the Brier score; it is a weighted
    mean where `fit` was given weights. λ = `odir` weighs the mean squared off-diagonal entry, μ =
    `l2` the mean squared intercept. The ridge 1e-8 / 2 · [s² ‖W - βI‖² + ‖b‖²], s the root mean
    square of the row-centred logits, only makes the optimum unique. Full-batch L-BFGS starts at the
    temperature-scaled solution W = βI, b = 0, where the penalties vanish, so the fit's loss is at
    most temperature scaling's. If it is larger by rounding, W = βI is kept and `fell_back_` is
    true. The Brier score is not convex: the fit ends in a minimum below that start.

    If λ or μ is None, `tune_penalties` chooses it by the loss on a seeded hold-out, and the map is
    refitted on all data. The search is log-uniform over `odir_range` times C (C - 1) and `l2_range`
    times C, so the ranges are those of the penalty per entry, which means the same for any C.

    Time: the default tunes by 81 fits, which takes more than a second. On two cores, 7,000 points
    take about a second for ten classes, five seconds for a hundred and minutes for a thousand;
    `verbose=True` shows a progress bar. A fit with `odir` and `l2` given takes a fraction of that.

    Parameters
    ----------
    on : "log_probabilities" or "logits"
    l2, odir : float >= 0 or None, μ and λ; None: tuned
    tuning_runs : int >= 1
    holdout : float in (0, 1), share of the calibration data that scores the tuning runs
    seed : int, of the hold-out and the tuning
    odir_range, l2_range : (low, high), search ranges per entry
    max_iterations : int, of L-BFGS in the final fit
    loss : "likelihood" or "brier"
    search : "even", points spread evenly over the ranges, or "bayes", scikit-optimize's Gaussian
        process as in the paper; it takes longer and found no better λ and μ
    inputs : "logits" or "probabilities", what X is
    verbose : bool, whether tuning shows a progress bar on stderr

    `InputError` (one line) on arguments out of range and where the hold-out would be empty.

    Attributes
    ----------
    matrix_, intercept_ : float64 [C, C] and [C], W and b
    odir_, l2_ : float, the λ and μ used
    loss_, temperature_loss_ : float, mean loss of the calibration data, and temperature scaling's
    nll_, temperature_nll_ : float, mean NLL of the calibration data, and temperature scaling's
    fell_back_ : bool
    n_evaluations_ : int, passes over the data in the final fit
    """

    matrix_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    odir_: float
    l2_: float
    loss_: float
    temperature_loss_: float
    nll_: float
    temperature_nll_: float
    fell_back_: bool
    n_evaluations_: int
    takes_weights = True

    def __init__(
        self,
        on: str = "log_probabilities",
        l2: float | None = None,
        odir: float | None = None,
        tuning_runs: int = 80,
        holdout: float = 0.3,
        seed: int = 0,
        odir_range: tuple[float, float] = (1e-4, 1e2),
        l2_range: tuple[float, float] = (1e-5, 1e2),
        max_iterations: int = 200,
        loss: Loss = "likelihood",
        search: How = "even",
        inputs: Inputs = "logits",
        verbose: bool = False,
    ) -> None:
        self.on = on
        self.l2 = l2
        self.odir = odir
        self.tuning_runs = tuning_runs
        self.holdout = holdout
        self.seed = seed
        self.odir_range = odir_range
        self.l2_range = l2_range
        self.max_iterations = max_iterations
        self.loss = loss
        self.search = search
        self.inputs = inputs
        self.verbose = verbose

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        self._check_parameters()
        n, classes = logits.shape
        inputs = self._inputs(logits, products_type(n, classes))
        begin: Tensor | None = None
        strengths = {"odir": self.odir, "l2": self.l2}
        if None in strengths.values():
            tuned, begin = self._tune(inputs, labels, weights)
            strengths |= tuned
        self.odir_, self.l2_ = float(strengths["odir"] or 0), float(strengths["l2"] or 0)
        temperature = fit_temperature(logits, labels, self.loss, weights)
        problem = LinearMapProblem.build(
            inputs, labels, temperature.beta, temperature.spread, self.loss, weights
        )
        penalty = penalty_weights(classes, self.odir_, self.l2_, logits.device)
        fit = problem.solve(penalty, begin, tolerance=TOLERANCE, max_iterations=self.max_iterations)
        if not fit.converged:
            warnings.warn(
                f"DirichletCalibration: stopped after {fit.iterations} iterations, about "
                f"{fit.decrement / 2:.1e} above the optimum; raise max_iterations",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.n_evaluations_ = fit.evaluations
        self._keep(logits, labels, fit.point, temperature, weights)

    def _keep(
        self,
        logits: Tensor,
        labels: Tensor,
        point: Tensor,
        temperature: TemperatureFit,
        weights: Tensor | None = None,
    ) -> None:
        """Store the map if its loss, in float64, is no worse than temperature scaling's."""
        classes = logits.shape[1]
        inputs = self._inputs(logits, torch.float64)
        self.temperature_loss_, self.temperature_nll_ = temperature.loss, temperature.nll
        self.nll_ = self.loss_ = map_loss(inputs, labels, point, counts=weights)
        if self.loss != "likelihood":
            self.loss_ = map_loss(inputs, labels, point, loss=self.loss, counts=weights)
        self.fell_back_ = not self.loss_ <= temperature.loss
        if self.fell_back_:
            point = torch.zeros_like(point)
            point[:, :classes].fill_diagonal_(temperature.beta)
            self.loss_, self.nll_ = temperature.loss, temperature.nll
        self.matrix_ = point[:, :classes].cpu().numpy().copy()
        self.intercept_ = point[:, classes].cpu().numpy().copy()

    def _tune(
        self, inputs: Tensor, labels: Tensor, weights: Tensor | None
    ) -> tuple[dict[str, float], Tensor]:
        """Return the tuned λ, μ and the best map that was met on the way."""
        from skopt.space import Real

        classes = inputs.shape[1]
        scales = {"odir": classes * (classes - 1), "l2": classes}
        space = {
            name: Real(low * scales[name], high * scales[name], prior="log-uniform")
            for name, (low, high) in {"odir": self.odir_range, "l2": self.l2_range}.items()
            if getattr(self, name) is None
        }
        fixed = {name: getattr(self, name) for name in scales if name not in space}
        runs = TuningRuns(*self._hold_out(inputs, labels, weights))
        total = self.tuning_runs + 1
        score = with_progress(runs.score, "DirichletCalibration: fits", total, self.verbose)
        best, self.tuning_log_ = tune_penalties(
            score, space, fixed, self.tuning_runs, self.seed, self.search
        )
        return best, runs.best_point

    def _hold_out(
        self, inputs: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[LinearMapProblem, HeldOut]:
        """Split the rows; a share `holdout` of them is scored, whatever the weights."""
        n = inputs.shape[0]
        held = round(self.holdout * n)
        if not 0 < held < n:
            raise InputError(
                f"labels: {n} points leave no hold-out of {self.holdout:g} to tune λ and μ on; "
                "give more points, or give l2 and odir"
            )
        order = torch.from_numpy(np.random.default_rng(self.seed).permutation(n))
        order = order.to(inputs.device)
        fitted, scored = order[held:].sort()[0], order[:held].sort()[0]
        counts, held_counts = (
            None if weights is None else weights[rows] for rows in (fitted, scored)
        )
        temperature = fit_temperature(inputs[fitted], labels[fitted], self.loss, counts)
        train = LinearMapProblem.build(
            inputs[fitted], labels[fitted], temperature.beta, temperature.spread, self.loss, counts
        )
        return train, HeldOut(inputs[scored], labels[scored], held_counts)

    def _inputs(self, logits: Tensor, dtype: torch.dtype) -> Tensor:
        """Return x [n, C]: the log-probabilities, computed in float64, or the logits."""
        if self.on == "logits":
            return logits.to(dtype).contiguous()
        out = torch.empty(logits.shape, dtype=dtype, device=logits.device)
        for start, stop in row_blocks(logits.shape[0], logits.shape[1], 1 << 22):
            out[start:stop] = torch.log_softmax(logits[start:stop].double(), dim=1)
        return out

    def _check_parameters(self) -> None:
        check_loss(self.loss)
        if self.on not in INPUTS:
            raise InputError(f"on: {self.on!r}; choose {' or '.join(INPUTS)}")
        if self.search not in get_args(How):
            raise InputError(f"search: {self.search!r}; choose {' or '.join(get_args(How))}")
        for name in ("l2", "odir"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name}: {value}; give a number >= 0, or None to tune it")
        for name in ("odir_range", "l2_range"):
            low, high = getattr(self, name)
            if not 0 < low < high < math.inf:
                raise InputError(f"{name}: {low} … {high}; give 0 < low < high")
        if self.tuning_runs < 1:
            raise InputError(f"tuning_runs: {self.tuning_runs}; give at least 1")

    def _upgrade(self) -> None:
        """In format 0 W acts on row-centred ln p: W (x - mean x) is (W - row means of W) x."""
        if self.on == "log_probabilities":
            self.matrix_ = self.matrix_ - self.matrix_.mean(axis=1, keepdims=True)

    def _predict_proba(self, logits: Tensor) -> Tensor:
        matrix = torch.as_tensor(self.matrix_, device=logits.device)
        intercept = torch.as_tensor(self.intercept_, device=logits.device)
        n, classes = logits.shape
        out = torch.empty(n, classes, dtype=torch.float64, device=logits.device)
        for start, stop in row_blocks(n, classes, 1 << 24):
            inputs = self._inputs(logits[start:stop], torch.float64)
            out[start:stop] = softmax(product(inputs, matrix.T).add_(intercept))
        return out

    def _to_module(self, dtype: torch.dtype) -> LinearSoftmax:
        matrix, intercept = constant(self.matrix_, dtype), constant(self.intercept_, dtype)
        return LinearSoftmax(matrix, intercept, on_logits=self.on == "logits")
