import math

import numpy as np
import pytest

from tests.pipeline.reporting.conftest import facts_of, scored, write
from tests.refusals import check_line, refuses
from utility_calibration.pipeline.harness.artifacts import CorruptFile
from utility_calibration.pipeline.scoring.deciding import decide, refusal
from utility_calibration.pipeline.scoring.decisions import Rarest
from utility_calibration.pipeline.scoring.files import ScoreFiles, Scores
from utility_calibration.pipeline.scoring.score_rows import draws_of


def scores_of(tmp_path, *splits) -> Scores:
    return write(ScoreFiles.below(tmp_path, "b"), {"isotonic": list(splits)}, facts_of("b", 3))


def test_floors_bootstrap_and_certificates_are_read(tmp_path) -> None:
    bounds = {"u_topk": {"estimate": 0.1, "lower": 0.0, "upper": 0.2, "upper_finite": 0.9}}
    bounds["all"] = bounds["u_topk"] | {"upper": 0.4}
    arrays = {"floor_u_topk": np.full(19, 0.2), "bootstrap_u_topk": np.array([0.2, 0.4])}
    split = scored(0, {"u_topk": 0.3, "nll": 1.0}, arrays=arrays, certificates=bounds)
    decisions = decide(scores_of(tmp_path, split), ["isotonic"])
    topk, nll = decisions.column("u_topk")["isotonic"], decisions.column("nll")["isotonic"]
    assert decisions.shown == ["u_topk", "nll"]  # the certificate of all classes is no metric
    assert topk.p_value == 0.05 and topk.beyond_floor and topk.within_noise is False
    assert topk.interval == "bootstrap"
    assert topk.half_width == pytest.approx(1.96 * 0.2 / math.sqrt(2), rel=1e-4)
    assert topk.upper == 0.2 and np.isnan(nll.upper)
    assert decisions.users == {"isotonic": 0.4}


def of_methods(tmp_path, facts=None, **errors):
    """One split of each method, whose bootstrap draws scatter by .01 and share half of that."""
    random = np.random.default_rng(0)
    shared = random.normal(size=100)
    parts = {}
    for method, error in errors.items():
        noise = 0.005 * (shared + random.normal(size=100))
        floor = np.linspace(0.01, 0.03, 40)
        arrays = {"bootstrap_u_cwe": error + noise, "floor_u_cwe": floor}
        parts[method] = [scored(0, {"u_cwe": error}, arrays=arrays)]
    header = facts_of("b", 1) | {"calibrators": {
        m: {"config": {}, "draws": {"": draws_of(own)}} for m, own in parts.items()
    }}  # fmt: skip
    header["logits"] = header["logits"] | (facts or {})
    return write(ScoreFiles.below(tmp_path, "b"), parts, header)


def test_a_single_split_is_tested_over_resampled_points(tmp_path) -> None:
    scores = of_methods(tmp_path, good=0.02, near=0.021, bad=0.1)
    decisions = decide(scores, ["good", "near", "bad"])
    column = decisions.column("u_cwe")
    assert {method: row.not_worse for method, row in column.items()} == {
        "good": True, "near": True, "bad": False,
    }  # fmt: skip
    assert decisions.test == "bootstrap" and column["bad"].difference == pytest.approx(0.08)
    assert column["bad"].difference_p < 1e-6 < 0.05 < column["near"].difference_p


@pytest.mark.parametrize(("rarest", "within"), [(10, None), (1000, True)])
def test_a_rare_class_is_not_said_to_be_within_noise(tmp_path, rarest, within) -> None:
    scores = of_methods(tmp_path, {"rarest_class": rarest}, good=0.02)
    decisions = decide(scores, ["good"])
    row = decisions.column("u_cwe")["good"]
    assert (row.beyond_floor, row.within_noise) == (False, within)
    assert decisions.rarest.tested == pytest.approx(0.3 * rarest, rel=1e-6)


BELOW_CHANCE = {"below_chance": True, "accuracy": 3.2}


@pytest.mark.parametrize(
    ("points", "rarest", "logits", "numbers"),
    [
        (60, None, {"n": 150}, ("150", "500")),
        (500, Rarest(4, 1000, 0.3), {}, ("4", "10")),
        (500, Rarest(10, 1000, 0.3), {}, ()),
        (500, None, BELOW_CHANCE, ("3.2 %",)),
    ],
)
def test_what_is_too_little_is_refused_with_what_is_needed(points, rarest, logits, numbers) -> None:
    refused = refusal(points, rarest, logits)
    check_line(f"{refused}.", *numbers)
    assert bool(numbers) == bool(refused)


def test_a_metric_that_one_method_lacks_is_named(tmp_path) -> None:
    parts = {"a": [scored(0, {"nll": 1.0, "u_cwe": 0.1})], "vector": [scored(0, {"nll": 1.0})]}
    scores = write(ScoreFiles.below(tmp_path, "b"), parts, facts_of("b", 1))
    with refuses(number="u_cwe", fix="evaluate"):
        decide(scores, ["a", "vector"])


def test_a_damaged_file_is_named_in_one_line(tmp_path) -> None:
    scores_of(tmp_path, scored(0, {"nll": 1.0}))
    files = ScoreFiles.below(tmp_path, "b")
    files.rows.write_text("calibrator,split\nisotonic,0\n")
    with pytest.raises(CorruptFile) as caught:
        Scores.read(files)
    check_line(str(caught.value), "b.csv", "evaluate again")
    assert Scores.read(ScoreFiles.below(tmp_path, "other")) is None
