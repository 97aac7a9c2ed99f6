"""What a person says about their file: the options that a command passes to the readers."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Self

from utility_calibration.metrics.errors import InputError

from .message_text import cut_off, some_of
from .usual_names import LABELS, LIKE_LABELS, LIKE_MATRICES, MATRICES, USUAL, is_split, spelt

MOST = 40
"""Columns that one message names."""


def option(text: str, default: Any = None, **settings: Any) -> Any:
    """A field that the command line sets; `text` is its help, `settings` are those of argparse."""
    return field(default=default, metadata={"help": text, **settings})


class AddedUp(argparse.Action):
    """An option that may be given several times: --ignore a --ignore b is --ignore a,b.

    A message names what is still to be left out, and the person adds it to what they typed before.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Add one more value."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before is None else f"{before},{values}")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """What the person says about a file that could mean two things; None: the file decides."""

    values: str = option(
        "what the matrix holds; auto: the npz says so, a CSV by whether its rows sum to one",
        default="auto",
        choices=("auto", "logits", "probabilities"),
    )
    labels: str | None = option("column or array with the labels", metavar="NAME")
    groups: str | None = option(
        "column or array with the groups (default: `groups`)", metavar="COLUMN"
    )
    clusters: str | None = option(
        "column or array with the cluster (patient, image, …) of cases that depend on each other "
        "(default: `cluster` or `clusters`)",
        metavar="COLUMN",
    )
    predictions: str | None = option(
        "column or array with the predicted classes, where the answers are one column with the "
        "confidence in them",
        metavar="NAME",
    )
    logits: str | None = option(
        "array, column or column of lists with the logits, of any name", metavar="NAME"
    )
    probabilities: str | None = option("the same with probabilities", metavar="NAME")
    classes: str | None = option(
        "columns of the classes: a pattern ('prob_*'), or names: cat,dog", metavar="COLUMNS"
    )
    ignore: str | None = option(
        "names or patterns to leave out: id,pred_*", metavar="COLUMNS", action=AddedUp
    )
    ignore_label: str | None = option(
        "labels whose cases are left out, such as -100", metavar="LABEL", action=AddedUp
    )

    distinct: bool = option(
        "count cases once that are equal in all values and in the label",
        default=False,
        action="store_true",
    )
    decimal: str | None = option(
        "decimal sign of text files whose numbers do not show it: 1.234 or 1,234",
        choices=(".", ","),
    )

    @classmethod
    def of(cls, options: object) -> Self:
        """What the options of a command say of a file; those that it does not have stay open."""
        values: dict[str, Any] = {}
        for one in fields(cls):
            values[one.name] = getattr(options, one.name, one.default)
        return cls(**values)

    @property
    def answers(self) -> dict[str, str]:
        """The kind of the array or column that the person names for the answers, by its name."""
        named = {self.logits: "logits", self.probabilities: "probabilities"}
        return {name: kind for name, kind in named.items() if name is not None}

    def kinds_of(self, names: Collection[str]) -> dict[str, str]:
        """Which of `names` hold answers, and of what kind; "" if their name does not say."""
        if self.answers:
            return {name: kind for name, kind in self.answers.items() if name in names}
        for kind_of_spelling in (MATRICES, LIKE_MATRICES):
            kinds = {}
            for name in names:
                if spelt(name) in kind_of_spelling:
                    kinds[name] = kind_of_spelling[spelt(name)]
            if kinds:
                return kinds
        return {}

    def gives_role(self, name: str) -> bool:
        """Whether a column or array of this name has a purpose beside the classes."""
        if name in (self.labels, self.groups, self.clusters, self.predictions):
            return True
        usual = {*LABELS, *LIKE_LABELS, "class_names"}
        for spellings in USUAL.values():
            usual.update(spellings)
        return spelt(name) in usual or is_split(name)

    def has_names(self, column: str) -> bool:
        """Whether the entries of a column of this name are names, not numbers: labels, groups."""
        return self.gives_role(column) and spelt(column) not in USUAL["weights"]


def matching(text: str, names: Sequence[str], flag: str | None) -> list[str]:
    """The `names` that names or patterns mean; InputError: one of the option `flag` means none."""
    matches: dict[str, None] = {}
    parts = [text] if text in names else [part.strip() for part in text.split(",")]
    for part in filter(None, parts):
        if part in names:
            fitting = [part]
        else:
            pattern = part.replace("[", "[[]")  # a bracket is a part of the name
            fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting and flag is not None:
            message = f"nothing is called {cut_off(part)}"
            raise InputError(message, field=flag, fixes=f"name one of {some_of(names, MOST)}")
        matches |= dict.fromkeys(fitting)
    return list(matches)
