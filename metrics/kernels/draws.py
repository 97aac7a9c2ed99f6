"""The random numbers that torch's generator on the CPU gives for a seed, bit for bit, by NumPy.

Both are the Mersenne twister with the same start. Results that were written with torch's numbers
(sampled users, floors, batches) stay what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Draws:
    """A stream of numbers; each call goes on where the last one ended."""

    def __init__(self, seed: int) -> None:
        self._bits: Any = np.random.RandomState(seed & 0xFFFFFFFF)._bit_generator

    def _long(self, count: int) -> NDArray[np.uint64]:
        words = self._bits.random_raw(2 * count).astype(np.uint64, copy=False)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def uniforms(self, *shape: int) -> NDArray[np.float64]:
        """Numbers on [0, 1)."""
        longs = self._long(int(np.prod(shape))) & np.uint64((1 << 53) - 1)
        return (longs.astype(np.float64) * 2.0**-53).reshape(shape)

    def short_uniforms(self, *shape: int) -> NDArray[np.float32]:
        """Numbers on [0, 1) of 24 bits."""
        words = self._bits.random_raw(int(np.prod(shape))) & ((1 << 24) - 1)
        return (words.astype(np.float32) * np.float32(2.0**-24)).reshape(shape)

    def below(self, limit: int, *shape: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to `limit` - 1; limit < 2^32."""
        words = self._bits.random_raw(int(np.prod(shape)))
        return (words % limit).astype(np.int64).reshape(shape)

    def keys(self, count: int) -> NDArray[np.int64]:
        """Any 64-bit numbers but the largest one."""
        most = np.uint64((1 << 64) - 1)
        return (self._long(count) % most ^ np.uint64(1 << 63)).view(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """The numbers below n in some order."""
        order, words = np.arange(n), self._bits.random_raw(max(0, n - 1)) if n > 1 else []
        for i, word in enumerate(words):
            k = i + int(word) % (n - i)
            order[i], order[k] = order[k], order[i]
        return order

    def normals(self, count: int) -> NDArray[np.float64]:
        """Standard normal numbers, at least 16 of them: Box and Muller, in sixteens."""
        x = self.uniforms(count)
        whole = count - count % 16
        x[:whole] = _of_sixteens(x[:whole])
        if whole < count:
            x[-16:] = _of_sixteens(self.uniforms(16))
        return x


def _of_sixteens(x: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second = x.reshape(-1, 2, 8).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), 2 * np.pi * second
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
