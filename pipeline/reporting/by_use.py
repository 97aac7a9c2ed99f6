"""What to take for each use, where the headline of a verdict does not say all of it."""

from collections.abc import Sequence
from typing import NamedTuple

from ..scoring.choice import Choice
from ..scoring.decisions import INFINITE
from ..scoring.recommended import Use
from ..scoring.use_columns import BEYOND
from .signs import SIGNS
from .wording import MOST_NAMED, counted, listed, names

STILL_ERR = "errors that are larger than chance alone explains"


def by_use(choice: Choice, has_infinite: bool) -> str:
    """What to take for which use, alike uses together; "" where one method is for all of them.

    Args:
        has_infinite: whether the NLL of some method is infinite. Such a method is never named.
    """
    if choice.why_unranked is not None:
        return ""
    if choice.overall is not None:
        return ""
    alike: dict[_Advice, list[Use]] = {}
    for use in choice.uses:
        alike.setdefault(_Advice.of(use), []).append(use)
    return " ".join(_clause(uses, has_infinite) for uses in alike.values())


def errs_for(uses: Sequence[Use], method: str) -> list[str]:
    """The uses for which a method errs beyond chance, though no test finds a better one."""
    return [use.label for use in uses if use.signs[method] == BEYOND]


class _Advice(NamedTuple):
    """What a clause says of a use. Uses for which it is equal share one clause."""

    named: tuple[str, ...]
    signs_of_named: frozenset[str]
    """A clause names these signs, so they must be those of each of its uses."""
    differs: bool
    has_power: bool

    @classmethod
    def of(cls, use: Use) -> "_Advice":
        """The advice for a use."""
        signs = frozenset(use.signs[method] for method in use.named)
        return cls(use.named, signs, use.differs, use.has_power)


def _clause(uses: Sequence[Use], has_infinite: bool) -> str:
    """What to take for uses for which the same methods are named."""
    first, labels = uses[0], listed([use.label for use in uses])
    methods = first.named
    if not first.differs:
        return f"For {labels} no test finds a difference between the methods."
    if not first.has_power:
        return f"For {labels} the file is too small to choose a method."
    if not methods:
        return (
            f"For {labels} no method is recommended, because the best ones gave probability 0 to "
            f"classes that occurred ({INFINITE})."
        )
    signs = {use.signs[method] for use in uses for method in methods}
    if len(methods) <= MOST_NAMED:
        which = names(methods, "or")
    else:
        shown = listed([sign for name, sign in SIGNS.items() if name in signs], "or")
        finite = f" and without {INFINITE}" if has_infinite else ""
        which = f"any of the {counted(len(methods))} methods with {shown} there{finite}"
    text = f"For {labels} take {which}"
    return f"{text}, which still has {STILL_ERR}." if signs == {BEYOND} else f"{text}."
