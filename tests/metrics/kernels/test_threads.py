"""Blocks of rows on threads."""

import pytest

from utility_calibration.metrics.kernels import threads as module
from utility_calibration.metrics.kernels.threads import one_thread, over_blocks, row_blocks


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    module.set_threads(request.param)


def test_blocks_of_one_shape_cover_all_rows_and_come_back_in_order(threads):
    assert row_blocks(10, 3, 9) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert row_blocks(3, 100, 10) == [(0, 1), (1, 2), (2, 3)]
    assert over_blocks(lambda a, b: (a, b), row_blocks(10, 3, 9)) == row_blocks(10, 3, 9)


def test_one_thread_lasts_as_long_as_its_block():
    module.set_threads(2)
    with pytest.raises(ValueError), one_thread():
        assert module.get_threads() == 1
        raise ValueError
    with one_thread(wanted=False):
        assert module.get_threads() == 2
    assert module.get_threads() == 2
