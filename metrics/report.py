"""The verdict on one forecast in a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metrics.registry import metric

if TYPE_CHECKING:
    from metrics.scorecard import Scorecard

USES = {"u_cwe": "single decisions", "u_topk": "shortlists", "u_dcg": "graded gains"}
"""The purposes that a verdict names, by the metric that decides each."""


def report_of(card: Scorecard) -> str:
    """Return a headline, a line per purpose (error, noise floor and bound), and the scores.

    A purpose is within noise if its error is at most the 95 % quantile of the errors that a
    perfectly calibrated forecast with these probabilities has. The bound holds for fresh points of
    the same kind with the confidence of the scorecard's certificates, 95 % by default.
    """
    within = [use for key, use in USES.items() if _is_within_noise(card, key)]
    beyond = [use for key, use in USES.items() if use not in within and key in card.noise_floor]
    lines = [_headline(within, beyond), ""]
    lines.append(f"{'use':<18}{'error':>9}{'by chance':>12}{'at most':>10}")
    for key, use in USES.items():
        floor = f"{card.noise_floor[key]['q95']:.4f}" if key in card.noise_floor else "–"
        bound = f"{card.certificates[key].upper:.4f}" if key in card.certificates else "–"
        lines.append(f"{use:<18}{card.metrics[key]:>9.4f}{floor:>12}{bound:>10}")
    scores = [f"{metric(key).text} {card.metrics[key]:.4f}" for key in ("accuracy", "brier", "nll")]
    lines += ["", ", ".join(scores)]
    return "\n".join(lines)


def _is_within_noise(card: Scorecard, key: str) -> bool:
    return key in card.noise_floor and card.metrics[key] <= card.noise_floor[key]["q95"]


def _headline(within: list[str], beyond: list[str]) -> str:
    if not within and not beyond:
        return "Not compared with chance: no labels were redrawn."
    verdicts = [(within, "within noise of perfectly calibrated"), (beyond, "beyond noise")]
    clauses = [f"{verdict} for {', '.join(uses)}" for uses, verdict in verdicts if uses]
    sentence = "; ".join(clauses)
    return f"{sentence[0].upper()}{sentence[1:]}."
