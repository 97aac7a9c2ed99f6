"""Imports leave Python's search for garbage as it was."""

import gc

import pytest

from utility_calibration.imports import no_collection


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("is_frozen", [True, False])
def test_the_search_for_garbage_is_as_before(is_on, is_frozen):
    was_on, was_frozen = gc.isenabled(), gc.get_freeze_count()
    gc.unfreeze()
    (gc.enable if is_on else gc.disable)()
    try:
        if is_frozen:
            gc.freeze()
        with no_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
        assert bool(gc.get_freeze_count()) == is_frozen
    finally:
        gc.unfreeze()
        if was_frozen:
            gc.freeze()
        (gc.enable if was_on else gc.disable)()
