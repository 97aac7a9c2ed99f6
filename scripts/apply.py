"""Calibrate new points with a saved calibrator; they need no labels.

utility-calibration score my.npz --output out/ --method patching --save calibrator.npz
utility-calibration apply calibrator.npz new.npz --output calibrated.npz

new.npz holds `logits` or `probabilities` [n, C], whichever the calibrator was fitted on. A CSV,
parquet or JSON lines file has a column per class. For a calibrator with patches of groups, a
column or array of the same name as for `score` has each point's group.

The output holds everything that the file holds, every cell as it was, and in addition the
probabilities calibrated_<class> (in an npz the array `calibrated` [n, C]) and `predicted_class`,
the class with the largest of them. A cell of a CSV that begins with a space keeps it if it is in
quotes. With --in-place the calibrated probabilities replace the old answers. The ending of the
output's name says its format: .npz, .csv, .parquet or .jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    raise SystemExit("error: type: utility-calibration apply")

from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.own.request.options import READING, add_options


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("calibrator", type=Path, help="as saved by `score` or `.save()`")
    parser.add_argument("file", type=Path, help="npz, CSV, … with the new cases, as for `score`")
    parser.add_argument(
        "--output", type=Path, required=True, help="npz, CSV, parquet or JSON lines"
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="write the calibrated probabilities in place of the old answers",
    )
    parser.add_argument(
        "--values",
        choices=("auto", "logits", "probabilities"),
        default="auto",
        help="logits: take what looks like probabilities or votes for logits; probabilities: take "
        "what looks like predicted classes for probabilities",
    )
    parser.add_argument(
        "--prior",
        metavar="SHARES",
        help="the classes' shares among the new cases, if they differ from those of the fit: "
        ".9,.1 in the order of the classes, sick=.1,healthy=.9, or estimate",
    )
    add_options(parser, READING)
    return parser.parse_args(arguments)


def main() -> None:
    """The program."""
    with user_errors_in_one_line():
        options = parse()
        # It imports numba, which takes a second.
        from utility_calibration.pipeline.own.applying.new_points import write_calibrated

        write_calibrated(options)
