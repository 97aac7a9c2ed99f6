"""What to type to save the method that a report takes, and to apply it to new points."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

SAVE = "To save it, add to the command:  --method {} --save {}"
APPLY = "To apply it:  utility-calibration apply {} {} --output {}"
WRITTEN = (".csv", ".npz", ".parquet", ".jsonl")  # the endings that apply writes


def how_to_keep(method: str, file: Path, saved: Path | None) -> Sequence[str]:
    """The lines that a report shows.

    Args:
        method: the method taken, as the command line calls it.
        file: what was scored; new points are likely to come in such a file.
        saved: where this run saved the method, if it did.
    """
    lines = []
    calibrator = quote(str(saved or "calibrator.npz"))
    if saved is None:
        lines.append(SAVE.format(method, calibrator))
    unpacked = file.with_suffix("") if file.suffix == ".gz" else file
    ending = unpacked.suffix if unpacked.suffix in WRITTEN else ".csv"
    packed = ".gz" if file.suffix == ".gz" else ""
    new = f"new{(unpacked.suffix or ending) + packed}"
    lines.append(APPLY.format(calibrator, new, f"calibrated{ending}"))
    return lines
