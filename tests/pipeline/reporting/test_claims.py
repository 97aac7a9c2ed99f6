"""The claims on small made-up scores."""

from pathlib import Path

import pandas as pd
import pytest

from utility_calibration.pipeline.reporting.claims import (
    AGREES,
    DISAGREES,
    PARTLY,
    Claim,
    claims_of_tables,
    verdict,
    write_claims,
)
from utility_calibration.pipeline.reporting.claims_of_users import claims_of_users

PRINTED = {
    "accuracy": {"uncalibrated": 0.90, "vector": 0.92, "patching": 0.91},
    "u_topk": {"uncalibrated": 0.05, "vector": 0.03, "patching": 0.01},
    "u_cwe": {"uncalibrated": 0.05, "vector": 0.01, "patching": 0.02},
}
SAME_BEST = "The method in bold"
ONE_BEST = "No single method"
PATCHING = "Patching has"
IMPROVE = "Post-hoc methods generally"
ORDER = "The order of post-hoc"
RIGHT = "In multiple settings"
SETTLES = "The worst sampled"
LEFT = "Distributions"


def cells_of(**changed: dict[str, float]) -> pd.DataFrame:
    """One table whose results equal the print, but for the metrics that are `changed`."""
    ours = PRINTED | changed
    rows = [
        {
            "title": "T",
            "metric": key,
            "method": method,
            "preset": True,
            "printed": printed,
            "printed_change": printed - column["uncalibrated"],
            "ours": ours[key][method],
            "change": ours[key][method] - ours[key]["uncalibrated"],
        }
        for key, column in PRINTED.items()
        for method, printed in column.items()
    ]
    return pd.DataFrame(rows)


def claim_of(claims: list[Claim], start: str) -> Claim:
    """The one claim whose statement begins so."""
    (claim,) = [each for each in claims if each.statement.startswith(start)]
    return claim


def curves_of(**errors: float) -> pd.DataFrame:
    """eCDFs of linear users that lie at a constant distance from each other."""
    rows = [
        {"calibrator": method, "family": "linear", "level": level, "error": error + level}
        for method, error in errors.items()
        for level in (0.0, 0.1, 0.5, 0.9)
    ]
    return pd.DataFrame(rows)


def study(folder: Path, worst: list[float], medians: list[float]) -> Path:
    """results/dynamics of one benchmark `b`."""
    own = folder / "b" / "aligned"
    own.mkdir(parents=True)
    history = pd.DataFrame({"split": 0, "iteration": range(len(worst)), "worst": worst})
    history.to_csv(own / "history.csv")
    snapshots = pd.DataFrame({"iteration": range(len(medians)), "user": 0, "error": medians})
    snapshots.to_csv(own / "snapshots.csv")
    return folder


def test_results_equal_to_the_print_agree() -> None:
    claims = claims_of_tables(cells_of())
    # The methods that make something worse in this print do so in ours, too.
    assert {claim.verdict for claim in claims if not claim.statement.startswith(IMPROVE)} == {
        AGREES
    }
    assert "3 of 3 columns" in claim_of(claims, SAME_BEST).measured
    assert "1.00 in the mean" in claim_of(claims, SAME_BEST).measured


@pytest.mark.parametrize(
    ("start", "changed", "expected"),
    [
        (SAME_BEST, {"accuracy": {"uncalibrated": 0.95, "vector": 0.9, "patching": 0.9}}, PARTLY),
        (PATCHING, {"u_topk": {"uncalibrated": 0.05, "vector": 0.01, "patching": 0.02}}, DISAGREES),
        (
            ONE_BEST,
            {"u_topk": {"uncalibrated": 0.05, "vector": 0.01, "patching": 0.02}},
            DISAGREES,
        ),
        (ORDER, {"u_cwe": {"uncalibrated": 0.05, "vector": 0.02, "patching": 0.01}}, DISAGREES),
        (
            IMPROVE,
            {
                "u_cwe": {"uncalibrated": 0.01, "vector": 0.02, "patching": 0.02},
                "u_topk": {"uncalibrated": 0.01, "vector": 0.02, "patching": 0.02},
            },
            DISAGREES,
        ),
    ],
)
def test_other_results_change_the_verdict(start, changed, expected) -> None:
    assert claim_of(claims_of_tables(cells_of(**changed)), start).verdict == expected


def test_cells_of_other_settings_do_not_count() -> None:
    assert claims_of_tables(cells_of().assign(preset=False)) == []


def test_methods_printed_alike_share_the_best_place() -> None:
    cells = cells_of(accuracy={"uncalibrated": 0.90, "vector": 0.91, "patching": 0.92})
    is_best = (cells["metric"] == "accuracy") & (cells["method"] == "patching")
    tied = cells.assign(printed=cells["printed"].where(~is_best, 0.92))
    assert claim_of(claims_of_tables(tied), SAME_BEST).verdict == AGREES


@pytest.mark.parametrize(
    ("vector", "patching", "expected"),
    [(0.2, 0.3, AGREES), (0.2, 0.05, PARTLY), (0.05, 0.05, DISAGREES)],
)
def test_curves_to_the_right_of_the_uncalibrated_one(tmp_path, vector, patching, expected) -> None:
    curves = {"T": curves_of(uncalibrated=0.1, vector=vector, patching=patching)}
    assert claim_of(claims_of_users(curves, tmp_path, ["b"]), RIGHT).verdict == expected


@pytest.mark.parametrize(
    ("worst", "expected"),
    [
        ([1.0, 0.1, 0.1, 0.1, 0.1, 0.1], AGREES),
        ([1.0, 0.8, 0.6, 0.4, 0.2, 0.0], DISAGREES),
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.2], DISAGREES),
    ],
)
def test_the_worst_error_drops_and_stabilises(tmp_path, worst, expected) -> None:
    studies = study(tmp_path, worst, [0.3, 0.2])
    assert claim_of(claims_of_users({}, studies, ["b"]), SETTLES).verdict == expected
    assert claims_of_users({}, studies, ["another"]) == []


def test_medians_that_rise_once_agree_in_part(tmp_path) -> None:
    claims = claims_of_users({}, study(tmp_path, [1.0, 0.5], [0.4, 0.3, 0.2, 0.25]), ["b"])
    assert claim_of(claims, LEFT).verdict == PARTLY
    assert "2 of 3 steps" in claim_of(claims, LEFT).measured


def test_a_verdict_counts() -> None:
    assert [verdict(count, 4) for count in (4, 3, 2)] == [AGREES, PARTLY, DISAGREES]


def test_the_files_have_a_row_for_each_claim(tmp_path: Path) -> None:
    claims = claims_of_tables(cells_of())
    write_claims(claims, tmp_path)
    table = pd.read_csv(tmp_path / "claims.csv")
    assert list(table["statement"]) == [claim.statement for claim in claims]
    lines = (tmp_path / "claims.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == len(claims) + 2
