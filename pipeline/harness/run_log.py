"""The log of runs: a line for every run of a task, with time, memory, versions and error."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def add_to_log(log: Path, notes: Mapping[str, Any]) -> None:
    """Add a line about a run."""
    with suppress(OSError):  # a full disk loses the line and nothing else
        log.parent.mkdir(parents=True, exist_ok=True)
        # A link would be followed to a file that is not ours.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(log, flags, 0o666)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps(notes) + "\n")


def last_errors(data: Path) -> dict[str, str]:
    """By `Task.place` the error of its last run, which is "" where it succeeded."""
    runs = []
    for path in (data / "log").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # cut by a kill
                runs.append(json.loads(line))
    runs.sort(key=lambda run: run["finished"])
    return {run["unit"]: run["error"] for run in runs}
