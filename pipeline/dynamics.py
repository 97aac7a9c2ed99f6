"""Stage 4, unit: benchmark x family. How patching proceeds against sampled users (appendix).

python -m pipeline.dynamics benchmark=cifar100_resnet
python -m pipeline.dynamics suite=cifar 'dynamics.families=[aligned]' dynamics.iterations=100

A study is a unit like a fit, data/dynamics/<benchmark>/<family>.npz. For people and git it is text:
results/dynamics/<benchmark>/<family>/{history.csv,snapshots.csv,dynamics.json}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pipeline.harness.artifacts import read_npz, save_npz, sha256_of_json, write_json, write_text
from pipeline.harness.cache import Save, record_of
from pipeline.harness.cached_logits import CachedLogits, find_logits, load_logits
from pipeline.harness.code import code_digest
from pipeline.harness.command import command
from pipeline.harness.parallel import run_tasks
from pipeline.harness.progress import say, say_files
from pipeline.harness.splits import indices_of
from pipeline.harness.units import Request, Settings
from pipeline.logits import require_logits
from pipeline.scoring.files import rounded

if TYPE_CHECKING:  # torch takes a second, which a run with nothing to do does not need
    import pandas as pd

DIGITS = "%.7g"
"""The last bits differ from processor to processor."""


@dataclass(frozen=True)
class DynamicsTask:
    """One family of users on one benchmark, on the calibration points of one split."""

    family: str
    split: int
    settings: Settings
    logits: CachedLogits

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.settings["benchmark"]["name"])

    @property
    def path(self) -> Path:
        """Where the unit lies."""
        folder = Path(self.settings["paths"]["data"]) / "dynamics" / self.benchmark
        return folder / f"{self.family}.npz"

    @property
    def folder(self) -> Path:
        """Where its text lies."""
        results = Path(self.settings["paths"]["results"])
        return results / "dynamics" / self.benchmark / self.family

    @property
    def size(self) -> int:
        """Logits of the benchmark, n x C."""
        return self.logits.n * self.logits.classes

    @property
    def row(self) -> str:
        """The benchmark's name."""
        return self.benchmark

    @cached_property
    def key(self) -> str:
        """Identifies a study: its options, its points and the code; not the device."""
        options = {
            key: value
            for key, value in self.settings["dynamics"].items()
            if key not in ("name", "families")
            and (key == self.family or not isinstance(value, Mapping))
        }  # those of other families have no effect
        splits = self.settings["splits"]
        return sha256_of_json(
            {
                "family": self.family,
                "options": options,
                "split": self.split,
                "seed": splits["seed"],
                "calibration_fraction": splits["calibration_fraction"],
                "logits": self.logits.sha256,
                "code": code_digest("pipeline.dynamics_study", "pipeline.harness.splits"),
            }
        )

    def __str__(self) -> str:
        return f"{self.benchmark} {self.family}"

    def make(self, device: str, progress: Callable[..., None]) -> tuple[Save, dict[str, Any]]:
        """Run the study."""
        import torch

        from pipeline.dynamics_study import run_study

        logits, labels = load_logits(self.logits.path, self.logits.sha256)
        points, _ = indices_of(self.settings, len(labels), self.split)
        probabilities = torch.from_numpy(logits[points]).to(device, torch.float64).softmax(dim=1)
        truth = torch.from_numpy(labels[points]).to(device)
        options = self.settings["dynamics"]
        study = run_study(probabilities, truth, self.family, options, progress)
        tables = {"history": study.history_table(), "snapshots": study.snapshot_table()}
        arrays = {
            f"{name}.{column}": table[column].to_numpy()
            for name, table in tables.items()
            for column in table
            if column != "seconds"
        }
        return partial(save_npz, arrays=arrays), {
            "benchmark": self.benchmark,
            "family": self.family,
            "split": self.split,
            "n": len(points),
            "classes": self.logits.classes,
            "config": options,
            "logits_sha256": self.logits.sha256,
            "worst_noise_floor": study.worst_floor(),
        }

    def write(self) -> list[Path]:
        """Write the text of the unit."""
        import pandas as pd

        record, arrays = record_of(self.path) or {}, read_npz(self.path)
        content = {key: value for key, value in record.items() if key not in ("key", "arrays")}
        written = []
        for name in ("history", "snapshots"):
            table = pd.DataFrame(
                {
                    key.partition(".")[2]: values
                    for key, values in arrays.items()
                    if key.startswith(f"{name}.")
                }
            )
            written.append(_write_csv(table, self.folder / f"{name}.csv"))
        return [*written, write_json(self.folder / "dynamics.json", rounded(content))]


@command
def main(config: DictConfig) -> None:
    """Run the study on the benchmark asked for, or on those that the suite names for it."""
    request = Request.from_hydra(config)
    if not HydraConfig.get().runtime.choices.get("benchmark"):
        request = replace(request, benchmarks=tuple(config.suite.get("dynamics") or ()))
    run_dynamics(request)


def run_dynamics(request: Request) -> None:
    """Study every benchmark and family that is not up to date, and write their text.

    Raises:
        InputError: the options make no study.
        UnitsFailed: studies that failed, after all others are done.
    """
    if not request.benchmarks:
        say(f"dynamics: nothing to do, suite.dynamics of {request.suite} is empty")
        return
    tasks = []
    for settings in request.benchmark_settings():
        _check(settings["dynamics"])
        require_logits(settings)
        logits = find_logits(settings)
        tasks += [
            DynamicsTask(family, request.splits[0], settings, logits)
            for family in settings["dynamics"]["families"]
        ]
    run_tasks("dynamics", tasks, one_by_one=True)
    for task in tasks:
        say_files(task.write())


def _check(options: Settings) -> None:
    from pipeline.dynamics_study import check_options

    check_options(options)


def _write_csv(table: pd.DataFrame, path: Path) -> Path:
    text = table.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
    return write_text(path, text)


if __name__ == "__main__":
    main()
