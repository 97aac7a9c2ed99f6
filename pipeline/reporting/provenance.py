"""What made the numbers: logits and configuration, as the scores record them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.reporting.collect import Scores
from pipeline.reporting.report_page import Provenance


def facts_of(logits: Mapping[str, Any]) -> list[str]:
    """Where the logits come from, out of their record."""
    if not logits:
        return []
    published = logits.get("published_accuracy")
    accuracy = f"accuracy {logits['accuracy']:.2f} %"
    if published is not None:
        accuracy += f" (published {published:.2f} %)"
    about = [f"{logits['n']} points, {logits['classes']} classes, {accuracy}"]
    about += [str(logits[key]) for key in ("source", "model") if logits.get(key)]
    about.append(f"logits sha256 {logits['sha256'][:16]}")
    return ["; ".join(about) + ".", *logits.get("warnings", [])]


def provenance_of(what: str, scores: Sequence[Scores], methods: Sequence[str]) -> Provenance:
    """The configuration of the benchmarks' scores; `what` says in words what they are."""
    first = scores[0].facts
    configuration = {
        "benchmarks": [one.benchmark for one in scores],
        "splits": first["splits"],
        "evaluation": first["evaluation"],
        "calibrators": {method: first["calibrators"][method]["config"] for method in methods},
    }
    return Provenance(what, configuration)
