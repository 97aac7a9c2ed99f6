"""Advice: whoever follows what a message suggests gets the right numbers, or another message."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import PATTERNS, WORDS, own_of, written
from utility_calibration.metrics import InputError
from utility_calibration.pipeline.sources.file import file_logits

N, SEEDS = 400, 80
OPTION = re.compile(
    r"--(classes|ignore-label|ignore|labels|values)[ =]('[^']*'|[^\s;,]+(?:,[^\s;,]+)*)"
)
FEATURES = {
    "age_weeks": lambda rng: rng.integers(24, 42, N),
    "score_1min": lambda rng: rng.integers(0, 10, N),
    "score_5min": lambda rng: rng.integers(0, 10, N),
    "x_0": lambda rng: rng.normal(size=N),
    "x_1": lambda rng: rng.normal(size=N),
    "x_2": lambda rng: rng.normal(size=N),
    "humidity": lambda rng: rng.random(N),
    "temperature_c": lambda rng: rng.normal(37, 0.5, N).round(1),
    "fold": lambda rng: rng.integers(0, 5, N),
    "ward_id": lambda rng: np.arange(N) // 4,
    "note": lambda rng: ["seen"] * N,
    "pred_label": lambda rng: rng.integers(0, 3, N),
    "confidence": lambda rng: rng.random(N),
    "p_value": lambda rng: rng.random(N),
    "prob_95": lambda rng: rng.random(N),
    "all_zero": lambda rng: np.zeros(N),
}
SINGLES = ("risk_probability", "p_1", "p_sick", "risk", "Probability_X", "score")


def file_of(seed: int):
    """A file that may be unclear, and by row the probability of the own class (nan: left out)."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 6))
    z = 2 * rng.normal(size=(N, classes))
    p = softmax(z, axis=1)
    y = (p.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    own, labels, names = p[np.arange(N), y], y.copy(), list(map(str, range(classes)))
    match rng.integers(6):  # what the labels are
        case 0:
            labels = labels + 1
        case 1:
            odd, ignored = [-100, -1, 255, classes][rng.integers(4)], rng.random(N) < 0.3
            labels, own = np.where(ignored, odd, labels), np.where(ignored, np.nan, own)
            absent = (y == classes - 1) & (rng.random() < 0.7)  # no point is of this class
            labels, own, p, z = (of[~absent] for of in (labels, own, p, z))
        case 2:
            names = WORDS[:classes]
            labels = np.array(names)[y]
    answers = p if rng.random() < 0.5 else z
    if rng.random() < 0.3:
        kind = "probabilities" if answers is p else "logits"
        return {kind: answers, "labels": labels}, own
    patterns = rng.choice(PATTERNS, 1 if rng.random() < 0.9 else classes)
    table = pd.DataFrame(answers)
    table.columns = [patterns[k % len(patterns)].format(name) for k, name in enumerate(names)]
    if classes == 2 and rng.random() < 0.6:
        table = pd.DataFrame({SINGLES[rng.integers(len(SINGLES))]: p[:, 1].round(9)})
    for name in rng.choice(list(FEATURES), rng.integers(5), replace=False):
        if name not in table:
            table[name] = np.asarray(FEATURES[name](rng))[: len(table)]
    table["label"] = labels
    return table[[table.columns[k] for k in rng.permutation(table.shape[1])]], own


def outcomes(path, own, depth=3, **options):
    """What is read with the options, and with all that the messages then suggest."""
    try:
        result = file_logits(path=path, **options)
    except InputError as error:
        if depth:
            for name, value in OPTION.findall(str(error)):
                (text,) = shlex.split(value)
                known, name = options, name.replace("-", "_")
                if "NAME" not in text and "LABEL" not in text and name not in known:
                    yield from outcomes(path, own, depth - 1, **{**known, name: text})
    else:
        q, _ = own_of(result)
        kept = own if len(q) == len(own) else own[~np.isnan(own)]
        yield options, len(q) == len(kept) and bool(np.allclose(q, kept, rtol=1e-3))


@pytest.mark.parametrize("start", range(0, SEEDS, 20))
def test_following_any_advice_never_gives_a_wrong_number(tmp_path, start):
    followed = 0
    for seed in range(start, start + 20):
        content, own = file_of(seed)
        path = written(tmp_path / "a.csv", content)
        for options, is_right in outcomes(path, own):
            assert is_right, (seed, options, list(content))
            followed += bool(options)
    assert followed > 2
