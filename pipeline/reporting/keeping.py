"""What to type to save the method that a report takes, and to apply it to new points."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join, quote

from ..scoring.recommended import DEFAULT
from .names import method_name

CALIBRATOR = Path("calibrator.npz")
SAVE = "# This saves the method {} (what is computed already is reused):"
SAVED = "# The method {} is saved in {}."
APPLY = "# This applies it to new cases, which need no labels:"
SAMPLE = (
    "# To repair the probabilities, put some thousand cases into {}, which the shards do not have:"
)
REPAIRED = "# This scores the repaired probabilities:"
WRITTEN = (".csv", ".npz", ".parquet", ".jsonl")  # the endings that apply writes


def how_to_apply(calibrator: Path, file: Path, reading: Sequence[str] = ()) -> Sequence[str]:
    """The lines that apply a saved calibrator to new points, in a file as `file`."""
    unpacked = file.with_suffix("") if file.suffix == ".gz" else file
    ending = unpacked.suffix if unpacked.suffix in WRITTEN else ".csv"
    packed = ".gz" if file.suffix == ".gz" else ""
    new = f"new{(unpacked.suffix or ending) + packed}"
    parts = ["apply", str(calibrator), new, "--output", f"calibrated{ending}", *reading]
    return [APPLY, f"utility-calibration {join(parts)}"]


def how_to_repair(file: Path, scored: str, reading: Sequence[str] = ()) -> Sequence[str]:
    """The lines below the numbers of a stream, which itself fits nothing.

    Args:
        file: one of its shards.
        scored: the command that scores the stream with the calibrator.
        reading: options that say how such a file is read.
    """
    ending = "".join(file.suffixes[-2:]) if file.suffix == ".gz" else file.suffix
    sample = f"sample{ending or '.csv'}"
    fit = ["score", sample, "--output", "sample", "--save", str(CALIBRATOR)]
    fit += ["--method", DEFAULT, *reading]
    return [SAMPLE.format(sample), f"utility-calibration {join(fit)}", REPAIRED, scored]


def how_to_keep(
    method: str, file: Path, saved: Path | None, scored: str, reading: Sequence[str] = ()
) -> Sequence[str]:
    """The lines that a report shows; a shell runs all of them as they are.

    Args:
        method: the method taken, as the command line calls it.
        file: what was scored; new points are likely to come in such a file.
        saved: where this run saved the method, if it did.
        scored: the command that also saves the method.
        reading: options that say how such a file is read.
    """
    title = method_name(method)
    lines = [SAVED.format(title, quote(str(saved)))] if saved else [SAVE.format(title), scored]
    return [*lines, *how_to_apply(saved or CALIBRATOR, file, reading)]
