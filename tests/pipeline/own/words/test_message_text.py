"""Options that messages name: what a shell makes of them when they are typed."""

import shlex

import pytest

from utility_calibration.pipeline.own.words.message_text import typed


@pytest.mark.parametrize("name", ["risk", "True Label", "l'âge", "p_*", "$HOME", "a b,c", "a;b"])
def test_a_shell_gives_the_program_the_name_as_it_is(name):
    assert shlex.split(typed("--labels", name)) == ["--labels", name]


@pytest.mark.parametrize("name", ["-100", "-a b"])
def test_a_name_that_begins_with_a_minus_is_no_option(name):
    assert shlex.split(typed("--ignore-label", name)) == [f"--ignore-label={name}"]


@pytest.mark.parametrize("name", ["x" * 61, "two\nlines", "\x1b[2J"])
def test_what_nobody_can_type_is_left_to_the_person(name):
    assert typed("--labels", name) == "--labels NAME"
