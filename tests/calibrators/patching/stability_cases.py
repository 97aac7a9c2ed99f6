"""What `test_stability` runs in a process of its own: fits, and prints what has to be the same.

python -m tests.calibrators.patching.stability_cases THREADS DEVICE [LOGITS.npz]
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from calibrators import UtilityPatching
from tests.calibrators.patching.patching_problems import over_confident
from tests.devices.emulated_cuda import emulated_cuda

TUNED = {"tuning_runs": 6, "max_steps": 20, "sampled_count": 20}
SAMPLED = {"step_size": 1.0, "steps": 25, "sampled": True, "sampled_count": 40}
FIXED = {"step_size": 1.0, "steps": 40, "sampled": False}


def problems(path: str | None) -> dict[str, tuple[dict[str, Any], Any, Any]]:
    """Options, logits and labels of each fit, by name."""
    found: dict[str, tuple[dict[str, Any], Any, Any]] = {
        "tuned": (TUNED, *over_confident(400, 6, 1)),
        "sampled": (SAMPLED, *over_confident(900, 40, 0)),
    }
    if path:
        with np.load(path) as archive:
            found["real"] = FIXED, archive["logits"][:2000], archive["labels"][:2000]
    return found


def described(calibrator: UtilityPatching, logits: Any) -> dict[str, Any]:
    """Decisions, which have to be equal, and numbers, which rounding may change."""
    predicted = calibrator.predict_proba(logits[:50])
    p = torch.as_tensor(predicted).cpu().numpy()
    tried = [run["parameters"] for run in calibrator.tuning_log_]
    numbers = (calibrator.lows_, calibrator.highs_, calibrator.errors_, calibrator.losses_, p)
    return {
        "decisions": [
            [calibrator.step_size_, calibrator.step_limit_, calibrator.sampled_],
            tried,
            calibrator.kinds_.tolist(),
            calibrator.indices_.tolist(),
            calibrator.steps_.tolist(),
            calibrator.stopped_,
        ],
        "numbers": np.clip(np.concatenate([part.ravel() for part in numbers]), -9, 9).tolist(),
    }


def main(threads: int, device: str, path: str | None = None) -> None:
    """Print one JSON object, a member per fit."""
    torch.set_num_threads(threads)
    answer = {}
    with emulated_cuda() if device == "cuda" else nullcontext():
        for name, (options, logits, labels) in problems(path).items():
            z, y = torch.from_numpy(logits).to(device), torch.from_numpy(labels).to(device)
            answer[name] = described(UtilityPatching(**options).fit(z, y), z)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *(str(Path(each)) for each in sys.argv[3:]))
