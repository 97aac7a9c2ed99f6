"""What a verdict says of bounds, of the rarest class, of clusters, and of what nobody can see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from metrics.registry import metric
from pipeline.reporting.wording import MOST_NAMED, bound, listed, names, short
from pipeline.scoring.choice import UNSEEN, Choice, Use, is_own
from pipeline.scoring.decisions import Decisions

USERS = "user of these classes (U_CWE, U_topK, U_dcg and the like)"


def _taken(decisions: Decisions, choice: Choice) -> list[str]:
    """The methods that sentences on bounds are about: those taken, or all where none is."""
    taken = dict.fromkeys(use.take for use in choice.uses if use.take)
    return [choice.overall] if choice.overall else list(taken) or decisions.methods


def bound_sentence(decisions: Decisions, choice: Choice) -> str:
    """The bound for the users of the standard classes; "" where there is none.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so.
    """
    methods = _taken(decisions, choice)
    value = _largest((decisions.users or {}).get(method) for method in methods)
    if value is None:
        return ""
    if decisions.splits < 2 and len(methods) == 1:
        return (
            f"With 95 % confidence no {USERS} is off by more than {bound(value)} with "
            f"{names(methods)}."
        )
    users = f"the error of any {USERS} is"
    return f"{_bound_on(users, methods)}{bound(value)}{_on_average(decisions)}."


def own_bound_sentence(decisions: Decisions, choice: Choice) -> str:
    """The bounds for the user's own utilities and what follows from them; "" where there are none.

    A threshold rule acts where the predicted utility is at least t. Acting pays the utility minus
    t, not acting pays nothing. No monotone change of the predicted utility raises the mean pay by
    more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    methods = [choice.overall] if choice.overall else decisions.methods
    uppers = {
        metric(key).text: _largest(decisions.rows[method, key].upper for method in methods)
        for key in decisions.shown
        if is_own(key)
    }
    bounds = [f"{bound(upper)} ({text})" for text, upper in uppers.items() if upper is not None]
    if not bounds:
        return ""
    return (
        f"{_bound_on('the error of your utility is', methods)}{listed(bounds)}"
        f"{_on_average(decisions)}; no monotone change of a threshold rule on this utility gains "
        "more than twice the bound."
    )


def rarest_sentence(decisions: Decisions, choice: Choice) -> str:
    """How many points the rarest class has, and the bound on single decisions beside that."""
    rarest, column = decisions.rarest, decisions.column("u_cwe")
    if rarest is None or not column:
        return ""
    text = f"The rarest class has {rarest.points:,} of {rarest.n:,} points"
    value = _largest(column[method].upper for method in _taken(decisions, choice))
    if value is not None:
        prevalence = short(rarest.points / rarest.n)
        text += f": compare its prevalence {prevalence} with the bound {bound(value)} (U_CWE)"
    if any(UNSEEN in use.signs.values() for use in choice.uses):
        text += (
            f". A test part has about {rarest.tested:.0f} of them; fewer than {rarest.needed} do "
            "not show whether that class is predicted half too often"
        )
    return f"{text}."


def _largest(uppers: Iterable[float | None]) -> float | None:
    known = [upper for upper in uppers if upper is not None and math.isfinite(upper)]
    return max(known, default=None)


def _bound_on(error: str, methods: Sequence[str]) -> str:
    which = names(methods) if len(methods) <= MOST_NAMED else "each of these methods"
    most = "at most " if len(methods) > 1 else ""
    return f"With {which} the 95 % upper bound on {error} {most}"


def _on_average(decisions: Decisions) -> str:
    return f", on average over the {decisions.splits} splits" if decisions.splits > 1 else ""


def unknown_sentence(decisions: Decisions, uses: Sequence[Use]) -> str:
    """What the sample cannot show; "" where nothing is known of it."""
    limits = [
        f"{bound(use.not_seen_below)} ({metric(use.metric).text})"
        for use in uses
        if use.not_seen_below is not None
    ]
    apart = [f"{bound(use.spread)} ({metric(use.metric).text})" for use in uses if use.spread]
    parts = []
    if limits:
        parts.append(f"observed errors below {listed(limits)} cannot be told from chance")
    if apart and len(decisions.methods) > 1:
        parts.append(f"differences between methods are known to ± {listed(apart)} only")
    if not parts:
        return ""
    a_split = " a split" if decisions.splits > 1 else ""
    return f"With {decisions.test_points:,} test points{a_split}, {', and '.join(parts)}."


def cluster_sentence(decisions: Decisions) -> str:
    """That points depend on each other; "" where they do not."""
    if not decisions.clusters:
        return ""
    return (
        "Points of a cluster depend on each other: splits, floors, intervals and tests keep each "
        f"of the {decisions.clusters:,} clusters together."
    )
