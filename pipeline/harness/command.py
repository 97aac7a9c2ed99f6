"""The command line of a stage: Hydra composes the configuration, errors of users are one line."""

import argparse
import errno
import functools
import io
import os
import re
import signal
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, InstantiationException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import InterpolationResolutionError as Unresolved
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from utility_calibration.metrics.errors import InputError

from .machine import is_out_of_memory
from .multirun_table import table_at_end
from .parameters import (
    CONF,
    UsageError,
    check_sweep,
    configured,
    entries_of_suite,
    searched,
    with_params,
    with_suite,
)
from .workers import workers

FULL_ERROR = "HYDRA_FULL_ERROR"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when a disk is full, or when a limit allows no more."""
NOT_A_NAME = "Config group override must be a string"
"""The start of Hydra's message about an override that gives a number in place of a file's name."""
WHERE_TO_LOOK = "--help and --cfg job list the settings; put a value with special signs into quotes"
HAS_LINE_OF_NAMES = re.compile(r"\.[ct]sv\b", re.IGNORECASE)
"""In the name of a table whose first line is not its row 0."""
SHOW_TRACEBACKS = os.environ.get(FULL_ERROR) == "1"  # `command` sets it for another purpose


class Parser(argparse.ArgumentParser):
    """For the options of a script: its docstring is the help, and a mistake is one line."""

    def __init__(self, doc: str | None) -> None:
        summary, _, details = (doc or "").partition("\n")
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(description=summary, epilog=details, formatter_class=form)

    def error(self, message: str) -> NoReturn:
        """End the program without printing the whole usage."""
        self.exit(2, f"error: {message.removeprefix('argument ')} (--help lists the options)\n")


def command(task: Callable[[DictConfig], float | None]) -> Callable[[], None]:
    """Make `task` a program: `@command def main(config): ...`, then `main()`.

    `--help` prints the docstring of its module, then the settings.

    Exit codes: 0 done, 1 a failed unit or unusable input, 2 a mistake in the command line or
    configuration, 130 interrupted, 143 terminated. HYDRA_FULL_ERROR=1 shows all tracebacks.
    """

    if task.__module__ == "__main__":
        _run_module(task.__globals__["__spec__"].name)

    @functools.wraps(task)
    def job(config: DictConfig) -> float | None:
        # Hydra separates the errors of jobs. Else it prints "Error executing job with overrides".
        is_job = HydraConfig.get().mode == RunMode.MULTIRUN
        with nullcontext() if is_job else user_errors_in_one_line():
            return task(with_params(config, HydraConfig.get().overrides.task))

    @functools.wraps(task)
    def main() -> None:
        os.environ[FULL_ERROR] = "1"  # Hydra raises an error of the configuration, prints nothing
        with user_errors_in_one_line():
            if {"-h", "--help"} & {*sys.argv[1:]}:
                print(task.__globals__["__doc__"], flush=True)  # Hydra's help has the settings only
            sys.argv[1:] = with_suite(sys.argv[1:])
            check_sweep(sys.argv[1:])
            asked = get_args_parser().parse_known_args(sys.argv[1:])[0]
            if asked.cfg in ("job", "all"):
                _show(asked)
                return
            names_hydra = any(text.startswith("-") or "hydra" in text for text in sys.argv[1:])
            if names_hydra or not _ran_alone(job):
                with table_at_end():
                    hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(
                        job
                    )()

    return main


def _run_module(module: str) -> NoReturn:
    """Run `python -m utility_calibration.pipeline.fit` as the program `utility-calibration fit`.

    So the module is imported under its own name, and its functions reach worker processes by it.
    """
    from utility_calibration.__main__ import main as run

    sys.argv.insert(1, module.rpartition(".")[2])
    run()
    sys.exit()


def _show(asked: argparse.Namespace) -> None:
    """Print what `--cfg job` or `--cfg all` asks for: the settings that will run.

    Hydra's own program would show neither the settings of `params`, a file that it does not know,
    nor those of the benchmarks and calibrators of a suite.
    """
    with configured():
        overrides = [*searched(sys.argv[1:]), *asked.overrides]
        config = hydra.compose("config", overrides, return_hydra_config=True)
        HydraConfig.instance().set_config(config)
        shown = with_params(config, asked.overrides)
        OmegaConf.set_struct(shown, False)
        of_suite = entries_of_suite(shown, overrides)
    if asked.cfg == "job":
        del shown["hydra"]
    del shown["each"]  # it is empty: a place for the program's own composing
    for group, entries in of_suite.items():
        del shown[group]
        shown[f"{group}s"] = entries
    if asked.package not in (None, "_global_"):
        shown = OmegaConf.select(shown, asked.package)
    if not OmegaConf.is_config(shown):
        print(shown)
        return
    if asked.resolve:
        OmegaConf.resolve(shown)
    print(OmegaConf.to_yaml(shown), end="")


def _ran_alone(job: Callable[[DictConfig], float | None]) -> bool:
    """Run one job, and return True; False, and nothing ran: a file asks Hydra for a sweep.

    Hydra's own program composes all settings a second time, to see whether it is asked for one.
    """
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        config = hydra.compose("config", sys.argv[1:], return_hydra_config=True)
        if config.hydra.mode is not None:
            return False
        HydraConfig.instance().set_config(config)
        with open_dict(config):
            del config["hydra"]
        job(config)
    return True


@contextmanager
def user_errors_in_one_line() -> Iterator[None]:
    """End with one line and an exit code (`command`) for a user's error; a warning is a line.

    Workers that start within the block end with it.
    """
    # Schedulers send SIGTERM before they kill. No `except Exception` catches SystemExit.
    before = signal.signal(signal.SIGTERM, lambda *_: _end("terminated", 143))
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no ± or × shows ? instead
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(
                f"warning: {' '.join(str(message).split())}", file=sys.stderr
            )
            _check_text(sys.argv[1:])
            with workers():
                yield
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except Exception as error:
        if SHOW_TRACEBACKS or not is_user_error(error):
            raise
        print(f"error: {one_line(error)}", file=sys.stderr)
        sys.exit(2 if _is_about_configuration(error) else 1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse what no report can show: Unicode's control characters, bytes that are no UTF-8."""
    for text in arguments:
        if not text or any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
            what = "holds control characters, or bytes that are no UTF-8" if text else "is empty"
            raise UsageError(f"the argument {text!a} {what}; give another, or rename the file")


