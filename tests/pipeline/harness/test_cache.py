"""Files and units: whole or absent, named by their key."""

import zipfile
from functools import partial

import numpy as np
import pytest

from utility_calibration.pipeline.harness.artifacts import read_npz, save_npz
from utility_calibration.pipeline.harness.cache import arrays_digest, publish, record_of

ARRAYS = {"a": np.arange(300.0), "b": np.arange(4)}


def publish_arrays(path, key="k", **more):
    publish(path, partial(save_npz, arrays={**ARRAYS, **more}), {"key": key, "split": 2})


@pytest.fixture
def unit(tmp_path):
    path = tmp_path / "unit.npz"
    publish_arrays(path)
    return path


def test_a_unit_is_one_file_with_its_record_and_equal_content_is_equal_bytes(unit, tmp_path):
    assert [path.name for path in tmp_path.iterdir()] == ["unit.npz"]
    record = record_of(unit)
    assert record is not None
    assert (record["key"], record["split"], record["arrays"]) == ("k", 2, arrays_digest(unit))
    for name, array in read_npz(unit).items():
        np.testing.assert_array_equal(array, ARRAYS[name])
    publish_arrays(tmp_path / "again.npz")
    with zipfile.ZipFile(unit) as archive:  # a date would make other bytes two seconds later
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert (tmp_path / "again.npz").read_bytes() == unit.read_bytes()


def test_the_digest_is_of_the_arrays_alone(unit, tmp_path):
    other = tmp_path / "other.npz"
    publish_arrays(other, key="another")
    assert arrays_digest(other) == arrays_digest(unit)
    publish_arrays(other, b=np.arange(1, 5))
    assert arrays_digest(other) != arrays_digest(unit)
    assert arrays_digest(other, ("a",)) == arrays_digest(unit, ("a",))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-40],
        lambda content: content[:400] + bytes([content[400] ^ 1]) + content[401:],
    ],
)
def test_a_damaged_unit_counts_as_absent(unit, damage):
    unit.write_bytes(damage(unit.read_bytes()))
    assert record_of(unit) is None
