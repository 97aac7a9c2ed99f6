"""Stage 3, unit: benchmark x calibrator x split. Score the fitted parameters on the test part.

python -m pipeline.evaluate benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.evaluate suite=cifar evaluation=paper_batches
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hydra.utils import get_class
from numpy.typing import NDArray
from omegaconf import DictConfig

from pipeline.fit import FitTask, fit_tasks, fit_unit
from pipeline.harness.archives import Archive
from pipeline.harness.artifacts import CorruptFile, read_npz, save_npz, sha256_of_json
from pipeline.harness.cached_logits import load_logits, rows_of
from pipeline.harness.command import UnitsFailed, command
from pipeline.harness.fingerprint import source_fingerprint, targets_in
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.unit_stage import Save, UnitTask, adopt_archives, make_once, run_unit_stage
from pipeline.harness.units import Request, Unit

if TYPE_CHECKING:  # torch takes a second, which a run with nothing to do shall not
    from torch import Tensor

    from metrics.scorecard import Scorecard

PREDICTED_TOGETHER = 1 << 24
"""Probabilities computed at a time, which bounds the memory that a calibrator takes for itself."""


@dataclass(frozen=True)
class EvaluateTask(UnitTask):
    """One fitted unit to score."""

    fit: FitTask

    @classmethod
    def of(cls, fit: FitTask) -> EvaluateTask:
        """The task of scoring what `fit` made."""
        return cls(fit.unit, fit.logits, evaluation_hash(fit), fit)

    @property
    def archive(self) -> Archive:
        """The scores."""
        return self.unit.files.scores


@command
def main(config: DictConfig) -> None:
    """Evaluate the units asked for."""
    request = Request.from_hydra(config)
    run_evaluate(request.units(), request)


def run_evaluate(units: Sequence[Unit], request: Request | None = None) -> None:
    """Evaluate every unit that is not up to date; share the suite's if all succeed.

    Raises:
        UnitsFailed: units without a current fit, or that failed, after all others are done.
    """
    fits = fit_tasks(units)
    adopt_scores(units)
    _require_fits(fits)
    run_unit_stage("evaluate", [EvaluateTask.of(fit) for fit in fits], evaluate_unit, request)


def adopt_scores(units: Sequence[Unit]) -> None:
    """Take the scores that came by `dvc pull` where a unit has none."""
    adopt_archives(units, lambda unit: unit.files.scores)


def _require_fits(fits: Sequence[FitTask]) -> None:
    absent = [fit.unit for fit in fits if not fit.is_done()]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise UnitsFailed(
            f"{absent[0]}{more}: not fitted with these settings and this code; run "
            "python -m pipeline.fit with the same arguments first"
        )


def evaluation_hash(fit: FitTask) -> str:
    """Identifies scores: the fit and its parameters, the evaluation's options, and the code."""
    record = fit.archive.record() or {}
    evaluation = fit.unit.settings["evaluation"]
    return sha256_of_json(
        {
            "fit": fit.hash,
            "parameters": record.get(fit.archive.checksum),
            "evaluation": evaluation,
            "similarity": fit.logits.similarity_sha256,
            "code": source_fingerprint("metrics.scorecard.scorecard", *targets_in(evaluation)),
        }
    )


def evaluate_unit(task: EvaluateTask) -> bool:
    """Score one unit and publish ecdf.npz with metrics.json; see `make_once`.

    Raises:
        CorruptFile: the parameters were replaced since this run looked at them.
    """
    return make_once(task, _evaluated)


def fit_and_evaluate(task: FitTask) -> None:
    """One unit from its logits to its scores; what of it is up to date is kept.

    Here and not in `sweep`, with which a worker would load figures and report.
    """
    fit_unit(task)
    evaluate_unit(EvaluateTask.of(task))


def warm_up(calibrators: Sequence[str]) -> None:
    """Load what units would on first use: torch, these classes, and the metrics' kernels."""
    import torch

    from metrics import scorecard

    for target in calibrators:
        get_class(target)
    scorecard(torch.eye(3, dtype=torch.float64), torch.arange(3), utilities=1)


