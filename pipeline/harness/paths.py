"""Where results lie: the layout of the folder `results/`, spelled once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_EVALUATION = "default"
"""The evaluation whose files carry no name of their own."""


@dataclass(frozen=True)
class UnitFiles:
    """The files of one unit, runs/<benchmark>/<calibrator>/split-<k>/.

    Committed with the results are `fit` and `metrics`, which hold nothing that differs between two
    runs of the same code on the same data: seconds, versions, devices and hosts are in the files
    that start with `run-`.
    """

    folder: Path
    evaluation: str = DEFAULT_EVALUATION

    @property
    def parameters(self) -> Path:
        """The fitted calibrator, with the record of its fit inside."""
        return self.folder / "parameters.npz"

    @property
    def fit(self) -> Path:
        """A copy of that record: configuration, checksums, what tuning tried."""
        return self.folder / "fit.json"

    @property
    def fit_run(self) -> Path:
        """How the fit went here: seconds, memory, versions, device, host."""
        return self.folder / "run-fit.json"

    @property
    def fit_running(self) -> Path:
        """The lock of the fit, there while a process works on it."""
        return self.folder / "running-fit.json"

    @property
    def fit_failed(self) -> Path:
        """Why the last attempt to fit failed, until one succeeds."""
        return self.folder / "failed-fit.json"

    @property
    def ecdf(self) -> Path:
        """Errors of the sampled utilities, with the record of the evaluation inside."""
        return self.folder / f"ecdf{self._suffix}.npz"

    @property
    def metrics(self) -> Path:
        """A copy of that record: all metrics and their noise floors."""
        return self.folder / f"metrics{self._suffix}.json"

    @property
    def metrics_run(self) -> Path:
        """How the evaluation went here."""
        return self.folder / f"run-metrics{self._suffix}.json"

    @property
    def metrics_running(self) -> Path:
        """The lock of the evaluation."""
        return self.folder / f"running-metrics{self._suffix}.json"

    @property
    def metrics_failed(self) -> Path:
        """Why the last evaluation failed, until one succeeds."""
        return self.folder / f"failed-metrics{self._suffix}.json"

    @property
    def evaluate_stage(self) -> str:
        """What the stage that makes `ecdf` is called among `suites/<suite>/`."""
        return f"evaluate{self._suffix}"

    @property
    def worst(self) -> Path:
        """Beside the splits: where the method fails, over the test points of all of them."""
        return self.folder.parent / f"worst{self._suffix}.json"

    @property
    def groups(self) -> Path:
        """Beside the splits: the scores of each group of points, where points have groups."""
        return self.folder.parent / f"groups{self._suffix}.npz"

    @property
    def pooled(self) -> Path:
        """Beside the splits: the means over them of the arrays in `ecdf`."""
        return self.folder.parent / f"pooled{self._suffix}.npz"

    @property
    def _suffix(self) -> str:
        return "" if self.evaluation == DEFAULT_EVALUATION else f"-{self.evaluation}"


def runs_folder(results: Path | str) -> Path:
    """Everything that is one folder per unit."""
    return Path(results) / "runs"


def unit_folder(runs: Path, benchmark: str, calibrator: str, split: int) -> Path:
    """One unit's folder in `runs_folder`."""
    return runs / benchmark / calibrator / f"split-{split}"
