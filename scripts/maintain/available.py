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
    """Make the logits, then print `suite.benchmarks=[…]` and `suite.dynamics=[…]`."""
    suite = composed(overrides).suite
    first = str(suite.calibrators[0])
    units = Request(suite.name, tuple(suite.benchmarks), (first,), (0,), tuple(overrides)).units()
    run_logits(Plan(units))
    left = with_logits(Plan(units)).settings
    names = [name for name in suite.benchmarks if name in left]
    studied = [name for name in suite.dynamics if name in names]
    print(f"suite.benchmarks=[{','.join(names)}] suite.dynamics=[{','.join(studied)}]")


if __name__ == "__main__":
    with user_errors_in_one_line():
        main(sys.argv[1:])
