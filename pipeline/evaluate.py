"""Stage 3, unit: benchmark x calibrator x split. Score the fitted parameters on the test part.

python -m pipeline.evaluate benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.evaluate suite=cifar evaluation=paper_batches

It ends with the benchmark's scores as text, results/scores/<benchmark>.csv (pipeline.scoring).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pipeline.fit import FitTask, fit_tasks
from pipeline.harness.artifacts import save_npz, sha256_of_json
from pipeline.harness.cache import Save, is_current, record_of
from pipeline.harness.code import code_digest, targets_in
from pipeline.harness.command import UnitsFailed, command
from pipeline.harness.parallel import run_tasks
from pipeline.harness.progress import say_files
from pipeline.harness.units import Request, Settings, Unit
from pipeline.scoring.held_out import held_out, numbers_of, scored
from pipeline.scoring.scores import write_scores


@dataclass(frozen=True)
class EvaluateTask:
    """One fitted unit to score."""

    fit: FitTask
    key: str

    @classmethod
    def of(cls, fit: FitTask) -> EvaluateTask:
        """The task of scoring what `fit` made.

        Its key has what was fitted and what it predicts, the test points, the options and the code.
        The fit's own key does not count: a fit that comes out the same leaves its scores.
        """
        record = record_of(fit.path) or {}
        evaluation, splits = fit.settings["evaluation"], fit.settings["splits"]
        content = {
            "fitted": [record.get("arrays"), record.get("predictions")],
            "split": fit.unit.split,
            "seed": splits["seed"],
            "calibration_fraction": splits["calibration_fraction"],
            "logits": fit.logits.sha256,
            "similarity": fit.logits.similarity_sha256,
            "evaluation": evaluation,
            "code": code_digest("metrics.scorecard.scorecard", *targets_in(evaluation)),
        }
        return cls(fit, sha256_of_json(content))

    @property
    def unit(self) -> Unit:
        """The unit."""
        return self.fit.unit

    @property
    def settings(self) -> Settings:
        """The unit's configuration."""
        return self.fit.settings

    @property
    def path(self) -> Path:
        """Where the scores lie."""
        return self.unit.scores_path

    @property
    def size(self) -> int:
        """Logits of the benchmark, n x C."""
        return self.fit.size

    @property
    def row(self) -> str:
        """The calibrator's name."""
        return self.unit.calibrator

    def __str__(self) -> str:
        return str(self.unit)

    def make(self, device: str, progress: Callable[..., None]) -> tuple[Save, dict[str, Any]]:
        """Score the calibrated test points."""
        test = held_out(self.unit, device)
        card = scored(self.settings, test)
        return partial(save_npz, arrays=card.ecdf | card.draws), {
            "benchmark": self.unit.benchmark,
            "calibrator": self.unit.calibrator,
            "split": self.unit.split,
            "splits": self.settings["splits"],
            "logits_sha256": self.fit.logits.sha256,
            "n": self.fit.logits.n,
            "n_test": len(test.labels),
            **numbers_of(card),
            "evaluation": self.settings["evaluation"],
        }


@command
def main(config: DictConfig) -> None:
    """Evaluate the units asked for."""
    run_evaluate(Request.from_hydra(config).units())


def run_evaluate(units: Sequence[Unit]) -> None:
    """Evaluate every unit that is not up to date, and write the scores of their benchmarks.

    Raises:
        UnitsFailed: units without a current fit, or that failed, after all others are done.
    """
    fits = fit_tasks(units)
    _require_fits(fits)
    failure = None
    try:
        run_tasks("evaluate", [EvaluateTask.of(fit) for fit in fits])
    except UnitsFailed as error:
        failure = error
    for evaluated in _evaluated(fits):
        say_files(write_scores(evaluated))
    if failure is not None:
        raise failure


def _evaluated(fits: Sequence[FitTask]) -> Iterator[list[Unit]]:
    """Per benchmark the current units of the calibrators asked for, on all splits."""
    for benchmark in dict.fromkeys(fit.unit.benchmark for fit in fits):
        pairs = {f.unit.calibrator: f for f in fits if f.unit.benchmark == benchmark}.values()
        tasks = [
            EvaluateTask.of(FitTask.of(replace(one.unit, split=split), one.logits))
            for one in pairs
            for split in range(one.settings["splits"]["count"])
        ]
        if current := [task.unit for task in tasks if is_current(task.path, task.key)]:
            yield current


def _require_fits(fits: Sequence[FitTask]) -> None:
    absent = [fit.unit for fit in fits if not is_current(fit.path, fit.key)]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise UnitsFailed(
            f"{absent[0]}{more}: not fitted with these settings and this code; run "
            "python -m pipeline.fit with the same arguments first"
        )


if __name__ == "__main__":
    main()
