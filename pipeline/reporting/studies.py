"""The studies of a benchmark beside its scores: dynamics, risk gap, users of other priors."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..harness.artifacts import read_json
from ..scoring.files import Scores, csv_text
from .risk_gap import RiskGaps, risk_gap_figure, risk_gap_table
from .study_figures import study_drawings
from .style import Drawings
from .user_priors import Priors, priors_figure, priors_table
from .wording import TextTable


class Studies(NamedTuple):
    """Of one benchmark.

    drawings: by the stem of a figure's file; kinds: the stem of each kind of page.STUDY_CAPTIONS;
    tables: for the page; texts: of the tables, by the names of their files.
    """

    drawings: Drawings
    kinds: Mapping[str, str]
    tables: Sequence[TextTable]
    texts: Mapping[str, str]

    def images(self, folder: Path) -> dict[str, Path]:
        """The image of each kind among the figures in `folder`."""
        return {kind: folder / f"{stem}.png" for kind, stem in self.kinds.items()}


def studies_of(results: Path, scores: Scores, title: str, methods: Sequence[str]) -> Studies:
    """What the stages dynamics and users wrote, as far as they ran with the logits of the scores.

    The studies of users are those of the page's methods, or none.
    """
    name = scores.benchmark
    drawings = dict(study_drawings(results / "dynamics" / name, title))
    kinds = {stem.split("_")[1]: stem for stem in drawings}
    folder = results / "users" / name
    facts = facts_of_users(folder, scores)
    if facts is None or not set(facts["calibrators"]) <= set(methods):
        return Studies(drawings, kinds, [], {})
    gaps, priors = RiskGaps.read(folder), Priors.read(folder)
    kinds |= {"risk_gap": f"risk_gap_{name}", "priors": f"priors_{name}"}
    drawings[kinds["risk_gap"]] = partial(risk_gap_figure, gaps, title)
    drawings[kinds["priors"]] = partial(priors_figure, priors, title)
    tables = {
        kinds["risk_gap"]: risk_gap_table(gaps, title),
        kinds["priors"]: priors_table(priors, title),
    }
    texts = {f"{stem}.md": table.markdown() + "\n" for stem, table in tables.items()}
    texts[f"{kinds['risk_gap']}.csv"] = csv_text(gaps.summary)
    texts[f"{kinds['priors']}.csv"] = csv_text(priors.taus)
    return Studies(drawings, kinds, list(tables.values()), texts)


def facts_of_users(folder: Path, scores: Scores) -> Mapping[str, Any] | None:
    """What users.json says of a study, if it is of the logits that were scored; else None."""
    path = folder / "users.json"
    if not path.is_file():
        return None
    facts: Mapping[str, Any] = read_json(path)
    is_current = facts["logits_sha256"] == scores.facts["logits"]["sha256"]
    return facts if is_current else None
