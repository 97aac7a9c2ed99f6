"""Make the folder of ready-made CIFAR logits that `PRECOMPUTED=` names, from a public repository.

    python -m utility_calibration.scripts.maintain.prepare_logits FOLDER [--clone CLONE]

The logits are those of https://github.com/kwekuka/wasscal at commit df4f463: outputs of the public
checkpoints of chenyaofo/pytorch-cifar-models. The files are read from a clone, or else from the
network. Nothing in them is run, and the SHA-256 of each one's numbers is checked. The script writes
FOLDER/cifar10_resnet56.npz and so on, six files, and says how to use them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.harness.artifacts import read_npz, write_npz, write_text
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.sources.cifar import CLASSES
from utility_calibration.pipeline.sources.downloads import check_digest
from utility_calibration.pipeline.sources.public_files import PublicFile

from .pickled_arrays import read_pickled

REPOSITORY = "kwekuka/wasscal"
COMMIT = "df4f4632dcd714431c1b7de63980493d6e9ef8f5"
POINTS = 10_000
SHA256 = {
    "cifar10_repvgg_a0": "2909e53969c3ff76a26d1af514d2cac47d11f8602a95900a4ad070dd1fd447bd",
    "cifar10_repvgg_a2": "a12b9ee4b9e8abbd57fe09cbefec366c176dbd11e31cfd3c8146d33da146d2e4",
    "cifar10_resnet44": "f1424a8750daf7349a52949898e3085cd0519386b82ec093de79927615db0cf5",
    "cifar10_resnet56": "ec1211704eea622124f55c66fa14288389d105e61948dd23652cca644fee00c1",
    "cifar100_repvgg_a2": "e9692b553bbe86a004ce1d5cb1a9328b16979dd3cb193f9e59e79558735192e4",
    "cifar100_resnet56": "a8fb76b5139b9b677df2c9824d8b6ab33b068850a738ff43b864110d731ba488",
}
"""For each file the SHA-256 of its logits as float32, followed by its labels as int64."""
ANEW = [f"check out commit {COMMIT[:7]}", "delete the file and run again"]
README = f"""# Logits of the CIFAR test sets

Outputs of the public checkpoints of chenyaofo/pytorch-cifar-models (BSD-3), taken from {REPOSITORY}
(commit {COMMIT[:7]}, data/pretrained_logits), repacked and checked by SHA-256.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files that are not there yet, and check the others.

    Raises:
        InputError: a file is in no clone and cannot be downloaded, or holds something else than
            logits and labels, or other numbers.
    """
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the result")
    parser.add_argument("--clone", type=Path, help="a clone of the repository, else the network")
    options = parser.parse_args(arguments)
    for name, sha256 in SHA256.items():
        path, classes = options.folder / f"{name}.npz", CLASSES[name.partition("_")[0]]
        if path.is_file():
            arrays = read_npz(path)
            absent = {"logits", "labels"} - arrays.keys()
            if absent:
                message = f"has no array {' and none called '.join(sorted(absent))}"
                raise InputError(message, file=path, fixes=ANEW)
            check_numbers(
                *repacked((arrays["logits"], arrays["labels"]), classes, path), sha256, path
            )
            say(f"{path}: as it should be")
            continue
        public = pickle_of(name).fetched(options.clone or options.folder, "--clone")
        logits, labels = repacked(read_pickled(public), classes, public)
        check_numbers(logits, labels, sha256, public)
        write_npz(path, logits=logits, labels=labels)
        accuracy = 100 * float(np.mean(logits.argmax(axis=1) == labels))
        say(f"{path}: {len(labels)} points, accuracy {accuracy:.2f} %")
    write_text(options.folder / "README.md", README)
    say(f"use it: make repro SUITE=cifar PRECOMPUTED={options.folder}")


def pickle_of(name: str) -> PublicFile:
    """The public file of one network's logits."""
    file = f"logits_{name}_pretrainedcy.p"
    return PublicFile(REPOSITORY, COMMIT, f"data/pretrained_logits/{file}", name=file)


def repacked(
    content: Any, classes: int, path: Path
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits [10000, C] and labels [10000] of a pickled pair of both."""
    if not isinstance(content, (tuple, list)) or len(content) != 2:
        raise InputError("expected a pair of logits and labels", file=path, fixes=ANEW)
    logits, labels = (np.asarray(part) for part in content)
    labels = labels.reshape(-1)
    are_numbers = logits.dtype.kind == "f" and labels.dtype.kind in "iu"
    if not are_numbers or logits.shape != (POINTS, classes) or len(labels) != POINTS:
        message = (
            f"logits of shape {list(logits.shape)} and {len(labels)} labels, expected "
            f"{[POINTS, classes]} and {POINTS}"
        )
        raise InputError(message, file=path, fixes=ANEW)
    return np.ascontiguousarray(logits, "<f4"), np.ascontiguousarray(labels, "<i8")


def check_numbers(
    logits: NDArray[np.float32], labels: NDArray[np.int64], expected: str, path: Path
) -> None:
    """Raise `InputError` if the numbers are not those behind the committed results."""
    sha256 = hashlib.sha256(logits.tobytes() + labels.tobytes()).hexdigest()
    fixes = [f"check out commit {COMMIT[:7]}", "delete the file and run again"]
    check_digest(path, sha256, expected, fixes, "its numbers")


if __name__ == "__main__":
    with user_errors_in_one_line():
        main()
