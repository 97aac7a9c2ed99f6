"""The appendix study, unit: benchmark x family. How patching proceeds against sampled users.

python -m pipeline.dynamics benchmark=cifar100_resnet
python -m pipeline.dynamics suite=cifar 'dynamics.families=[aligned]' dynamics.iterations=100
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pipeline.fit import SPLIT_INDICES, logits_of
from pipeline.harness.artifacts import (
    read_record,
    sha256_of,
    sha256_of_json,
    sha256_of_text,
    write_json,
    write_record,
    write_text,
)
from pipeline.harness.cached_logits import CachedLogits, load_logits, read_sidecar
from pipeline.harness.command import command
from pipeline.harness.fingerprint import source_fingerprint
from pipeline.harness.locks import claimed
from pipeline.harness.machine import device_name, now, run_notes
from pipeline.harness.progress import say, say_files
from pipeline.harness.receipts import write_receipt
from pipeline.harness.runner import one_by_one, run_stage, side_by_side
from pipeline.harness.splits import indices_of
from pipeline.harness.units import Request, Settings, composed, resolved
from pipeline.reporting.drawings import draw_all
from pipeline.sources.result import Progress

if TYPE_CHECKING:  # torch and matplotlib take seconds, which a run with nothing to do shall not
    from pipeline.dynamics_study import Study

FILES = ("history.csv", "snapshots.csv")
QUICK = 50_000
"""Logits of a study of seconds, which needs no bar of its own."""
LESS_THAN_THE_SUITE = ("dynamics.families=", "suite.dynamics=")
"""Overrides after which the receipt would not speak for the whole suite."""


@dataclass(frozen=True)
class DynamicsTask:
    """One family of users on one benchmark, and the hash that its result will carry."""

    family: str
    split: int
    settings: Settings
    logits: CachedLogits
    hash: str

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.settings["benchmark"]["name"])

    @property
    def size(self) -> int:
        """Logits of the benchmark, n x C."""
        return self.logits.n * self.logits.classes

    @property
    def folder(self) -> Path:
        """Where the results lie."""
        results = Path(self.settings["paths"]["results"])
        return results / "dynamics" / f"{self.benchmark}-{self.family}"

    def __str__(self) -> str:
        return f"{self.benchmark} {self.family}"


@command
def main(config: DictConfig) -> None:
    """Run the study on the benchmark asked for, or on those that the suite names for it."""
    request = Request.from_hydra(config)
    chosen = HydraConfig.get().runtime.choices.get("benchmark")
    run_dynamics(request if chosen else of_suite(request, config))


def of_suite(request: Request, config: DictConfig) -> Request:
    """`request` for the benchmarks that the suite names for the study."""
    return replace(request, benchmarks=tuple(config.suite.get("dynamics") or ()))


def run_dynamics(request: Request) -> None:
    """Study every benchmark and family that is not up to date; draw the figures.

    Raises:
        UnitsFailed: studies that failed, after all others are done.
    """
    settings = request.benchmark_settings()
    tasks = run_studies(request, settings)
    if not tasks:
        say(f"dynamics: nothing to do, suite.dynamics of {request.suite} is empty")
        write_receipt(request, resolved(composed(request.overrides)), "dynamics", {})
        return
    from pipeline.reporting.dynamics_figures import dynamics_drawings

    drawings = []
    for one in settings:
        own = [task for task in tasks if task.benchmark == one["benchmark"]["name"]]
        drawings += dynamics_drawings(
            {task.family: task.folder for task in own},
            one["benchmark"]["title"],
            Path(one["paths"]["results"]) / "figures",
            own[0].benchmark,
        )
    say_files(draw_all(drawings, settings[0]["jobs"]))
    if not any(text.startswith(LESS_THAN_THE_SUITE) for text in request.overrides):
        content = {str(task): {"hash": task.hash, **_checksums(task)} for task in tasks}
        write_receipt(request, settings[0], "dynamics", content)


def run_studies(request: Request, settings: Sequence[Settings]) -> list[DynamicsTask]:
    """Run those of all benchmarks and families that are not up to date; return all of them."""
    tasks = [task for one in settings for task in dynamics_tasks(one, request.splits[0])]
    if tasks:
        quick = max(task.size for task in tasks) < QUICK
        run = side_by_side if quick else one_by_one
        run_stage("dynamics", tasks, is_done, run_task, run, lambda task: task.benchmark)
    return tasks


def dynamics_tasks(settings: Settings, split: int) -> list[DynamicsTask]:
    """The families of one benchmark, on the calibration points of one split.

    Raises:
        InputError: the options make no study.
    """
    options = settings["dynamics"]
    if read_sidecar(settings) is None:  # before logits are made
        _check(options)
    logits = logits_of(settings)
    tasks = [
        DynamicsTask(family, split, settings, logits, _hash(settings, family, split, logits))
        for family in options["families"]
    ]
    if not tasks or not all(is_done(task) for task in tasks):
        _check(options)
    return tasks


def _check(options: Settings) -> None:
    from pipeline.dynamics_study import check_options

    check_options(options)


def _hash(settings: Settings, family: str, split: int, logits: CachedLogits) -> str:
    """Identifies a study: its options, its points and the code; not the device."""
    options = {
        key: value
        for key, value in settings["dynamics"].items()
        if key not in ("name", "families") and (key == family or not isinstance(value, Mapping))
    }  # those of other families have no effect
    splits = settings["splits"]
    return sha256_of_json(
        {
            "family": family,
            "options": options,
            "split": split,
            "seed": splits["seed"],
            "calibration_fraction": splits["calibration_fraction"],
            "logits": logits.sha256,
            "code": source_fingerprint("pipeline.dynamics_study.run_study", SPLIT_INDICES),
        }
    )


def is_done(task: DynamicsTask) -> bool:
    """Whether the folder holds whole results of this very study."""
    record = read_record(task.folder / "dynamics.json")
    return (
        record is not None
        and record.get("hash") == task.hash
        and all((task.folder / name).is_file() for name in FILES)
        and record.get("files") == _checksums(task)
    )


def _checksums(task: DynamicsTask) -> dict[str, str]:
    return {name: sha256_of(task.folder / name) for name in FILES}


def run_task(task: DynamicsTask, progress: Progress | None = None) -> bool:
    """Run one study and write history.csv, snapshots.csv, then dynamics.json.

    False where another process just did. Raises Busy and OtherSettings while one does.
    """
    with claimed(task.folder / "running.json", str(task), task.hash):
        if not task.settings["force"] and is_done(task):
            return False
        began = now()
        device = device_name(task.settings["device"])
        study, points = _study(task, device, progress)
        tables = dict(zip(FILES, (study.history_table(), study.snapshot_table()), strict=True))
        seconds = {"iteration_seconds": list(tables["history.csv"].pop("seconds"))}
        texts = {
            name: table.to_csv(index=False, float_format="%.9g", lineterminator="\n")
            for name, table in tables.items()
        }
        for name, text in texts.items():
            write_text(task.folder / name, text)
        record = {
            "hash": task.hash,
            "benchmark": task.benchmark,
            "family": task.family,
            "split": task.split,
            "n": points,
            "classes": task.logits.classes,
            "config": task.settings["dynamics"],
            "logits_sha256": task.logits.sha256,
            "worst_noise_floor": study.worst_floor(),
            "files": {name: sha256_of_text(text) for name, text in texts.items()},
        }
        write_record(task.folder / "dynamics.json", record)
        notes = {"hash": task.hash, **run_notes(began, device), **seconds}
        write_json(task.folder / "run.json", notes)
        (task.folder / "state.npz").unlink(missing_ok=True)
    return True


def _study(task: DynamicsTask, device: str, progress: Progress | None) -> tuple[Study, int]:
    """The study on the calibration points of the split, and how many those are."""
    import torch

    from pipeline.dynamics_study import run_study

    logits, labels = load_logits(task.logits.path, task.logits.sha256)
    points, _ = indices_of(task.settings, len(labels), task.split)
    probabilities = torch.from_numpy(logits[points]).to(device, torch.float64).softmax(dim=1)
    study = run_study(
        probabilities,
        torch.from_numpy(labels[points]).to(device),
        task.family,
        task.settings["dynamics"],
        task.folder / "state.npz",
        task.hash,
        progress,
    )
    return study, len(points)


if __name__ == "__main__":
    main()
