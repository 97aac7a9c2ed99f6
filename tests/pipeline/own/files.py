"""Points that the tests write to files, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from utility_calibration.pipeline.sources.file import file_logits

N = 60
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), N)
Y = np.array([rng.choice(3, p=row) for row in P])
Y[:3] = range(3)
OWN = P[range(N), Y]
"""The probability of each point's own class."""
PATTERNS = (
    *("p_{}", "{}", "p{}", "class{}", "{}_prob", "p({})", "P[{}]", "class_{}_score", "Class={}"),
    *("grade {} (%)", "logit_{}_x", "Pr[y={}]", "m2_{}", "{} (m2)", "*{}*"),
)
"""How people name the column of a class."""
WORDS = ["New York", "bird", "cat", "dog", "naïve"]
"""Classes in the order of text, in which they are kept."""
LOGITS, NAMES = np.log(P), np.array(["ant", "bee", "cat"])


def table(p: Any = P, y: Any = Y, names: Any = ("p_0", "p_1", "p_2"), **columns: Any):
    return pd.DataFrame(p, columns=list(names)).assign(label=y, **columns)


def written(path, content):
    """`content` as a file: arrays as npz, a table by the ending, text as it is."""
    if isinstance(content, dict):
        path = path.with_suffix(".npz")
        np.savez(path, **content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".parquet":
        content.to_parquet(path)
    elif path.suffix == ".jsonl":
        content.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        content.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def read(path, content, **options: Any):
    """What the reader makes of the content, after it went through a file."""
    return file_logits(path=written(path, content), **options)


def own_of(result):
    """The probability of each point's own class, and the notes."""
    p = softmax(np.asarray(result.logits, float), axis=1)
    return p[np.arange(len(p)), result.labels], result.details["warnings"]
