"""Which methods make decisions cheaper or dearer than others, from the record of costs.py.

In all functions `costs` has by method what decisions cost with it: the `methods` of that record.
"""

from collections.abc import Mapping
from typing import Any

ROUNDING = 1e-12  # a smaller difference of losses comes from the order of a sum


def cheapest(costs: Mapping[str, Any]) -> str:
    """The method whose decisions cost least."""
    return min(costs, key=lambda method: float(costs[method]["cost"]))


def surely_dearer(costs: Mapping[str, Any], than: str) -> list[str]:
    """The methods whose cost exceeds another's by more than the 95 % interval, if it is known."""
    dearer = []
    for method, record in costs.items():
        if method == than:
            continue
        gap = record["against"][than]
        half = gap["difference_half_width"]
        if half is not None and gap["difference"] - half > ROUNDING:
            dearer.append(method)
    return dearer


def are_tested(costs: Mapping[str, Any]) -> bool:
    """Whether some difference of two costs has a 95 % interval."""
    for record in costs.values():
        for gap in record["against"].values():
            if gap.get("difference_half_width") is not None:
                return True
    return False
