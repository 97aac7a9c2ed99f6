"""Files are whole or not there."""

import pytest

from utility_calibration.metrics.atomic import atomic_path


def test_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path):
    old = tmp_path / "x.json"
    old.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_path(old) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]
