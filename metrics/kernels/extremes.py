"""The smaller and the larger of two doubles, as one instruction each, in vector lanes, too.

Written as a comparison, `low[i] = x if x < low[i] else low[i]` becomes a store that is left out
where nothing changes; with AVX2 that is a store under a mask, which some processors are slow at.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, overload


def smaller(a: float, b: float) -> float:
    """The smaller of two doubles, none of them NaN."""
    return min(a, b)


def larger(a: float, b: float) -> float:
    """The larger of two doubles, none of them NaN."""
    return max(a, b)


def _instruction(name: str) -> Any:
    """LLVM's intrinsic function of two doubles, for use in kernels."""

    @intrinsic
    def call(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double, double])
            function = get_or_insert_function(builder.module, kind, name)
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return numba.float64(numba.float64, numba.float64), generate

    return call


_MINNUM, _MAXNUM = _instruction("llvm.minnum.f64"), _instruction("llvm.maxnum.f64")
overload(smaller)(lambda a, b: lambda a, b: _MINNUM(a, b))
overload(larger)(lambda a, b: lambda a, b: _MAXNUM(a, b))
