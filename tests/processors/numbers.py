"""Print the numbers of some fits as JSON, with the seven digits that the CSV files hold.

python -m tests.processors.numbers small
python -m tests.processors.numbers whole [FOLDER]

`small` fits little, made-up data in seconds. `whole` fits every calibrator of the default suite on
digits and on 100 classes: on one split of the CIFAR-100 logits in FOLDER, else on made-up ones.
Both also have the floors of the appendix study.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.metrics import scorecard
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.pipeline.harness.settings import Dynamics
from utility_calibration.pipeline.harness.units import Request
from utility_calibration.pipeline.scoring.dynamics_study import (
    run_study,
    sample_users,
    worst_floor,
)
from utility_calibration.pipeline.scoring.points import split_indices
from utility_calibration.pipeline.sources.digits import digits_logits
from utility_calibration.pipeline.sources.synthetic import synthetic_logits

Points = tuple[NDArray[Any], NDArray[Any]]  # logits [n, C] and labels [n]
SPLIT = 5
"""The split of which another processor once chose another λ for Dirichlet calibration."""
SMALL = ("isotonic", "dirichlet")
REAL = "cifar100_repvgg_a2.npz"


def main(what: str, folder: str | None = None) -> None:
    """Print the numbers."""
    warnings.simplefilter("ignore")
    found: dict[str, float] = {}
    for name, points in data(what, folder).items():
        few = {"utilities": 20, "floor_repetitions": 30} if what == "small" else {}
        for calibrator, (fitted, p, labels) in fits(points, what).items():
            tuned = [run["score"] for run in getattr(fitted, "tuning_log_", [])]
            values = {**scored(p, labels, **few), "tuning": dict(enumerate(tuned))}
            found |= {f"{name} {calibrator} {key}": x for key, x in numbers_of(values)}
        values = study(points, 4 if what == "small" else 15)
        found |= {f"{name} study {key}": x for key, x in numbers_of(values)}
    print(json.dumps({key: f"{value:.7g}" for key, value in found.items()}))


def data(what: str, folder: str | None) -> dict[str, Points]:
    """The logits and labels of each benchmark."""
    if what == "small":
        return {"made up": made_up(2600, 100)}
    digits = digits_logits()
    found = {"digits": (digits.logits, digits.labels)}
    if folder is None:
        return found | {"made up": made_up(4000, 100)}
    with np.load(Path(folder) / REAL) as real:
        return found | {"CIFAR-100": (real["logits"], real["labels"])}


def made_up(samples: int, classes: int) -> Points:
    """An over-confident classifier whose probabilities are often nearly 1."""
    result = synthetic_logits(samples=samples, classes=classes, temperature=0.4)
    return result.logits, result.labels


def fits(points: Points, what: str) -> dict[str, tuple[Any, NDArray[Any], NDArray[Any]]]:
    """Each fitted calibrator, its predictions for the test points of a split, and their labels."""
    logits, labels = points
    fitted, test = split_indices(len(labels), SPLIT)
    is_small = what == "small"
    tuning = "quick" if is_small or logits.shape[1] < 100 else "paper"
    overrides = "suite=cifar", f"tuning={tuning}"
    request = Request("cifar", ("digits",), SMALL if is_small else suite(), (0,), overrides)
    found = {}
    for unit in request.units():
        calibrator = instantiate(unit.settings.calibrator, _convert_="all")
        calibrator.fit(logits[fitted], labels[fitted])
        p = calibrator.predict_proba(logits[test])
        found[unit.calibrator] = calibrator, p, labels[test]
    return found


def suite() -> tuple[str, ...]:
    """The calibrators of the default suite."""
    from utility_calibration.pipeline.harness.units import composed

    return tuple(composed(["suite=cifar"]).suite.calibrators)


def scored(p: NDArray[Any], labels: NDArray[Any], **few: int) -> dict[str, Any]:
    """The scores of a forecast with floors and certificates; `few`: options of the scorecard."""
    card = scorecard(p, labels, bootstrap_repetitions=0, **few)
    parts = {
        part: {key: getattr(card[key], part)._asdict() for key in card if hasattr(card[key], part)}
        for part in ("floor", "interval")
    }
    return {"": card.metrics, **parts}


def study(points: Points, rounds: int) -> dict[str, Any]:
    """The last errors and the floors of the appendix study, whose users often have ties."""
    logits, labels = points
    calibration, held_out = (
        PatchedForecast(softmax(logits[rows].astype(np.float64)), labels[rows])
        for rows in split_indices(len(labels), 0)
    )
    composed = Request("cifar", ("digits",), ("temperature",), (0,), ("suite=cifar",)).units()[0]
    values = asdict(composed.settings.dynamics)
    options = Dynamics(**values | {"iterations": rounds, "snapshots": [], "utilities": 128})
    history, _ = run_study(calibration, held_out, "misaligned", options)
    users = sample_users("misaligned", logits.shape[1], rounds, options)
    floor = worst_floor(calibration, users, options)
    return {"last": history.iloc[-1][["worst", "mean", "held_out"]].to_dict(), "floor": floor}


def numbers_of(values: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of nested dictionaries, with the names on the way to each."""
    for key, value in values.items():
        name = f"{before} {key}".strip()
        if isinstance(value, Mapping):
            yield from numbers_of(value, name)
        else:
            yield name, float(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
