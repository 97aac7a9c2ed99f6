"""Means over splits stand for the splits' arrays: a report says the same with and without them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pipeline.harness.artifacts import CorruptFile
from pipeline.reporting.collect import Runs, summarise
from pipeline.reporting.curves import pooled_curves

BENCHMARK, METHODS, SPLITS = "cifar10_repvgg", ["temperature", "vector"], range(4)


def test_without_the_splits_arrays_the_report_reads_the_same(write_runs):
    runs = Runs(write_runs(methods=tuple(METHODS)))
    before = runs.read_all(BENCHMARK, METHODS, SPLITS)
    for path in runs.folder.rglob("ecdf.npz"):
        path.unlink()
    assert runs.evaluated_methods(BENCHMARK, SPLITS) == METHODS
    after = runs.read_all(BENCHMARK, METHODS, SPLITS)
    pd.testing.assert_frame_equal(summarise(before), summarise(after), check_exact=True)
    for family in ("linear", "rank"):
        first, second = (pooled_curves(units, METHODS, family) for units in (before, after))
        for method in METHODS:
            np.testing.assert_array_equal(first.errors[method], second.errors[method])


def test_the_means_are_those_of_sorted_errors_and_of_draws_in_their_order(write_runs):
    runs = Runs(write_runs(methods=("temperature",)))
    splits = [runs._arrays((BENCHMARK, "temperature", k)) for k in SPLITS]
    pooled = runs.pool(BENCHMARK, "temperature", SPLITS)
    errors = np.mean([np.sort(split["linear"]) for split in splits], axis=0)
    draws = np.mean([split["floor_u_topk"] for split in splits], axis=0)
    np.testing.assert_allclose(pooled["linear"], errors, rtol=1e-6)
    np.testing.assert_allclose(pooled["floor_u_topk"], draws, rtol=1e-6)
    assert not (np.diff(draws) >= 0).all(), "draws that happen to be sorted would prove nothing"


def test_means_of_other_splits_are_made_anew(write_runs):
    runs = Runs(write_runs(methods=("temperature",)))
    four = runs.pool(BENCHMARK, "temperature", SPLITS)
    two = runs.pool(BENCHMARK, "temperature", range(2))
    assert not np.array_equal(four["linear"], two["linear"])
    np.testing.assert_array_equal(
        runs.pool(BENCHMARK, "temperature", SPLITS)["linear"], four["linear"]
    )


def test_damaged_means_are_made_anew_or_their_absence_is_told(write_runs):
    runs = Runs(write_runs(methods=("temperature",)))
    whole = runs.pool(BENCHMARK, "temperature", SPLITS)
    path = runs.files((BENCHMARK, "temperature", 0)).pooled
    path.write_bytes(path.read_bytes()[:500])
    np.testing.assert_array_equal(
        runs.pool(BENCHMARK, "temperature", SPLITS)["rank"], whole["rank"]
    )
    path.write_bytes(b"")
    for ecdf in runs.folder.rglob("ecdf.npz"):
        ecdf.unlink()
    with pytest.raises(CorruptFile, match="absent; evaluate the unit again"):
        runs.pool(BENCHMARK, "temperature", SPLITS)
