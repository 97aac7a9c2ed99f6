"""The cells of a table as text and numbers."""

import numpy as np
import pandas as pd

from utility_calibration.pipeline.own.reading.cells import distinct_labels, plain_column, text_of


def test_names_that_are_whole_numbers_are_alike_in_all_types():
    for kind in (np.int64, np.float32, np.float64, np.uint8):
        assert text_of(np.array([0, 1, 12], kind), 3, "groups").tolist() == ["0", "1", "12"]
    assert text_of(np.array([1.5, 2.0]), 2, "groups").tolist() == ["1.5", "2"]
    assert text_of(np.array(["1.0", "v2.0"]), 2, "groups").tolist() == ["1.0", "v2.0"]


def test_labels_of_more_than_63_bits_keep_their_numbers():
    column = plain_column(pd.Series([2**63 + 1, 2**63 + 2, 5], dtype="uint64"))
    expected = ["5", str(2**63 + 1), str(2**63 + 2)]
    assert distinct_labels(column, "label", []).texts == expected
