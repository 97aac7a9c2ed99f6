"""The scripts of those who work on this: a table of times, and the paper's statements."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.refusals import refuses
from utility_calibration.calibrators import Uncalibrated
from utility_calibration.scripts.maintain import (
    paper_statements,
    prepare_imagenet,
    suite_times,
    what_is_left,
)
from utility_calibration.scripts.maintain.paper_statements import SHARE, deviations, gaps_of

# ---- Images that are missing or wrong ------------------------------------------------------------


def test_archives_that_are_missing_or_wrong_are_named(tmp_path):
    name = "ILSVRC2012_devkit_t12.tar.gz"
    with refuses(file=tmp_path, number=name):
        prepare_imagenet.main([str(tmp_path)])
    (tmp_path / name).write_bytes(b"another archive")
    with refuses(number="85e4524d4141ff4bb6055fb022142e60"):  # its MD5
        prepare_imagenet.main([str(tmp_path)])


def test_a_folder_is_checked_for_all_images(tmp_path, monkeypatch):
    class Images(list[int]):
        targets = (0, 1)

    datasets = SimpleNamespace(ImageNet=lambda folder, split: Images(range(2)))
    monkeypatch.setattr(prepare_imagenet, "require", lambda name: datasets)
    with refuses(number="50000", fix="delete"):
        prepare_imagenet.main([str(tmp_path)])


# ---- A table of times ----------------------------------------------------------------------------


def test_the_last_line_of_each_unit_counts_and_failures_do_not(tmp_path):
    lines = [
        ("logits/x", 1.0, ""),
        ("fits/x/vector/0", 9.0, ""),
        ("fits/x/vector/0", 2.0, ""),
        ("fits/x/vector/1", 4.0, ""),
        ("scores/x/vector/0", 5.0, "MemoryError"),
    ]
    keys = ("unit", "core_seconds", "error")
    text = "".join(json.dumps({"memory_mib": 7, **dict(zip(keys, line))}) + "\n" for line in lines)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "host.jsonl").write_text(text)
    assert suite_times.main([str(tmp_path / "log"), "--output", str(tmp_path)]) == 0
    assert "fits,x,vector,2,6" in (tmp_path / "suite_times.csv").read_text()
    assert "MemoryError" not in (tmp_path / "suite_times.md").read_text()


# ---- What the paper proves, and what acting on a forecast loses ----------------------------------


@pytest.mark.parametrize("name", ["cifar10_repvgg_a0", "cifar100_resnet56"])
def test_no_monotone_map_of_the_utility_gains_more_than_twice_the_error(name, shared_dir):
    """Proposition 3.1: single classes, shortlists and the graded gain at three temperatures."""
    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"][:3000].astype(float), archive["labels"][:3000]
    found = np.concatenate([gaps_of(logits, labels, t) for t in (1.0, 0.5, 2.5)])
    assert found.shape == (27, 2) and found[:, 1].min() >= -1e-12
    assert (found[:, 1] <= 2 * found[:, 0] + 1e-12).all()
    assert (found[:, 1] / found[:, 0]).max() > 0.3  # acting on these forecasts does lose something


def test_the_sample_bound_of_the_paper_holds_and_the_deviation_falls_with_the_root_of_n():
    """Lemma 3.3."""
    found = {n: np.quantile(deviations(n), 1 - SHARE) for n in (400, 6400)}
    assert all(value <= paper_statements.sample_bound(n) for n, value in found.items())
    assert 2.5 < found[400] / found[6400] < 5.5  # √16 = 4


def test_only_a_wrong_forecast_is_beyond_chance():
    random = np.random.default_rng(0)
    truth = random.dirichlet(np.ones(3), size=600)
    labels = (truth.cumsum(axis=1) < random.random((600, 1))).sum(axis=1)
    wrong = truth**4 / (truth**4).sum(axis=1, keepdims=True)
    for p, is_beyond in ((truth, False), (wrong, True)):
        loss, left, error = what_is_left.numbers_of(p, labels)
        assert (loss.value > loss.chance[1]) is is_beyond
        assert (left.value > left.half_width) is is_beyond
        assert (error.value > error.chance[1]) is is_beyond


def test_the_commands_read_logits_and_probabilities_and_draw(tmp_path, monkeypatch):
    monkeypatch.setattr(what_is_left, "METHODS", {"uncalibrated": ("as it is", Uncalibrated)})
    p = np.random.default_rng(0).dirichlet(np.ones(6), size=120)
    np.savez(tmp_path / "a.npz", logits=np.log(p), labels=np.arange(120) % 6)
    np.savez(tmp_path / "b.npz", probabilities=p, labels=np.arange(120) % 6)
    files, out = [str(tmp_path / name) for name in ("a.npz", "b.npz")], tmp_path / "out"
    assert what_is_left.main([*files, "--output", str(out)]) == 0
    assert paper_statements.main([files[0], "--output", str(out)]) == 0
    drawn = {"what_is_left.png", "risk_gap.png", "sample_bound.png"}
    assert {path.name for path in out.iterdir()} == drawn
