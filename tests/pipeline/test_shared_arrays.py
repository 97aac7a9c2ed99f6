"""What DVC caches of a suite: links to the working files, and what comes back by `dvc pull`."""

import shutil

from tests.pipeline.conftest import files_below, run_all


def test_arrays_are_shared_for_whole_suites_and_repeat(request_tiny, tmp_path, monkeypatch):
    suite = tmp_path / "results/suites/digits"
    run_all(request_tiny("calibrator=temperature"))
    assert not suite.exists()  # one benchmark chosen by name is no suite
    request = request_tiny("calibrator=temperature")
    object.__setattr__(request, "whole_suite", True)
    run_all(request)
    first = files_below(suite)
    names = [f"tiny-split-{k}.npz" for k in range(3)]
    assert set(first) == {
        "logits/tiny.npz", "logits/tiny.json",
        *(f"{stage}/temperature/{name}" for stage in ("fit", "evaluate") for name in names),
    }  # fmt: skip
    object.__setattr__(forced := request_tiny("calibrator=temperature", "force=true"),
                       "whole_suite", True)  # fmt: skip
    run_all(forced)
    assert files_below(suite) == first
    run_all(request)
    (suite / "fit/temperature/stray").write_text("of a unit that is no longer asked for")
    run_all(request)
    assert files_below(suite) == first


def test_what_came_by_dvc_pull_is_taken_where_it_is_absent(request_tiny, tmp_path):
    request = request_tiny("calibrator=temperature")
    object.__setattr__(request, "whole_suite", True)
    run_all(request)
    runs, logits = tmp_path / "results/runs", tmp_path / "data/logits"
    before = files_below(runs), files_below(logits)
    shutil.rmtree(runs)
    shutil.rmtree(logits)
    run_all(request_tiny("calibrator=temperature"))
    after = files_below(runs), files_below(logits)
    assert after[1] == before[1]
    assert after[0] == {name: c for name, c in before[0].items() if "/run-" not in name}
    assert not list(runs.rglob("run-*.json"))  # nothing was computed
    kept = tmp_path / "results/suites/digits/fit/temperature/tiny-split-0.npz"
    parameters = runs / "tiny/temperature/split-0/parameters.npz"
    assert kept.samefile(parameters)
    run_all(request_tiny("calibrator=temperature", "seed=1"))
    assert not kept.samefile(parameters)  # a new file took its place; what is shared stays
