"""Blocks of rows on threads."""

import numpy as np
import pytest
import torch

from metrics.kernels.threads import INLINE_ELEMENTS, over_blocks, over_row_blocks, row_blocks

MANY = 10 * INLINE_ELEMENTS


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


@pytest.mark.parametrize("unit", [1, 3])
@pytest.mark.parametrize("rows", [1, 37])
def test_every_row_is_worked_on_exactly_once(threads, rows, unit):
    seen = np.zeros(rows, int)
    starts = []

    def work(start, stop):
        seen[start:stop] += 1
        starts.append(start)

    over_row_blocks(work, rows, MANY, unit)
    assert (seen == 1).all()
    assert all(start % unit == 0 for start in starts)


def test_blocks_of_one_shape_cover_all_rows_and_come_back_in_order(threads):
    assert row_blocks(10, 3, 9) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert row_blocks(3, 100, 10) == [(0, 1), (1, 2), (2, 3)]
    assert over_blocks(lambda a, b: (a, b), row_blocks(10, 3, 9)) == row_blocks(10, 3, 9)


def test_an_error_in_any_thread_is_raised(threads):
    def work(start, stop):
        if stop == 9:
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        over_row_blocks(work, 9, MANY)
