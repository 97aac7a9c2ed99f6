"""The state of a suite: units done, missing, stale and failed, by benchmark and calibrator.

utility-calibration status                 of what params.yaml says, which `dvc repro` runs
utility-calibration status suite=paper     of what the stages make with these arguments
"""

import sys
from collections import Counter

from omegaconf import DictConfig
from rich.table import Table

from .harness.command import command
from .harness.parameters import CONF, OF_A_RUN, setting_of
from .harness.progress import console, say
from .harness.units import Request
from .plan import DONE, FAILED, MISSING, STALE, STATES, Plan

PARAMETERS = CONF.parent / "params.yaml"


def main() -> None:
    """The program: of the settings on its command line, or else of those in params.yaml."""
    set_here = {setting_of(text) for text in sys.argv[1:]}
    if set_here <= OF_A_RUN - {"params", "benchmark"} and PARAMETERS.is_file():
        sys.argv.append(f"params={PARAMETERS}")
    show()


@command
def show(config: DictConfig) -> None:
    """Print the table, the reasons, and how many units are done."""
    states = list(Plan(Request.from_hydra(config).units()).states())
    table = Table("benchmark", "calibrator")
    for heading in STATES:
        table.add_column(heading, justify="right")
    counts_of_pair: dict[tuple[str, str], Counter[str]] = {}
    for unit, state in states:
        pair = unit.benchmark, unit.calibrator
        counts_of_pair.setdefault(pair, Counter())[state.name] += 1
    for pair, counts in counts_of_pair.items():
        table.add_row(*pair, *(str(counts[name]) for name in STATES))
    console.print(table)
    for name in (MISSING, STALE, FAILED):
        reasons = Counter(state.reason for _, state in states if state.name == name)
        for reason, count in reasons.most_common():
            say(f"{name}: {count} units ({reason})")
    n_done = sum(counts[DONE] for counts in counts_of_pair.values())
    say(f"{n_done} of {len(states)} units are done")
