"""The pages' shell commands parse, and name modules, options and settings that exist."""

import contextlib
import functools
import io
import re
import runpy
import shlex
import sys
import unittest.mock
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.docs.pages import FENCED, PAGES, README, ROOT, blocks, name_of
from utility_calibration.__main__ import PROGRAMS
from utility_calibration.pipeline.harness.units import composed

INLINE = re.compile(r"`((?:python|utility-calibration|make|dvc|git) [^`]+)`")
OTHER_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md")]
DVC = {"cache", "repro", "exp", "metrics", "plots", "push", "pull", "remote", "status"}
FURTHER = re.compile(r"^([^=]+=[^\[('\"{,]+),.*$")
"""All but the first value of a sweep."""
TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of the pages' shell blocks and of their prose, with its page."""
    for page in [README, *PAGES, *OTHER_PAGES]:
        shell = [command for block in blocks(page) for command in block.commands]
        prose = INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
        for part in re.split(r"&&|\n", "\n".join([*shell, *prose])):
            words = shlex.split(part, comments=True)
            if words and "…" not in part and "<" not in part:
                yield name_of(page), words


COMMANDS = list(commands())


def of(*start: str) -> list[pytest.ParameterSet]:
    """The commands that begin with these words, as parameters: what follows."""
    n = len(start)
    unique = {tuple(words[n:]): page for page, words in COMMANDS if words[:n] == list(start)}
    pairs = [(list(rest), f"{page}: {shlex.join(rest)}") for rest, page in unique.items()]
    return [pytest.param(rest, id=name) for rest, name in pairs]


@functools.cache
def help_of(*program: str) -> str:
    """What a program says of itself; in this process, which has imported what it needs."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        unittest.mock.patch.object(sys, "argv", [*program, "--help"]),
        pytest.raises(SystemExit),
    ):
        runpy.run_module(program[0], run_name="__main__")
    return output.getvalue()


def check_options(program: tuple[str, ...], words: list[str]) -> None:
    for option in words:
        if option.startswith("--") and option != "--help":
            assert re.search(rf"{option}\b", help_of(*program)), option


@pytest.mark.parametrize("words", of("utility-calibration"))
def test_a_program_exists_and_its_settings_compose(words: list[str]) -> None:
    name, *arguments = words
    assert name in PROGRAMS
    if PROGRAMS[name][0] == "scripts":
        check_options(("utility_calibration", name), arguments)
    else:
        settings = [word for word in arguments if word not in ("--multirun", "--cfg", "job")]
        composed([FURTHER.sub(r"\1", setting) for setting in settings])


@pytest.mark.parametrize("words", of("python", "-m"))
def test_a_module_exists_and_knows_its_options(words: list[str]) -> None:
    module, *arguments = words
    assert find_spec(module)
    if module.startswith("utility_calibration.scripts"):
        check_options((module,), arguments)


@pytest.mark.parametrize("words", of("make"))
def test_make_has_the_target(words: list[str]) -> None:
    assert words[0] in TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", of("dvc"))
def test_dvc_is_asked_for_what_it_can_and_a_suite_that_exists(words: list[str]) -> None:
    assert words[0] in DVC
    for word in words:
        if word.startswith("suite="):
            assert (ROOT / "conf" / "suite" / f"{word.removeprefix('suite=')}.yaml").is_file()
