"""Which results can stand for which printed table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf

from pipeline.harness.artifacts import read_json
from pipeline.harness.units import composed
from pipeline.reporting.collect import Scores, summarise
from pipeline.reporting.comparison import Candidate, Rule, paper_key_of, printed_values
from pipeline.scoring.files import DEFAULT_EVALUATION, ScoreFiles


@dataclass(frozen=True)
class KnownBenchmark:
    """A benchmark of conf/ that names the printed table it belongs to."""

    name: str
    title: str
    paper_key: str


def known_benchmarks(conf: Path) -> list[KnownBenchmark]:
    """The benchmarks under conf/ with a `paper_key`, those named like their key first."""
    found = []
    for path in sorted((conf / "benchmark").glob("*.yaml")):
        content = OmegaConf.to_container(OmegaConf.load(path))
        if isinstance(content, dict) and content.get("paper_key"):
            found.append(KnownBenchmark(path.stem, content["title"], content["paper_key"]))
    return sorted(found, key=lambda known: (known.name != known.paper_key, known.name))


def paper_rule() -> Rule:
    """What `preset=paper` takes, the same for all tables."""
    config = composed(["preset=paper"])
    return Rule(
        tuple(config.suite.benchmarks),
        tuple(config.suite.calibrators),
        _label(config.evaluation.name),
    )


def _label(evaluation: str) -> str:
    return "" if evaluation == DEFAULT_EVALUATION else f"evaluation={evaluation}"


def candidates(results: Path, known: Sequence[KnownBenchmark], splits: int) -> list[Candidate]:
    """All results over so many splits that can stand for a printed table, defaults first.

    Besides the benchmarks of conf/ these are those called `<paper key>_<what>`: the same benchmark
    run under another name (`benchmark.name=cifar10_repvgg_a2 ...`). All methods and variants that
    were scored take part, in every evaluation.
    """
    places = {benchmark.name: place for place, benchmark in enumerate(known)}
    found = []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        name, evaluation = facts["benchmark"], facts["evaluation"]["name"]
        paper_key = _paper_key(name, known)
        if paper_key is None or facts["splits"]["count"] != splits:
            continue
        scores = Scores.read(ScoreFiles(results, name, evaluation))
        if scores is not None:
            order = (evaluation != DEFAULT_EVALUATION, evaluation, places.get(name, len(places)))
            one = Candidate(paper_key, name, summarise(scores), _label(evaluation))
            found.append((order, one))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def _paper_key(name: str, known: Sequence[KnownBenchmark]) -> str | None:
    own = [one.paper_key for one in known if one.name == name]
    alike = [one.paper_key for one in known if name.startswith(f"{one.paper_key}_")]
    return next(iter([*own, *alike]), None)


def table_titles(known: Sequence[KnownBenchmark]) -> dict[str, str]:
    """Titles of the printed tables, from the benchmark that is the default for each."""
    titles: dict[str, str] = {}
    for table in dict.fromkeys(printed_values()["table"]):
        key = paper_key_of(table)
        title = next((b.title for b in known if b.paper_key == key), key)
        titles[table] = title if table == key else f"{title} (Table 1)"
    return titles
