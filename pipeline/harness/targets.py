"""What resolved settings name by `_target_`."""

from __future__ import annotations

import inspect
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

TARGET = "_target_"


def made_of(entry: Any, **options: Any) -> Any:
    """Call what `entry`, plain values, names by `_target_`, with its other values and `options`.

    Hydra finds the target but sees no value: it would interpolate a path that holds `${x}`.

    Raises:
        InstantiationException: there is no such target, or it lacks or does not know an argument.
    """
    if isinstance(entry, list):
        return [made_of(value) for value in entry]
    if not isinstance(entry, dict):
        return entry
    values = {key: made_of(value) for key, value in entry.items() if key != TARGET} | options
    if TARGET not in entry:
        return values
    call = instantiate({TARGET: entry[TARGET], "_partial_": True})
    try:
        inspect.signature(call).bind(**values)
    except TypeError as error:
        raise InstantiationException(f"Error in call to {entry[TARGET]!r}: {error}") from error
    return call(**values)
