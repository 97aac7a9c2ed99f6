"""Score your own classifier: all calibrators, every metric, a verdict, the eCDF figure.

utility-calibration score my.npz --output out/

my.npz holds `labels` [n] (numbers or names) and `logits` or `probabilities` [n, classes], perhaps
`class_names` [classes] and `groups` [n]; a CSV or parquet file has the column `label` and a column
per class, named by it. Points must be held out: not used for training.

Ten random splits choose which points calibrate and which test, unless you choose them: by a second
file (--test test.npz), or by an array or column `split` of the words calibration and test (split_1,
split_2, … are several splits). An array or column `weight` has the weights of points for fits and
scores; other packages' methods cannot be fitted with weights, and are left out then. With groups,
the default methods include logit_shift_groups, and the report says whether it closed their gaps.

Written: out/report.html (open it in a browser) and report.md with the verdict, out/verdict.json,
out/metrics.json {method: {metric: {"mean", "two_se", "p_value", …}}}, out/table.{tex,md,csv},
out/ecdf.* and out/worst_*.{pdf,svg,png}, per split all numbers in out/scores/*.csv and the fitted
parameters under out/data/fits. Run it again after an interruption or with other options: it keeps
what is up to date.

Your own utilities (--payoffs, --valuations, --losses, --gain, --utility) get a column each, such as
u_payoffs, with noise floor and certificate. The reports give their worst intervals in their own
unit. docs/your-data.md describes their files. --calibrate-for losses makes patching and logit_shift
calibrate for the losses alone. With --losses, out/decisions.{json,md} say what acting on each
method's probabilities costs; for two classes out/decision_curve.* shows it.

Files beyond memory, such as a folder of shards: --stream (docs/streaming.md).
"""

from __future__ import annotations

from collections.abc import Sequence

if __name__ == "__main__":
    raise SystemExit("error: type: utility-calibration score")

from utility_calibration.pipeline.harness.command import user_errors_in_one_line
from utility_calibration.pipeline.own.request.options import Options, parsed
from utility_calibration.pipeline.own.words.forms import check_is_given, shards_of


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The command line."""
    return parsed(__doc__, arguments)


def score(options: Options) -> None:
    """Score the file.

    A file that is not there is found before numba and pandas are imported, which takes a second.

    Raises:
        InputError, UsageError, MissingResource, UnitsFailed: what cannot be used, in one line.
    """
    files = [path for path in (options.file, options.test) if path is not None]
    for path in files:
        if shards_of(path) == [path]:
            check_is_given(path)
    from utility_calibration.pipeline.own.running.run import run

    run(options)


def main() -> None:
    """The program."""
    with user_errors_in_one_line():
        score(parse())
