"""Own utilities from files: matched by name, refused in one line that names the cell."""

import numpy as np
import pytest

from utility_calibration.metrics.validation import InputError
from utility_calibration.pipeline.own import utilities as own_utilities

NAMES = ["cat", "dog", "emu"]


def csv(tmp_path, text):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_payoffs_are_matched_by_class_name_in_any_order(tmp_path):
    path = csv(tmp_path, "name,emu,cat,dog\nann,3,1,2\n\nbob,-3,-1,-2.5\n")
    users = own_utilities.payoffs(path, NAMES)
    np.testing.assert_array_equal(users.matrix, [[1, 2, 3], [-1, -2.5, -3]])
    assert users.names == ("ann", "bob")


def test_users_without_names_are_numbered_and_valuations_go_by_rank(tmp_path):
    path = csv(tmp_path, "1,2,3\n1,0.5,0\n")
    users = own_utilities.valuations(path, NAMES)
    np.testing.assert_array_equal(users.matrix, [[1, 0.5, 0]])
    assert users.names == ("user 1",)


def test_losses_and_gains_are_matched_by_line_too(tmp_path):
    path = csv(tmp_path, "class,treat,wait\nemu,5,6\ncat,1,2\ndog,3,4\n")
    np.testing.assert_array_equal(
        own_utilities.losses(path, NAMES).losses[0], [[1, 2], [3, 4], [5, 6]]
    )
    assert own_utilities.actions_of(path) == ["treat", "wait"]
    assert own_utilities.losses(path, NAMES).names == ("mine (utility: minus the loss)",)
    path = csv(tmp_path, "true,dog,cat\ncat,0.1,1\ndog,1,0.2\n")
    np.testing.assert_array_equal(
        own_utilities.gain(path, ["cat", "dog"]).matrix(0), [[1, 0.1], [0.2, 1]]
    )


def test_a_path_that_looks_like_a_setting_is_refused(tmp_path):
    with pytest.raises(InputError, match="in this path or in a class's name; rename it"):
        own_utilities.settings_of("losses", str(tmp_path / "${seed}.csv"), NAMES)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("payoffs", "cat,dog,emu\n1,2,x\n", "column `emu` holds `x` in row 0"),
        ("payoffs", "cat,dog\n1,2\n", "column `emu` is missing; give 3 columns, one per class"),
        ("payoffs", "who,cat,dog,elk\n1,1,2,3\n", "column `elk` is none of cat, dog, emu"),
        ("valuations", "1,2,4\n1,1,0\n", "column `4` is none of 1, 2, 3"),
        ("losses", "class,a\ncat,1\ndog,1\n", "first column: `emu` is missing; give 3 lines"),
        ("losses", "class,a\ncat,1\ncat,1\ndog,2\nemu,1\n", "`cat` is there twice"),
        ("gain", "t,cat,dog,emu\ncat,1,0,0\nemu,0,2,1\ndog,0,1,0\n", "values outside [0, 1]"),
    ],
)  # fmt: skip
def test_a_bad_file_is_told_by_cell_and_fix(tmp_path, kind, text, words):
    path = csv(tmp_path, text)
    with pytest.raises(InputError) as caught:
        getattr(own_utilities, kind)(path, NAMES)
    assert words in str(caught.value)
    assert "mine.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_change_with_the_content_and_a_changed_file_is_refused(tmp_path):
    path = csv(tmp_path, "cat,dog,emu\n1,2,3\n")
    before = own_utilities.settings_of("payoffs", str(path), NAMES)
    csv(tmp_path, "cat,dog,emu\n1,2,4\n")
    assert own_utilities.settings_of("payoffs", str(path), NAMES) != before
    with pytest.raises(InputError, match="changed since this run began"):
        own_utilities.payoffs(before["path"], NAMES, before["sha256"])


def test_a_function_is_found_by_name_and_counts_by_its_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_value.py"
    module.write_text("def first(p):\n    return p * 0 + 1\n")
    entry = own_utilities.settings_of("utility", "my_value:first", NAMES)
    assert own_utilities.utility(entry["function"]).function.__name__ == "first"
    for wrong in ("my_value:second", "no_such_module:f", "my_value"):
        with pytest.raises(InputError, match=wrong.partition(":")[0]):
            own_utilities.settings_of("utility", wrong, NAMES)
