"""The random numbers that torch's generator on the CPU gives for a seed, bit for bit, by NumPy.

Both are the Mersenne twister with the same start. Sampled users, floors and batches were first
drawn with torch's numbers, and stay what they were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

SIXTEEN = 16
"""Normal numbers are made of so many uniform ones at a time."""

TOGETHER = 1 << 18
"""Numbers made at a time, because whole words take four times the memory of a number."""


class Draws:
    """A stream of numbers of one seed; each call goes on where the last one ended."""

    def __init__(self, seed: int) -> None:
        # Only `RandomState` starts the twister from a seed as torch does.
        start: Any = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)
        self._twister = np.random.MT19937()
        self._twister.state = start

    def _words(self, count: int) -> NDArray[np.uint64]:
        """Return whole numbers below 2^32."""
        return self._twister.random_raw(count).astype(np.uint64, copy=False)

    def _long_words(self, count: int) -> NDArray[np.uint64]:
        words = self._words(2 * count)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def uniforms(self, *shape: int) -> NDArray[np.float64]:
        """Return numbers on [0, 1), as `torch.rand` in float64."""
        numbers = np.empty(math.prod(shape))
        for start in range(0, numbers.size, TOGETHER):
            block = numbers[start : start + TOGETHER]
            words = self._long_words(block.size) & np.uint64((1 << 53) - 1)
            np.multiply(words, 2.0**-53, out=block)
        return numbers.reshape(shape)

    def short_uniforms(self, *shape: int) -> NDArray[np.float32]:
        """Return numbers on [0, 1) of 24 bits, as `torch.rand` in float32."""
        words = self._words(math.prod(shape)) & np.uint64((1 << 24) - 1)
        return (words.astype(np.float32) * np.float32(2.0**-24)).reshape(shape)

    def below(self, limit: int, *shape: int) -> NDArray[np.int64]:
        """Return whole numbers from 0 to `limit` - 1, as `torch.randint`; limit < 2^32."""
        words = self._words(math.prod(shape)) % np.uint64(limit)
        return words.astype(np.int64).reshape(shape)

    def keys(self, count: int) -> NDArray[np.int64]:
        """Return any int64 but the largest, as `torch.randint` between the two ends."""
        most = np.uint64((1 << 64) - 1)
        return (self._long_words(count) % most ^ np.uint64(1 << 63)).view(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return the numbers below n in some order, as `torch.randperm`."""
        order = np.arange(n)
        for place, word in enumerate(self._words(max(0, n - 1)).tolist()):
            other = place + word % (n - place)
            order[place], order[other] = order[other], order[place]
        return order

    def normals(self, count: int) -> NDArray[np.float64]:
        """Return standard normal numbers, at least 16 of them, as `torch.randn` in float64."""
        numbers = self.uniforms(count)
        whole = count - count % SIXTEEN
        _make_normal(numbers[:whole])
        if whole < count:  # the last sixteen are drawn again, and overlap those before
            last = self.uniforms(SIXTEEN)
            _make_normal(last)
            numbers[-SIXTEEN:] = last
        return numbers


@compiled
def _make_normal(numbers: Any) -> None:
    """Turn uniform numbers into normal ones (Box & Muller 1958), eight pairs at a time.

    The C library computes the logarithm and the angles, as for torch. NumPy's own ones differ in
    the last bit between processors with AVX-512 and others.
    """
    half = SIXTEEN // 2
    for start in range(0, numbers.size, SIXTEEN):
        for i in range(start, start + half):
            radius = math.sqrt(-2.0 * math.log(1.0 - numbers[i]))
            angle = 2.0 * math.pi * numbers[i + half]
            numbers[i] = radius * math.cos(angle)
            numbers[i + half] = radius * math.sin(angle)
