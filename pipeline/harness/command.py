"""The command line of a stage: Hydra composes the configuration, user errors are one line."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import (
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from pipeline.harness.code import PACKAGES

CONF = Path(__file__).resolve().parents[2] / "conf"
"""The configuration's folder, so that stages start from any working folder."""


NEED_A_NAME = ("benchmark", "calibrator")
"""Groups without an option unless the command line chooses one."""


class UsageError(ValueError):
    """A command line that asks for what there is not. One line, exit code 2."""


class UnitsFailed(RuntimeError):
    """Some units of a stage failed; the others are done and stay. One line."""


class Terminated(BaseException):
    """SIGTERM, which schedulers send before they kill. Not an Exception: no unit is to catch it."""


class Parser(argparse.ArgumentParser):
    """For the options of a program: the first line of its docstring heads the help, the rest ends
    it, and a mistake is told in one line, as the stages have it."""

    def __init__(self, doc: str | None) -> None:
        summary, _, details = (doc or "").partition("\n")
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(description=summary, epilog=details, formatter_class=form)

    def error(self, message: str) -> NoReturn:
        """End the program; nothing of the whole usage is printed."""
        self.exit(2, f"error: {message.removeprefix('argument ')} (--help lists the options)\n")


def command(task: Callable[[DictConfig], None]) -> Callable[[], None]:
    """Make `task` a program: `@command def main(config): ...`, then `main()`.

    Exit codes: 0 done, 1 a failed unit or unusable input, 2 a mistake in the command line or
    configuration, 130 interrupted, 143 terminated. HYDRA_FULL_ERROR=1 shows all tracebacks.
    """

    @functools.wraps(task)
    def main() -> None:
        with user_errors_in_one_line():
            _run(task)

    return main


def _run(task: Callable[[DictConfig], None]) -> None:
    """Have Hydra run `task`; its errors are raised here instead of printed by Hydra."""
    failures: list[Exception] = []

    @functools.wraps(task)
    def job(config: DictConfig) -> None:
        if HydraConfig.get().mode == RunMode.MULTIRUN:  # Hydra keeps one job's error from others
            task(config)
            return
        try:
            task(config)
        except Exception as error:  # before Hydra prints "Error executing job with overrides"
            failures.append(error)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its own errors instead of printing them
    hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(job)()
    if failures:
        raise failures[0]


@contextmanager
def user_errors_in_one_line() -> Iterator[None]:
    """End the program with one line and an exit code (see `command`) for errors of the user.

    A warning is one line, too, and the program goes on.
    """
    before = os.environ.get("HYDRA_FULL_ERROR")
    terminated = signal.signal(signal.SIGTERM, _terminate)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            yield
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except Terminated:
        _end("terminated", 143)
    except Exception as error:
        if before == "1" or not is_user_error(error):
            raise
        print(f"error: {one_line(error)}", file=sys.stderr)
        sys.exit(2 if _is_about_configuration(error) or isinstance(error, UsageError) else 1)
    finally:
        signal.signal(signal.SIGTERM, terminated)
        os.environ.pop("HYDRA_FULL_ERROR", None)
        if before is not None:
            os.environ["HYDRA_FULL_ERROR"] = before


def _say_warning(message: Warning | str, *where: Any, **others: Any) -> None:
    print(f"warning: {without_breaks(message)}", file=sys.stderr)


def without_breaks(message: Warning | str) -> str:
    """A warning's text in one line."""
    return " ".join(str(message).split())


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _end(how: str, code: int) -> NoReturn:
    print(f"{how}; finished units are kept, run it again to go on", file=sys.stderr)
    sys.exit(code)


def literal(text: object) -> str:
    """`text` as a value of a configuration that is not interpolated: `${x}` stays what it is."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", str(text))


def is_user_error(error: BaseException) -> bool:
    """Whether one line says all: errors this project defines, of the configuration, of the disk."""
    if isinstance(error, InstantiationException) and error.__cause__ is not None:
        # Hydra wraps whatever a `_target_` raises; a name or argument that it lacks is the user's.
        cause = error.__cause__
        return is_user_error(cause) or isinstance(cause, (TypeError, ImportError))
    ours = type(error).__module__.partition(".")[0] in PACKAGES
    if isinstance(error, RuntimeError) and "slurm cluster" in str(error):
        return True  # hydra/launcher=slurm on a machine without Slurm
    return ours or _is_about_configuration(error) or isinstance(error, OSError)


def _is_about_configuration(error: BaseException) -> bool:
    return isinstance(error, (HydraException, OmegaConfBaseException, YAMLError))


def _unknown_setting(key: str) -> str:
    """Hydra would advise to append the key, which no code would read."""
    group = key.partition(".")[0]
    first = (
        f"; settings of a {group} need {group}=<name> first, and are those of "
        f"conf/{group}/<name>.yaml"
        if group in NEED_A_NAME
        else ""
    )
    return f"{key}: no such setting{first}; --cfg job prints those there are"


def known_instead(name: str, known: Sequence[str]) -> str:
    """The end of a message on an unknown name: the nearest known one, and all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"{hint}; known: {', '.join(known)}"


def one_line(error: BaseException) -> str:
    """The error's message without line breaks, with the known names where a name is unknown."""
    cause = error.__cause__
    if isinstance(error, InstantiationException) and cause is not None and is_user_error(cause):
        return one_line(cause)
    if isinstance(error, MissingConfigException) and error.options and error.missing_cfg_file:
        parts = re.fullmatch(r"((?:hydra/)?[^/]*)/(.*)", error.missing_cfg_file, re.DOTALL)
        group, name = parts.groups() if parts else ("", error.missing_cfg_file)
        return f"{group}={name}: no such name{known_instead(name, error.options)}"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not readable as a setting; quote its value: key='value'"
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key}: not given; add {error.full_key}=... to the command"
    if found := re.match(r"Could not override '([\w.@/]+)'", str(error)):
        return _unknown_setting(found[1])
    text = str(error) or type(error).__name__
    # OmegaConf appends where it looked (full_key, object_type): of no use to a reader.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(
        line for line in lines if not line.startswith(("object_type", "reference_type"))
    )
