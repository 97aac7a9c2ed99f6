"""The command `utility-calibration`: the stages and scripts of this project under one name.

A program is imported when it is called, so that this help is fast. All of them write below the
current folder: the stages to data/ and results/, `score` to the folder of --output.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import utility_calibration

PROGRAMS = {
    "score": ("scripts", "score your own classifier: a file of its answers and labels"),
    "apply": ("scripts", "calibrate new points with a saved calibrator"),
    "logits": ("pipeline", "stage 1: logits and labels of a benchmark"),
    "fit": ("pipeline", "stage 2: fit calibrators"),
    "evaluate": ("pipeline", "stage 3: score them on test points"),
    "dynamics": ("pipeline", "stage 4: the study of aligned and misaligned users"),
    "report": ("pipeline", "stage 5: tables, figures and report.html"),
    "status": ("pipeline", "what is done, missing, stale or failed"),
    "sweep": ("pipeline", "all stages of a suite, as jobs of a cluster or of this machine"),
}


def main() -> None:
    """Run the program that the first argument names."""
    asked = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if asked in ("-h", "--help"):
        print("usage: utility-calibration PROGRAM …    (PROGRAM --help has the details)\n")
        print("\n".join(f"  {name:9} {what}" for name, (_, what) in PROGRAMS.items()))
    elif asked == "--version":
        print(f"utility-calibration {utility_calibration.__version__}")
    elif asked not in PROGRAMS:
        known = ", ".join(PROGRAMS)
        print(f"error: {asked}: no such program; choose one of: {known}", file=sys.stderr)
        sys.exit(2)
    else:
        del sys.argv[1]
        run(f"{PROGRAMS[asked][0]}.{asked}")


def run(module: str) -> None:
    """Run a module as `python -m` would, with modules of the current folder behind all others."""
    package = Path(__file__).parent
    if (package / "metrics").is_dir():
        module = f"utility_calibration.{module}"
    else:  # a clone, which is not on the path of an editable installation
        sys.path.insert(0, str(package.parent))
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # a user's `_target_=my.Mine`
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
