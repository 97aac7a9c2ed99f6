"""Which scores can belong to a printed table of the paper, and which suite=paper_closest takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig

from ..harness.artifacts import read_json
from ..harness.parameters import content_of, names_in
from ..harness.settings import DEFAULT_EVALUATION
from ..harness.units import Request, composed
from .agreement import CLOSEST


def benchmarks_of_the_paper() -> dict[str, DictConfig]:
    """The contents of the benchmarks that have a `paper_key`; those named like it come first."""
    contents = {name: content_of("benchmark", name) for name in names_in("benchmark")}
    with_key = [(name, content) for name, content in contents.items() if content.get("paper_key")]
    return dict(sorted(with_key, key=lambda item: item[0] != item[1].paper_key))


def scored_candidates(
    results: Path, splits: int, benchmarks: Mapping[str, DictConfig]
) -> list[tuple[str, str, str]]:
    """Evaluation, benchmark and paper key of all scores that can belong to a printed table.

    The default evaluation goes first, and then the order of `benchmarks`.
    """
    names = list(benchmarks)
    ordered = []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        name, evaluation = facts["benchmark"], facts["evaluation"]["name"]
        key = _key_of(name, benchmarks)
        if key is None or facts["splits"]["count"] != splits:
            continue
        place = names.index(name) if name in names else len(names)
        ordered.append((evaluation != DEFAULT_EVALUATION, evaluation, place, name, key))
    return [(evaluation, name, key) for _, evaluation, _, name, key in sorted(ordered)]


def _key_of(name: str, benchmarks: Mapping[str, DictConfig]) -> str | None:
    """The paper key of a benchmark, by its own name or by how its name begins."""
    for known, content in benchmarks.items():
        key = str(content.paper_key)
        if name == known or name.startswith(f"{key}_"):
            return key
    return None


def rule_of_closest(
    benchmarks: Mapping[str, DictConfig], request: Request
) -> dict[str, Sequence[str]]:
    """What suite=paper_closest takes, by columns of the cells."""
    config = composed([f"suite={CLOSEST}"])
    counted = {benchmarks[name].paper_key: [name] for name in config.suite.benchmarks}
    if request.suite == CLOSEST:
        asked: dict[str, list[str]] = {}
        for name in request.benchmarks:
            if name in benchmarks:
                asked.setdefault(benchmarks[name].paper_key, []).append(name)
        counted |= asked
    return {
        "benchmark": [name for names in counted.values() for name in names],
        "variant": list(config.suite.calibrators),
        "configuration": [f"evaluation={config.evaluation.name}"],
    }
