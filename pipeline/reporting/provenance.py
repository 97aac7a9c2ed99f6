"""What made the numbers: logits, configuration and versions, beside the results they made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.harness.artifacts import read_json_if_whole, read_record, write_record
from pipeline.harness.cached_logits import logits_record, read_sidecar
from pipeline.harness.units import Request, Settings, Unit
from pipeline.reporting.report_page import Provenance


def facts_of(settings: Settings) -> list[str]:
    """Where the logits come from, out of the sidecar."""
    record = logits_record(settings)
    if not record:
        return []
    published = record.get("published_accuracy")
    accuracy = f"accuracy {record['accuracy']:.2f} %"
    if published is not None:
        accuracy += f" (published {published:.2f} %)"
    about = [f"{record['n']} points, {record['classes']} classes, {accuracy}"]
    about += [str(record[key]) for key in ("source", "model") if record.get(key)]
    about.append(f"logits sha256 {record['sha256'][:16]}")
    return ["; ".join(about) + ".", *record.get("warnings", [])]


def write_sidecars(settings: Iterable[Settings], folder: Path) -> list[Path]:
    """Copies of the logits' sidecars, to be kept with the results; files without their folders."""
    written = []
    for one in settings:
        record = read_sidecar(one)
        if record is not None:
            path = folder / f"{one['benchmark']['name']}.json"
            record.pop("versions", None)  # of the machine: not what the logits are
            write_record(path, _without_folders(record))
            written.append(path)
    return written


def _without_folders(value: Any) -> Any:
    """`value` with absolute paths cut to file names: they differ from machine to machine."""
    if isinstance(value, dict):
        return {key: _without_folders(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_folders(part) for part in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return value


def provenance_of(settings: Sequence[Settings], request: Request) -> Provenance:
    """Configuration and versions as the fitted units recorded them."""
    records: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    for calibrator in request.calibrators:
        files = Unit(settings[0]["benchmark"]["name"], calibrator, 0, settings[0]).files
        record = read_record(files.fit.json)
        records += [record] if record else []
        versions |= (read_json_if_whole(files.fit.run) or {}).get("versions", {})
    configuration = {
        "benchmarks": [one["benchmark"]["name"] for one in settings],
        "splits": settings[0]["splits"],
        "evaluation": settings[0]["evaluation"],
        "tuning": settings[0]["tuning"],
        "calibrators": {record["calibrator"]: record["config"] for record in records},
    }
    return Provenance(f"Suite {request.suite}.", configuration, versions)


def file_provenance(settings: Settings) -> Provenance:
    """Configuration and versions behind the scores of a person's own file."""
    configuration = {
        "seed": settings["seed"],
        "splits": settings["splits"],
        "evaluation": settings["evaluation"],
        "tuning": settings["tuning"],
    }
    what = "Made by scripts/score.py, the parameters of every split lie under runs/."
    return Provenance(what, configuration, logits_record(settings).get("versions", {}))
