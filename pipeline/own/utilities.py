"""A person's own utilities as settings of the evaluation: a metric u_<kind> for each."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, open_dict

from pipeline.harness.artifacts import read_json
from pipeline.harness.cached_logits import sidecar_path
from pipeline.harness.units import Settings
from pipeline.sources.own_utilities import settings_of, who_values_a_worse_rank_more

OWN = {
    "payoffs": "users paid by class: CSV, a line per user, a column per class",
    "valuations": "users paid by rank: CSV, a line per user, columns 1, 2, … for the ranks",
    "losses": "a decision: CSV, a line per class (named first), a column per action",
    "gain": "gains in [0, 1]: CSV, a line per true class (named first), a column per predicted one",
    "utility": "a function of probabilities [n, C] to u(p, e_j) [n, C], torch to torch",
}
"""Options for a person's own utilities; each gives the metric u_<option>."""


def own_utilities(given: Mapping[str, str], settings: Settings) -> dict[str, dict[str, Any]]:
    """`evaluation.own` for utilities {kind: file or module:function}.

    The benchmark's logits must have been made: their sidecar names the classes.
    """
    if "utility" in given and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # where a person's module lies; processes take it over
    record = read_json(sidecar_path(settings))
    names = record.get("class_names") or [str(k) for k in range(record["classes"])]
    return {f"u_{kind}": settings_of(kind, value, names) for kind, value in given.items()}


def remarks(own: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a person may have meant otherwise in the files of `evaluation.own`, a line each."""
    entry = own.get("u_valuations")
    if entry is None:
        return []
    users = who_values_a_worse_rank_more(entry["path"], entry["class_names"])
    if not users:
        return []
    shown = ", ".join(users[:3]) + (", …" if len(users) > 3 else "")
    return [
        f"{entry['path']}: a worse rank is worth more than a better one to {shown}; that is "
        "scored, but unusual: column 1 is the rank of the most probable class"
    ]


def is_patching(method: str) -> bool:
    """Whether a method of conf/calibrator calibrates to utilities that it is given."""
    return method.startswith(("patching", "logit_shift"))


def aim_at(config: DictConfig, keys: Sequence[str]) -> None:
    """Make the calibrator of `config` calibrate to those of `evaluation.own` and to nothing else.

    Without keys it stays as it is.
    """
    if keys:
        with open_dict(config.calibrator):
            config.calibrator.utilities = [config.evaluation.own[key] for key in keys]
            config.calibrator.standard = False


def aim_of(settings: Settings) -> list[str]:
    """The keys of `evaluation.own` that the calibrator of `settings` is aimed at."""
    aims = settings["calibrator"].get("utilities") or []
    return [key for key, entry in settings["evaluation"]["own"].items() if entry in aims]