def _end(how: str, code: int) -> NoReturn:
    print(f"{how}; finished units are kept, run it again to continue", file=sys.stderr)
    sys.exit(code)


def is_user_error(error: BaseException) -> bool:
    """Whether one line is enough: errors of this project, of the configuration, of the disk."""
    if isinstance(error, InstantiationException) and error.__cause__ is not None:
        # Hydra wraps what a `_target_` raises. An unknown name or argument is an error of the user.
        cause = error.__cause__
        return is_user_error(cause) or isinstance(cause, (TypeError, ImportError))
    # hydra/launcher=slurm on a machine without Slurm gives the second kind.
    is_known = is_out_of_memory(error) or "slurm cluster" in str(error)
    is_from_here = _is_ours(type(error)) or isinstance(error, OSError)
    return is_known or is_from_here or _is_about_configuration(error)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("utility_calibration.")


def _is_about_configuration(error: BaseException) -> bool:
    kinds = UsageError, HydraException, OmegaConfBaseException, YAMLError
    return isinstance(error, kinds) or str(error).startswith(NOT_A_NAME)


def one_line(error: BaseException) -> str:
    """The error's message without line breaks; after one of Hydra's, where a person may look."""
    cause = error.__cause__
    if isinstance(error, InstantiationException) and cause is not None:
        return one_line(cause)
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, Unresolved):  # what a resolver of ours says
        resolver = message.partition("resolving interpolation: ")[2]
        return resolver.partition(" full_key: ")[0] or message
    if is_out_of_memory(error):
        return f"out of memory; set jobs=1 ({message[:160]})"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f"{message}; make room on this disk, or write to another one"
    if isinstance(error, HydraException) or message.startswith(NOT_A_NAME):
        message = message.partition(" Config search path:")[0]
        reason = "" if cause is None else f" ({str(cause).splitlines()[0]})"
        return f"{message}{reason}; {WHERE_TO_LOOK}"
    return f"{message}{_how_rows_count(error)}"


def _how_rows_count(error: BaseException) -> str:
    """What a person must know to find a row of a file that an error names."""
    if not isinstance(error, InputError) or not error.where.file:
        return ""
    if all(mistake.where.row is None for mistake in (error, *error.others)):
        return ""
    has_names = HAS_LINE_OF_NAMES.search(error.where.file)
    return " (rows count from 0, below the line of names)" if has_names else " (rows count from 0)"
