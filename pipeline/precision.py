"""Logits as the pipeline keeps them: float32, without what all classes of a point have in common.

A probability depends on the differences of a row's logits alone. Sums of log-likelihoods can be of
the size of 1e8, where float32 has no number between 1e8 and 1e8 + 8. So the row's maximum is taken
away before the numbers become float32.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.precision import LARGE


def in_float32(logits: NDArray[Any]) -> NDArray[np.float32]:
    """Return logits [n, C], -inf for impossible classes, as float32.

    If some row's largest logit is larger than `LARGE` or smaller than its negative, every row loses
    its maximum first, unless float32 has all numbers as they are. Smaller logits stay as they are,
    because vector and matrix scaling also see what the classes of a point have in common.

    Raises:
        InputError: a row's largest logit is too large for float32.
    """
    if logits.dtype in (np.float16, np.float32):
        return np.asarray(logits, dtype=np.float32)
    top = logits.max(axis=1, keepdims=True)
    if top.max() > np.finfo(np.float32).max:
        row, fix = int(top[:, 0].argmax()), "divide all by one constant"
        raise InputError("too large for float32", field="logits", row=row, fixes=fix)
    with np.errstate(over="ignore"):  # what is very small becomes -inf, an impossible class
        single = np.asarray(logits, dtype=np.float32)
        if np.abs(top).max() > LARGE and not (single == logits).all():
            single = np.asarray(logits - top, dtype=np.float32)
    return single
