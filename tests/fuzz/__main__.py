"""Fuzz the readers of files: only one-line errors may come out.

python -m tests.fuzz --inputs 10000 --seed 0        ten thousand files from this seed
python -m tests.fuzz --seconds 3600                 until the time is up (make fuzz)

Memory is limited, so that a file which claims to be huge cannot take the machine down. Findings are
written to tests/fuzz/corpus, and the tests read them from then on.
"""

import argparse
import hashlib
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from tests.fuzz.inputs import BYTES, READERS
from utility_calibration.metrics import InputError
from utility_calibration.metrics.errors import MissingResource
from utility_calibration.metrics.kernels.threads import set_threads

CORPUS = Path(__file__).parent / "corpus"
MEMORY = 2 << 30
"""Bytes that may be taken beyond what the libraries took when they were loaded."""
WARM_UP = 100
"""Inputs without the limit, so that every library is loaded and every kernel compiled."""


def limit_memory() -> None:
    """Let no allocation of this process go beyond `MEMORY` more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def read(target: str, content: bytes, folder: Path) -> str | None:
    """What goes wrong when `target` reads a file of this content, or None."""
    ending, reader = READERS[target]
    path = folder / f"input{ending}"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader(path)
        except (InputError, MissingResource) as error:
            text = str(error)
            is_short = text.isprintable() and len(text) < 500
            return None if is_short else f"not one short line: {text!r}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


def fuzz_one(number: int, folder: Path) -> str | None:
    """Input `number`, a damaged file. A finding is kept in `CORPUS`."""
    random = np.random.default_rng(number)
    target = str(random.choice(list(BYTES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = BYTES[target](random)
    problem = read(target, content, folder)
    if problem is None:
        return None
    name = f"{target}-{hashlib.sha256(content).hexdigest()[:12]}{READERS[target][0]}"
    (CORPUS / name).write_bytes(content)
    return f"{name}: {problem}"


def main() -> int:
    """Command line; 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, help="how many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for how long")
    parser.add_argument("--seed", type=int, default=0, help="the first input's number")
    options = parser.parse_args()
    set_threads(1)
    done, findings, began = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(WARM_UP):
            fuzz_one(number, folder)
        limit_memory()
        while done != options.inputs and time.monotonic() - began < options.seconds:
            problem = fuzz_one(options.seed + done, folder)
            done += 1
            if problem is not None:
                findings += 1
                print(problem.splitlines()[0][:300], flush=True)
    print(f"{done} inputs, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
