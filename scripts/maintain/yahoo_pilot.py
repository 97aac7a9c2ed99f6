"""Find the fields and the length of texts with which Yahoo's classifier has the paper's accuracy.

    python -m utility_calibration.scripts.maintain.yahoo_pilot [sources.yahoo_model=/folder …]

The paper does not say which fields of a question the network read, nor how many tokens. A pass over
all 60,000 questions takes hours. This runs the network over some of them, for each choice of fields
and length, and prints the accuracies beside the published one. Nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.harness.task import no_progress
from utility_calibration.pipeline.harness.units import composed, resolved
from utility_calibration.pipeline.reporting.wording import markdown_table
from utility_calibration.pipeline.sources.logits_maker import from_source, two_standard_errors

FIELDS = (
    ("question_title",),
    ("question_title", "question_content"),
    ("question_title", "question_content", "best_answer"),
)
LENGTHS = (128, 256, 512)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="questions drawn (default: 2000)")
    parser.add_argument("settings", nargs="*", help="settings, such as benchmark.source.device=cpu")
    options = parser.parse_args(arguments)
    with user_errors_in_one_line():
        say(pilot([f"benchmark.rows={options.rows}", *options.settings]))
    return 0


def pilot(settings: Sequence[str]) -> str:
    """A row per choice: accuracy, two standard errors, and the distance to the published one."""
    rows = []
    distances = {}
    published = 0.0
    for fields in FIELDS:
        for length in LENGTHS:
            choice = (
                f"benchmark.source.fields=[{','.join(fields)}]",
                f"benchmark.source.max_length={length}",
            )
            spec = resolved(composed(["benchmark=yahoo", *settings, *choice]))
            published = spec.benchmark.published_accuracy or 0.0
            result = from_source(spec, no_progress)
            accuracy = 100 * float((result.logits.argmax(axis=1) == result.labels).mean())
            width = two_standard_errors(accuracy, len(result.labels))
            named = " + ".join(fields)
            numbers = f"{accuracy:.2f}", f"{width:.2f}", f"{accuracy - published:+.2f}"
            rows.append([named, str(length), *numbers])
            distances[" ".join(choice)] = abs(accuracy - published)
            say(f"{named}, {length} tokens: {accuracy:.2f} %")
    heading = ["Fields", "Tokens", "Accuracy %", "± 2 s.e.", f"Minus published {published:g}"]
    nearest = min(distances, key=distances.__getitem__)
    return f"{markdown_table(heading, rows)}\n\nNearest: {nearest}"


if __name__ == "__main__":
    sys.exit(main())
