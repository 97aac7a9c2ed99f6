"""Where results lie: the layout of the folder `results/`, spelled once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.harness.archives import Archive

DEFAULT_EVALUATION = "default"
"""The evaluation whose files carry no name of their own."""


@dataclass(frozen=True)
class UnitFiles:
    """The files of one unit, runs/<benchmark>/<calibrator>/split-<k>/.

    Committed with the results are the copies of both records, which hold nothing that
    differs between two runs of the same code on the same data: seconds, versions, devices and hosts
    are in the files that start with `run-`.
    """

    folder: Path
    evaluation: str = DEFAULT_EVALUATION

    @property
    def fit(self) -> Archive:
        """The fitted calibrator; its record: configuration, checksums, what tuning tried."""
        return Archive(self.folder / "parameters.npz", "parameters_sha256", "fit", "fit")

    @property
    def scores(self) -> Archive:
        """Errors of the sampled utilities; its record: all metrics and their noise floors."""
        path, end = self.folder / f"ecdf{self._suffix}.npz", self._suffix
        return Archive(path, "ecdf_sha256", f"metrics{end}", f"evaluate{end}")

    @property
    def worst(self) -> Path:
        """Beside the splits: where the method fails, over the test points of all of them."""
        return self.folder.parent / f"worst{self._suffix}.json"

    @property
    def groups(self) -> Archive:
        """Beside the splits: the scores of each group of points, where points have groups."""
        return Archive(self.folder.parent / f"groups{self._suffix}.npz", "groups_sha256")

    @property
    def pooled(self) -> Path:
        """Beside the splits: the means over them of the arrays in `scores`."""
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
