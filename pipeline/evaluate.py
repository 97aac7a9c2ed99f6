"""Stage 3, unit: benchmark x calibrator x split. Score the fitted parameters on the test part.

python -m pipeline.evaluate benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.evaluate suite=cifar evaluation=paper_batches
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hydra.utils import get_class
from numpy.typing import NDArray
from omegaconf import DictConfig

from pipeline.fit import PARAMETERS_SHA256, FitTask, fit_tasks, is_fitted, run_units
from pipeline.harness.archives import opened_archive, publish, record_inside, restore_copy
from pipeline.harness.artifacts import (
    CorruptFile,
    read_npz,
    save_npz,
    sha256_of_json,
    write_json,
)
from pipeline.harness.cached_logits import load_logits
from pipeline.harness.command import UnitsFailed, command
from pipeline.harness.fingerprint import source_fingerprint, targets_in
from pipeline.harness.locks import claimed, holder_of, noting_failure
from pipeline.harness.machine import device_name, now, run_notes
from pipeline.harness.runner import run_stage
from pipeline.harness.shared import adopt, share
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.units import Request, Settings, Unit

if TYPE_CHECKING:  # torch takes a second, which a run with nothing to do shall not
    from metrics.scorecard import Scorecard

ECDF_SHA256 = "ecdf_sha256"


@dataclass(frozen=True)
class EvaluateTask:
    """One fitted unit and the hash that its scores will carry."""

    fit: FitTask
    hash: str

    @property
    def unit(self) -> Unit:
        """The unit that is scored."""
        return self.fit.unit

    @property
    def settings(self) -> Settings:
        """The unit's configuration."""
        return self.unit.settings

    @property
    def size(self) -> int:
        """Its logits, n x C."""
        return self.fit.size

    def __str__(self) -> str:
        return str(self.unit)


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
    tasks = [EvaluateTask(fit, evaluation_hash(fit)) for fit in fits]
    run = partial(run_units, "evaluate", evaluate_unit)
    for task in run_stage("evaluate", tasks, is_evaluated, run, lambda task: task.unit.calibrator):
        restore_copy(task.unit.files.ecdf, ECDF_SHA256, task.unit.files.metrics)
        holder_of(task.unit.files.metrics_running)  # see `run_fit`
    if request is not None:
        for calibrator in request.calibrators:
            own = [unit for unit in units if unit.calibrator == calibrator]
            files = {unit.shared_name: unit.files.ecdf for unit in own}
            stage = f"{own[0].files.evaluate_stage}/{calibrator}"
            share(request, own[0].settings, stage, files)


def adopt_scores(units: Sequence[Unit]) -> None:
    """Take the scores that came by `dvc pull` where a unit has none."""
    for unit in units:
        files = {unit.shared_name: unit.files.ecdf}
        stage = f"{unit.files.evaluate_stage}/{unit.calibrator}"
        for path in adopt(unit.settings, stage, files):
            restore_copy(path, ECDF_SHA256, unit.files.metrics)


def _require_fits(fits: Sequence[FitTask]) -> None:
    absent = [fit.unit for fit in fits if not is_fitted(fit)]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise UnitsFailed(
            f"{absent[0]}{more}: not fitted with these settings and this code; run "
            "python -m pipeline.fit with the same arguments first"
        )


def evaluation_hash(fit: FitTask) -> str:
    """Identifies scores: the fit and its parameters, the evaluation's options, and the code."""
    record = record_inside(fit.unit.files.parameters, PARAMETERS_SHA256) or {}
    evaluation = fit.unit.settings["evaluation"]
    return sha256_of_json(
        {
            "fit": fit.hash,
            "parameters": record.get(PARAMETERS_SHA256),
            "evaluation": evaluation,
            "similarity": fit.logits.similarity_sha256,
            "code": source_fingerprint("metrics.scorecard.scorecard", *targets_in(evaluation)),
        }
    )


def is_evaluated(task: EvaluateTask) -> bool:
    """Whether the unit's folder holds whole scores of this very evaluation."""
    record = record_inside(task.unit.files.ecdf, ECDF_SHA256)
    return record is not None and record.get("hash") == task.hash


def evaluate_unit(task: EvaluateTask) -> bool:
    """Score one unit and publish ecdf.npz with metrics.json; False where another process just did.

    Raises:
        Busy, OtherSettings: another process evaluates it now.
        CorruptFile: the parameters were replaced since this run looked at them.
    """
    unit, files = task.unit, task.unit.files
    lock = claimed(files.metrics_running, str(task), task.hash)
    with noting_failure(files.metrics_failed), lock:
        if not unit.settings["force"] and is_evaluated(task):
            return False
        began = now()
        device = device_name(unit.settings["device"])
        test = held_out(task.fit, device)
        card = scored(task.fit, test)
        record = {
            "hash": task.hash,
            "fit_hash": task.fit.hash,
            "logits_sha256": task.fit.logits.sha256,
            PARAMETERS_SHA256: test.parameters_sha256,
            "benchmark": unit.benchmark,
            "calibrator": unit.calibrator,
            "split": unit.split,
            "n": task.fit.logits.n,
            "n_test": len(test.labels),
            **numbers_of(card),
            "evaluation": unit.settings["evaluation"],
        }
        save = partial(save_npz, arrays=card.ecdf | card.draws)
        publish(files.ecdf, save, record, ECDF_SHA256, files.metrics)
        write_json(files.metrics_run, {"hash": task.hash, **run_notes(began, device)})
    return True


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

    calibrator, parameters_sha256 = _calibrator(fit)
    logits, labels = load_logits(fit.logits.path, fit.logits.sha256)
    _, test = indices_of(fit.settings, len(labels), fit.unit.split)
    probabilities = calibrator.predict_proba(torch.from_numpy(logits[test]).to(device))
    rows_sum_to_one = bool(getattr(calibrator, "normalize", True))
    truth = torch.from_numpy(labels[test]).to(device)
    return HeldOut(probabilities, truth, test, rows_sum_to_one, parameters_sha256)


def _calibrator(fit: FitTask) -> tuple[Any, str]:
    """The fitted calibrator and the checksum of its parameters, both of one and the same file."""
    kind: Any = get_class(fit.unit.settings["calibrator"]["_target_"])
    path = fit.unit.files.parameters
    with opened_archive(path, PARAMETERS_SHA256) as (file, record):
        if record is None or record.get("hash") != fit.hash:
            raise CorruptFile(f"{path}: replaced since this run began; run it again")
        return kind.load(file), record[PARAMETERS_SHA256]


def similarity_of(fit: FitTask) -> NDArray[np.float64] | None:
    """Similarity of the benchmark's classes [C, C], where it has one."""
    if fit.logits.similarity is None:
        return None
    return read_npz(fit.logits.similarity)["matrix"]


if __name__ == "__main__":
    main()
