"""The table at the end of a `--multirun`: what each job set, and its objective or how it ended.

A job runs in a process of its own, perhaps on another machine, so it leaves its line as a file
below `hydra.sweep.dir`. The program that started the jobs collects these files.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig

from .artifacts import read_json, write_json
from .progress import say


class JobLines(Callback):
    """Keeps a line for each job of a multirun; Hydra calls its methods (conf/config.yaml)."""

    folder: ClassVar[Path | None] = None
    """Where the lines of the multirun that this process started are, if it started one."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Remember the folder, and remove the lines that an earlier multirun left there."""
        JobLines.folder = _folder(config)
        for path in JobLines.folder.glob("*.json"):
            path.unlink()

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Write the line of a job, also of one that failed."""
        if config.hydra.mode != RunMode.MULTIRUN:
            return
        is_done = job_return.status == JobStatus.COMPLETED
        line = {
            "settings": list(config.hydra.overrides.task),
            "objective": job_return.return_value if is_done else None,
            "end": "done" if is_done else "failed",
        }
        folder = _folder(config)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{config.hydra.job.num}.json", line)


@contextmanager
def table_at_end() -> Iterator[None]:
    """Print the table after a block that runs Hydra's program, also where jobs failed."""
    JobLines.folder = None
    try:
        yield
    finally:
        # Hydra calls no method of a callback after a multirun of which a job failed.
        if JobLines.folder is not None:
            _print_table(JobLines.folder)


def _print_table(folder: Path) -> None:
    """Print the lines of all jobs; a job that was killed has none."""
    paths = sorted(folder.glob("*.json"), key=lambda path: int(path.stem))
    jobs = [read_json(path) for path in paths]
    if not jobs:
        return
    # What all jobs set says nothing about any of them.
    shared: set[str] = set()
    if len(jobs) > 1:
        shared = set.intersection(*(set(job["settings"]) for job in jobs))
    settings = []
    for job in jobs:
        different = [text for text in job["settings"] if text not in shared]
        settings.append(" ".join(different))
    width = max(map(len, [*settings, "settings"]))
    say(f"{'job':>4}  {'settings':{width}}  objective")
    for path, job, text in zip(paths, jobs, settings, strict=True):
        objective = job["objective"]
        end = job["end"] if objective is None else f"{objective:.7g}"
        say(f"{path.stem:>4}  {text:{width}}  {end}")


def _folder(config: Any) -> Path:
    return Path(config.hydra.sweep.dir) / "jobs"
