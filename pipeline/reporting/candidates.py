"""Which results on disk can stand for which printed table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf

from pipeline.harness.paths import DEFAULT_EVALUATION
from pipeline.harness.units import composed
from pipeline.reporting.collect import Runs, summarise
from pipeline.reporting.comparison import Candidate, Rule, paper_key_of, printed_values
from pipeline.reporting.names import ordered


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


def known_evaluations(conf: Path) -> list[str]:
    """The names of the evaluations under conf/, the default first."""
    names = [path.stem for path in sorted((conf / "evaluation").glob("*.yaml"))]
    return [DEFAULT_EVALUATION, *(name for name in names if name != DEFAULT_EVALUATION)]


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


def candidates(
    runs: Path, known: Sequence[KnownBenchmark], evaluations: Sequence[str], splits: Sequence[int]
) -> list[Candidate]:
    """All complete results that can stand for a printed table, defaults first.

    Besides the benchmarks of conf/ these are the folders `<paper key>_<what>` under `runs`: the
    same benchmark run under another name (`benchmark.name=cifar10_repvgg_a2 ...`). All methods and
    variants with every split evaluated take part, in every evaluation.
    """
    found = []
    for evaluation in evaluations:
        place = Runs(runs, evaluation)
        for name, paper_key in _folders(runs, known):
            methods = ordered(place.evaluated_methods(name, splits))
            if methods:
                summary = summarise(place.read_all(name, methods, splits))
                found.append(Candidate(paper_key, name, summary, _label(evaluation)))
    return found


def _folders(runs: Path, known: Sequence[KnownBenchmark]) -> Iterator[tuple[str, str]]:
    names = {benchmark.name for benchmark in known}
    keys = list(dict.fromkeys(benchmark.paper_key for benchmark in known))
    yield from ((benchmark.name, benchmark.paper_key) for benchmark in known)
    for path in sorted(runs.iterdir()):
        key = next((key for key in keys if path.name.startswith(f"{key}_")), None)
        if key and path.name not in names:
            yield path.name, key


def table_titles(known: Sequence[KnownBenchmark]) -> dict[str, str]:
    """Titles of the printed tables, from the benchmark that is the default for each."""
    titles: dict[str, str] = {}
    for table in dict.fromkeys(printed_values()["table"]):
        key = paper_key_of(table)
        title = next((b.title for b in known if b.paper_key == key), key)
        titles[table] = title if table == key else f"{title} (Table 1)"
    return titles
