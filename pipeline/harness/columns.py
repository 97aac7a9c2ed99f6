"""Which metrics a benchmark's tables show: the keys of its configuration, checked."""

from __future__ import annotations

from pipeline.harness.units import Settings


def columns_of(settings: Settings) -> tuple[str, ...]:
    """The metric keys in order, those of own utilities (`evaluation.own`) last.

    Raises:
        InputError: a key that is no metric, with the nearest one that is.
    """
    from metrics.registry import check_keys  # imports torch, which not every command needs

    benchmark, own = settings["benchmark"], settings["evaluation"]["own"]
    check_keys(benchmark["metrics"], own, f"benchmark={benchmark['name']}: metrics")
    return tuple(dict.fromkeys([*benchmark["metrics"], *own]))
