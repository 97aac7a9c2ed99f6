"""Make the logits of a suite that leaves out what is absent, and print the settings of the rest.

    python -m utility_calibration.scripts.maintain.available suite=paper_closest

`make repro SUITE=paper_closest` gives the last line to DVC, whose stages cannot leave anything out.
"""

import sys
from collections.abc import Sequence

from utility_calibration.pipeline.harness.command import user_errors_in_one_line
from utility_calibration.pipeline.harness.units import Request, composed
from utility_calibration.pipeline.logits import run_logits, with_logits
from utility_calibration.pipeline.plan import Plan


def main(overrides: Sequence[str]) -> None:
    """Make the logits, then print the lists of the suite's benchmarks without the absent ones."""
    suite = composed(overrides).suite
    first = str(suite.calibrators[0])
    units = Request(suite.name, tuple(suite.benchmarks), (first,), (0,), tuple(overrides)).units()
    run_logits(Plan(units))
    left = with_logits(Plan(units)).settings
    parts = []
    for key in ("benchmarks", "dynamics", "users"):
        names = [name for name in suite[key] if name in left]
        parts.append(f"suite.{key}=[{','.join(names)}]")
    print(" ".join(parts))


if __name__ == "__main__":
    with user_errors_in_one_line():
        main(sys.argv[1:])
