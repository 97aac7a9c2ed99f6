"""Own utilities from files: matched by name, refused in one line that names the cell."""

import numpy as np
import pytest
from hydra.utils import instantiate

from tests.refusals import refuses
from utility_calibration.pipeline.own.request import utilities as own_utilities

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
    assert own_utilities.losses(path, NAMES).actions == ["treat", "wait"]
    assert own_utilities.losses(path, NAMES).names == ("mine (utility: minus the loss)",)
    path = csv(tmp_path, "true,dog,cat\ncat,0.1,1\ndog,1,0.2\n")
    np.testing.assert_array_equal(
        own_utilities.gain(path, ["cat", "dog"]).matrix(0), [[1, 0.1], [0.2, 1]]
    )


def test_a_path_that_looks_like_a_setting_is_refused(tmp_path):
    with refuses(fix="rename"):
        own_utilities.entry_of("losses", str(tmp_path / "${seed}.csv"), NAMES)


@pytest.mark.parametrize(
    ("kind", "text", "field", "row", "column"),
    [
        ("payoffs", "cat,dog,emu\n1,2,x\n", "", 0, "emu"),
        ("payoffs", "cat,dog\n1,2\n", "column", None, ""),
        ("payoffs", "who,cat,dog,elk\n1,1,2,3\n", "column", None, ""),
        ("valuations", "1,2,4\n1,1,0\n", "column", None, ""),
        ("losses", "class,a\ncat,1\ndog,1\n", "line", None, ""),
        ("losses", "class,a\ncat,1\ncat,1\ndog,2\nemu,1\n", "line", None, ""),
        ("gain", "t,cat,dog,emu\ncat,1,0,0\nemu,0,2,1\ndog,0,1,0\n", "", None, ""),
    ],
)
def test_a_bad_file_is_told_by_cell_and_fix(tmp_path, kind, text, field, row, column):
    with refuses(field, row, column, number="mine.csv"):
        getattr(own_utilities, kind)(csv(tmp_path, text), NAMES)


def test_settings_change_with_the_content_and_a_changed_file_is_refused(tmp_path):
    path = csv(tmp_path, "cat,dog,emu\n1,2,3\n")
    before = own_utilities.entry_of("payoffs", str(path), NAMES)
    csv(tmp_path, "cat,dog,emu\n1,2,4\n")
    assert own_utilities.entry_of("payoffs", str(path), NAMES) != before
    with refuses(fix="run it again", number="mine.csv"):
        own_utilities.payoffs(before["path"], NAMES, sha256=before["sha256"])


def test_a_function_is_found_by_name_and_counts_by_its_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_value.py"
    module.write_text("def first(p):\n    return p * 0 + 1\n\n\nNUMBER = 3\n")
    entry = own_utilities.entry_of("utility", "my_value:first", NAMES)
    assert own_utilities.utility(entry["function"]).function.__name__ == "first"
    for wrong in ("my_value:second", "my_value:NUMBER", "no_such_module:f", "my_value"):
        with refuses("--utility", number=wrong):
            own_utilities.entry_of("utility", wrong, NAMES)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_an_amount_with_a_point_before_three_digits_has_two_readings(tmp_path, separator):
    text = "class,adopt,ask\ncat,1.500,250\ndog,0,2.250\nemu,1,1\n".replace(",", separator)
    path = csv(tmp_path, text)
    with refuses(fix="--decimal", number="1500", file=path):
        own_utilities.entry_of("losses", str(path), NAMES)
    for decimal, factor in ((".", 1), (",", 1000)):
        entry = own_utilities.entry_of("losses", str(path), NAMES, decimal)
        losses = instantiate(entry).losses[0]
        np.testing.assert_array_equal(losses[:2], [[1.5 * factor, 250], [0, 2.25 * factor]])


@pytest.mark.parametrize(
    "text",
    ["loss\n1\n2\n3\n", "class\ncat\ndog\nemu\n", "ask,adopt\n1,2\n3,4\n5,6\n"],
)
def test_losses_without_names_of_the_classes_say_so(tmp_path, text):
    path = csv(tmp_path, text)
    with refuses("columns", fix="first column", file=path):
        own_utilities.losses(path, NAMES)


def test_one_action_is_no_decision(tmp_path):
    path = csv(tmp_path, "class,ask\ncat,0\ndog,1\nemu,2\n")
    with refuses("columns", fix="each action", number="ask", file=path):
        own_utilities.losses(path, NAMES)


@pytest.mark.parametrize("names", [["Cat", "Dog"], ["cat", "DOG"]])
def test_a_class_that_is_written_otherwise_is_told_so(tmp_path, names):
    path = tmp_path / "losses.csv"
    path.write_text(f"class,act,wait\n{names[0]},0,1\n{names[1]},1,0\n")
    with refuses("line", file=path, number="is written `", fix="write `"):
        own_utilities.losses(path, ["cat", "dog"])
