"""The last bit of a number decides nothing: what `UtilityPatching` guarantees, and its reasons."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from calibrators import UtilityPatching
from calibrators import reference as plain
from calibrators.patching import state
from metrics import scorecard
from metrics.reference import projection
from tests.calibrators.patching.patching_problems import over_confident
from tests.calibrators.patching.stability_cases import FIXED, SAMPLED, TUNED

ROOT = Path(__file__).resolve().parents[3]
MADE_UP_CLASSES = 40
PROCESSES = {
    "four threads, torch and matrix products as on any processor": (
        4,
        "cpu",
        {
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "OPENBLAS_CORETYPE": "Nehalem",
            "OPENBLAS_NUM_THREADS": "4",
        },
    ),
    "two threads, kernels for any processor": (
        2,
        "cpu",
        {"NUMBA_CPU_NAME": "generic", "OPENBLAS_NUM_THREADS": "2"},
    ),
    "an emulated device": (1, "cuda", {}),
}


def one_ulp(logits, seed):
    """Up or down at random, every number, in float64."""
    up = np.random.default_rng(seed).random(logits.shape) < 0.5
    return np.nextafter(logits.astype(np.float64), np.where(up, np.inf, -np.inf))


def decisions(calibrator):
    tried = [run["parameters"] for run in calibrator.tuning_log_]
    chosen = calibrator.step_size_, calibrator.step_limit_, calibrator.sampled_
    patches = (calibrator.kinds_, calibrator.indices_, calibrator.steps_)
    return [tried, chosen, [part.tolist() for part in patches], calibrator.stopped_]


CASES = {"made up": FIXED, "cifar10_resnet56": SAMPLED, "cifar100_resnet56": TUNED}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def problem(request, case):
    """Logits and labels to fit on, and logits to predict."""
    if case == "made up":
        logits, labels = over_confident(3900, MADE_UP_CLASSES, 5)
        return logits[:900], labels[:900], logits[900:]
    shared = request.getfixturevalue("shared_dir")
    with np.load(shared / "logits" / f"{case}.npz") as archive:
        logits, labels = archive["logits"], archive["labels"]
    order = np.random.default_rng(1).permutation(len(labels))
    fit, test = order[:1500], order[1500:4500]
    return logits[fit], labels[fit], logits[test]


@pytest.fixture(scope="module")
def fitted(case, problem):
    logits, labels, _ = problem
    return UtilityPatching(**CASES[case]).fit(logits.astype(np.float64), labels)


def test_the_last_bit_of_test_logits_changes_no_probability(fitted, problem):
    p, moved = (fitted.predict_proba(z) for z in (problem[2], one_ulp(problem[2], 1)))
    np.testing.assert_allclose(moved, p, rtol=0, atol=1e-9)


def test_the_last_bit_of_test_logits_changes_no_metric(fitted, problem):
    """Exact ranks and bins would order what projection made equal but for rounding."""
    labels = np.arange(len(problem[2])) % problem[2].shape[1]
    before, after = (
        scorecard(fitted.predict_proba(z), labels, utilities=20, floor_repetitions=0).metrics
        for z in (problem[2], one_ulp(problem[2], 1))
    )
    assert after == pytest.approx(before, rel=1e-6, abs=1e-9)


def test_the_last_bit_of_calibration_logits_changes_no_decision(fitted, problem):
    logits, labels, test = problem
    again = UtilityPatching(**fitted.get_params()).fit(one_ulp(logits, 2), labels)
    assert decisions(again) == decisions(fitted)
    expected = fitted.predict_proba(test)
    np.testing.assert_allclose(again.predict_proba(test), expected, rtol=0, atol=1e-6)


def replayed_in_float32(calibrator, logits):
    """As an exported model would: every array in single precision."""
    z = logits.astype(np.float32)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    for patch in calibrator.patches():
        payoff = patch.utility.payoff.numpy().astype(np.float32)
        vectors = np.tile(payoff, (len(p), 1))
        if patch.utility.by_rank:
            order = plain.tied_order(p)
            np.put_along_axis(vectors, order, payoff[None], axis=1)
        v = (p * vectors).sum(axis=1)
        inside = (v >= np.float32(patch.low)) & (v <= np.float32(patch.high))
        p[inside] = projection(p[inside] + np.float32(patch.step) * vectors[inside])
    assert p.dtype == np.float32
    return p


def test_a_replay_in_float32_differs_in_two_rows_of_a_thousand_at_most(fitted, problem):
    test = problem[2]
    off = np.abs(replayed_in_float32(fitted, test) - fitted.predict_proba(test)).max(axis=1)
    # The small probabilities of made-up logits lie everywhere, also about the tolerance apart.
    assert (off > 1e-4).mean() <= (0.005 if test.shape[1] == MADE_UP_CLASSES else 0.002)


def run(threads, device, settings, logits):
    command = [sys.executable, "-m", "tests.calibrators.patching.stability_cases"]
    command += [str(threads), device, *logits]
    environment = {**os.environ, **settings}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def logits_file(request):
    """Real logits, where there are some."""
    try:
        shared = request.getfixturevalue("shared_dir")
    except pytest.skip.Exception:
        return []
    return [str(shared / "logits" / "cifar100_resnet56.npz")]


@pytest.fixture(scope="module")
def alone(logits_file):
    """One thread of this machine's processor."""
    return run(1, "cpu", {}, logits_file)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_the_same_patches_come_out_everywhere(name, alone, logits_file):
    found = run(*PROCESSES[name], logits_file)
    assert found.keys() == alone.keys()
    for fit in alone:
        assert found[fit]["decisions"] == alone[fit]["decisions"], fit
        numbers = found[fit]["numbers"], alone[fit]["numbers"]
        np.testing.assert_allclose(*numbers, rtol=0, atol=1e-9, err_msg=fit)


def test_without_tied_ranks_rounding_would_decide(monkeypatch):
    """The test above can fail."""
    logits, labels = over_confident(3900, MADE_UP_CLASSES, 5)
    monkeypatch.setattr(state, "TIED_RANKS", 1e-15)
    calibrator = UtilityPatching(**FIXED).fit(logits[:900].astype(np.float64), labels[:900])
    forecast = state.PatchedForecast(torch.from_numpy(logits[900:]).double().softmax(dim=1))
    for patch in calibrator.patches():
        patch.apply(forecast, calibrator._update())
    expected = forecast.probabilities.numpy()
    off = np.abs(replayed_in_float32(calibrator, logits[900:]) - expected).max(axis=1)
    assert (off > 1e-4).mean() > 0.005
