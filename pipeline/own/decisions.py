"""What a person's decision costs on the test points by each method: out/decisions.{json,md}.

Each method's actions are priced on the same test points, split by split, so methods are compared in
pairs; the constant action is the best in hindsight, which no method can be blamed for not knowing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from metrics.decisions import acting_threshold, constant_losses, decisions, net_benefit
from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.units import Unit
from pipeline.own.decisions_text import decision_curve_figure, decisions_table
from pipeline.reporting.drawings import save_figure
from pipeline.reporting.intervals import corrected_half_width
from pipeline.scoring.held_out import held_out
from pipeline.sources.own_utilities import actions_of

Record = dict[str, Any]
THRESHOLDS = np.round(np.arange(0.01, 1, 0.01), 2)


def write_decisions(record: Record, folder: Path, figures: bool = True) -> None:
    """Write decisions.json and .md, for two classes the decision curve as well."""
    write_json(folder / "decisions.json", record)
    write_text(folder / "decisions.md", decisions_table(record).markdown() + "\n")
    if figures and "curve" in record:
        save_figure(decision_curve_figure(record["curve"]), folder, "decision_curve")


def decisions_of(entry: Mapping[str, Any], units: Sequence[Unit]) -> Record:
    """The record: costs per method and constant action, gaps per action, the decision curve.

    Args:
        entry: the losses in `evaluation.own`.
        units: fitted, of one benchmark.
    """
    losses: NDArray[np.float64] = instantiate(entry, _convert_="all").losses[0].numpy()
    names = actions_of(entry["path"])
    priced: dict[str, list[_Priced]] = {}
    for unit in units:
        test = held_out(unit, "cpu")
        given = test.probabilities.numpy(), test.labels.numpy(), test.rows_sum_to_one
        priced.setdefault(unit.calibrator, []).append(_Priced(losses, *given))
    first = next(iter(priced.values()))
    constant = np.mean([split.constant for split in first], axis=0)
    best = int(constant.argmin())
    share = first[0].points / test.population
    costs = {method: [split.cost for split in splits] for method, splits in priced.items()}
    references = costs | {f"always {names[best]}": [s.constant[best] for s in first]}
    record: Record = {
        "losses": str(entry["path"]),
        "actions": names,
        "constant": {name: float(cost) for name, cost in zip(names, constant)},
        "best_constant": names[best],
        "splits": len(first),
        "methods": {
            method: {
                **_mean(costs[method], share, "cost"),
                **_mean([split.expected for split in splits], share, "expected"),
                "actions": _by_action(splits, names),
                "against": {
                    other: _mean(np.subtract(costs[method], values), share, "difference")
                    for other, values in references.items()
                    if other != method
                },
            }
            for method, splits in priced.items()
        },
    }
    if len(losses) == 2:
        record["curve"] = _curve(losses, priced, str(entry["class_names"][1]))
    return record


class _Priced:
    """One method on one split: mean costs, and per action share and gap."""

    def __init__(
        self,
        losses: NDArray[np.float64],
        p: NDArray[np.float64],
        y: NDArray[np.int64],
        rows_sum_to_one: bool,
    ) -> None:
        count = losses.shape[1]
        taken = decisions(losses, p, y, rows_sum_to_one=rows_sum_to_one)
        self.points = len(y)
        self.cost, self.expected = float(taken.realized.mean()), float(taken.expected.mean())
        self.constant = constant_losses(losses, y)
        self.gaps = taken.gaps(count)
        self.shares = np.bincount(taken.actions, minlength=count) / len(y)
        self.curve = self.always = np.empty(0)
        if len(losses) == 2:
            self.curve = net_benefit(p[:, 1].clip(0, 1), y, THRESHOLDS)
            self.always = net_benefit(np.ones(len(y)), y, THRESHOLDS)


def _mean(values: Any, share: float, name: str) -> dict[str, float | None]:
    """Mean over splits and half of its 95 % interval, None for a single split."""
    half = corrected_half_width(values, share)
    return {name: float(np.mean(values)), f"{name}_half_width": None if np.isnan(half) else half}


def _by_action(splits: Sequence[_Priced], names: Sequence[str]) -> dict[str, dict[str, float]]:
    shares = np.mean([split.shares for split in splits], axis=0)
    gaps = np.mean([split.gaps for split in splits], axis=0)
    return {
        name: {"share": float(share), "gap": float(gap)}
        for name, share, gap in zip(names, shares, gaps)
    }


def _curve(
    losses: NDArray[np.float64], priced: Mapping[str, Sequence[_Priced]], event: str
) -> Record:
    """Net benefit of acting on the second class, means over splits."""
    first = next(iter(priced.values()))
    return {
        "event": event,
        "thresholds": THRESHOLDS.tolist(),
        "own_threshold": acting_threshold(losses) if losses.shape == (2, 2) else None,
        "always": np.mean([split.always for split in first], axis=0).tolist(),
        "methods": {
            method: np.mean([split.curve for split in splits], axis=0).tolist()
            for method, splits in priced.items()
        },
    }
