"""The scores that a report was asked for, checked to be those of the settings asked for."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.harness.command import UnitsFailed
from pipeline.harness.units import Unit
from pipeline.reporting.collect import Scores
from pipeline.scoring.files import difference, score_files, without_folders


class MissingScores(UnitsFailed):
    """Scores that the report needs and that are not there, and the command for them. One line."""


def wanted_scores(units: Sequence[Unit], command: str) -> dict[str, Scores]:
    """The scores of every benchmark among `units`, which name the calibrators asked for.

    Raises:
        MissingScores: a calibrator has no rows, or rows of other settings; `command` makes them.
        CorruptFile: a file is damaged.
    """
    found: dict[str, Scores] = {}
    for unit in units:
        files = score_files(unit.settings)
        if unit.benchmark not in found:
            scores = Scores.read(files)
            if scores is None:
                raise MissingScores(f"{files.rows}: not there; make it with: {command}")
            found[unit.benchmark] = scores
        if reason := _why_not(unit, found[unit.benchmark]):
            raise MissingScores(f"{files.rows}: {reason}; make them with: {command}")
    return found


def _why_not(unit: Unit, scores: Scores) -> str:
    """Why the scores are not those of the unit's settings; empty where they are."""
    name, known = unit.calibrator, scores.facts["calibrators"]
    if name not in known or name not in scores.methods:
        return f"no rows of {name}"
    if known[name]["config"] != without_folders(unit.settings["calibrator"]):
        return f"the rows of {name} are of another configuration of it"
    settings = {
        "splits": unit.settings["splits"],
        "evaluation": without_folders(unit.settings["evaluation"]),
        "logits": {"sha256": scores.facts["logits"].get("sha256")},
    }
    other = difference(scores.facts, settings)
    return f"its rows were made with {other}" if other else ""
