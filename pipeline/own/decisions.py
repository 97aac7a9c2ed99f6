"""The cost of a user's decision on the test points with each method: out/decisions.{json,md}.

The actions of all methods are priced on the same test points, split by split, so methods are
compared in pairs. The constant action is the best in hindsight, which no method can know. So is the
better action wherever one was chosen, and hindsight finds one by chance as well. What chance saves
comes from labels drawn from the method's own probabilities (metrics.resampling).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from numpy.typing import NDArray

from metrics.decisions import (
    Decisions,
    acting_threshold,
    constant_losses,
    decisions,
    net_benefit,
    swap_savings,
)
from metrics.forecast import Forecast
from metrics.resampling import LARGEST, NoiseFloor, redrawn_outcomes, resampled_weights
from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.settings import Evaluation
from pipeline.harness.units import Unit
from pipeline.own.decisions_text import decision_curve_figure, decisions_table
from pipeline.own.utilities import actions_of
from pipeline.reporting.style import save_figure
from pipeline.scoring.held_out import HeldOut, held_out
from pipeline.scoring.inference import FEWEST_SPLITS, paired_difference

Record = dict[str, Any]
THRESHOLDS = np.round(np.arange(0.01, 1, 0.01), 2)
TINY = 1e-300
MOST_SAVINGS = 1 << 27
"""Numbers kept per method: savings of each pair of actions under each draw of the labels, 1 GB."""


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
    by_split: dict[str, list[dict[str, Any]]] = {}
    drawn: dict[str, Any] = {}  # summed over the splits, because of their size
    for unit in units:
        test = held_out(unit, "cpu")
        p, rows_sum_to_one = test.probabilities.numpy(), test.rows_sum_to_one
        taken = decisions(losses, p, test.labels.numpy(), rows_sum_to_one=rows_sum_to_one)
        by_split.setdefault(unit.calibrator, []).append(_priced(losses, test, taken, unit))
        if rows_sum_to_one:
            by_chance = _savings_by_chance(losses, test, taken, unit.settings.evaluation)
            drawn[unit.calibrator] = drawn.get(unit.calibrator, 0) + by_chance
    priced = {
        method: {key: np.array([split[key] for split in splits]) for key in splits[0]}
        for method, splits in by_split.items()
    }
    first = next(iter(priced.values()))
    constant = first["constant"].mean(axis=0)
    best = int(constant.argmin())
    share = first["points"][0] / test.population
    costs = {method: (values["cost"], values["drawn"]) for method, values in priced.items()}
    always = first["constant"][:, best], first["drawn_constant"][:, best]
    references = costs | {f"always {names[best]}": always}
    record: Record = {
        "losses": str(entry["path"]),
        "actions": names,
        "constant": dict(zip(names, constant.tolist())),
        "best_constant": names[best],
        "splits": len(first["cost"]),
        "methods": {
            method: {
                **_method_record(values, names, share, drawn.get(method)),
                "against": {
                    other: _mean(
                        values["cost"] - cost, share, "difference", values["drawn"] - draws
                    )
                    for other, (cost, draws) in references.items()
                    if other != method
                },
            }
            for method, values in priced.items()
        },
    }
    if len(losses) == 2:
        record["curve"] = {
            "event": str(entry["class_names"][1]),
            "thresholds": THRESHOLDS.tolist(),
            "own_threshold": acting_threshold(losses) if losses.shape == (2, 2) else None,
            "always": first["always"].mean(axis=0).tolist(),
            "methods": {m: values["curve"].mean(axis=0).tolist() for m, values in priced.items()},
        }
    return record


def _method_record(
    values: Mapping[str, NDArray[np.float64]], names: Sequence[str], share: float, drawn: Any
) -> Record:
    """The costs of one method, its share and gap per action, and the better action of hindsight.

    Args:
        values: what `_priced` returns, one entry per split; drawn: [R, K, K], the savings by chance
            summed over the splits, or None.
    """
    return {
        **_mean(values["cost"], share, "cost", values["drawn"]),
        **_mean(values["expected"], share, "expected"),
        "actions": {
            name: {key: float(values[key][:, action].mean()) for key in ("share", "gap")}
            for action, name in enumerate(names)
        },
        "otherwise": _otherwise(
            values["savings"].mean(axis=0),
            None if drawn is None else drawn / len(values["cost"]),
            names,
        ),
    }


def _priced(
    losses: NDArray[np.float64], test: HeldOut, taken: Decisions, unit: Unit
) -> dict[str, Any]:
    """One method on one split: mean costs, share and gap of each action, and net benefits.

    `drawn` [B] and `drawn_constant` [K, B]: the costs under draws of the points, the same for every
    method; none where tests need none.
    """
    p, labels, actions = test.probabilities.numpy(), test.labels.numpy(), losses.shape[1]
    weights = np.ones(len(labels)) if test.weights is None else test.weights
    drawn = np.concatenate([np.empty((0, len(labels))), *_resampled(test, unit)]) * weights
    drawn /= np.maximum(drawn.sum(axis=1, keepdims=True), TINY)
    priced = {
        "drawn": drawn @ np.asarray(taken.realized),
        "drawn_constant": (drawn @ losses[labels]).T,
        "points": len(labels),
        "cost": np.average(taken.realized, weights=weights),
        "expected": np.average(taken.expected, weights=weights),
        "constant": constant_losses(losses, labels, weights),
        "gap": taken.gaps(actions, weights),
        "savings": swap_savings(losses, taken.actions, labels, weights),
        "share": np.bincount(taken.actions, weights, actions) / weights.sum(),
    }
    if len(losses) == 2:
        priced["curve"] = net_benefit(p[:, 1].clip(0, 1), labels, THRESHOLDS, weights)
        priced["always"] = net_benefit(np.ones(len(labels)), labels, THRESHOLDS, weights)
    return priced


def _resampled(test: HeldOut, unit: Unit) -> Iterator[NDArray[np.float64]]:
    """How often each point is drawn, [r, n] at a time; nothing where there are many splits."""
    evaluation, few = unit.settings.evaluation, unit.settings.splits.count < FEWEST_SPLITS
    numbers, count = test.points, test.population
    if test.clusters is not None:
        numbers, count = test.clusters, test.cluster_count
    draws = evaluation.bootstrap_repetitions * (few and count <= LARGEST)
    for weights in resampled_weights(
        torch.from_numpy(numbers), count, draws, evaluation.noise_seed
    ):
        yield np.asarray(weights)


def _savings_by_chance(
    losses: NDArray[np.float64], test: HeldOut, taken: Decisions, evaluation: Evaluation
) -> NDArray[np.float64]:
    """`swap_savings` under labels drawn from the forecast: [R, K, K]."""
    count = losses.shape[1]
    repetitions = min(evaluation.floor_repetitions, max(1, MOST_SAVINGS // count**2))
    forecast, points = Forecast(test.probabilities), torch.from_numpy(test.points)
    draws = redrawn_outcomes(forecast, points, repetitions, evaluation.noise_seed)
    saved = [swap_savings(losses, taken.actions, draw.labels, test.weights) for _, draw in draws]
    return np.asarray(torch.cat(saved))


def _otherwise(
    savings: NDArray[np.float64], drawn: NDArray[np.float64] | None, names: Sequence[str]
) -> Record:
    """The better action instead of one that was chosen, of all such pairs the one that saves most.

    Args:
        savings: mean over splits, [K, K]; drawn: the same under drawn labels, [R, K, K].
    """
    action, instead = divmod(int(savings.argmax()), len(names))
    saved = float(savings[action, instead])
    record: Record = {"action": names[action], "instead": names[instead], "saved": saved}
    if drawn is None or not len(drawn):
        return record | {"floor_q95": None, "p_value": None}
    floor = NoiseFloor.of(drawn.max(axis=(1, 2)), saved)
    return record | {"floor_q95": floor.q95, "p_value": floor.p_value}


def _mean(
    values: NDArray[np.float64], share: float, name: str, draws: Any = ()
) -> dict[str, float | None]:
    """Mean over splits and half of its 95 % interval, None where it is not known.

    Args:
        values: [J]; draws: [J, B], the same under resampled points.
    """
    drawn = np.mean(draws, axis=0) if np.size(draws) else None
    found = paired_difference(
        values, 0 * values, share, drawn, None if drawn is None else 0 * drawn
    )
    half = None if np.isnan(found.half_width) else found.half_width
    return {name: float(values.mean()), f"{name}_half_width": half}
