"""Files larger than the memory: mapped, worked on by parts, refused where they do not fit."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.pipeline.conftest import write_example
from tests.refusals import refuses
from utility_calibration.metrics import InputError
from utility_calibration.pipeline.harness.units import composed, resolved
from utility_calibration.pipeline.own.running import size
from utility_calibration.pipeline.own.running.size import check_fits
from utility_calibration.pipeline.scoring.points import CachedLogits

N, CLASSES = 500, 4


def settings_of(method, *overrides):
    return resolved(composed(("benchmark=file", "benchmark.source.path=x.npz", *overrides,
                              f"calibrator={method}")))  # fmt: skip


def refused(path, *methods, overrides=()) -> str:
    with pytest.raises(InputError) as caught:
        check_fits(path, {name: settings_of(name, *overrides) for name in methods})
    return str(caught.value)


@pytest.fixture
def path(tmp_path):
    return write_example(tmp_path / "x.npz", n=N, classes=CLASSES)


def free(monkeypatch, free_bytes):
    monkeypatch.setattr(size, "free_memory", lambda: free_bytes)


def bytes_in(line) -> list[int]:
    return [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) (?:bytes|are)", line)]


def test_what_does_not_fit_is_refused_with_its_bytes_and_what_would_fit(path, monkeypatch):
    needed = size.BYTES_PER_LOGIT * N * CLASSES
    free(monkeypatch, needed - 1)
    line = refused(path, "patching", "temperature", "vector", "dirichlet")
    assert line.startswith(f"{path}: ") and bytes_in(line) == [needed, needed - 1]
    assert "--methods temperature vector" in line
    assert "--methods" not in refused(path, "patching")
    check_fits(path, {"temperature": settings_of("temperature")})
    free(monkeypatch, needed)
    check_fits(path, {"patching": settings_of("patching")})


def test_the_size_of_a_table_of_another_ending_is_not_asked_for(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("label,p_0,p_1\n0,0.5,0.5\n")
    with refuses(fix=".csv", number=".txt"):
        check_fits(path, {"patching": settings_of("patching")})


def test_a_second_file_counts(path, monkeypatch):
    free(monkeypatch, 0)
    both = refused(path, "patching", overrides=[f"benchmark.source.test={path}"])
    assert bytes_in(both)[0] == 2 * bytes_in(refused(path, "patching"))[0]


@pytest.mark.parametrize(("name", "said"), [("x", "x"), ("Predictions", "null")])
def test_answers_of_any_name_are_looked_at(tmp_path, path, monkeypatch, name, said):
    free(monkeypatch, 0)
    np.savez(tmp_path / "y.npz", **{name: np.zeros((N, CLASSES)), "labels": np.zeros(N)})
    chosen = [f"benchmark.source.logits={said}"]
    assert bytes_in(refused(tmp_path / "y.npz", "patching", overrides=chosen))


def test_cached_logits_stay_in_their_file(tmp_path):
    path = write_example(tmp_path / "x.npz", n=N, classes=CLASSES)
    base = CachedLogits(path, "any", {}).arrays()["logits"]
    np.testing.assert_array_equal(base, np.load(path)["logits"])
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base).__name__ == "mmap"
