"""The command `utility-calibration`: the stages and programs of this project under one name.

A program is imported when it is called, so that this help is fast. All of them write below the
current folder: the stages to data/ and results/, `score` to the folder of --output.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import utility_calibration

from . import __version__

PROGRAMS = {
    "score": ("scripts", "score your own classifier: a file of its answers and labels"),
    "apply": ("scripts", "calibrate new points with a saved calibrator"),
    "logits": ("pipeline", "stage 1: logits and labels of a benchmark"),
    "fit": ("pipeline", "stage 2: fit calibrators"),
    "evaluate": ("pipeline", "stage 3: score them on test points"),
    "dynamics": ("pipeline", "stage 4: the study of aligned and misaligned users"),
    "users": ("pipeline", "stage 5: what monotone maps would save users, and other users"),
    "report": ("pipeline", "stage 6: tables, figures and report.html"),
    "status": ("pipeline", "what is done, missing, stale or failed"),
    "sweep": ("pipeline", "all stages of a suite, as jobs of a cluster or of this machine"),
}


def main() -> None:
    """Run the program that the first argument names; in another clone, that clone's program."""
    _use_this_clone()
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    asks_for_help = bool({name, *sys.argv[1:]} & {"-h", "--help", "--version"})
    if asks_for_help and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # help ends where its reader does, as `head`
    if name in ("-h", "--help"):
        usage = "usage: utility-calibration PROGRAM …    (PROGRAM --help has the details)\n"
        programs = [f"  {program:9} {what}" for program, (_, what) in PROGRAMS.items()]
        sys.exit(_print("\n".join([usage, *programs])))
    if name == "--version":
        sys.exit(_print(f"utility-calibration {__version__}"))
    if name not in PROGRAMS:
        known = ", ".join(PROGRAMS)
        print(f"error: {name}: no such program; choose one of: {known}", file=sys.stderr)
        sys.exit(2)
    room, _ = PROGRAMS[name]
    _run(room, name)


def _print(text: str, end: str = "\n") -> str | None:
    """Print at once; return the error of a device that takes nothing, not of a closed pipe.

    Python itself would print what is held back as it ends, and a traceback.
    """
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what is held back goes there
        return None if isinstance(error, BrokenPipeError) else f"error: {error}"
    return None


def _use_this_clone() -> None:
    """Start again with the code of the clone in the current folder, if it is not this one.

    An environment holds one clone. `dvc exp run --temp` copies the project elsewhere, and a person
    may have two clones: without this, the stages would take the settings of one and run the other.
    """
    clone = Path.cwd()
    program = clone / "utility_calibration" / "__main__.py"
    if program.is_file() and not program.samefile(__file__):
        paths = os.pathsep.join(filter(None, (str(clone), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "utility_calibration", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONPATH": paths})


def _run(room: str, name: str) -> None:
    """Run the program with modules of the current folder behind all others (`_target_=my.Mine`)."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    sys.argv = [f"utility-calibration {sys.argv[1]}", *sys.argv[2:]]
    # Imports and settings make half a million objects and hardly any garbage. Python looks through
    # them 570 times in a quick look, which takes .3 of 4.6 core s.
    gc.set_threshold(100_000)
    program = getattr(getattr(utility_calibration, room), name)
    code: Any = None
    try:
        program.main()
    except SystemExit as ended:
        code = ended.code
    finally:
        # Else Python looks through all objects once more as it ends, for .4 of 2.7 core s.
        gc.freeze()
        error = _print("", end="")
    sys.exit(code or error)


if __name__ == "__main__":
    main()
