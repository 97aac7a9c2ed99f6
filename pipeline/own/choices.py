"""What a person says about their file, and the usual names that need no word."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from .patterns import folded

LABELS = ("label", "labels")
LIKE_LABELS = (
    *("target", "targets", "truth", "true", "y", "y_true", "class", "true_label", "true_class"),
    *("ground_truth", "gold", "gold_label", "actual", "answer", "obs", "label_ids"),
)
"""Other usual names of the labels; one of them is taken, with a note, if nothing else is one."""
MATRICES = {
    "logits": ("logits", "logit", "log_probabilities", "log_probs", "logprobs"),
    "probabilities": ("probabilities", "probability", "probs", "prob", "proba", "y_prob"),
}
"""Arrays, or columns of lists, with the answers of one kind. They may be larger than the memory."""
LIKE_MATRICES = {"filtered_resps": "logits", "predictions": "logits", "scores": ""}
"""Names in the logs of language models, taken if nothing else holds answers; "": of either kind."""


@dataclass(frozen=True)
class Choices:
    """What the person says about a file that could mean two things (options of `score`).

    values: the kind of the answers: auto, logits or probabilities. labels, groups, clusters: the
    column or array with each point's label, group, and with what points belong to that depend on
    each other; None: one of the usual names. logits, probabilities: the array, column or column of
    lists with the answers. classes: the columns of the classes, a pattern such as prob_*, or names
    separated by commas. ignore: columns to leave out, names or patterns separated by commas.
    ignore_label: labels whose points are left out, separated by commas.
    """

    values: str = "auto"
    labels: str | None = None
    groups: str | None = None
    clusters: str | None = None
    logits: str | None = None
    probabilities: str | None = None
    classes: str | None = None
    ignore: str | None = None
    ignore_label: str | None = None

    @classmethod
    def of(cls, options: object) -> Self:
        """The choices among a command's options; those that it does not have stay open."""
        said: dict[str, Any] = {
            of.name: getattr(options, of.name, of.default) for of in fields(cls)
        }
        return cls(**said)

    @property
    def answers(self) -> dict[str, str]:
        """The kind of the array or column that the person names for the answers, by its name."""
        named = {self.logits: "logits", self.probabilities: "probabilities"}
        return {name: kind for name, kind in named.items() if name is not None}

    def kinds_of(self, names: Iterable[str]) -> dict[str, str]:
        """Which of `names` hold answers, and of what kind; "" if their name does not say."""
        names = list(names)
        if self.answers:
            return {name: kind for name, kind in self.answers.items() if name in names}
        usual = {of: kind for kind, known in MATRICES.items() for of in known}
        for known in (usual, LIKE_MATRICES):
            if found := {name: known[plain] for name in names if (plain := spelt(name)) in known}:
                break
        return found


def spelt(name: str) -> str:
    """A usual name in one spelling: true_label for `True Label`."""
    return folded(name).strip("_")
