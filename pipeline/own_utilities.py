"""A person's own utilities as settings of the evaluation: a metric u_<kind> for each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.harness.artifacts import read_json
from pipeline.harness.cached_logits import sidecar_path
from pipeline.harness.command import literal
from pipeline.harness.units import Settings
from pipeline.sources.own_utilities import settings_of


def own_utilities(given: Mapping[str, str], settings: Settings) -> dict[str, dict[str, Any]]:
    """`evaluation.own` for utilities {kind: file or module:function}.

    The benchmark's logits must have been made: their sidecar names the classes.
    """
    if "utility" in given and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # where a person's module lies; processes take it over
    record = read_json(sidecar_path(settings))
    names = record.get("class_names") or [str(k) for k in range(record["classes"])]
    found = {f"u_{kind}": settings_of(kind, value, names) for kind, value in given.items()}
    return {key: {k: _literal(v) for k, v in entry.items()} for key, entry in found.items()}


def _literal(value: Any) -> Any:
    return [literal(name) for name in value] if isinstance(value, list) else literal(value)
