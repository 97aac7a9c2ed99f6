"""The cost of a user's decision on the test points with each method (decisions.json).

The actions of all methods are priced on the same test points, split by split, so methods are
compared in pairs. The constant action is the best in hindsight, which no method can know.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from utility_calibration.metrics.batches import MOST_POINTS_FOR_USERS
from utility_calibration.metrics.decision_losses import (
    Decisions,
    acting_threshold,
    constant_losses,
    decide,
    net_benefit,
)
from utility_calibration.metrics.resampling import resampled_weights

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.task import Progress
from ..harness.units import Unit
from .held_out import HeldOut, held_out
from .inference import FEWEST_SPLITS, paired_difference

Floats = NDArray[np.float64]
THRESHOLDS = np.round(np.arange(0.01, 1, 0.01), 2)
TINY = 1e-300


def costs_of(units: Sequence[Unit], progress: Progress) -> tuple[Save, Record]:
    """The record: `costs` by the losses in `evaluation.own`, with all calibrators on all splits.

    Per method and constant action mean losses, gaps, and for two classes the decision curve.
    """
    entry = (units[0].settings.evaluation.own or {})["u_losses"]
    decision = instantiate(entry, _convert_="all")
    losses: Floats = decision.losses[0]
    by_split: dict[str, list[dict[str, Any]]] = {}
    share = 1.0
    for unit in units:
        test, method = held_out(unit), unit.calibrator
        p, labels, is_whole = test.probabilities, test.labels, test.rows_sum_to_one
        chosen, _ = decide(p, labels, losses, rows_sum_to_one=is_whole)
        if not by_split:
            share = len(labels) / test.population
        by_split.setdefault(method, []).append(_on_split(losses, test, chosen, unit))
    by_method = {method: _stacked(splits) for method, splits in by_split.items()}
    record: Record = {"losses": str(entry["path"]), "actions": list(decision.actions)}
    record |= _compared(by_method, decision.actions, share)
    if len(losses) == 2:
        record["curve"] = _curve(by_method, losses, str(entry["class_names"][1]))
    return partial(save_npz, arrays={}), {"costs": record}


def _stacked(splits: Sequence[Mapping[str, Any]]) -> dict[str, Floats]:
    """What `_on_split` gives, with the splits as first axis."""
    return {key: np.array([split[key] for split in splits]) for key in splits[0]}


def _curve(by_method: Mapping[str, Mapping[str, Floats]], losses: Floats, event: str) -> Record:
    """The decision curve of two classes; `event` is the name of the second one."""
    first = next(iter(by_method.values()))
    curves = {}
    for method, values in by_method.items():
        curves[method] = values["curve"].mean(axis=0).tolist()
    return {
        "event": event,
        "thresholds": THRESHOLDS.tolist(),
        "own_threshold": acting_threshold(losses) if losses.shape == (2, 2) else None,
        "always": first["always"].mean(axis=0).tolist(),
        "methods": curves,
    }


def _compared(
    by_method: Mapping[str, Mapping[str, Floats]], names: Sequence[str], share: float
) -> Record:
    """Costs per method, against every other one and the best constant action.

    `by_method`: by method what `_on_split` gives, with the splits as first axis; `names` of the
    actions; `share` of the points that test.
    """
    first = next(iter(by_method.values()))
    constant = first["constant"].mean(axis=0)
    best = int(constant.argmin())
    references = {method: (values["cost"], values["drawn"]) for method, values in by_method.items()}
    always = first["constant"][:, best], first["drawn_constant"][:, best]
    references[f"always {names[best]}"] = always
    methods = {}
    for method, values in by_method.items():
        rivals = {key: pair for key, pair in references.items() if key != method}
        methods[method] = _of_method(values, rivals, names, share)
    return {
        "constant": dict(zip(names, constant.tolist())),
        "best_constant": names[best],
        "splits": len(first["cost"]),
        "methods": methods,
    }


def _of_method(
    values: Mapping[str, Floats],
    rivals: Mapping[str, tuple[Floats, Floats]],
    names: Sequence[str],
    share: float,
) -> Record:
    """Costs of one method, its actions, and its gaps to `rivals`: their costs and drawn costs."""
    actions = {}
    for action, name in enumerate(names):
        actions[name] = {key: float(values[key][:, action].mean()) for key in ("share", "gap")}
    against = {}
    for rival, (cost, draws) in rivals.items():
        gaps, drawn_gaps = values["cost"] - cost, values["drawn"] - draws
        against[rival] = _mean(gaps, share, "difference", drawn_gaps)
    return {
        **_mean(values["cost"], share, "cost", values["drawn"]),
        **_mean(values["expected"], share, "expected"),
        "actions": actions,
        "against": against,
    }


def _on_split(losses: Floats, test: HeldOut, chosen: Decisions, unit: Unit) -> dict[str, Any]:
    """One method on one split: mean costs, share and gap of each action, and net benefits.

    `drawn` [B] and `drawn_constant` [K, B]: the costs under draws of the points, the same for every
    method; none where there are many splits, whose tests need none.
    """
    labels, actions, evaluation = test.labels, losses.shape[1], unit.settings.evaluation
    weights = np.ones(len(labels)) if test.weights is None else test.weights
    numbers, count = test.points, test.population
    if test.clusters is not None:
        numbers, count = test.clusters, test.cluster_count
    is_drawn = unit.settings.splits.count < FEWEST_SPLITS and count <= MOST_POINTS_FOR_USERS
    draws, seed = evaluation.bootstrap_repetitions * is_drawn, evaluation.noise_seed
    times = resampled_weights(numbers, count, draws, seed)
    drawn = np.concatenate([np.empty((0, len(labels))), *map(np.asarray, times)]) * weights
    drawn /= np.maximum(drawn.sum(axis=1, keepdims=True), TINY)
    results = {
        "drawn": drawn @ np.asarray(chosen.realized),
        "drawn_constant": (drawn @ losses[labels]).T,
        "cost": np.average(chosen.realized, weights=weights),
        "expected": np.average(chosen.expected, weights=weights),
        "constant": constant_losses(labels, losses, weights),
        "gap": chosen.gaps(actions, weights),
        "share": np.bincount(chosen.actions, weights, actions) / weights.sum(),
    }
    if len(losses) == 2:
        p = test.probabilities[:, 1].clip(0, 1)
        results["curve"] = net_benefit(p, labels, THRESHOLDS, weights)
        results["always"] = net_benefit(np.ones(len(labels)), labels, THRESHOLDS, weights)
    return results


def _mean(values: Floats, share: float, name: str, draws: Any = ()) -> dict[str, float | None]:
    """Mean of `values` [J] over splits, half of its 95 % interval; `draws` [J, B]: resampled."""
    drawn = np.mean(draws, axis=0) if np.size(draws) else None
    none = None if drawn is None else 0 * drawn
    difference = paired_difference(values, 0 * values, share, drawn, none)
    half = None if np.isnan(difference.half_width) else difference.half_width
    return {name: float(values.mean()), f"{name}_half_width": half}