def _evaluated(task: EvaluateTask, device: str) -> tuple[Save, dict[str, Any], dict[str, Any]]:
    unit, test = task.unit, held_out(task.fit, device)
    card = scored(task.fit, test)
    record = {
        "fit_hash": task.fit.hash,
        "logits_sha256": task.logits.sha256,
        task.fit.archive.checksum: test.parameters_sha256,
        "benchmark": unit.benchmark,
        "calibrator": unit.calibrator,
        "split": unit.split,
        "n": task.logits.n,
        "n_test": len(test.labels),
        **numbers_of(card),
        "evaluation": unit.settings["evaluation"],
    }
    return partial(save_npz, arrays=card.ecdf | card.draws), record, {}


def scored(fit: FitTask, test: HeldOut) -> Scorecard:
    """The scorecard of some of a unit's test points, with the evaluation's options."""
    from metrics import scorecard

    options = {k: value for k, value in fit.unit.settings["evaluation"].items() if k != "name"}
    return scorecard(
        test.probabilities,
        test.labels,
        points=test.points,
        population=fit.logits.n,
        similarity=similarity_of(fit),
        rows_sum_to_one=test.rows_sum_to_one,
        **options | {"own": made_of(options["own"])},
    )


def numbers_of(card: Scorecard) -> dict[str, Any]:
    """The part of a record that a scorecard fills; its arrays lie in the npz."""
    return {
        "metrics": card.metrics,
        "noise_floor": card.noise_floor,
        "worst": card.worst,
        "certificates": {key: one._asdict() for key, one in card.certificates.items()},
        "zero_likelihood": card.zero_likelihood,
    }


class HeldOut(NamedTuple):
    """What a unit is scored on."""

    probabilities: Any
    """Calibrated, float64 [n_test, C], a tensor."""
    labels: Any
    """[n_test], a tensor."""
    points: NDArray[np.int64]
    """[n_test], the numbers of the points among all."""
    rows_sum_to_one: bool
    """Isotonic regression may be asked not to normalise."""
    parameters_sha256: str
    """Of the parameters that calibrated them."""

    def where(self, chosen: NDArray[np.bool_]) -> HeldOut:
        """The chosen ones of these points, by a mask [n_test]."""
        kept = chosen.nonzero()[0]
        return self._replace(
            probabilities=self.probabilities[kept],
            labels=self.labels[kept],
            points=self.points[kept],
        )


def held_out(fit: FitTask, device: str) -> HeldOut:
    """A unit's calibrated probabilities and labels on its test points."""
    import torch

    from metrics.kernels.threads import row_blocks

    calibrator, parameters_sha256 = _calibrator(fit)
    logits, labels = load_logits(fit.logits.path, fit.logits.sha256)
    _, test = indices_of(fit.settings, len(labels), fit.unit.split)
    parts = (
        calibrator.predict_proba(torch.from_numpy(rows_of(logits, test[a:b])).to(device))
        for a, b in row_blocks(len(test), logits.shape[1], PREDICTED_TOGETHER)
    )
    probabilities = _stacked(parts, len(test))
    rows_sum_to_one = bool(getattr(calibrator, "normalize", True))
    truth = torch.from_numpy(labels[test]).to(device)
    return HeldOut(probabilities, truth, test, rows_sum_to_one, parameters_sha256)


def _stacked(parts: Iterator[Tensor], n: int) -> Tensor:
    """The rows of all parts, [n, C], without holding them twice; a single part as it is."""
    first = next(parts)
    if len(first) == n:
        return first
    rows = first.new_empty(n, first.shape[1])
    rows[: len(first)], done = first, len(first)
    for part in parts:
        rows[done : done + len(part)] = part
        done += len(part)
    return rows


def _calibrator(fit: FitTask) -> tuple[Any, str]:
    """The fitted calibrator and the checksum of its parameters, both of one and the same file."""
    kind: Any = get_class(fit.unit.settings["calibrator"]["_target_"])
    with fit.archive.opened() as (file, record):
        if record is None or record.get("hash") != fit.hash:
            raise CorruptFile(f"{fit.archive.path}: replaced since this run began; run it again")
        return kind.load(file), record[fit.archive.checksum]


def similarity_of(fit: FitTask) -> NDArray[np.float64] | None:
    """Similarity of the benchmark's classes [C, C], where it has one."""
    if fit.logits.similarity is None:
        return None
    return read_npz(fit.logits.similarity)["matrix"]


if __name__ == "__main__":
    main()
