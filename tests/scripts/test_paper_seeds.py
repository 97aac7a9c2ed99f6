"""paper_seeds: cells within 3 standard errors by seed, and what replacing one choice costs."""

import pandas as pd

from utility_calibration.scripts.maintain.paper_seeds import (
    CHOICES,
    choices_text,
    replaced,
    seeds_text,
    units_of,
)


def cells(*z: tuple[float, ...]) -> pd.DataFrame:
    """A printed table of one method, for each seed a row of z."""
    rows = [
        ("one", "temperature", str(metric), 0.1, 0.01, seed, value)
        for seed, of_seed in enumerate(z)
        for metric, value in enumerate(of_seed)
    ]
    names = ["table", "method", "metric", "ours", "ours_two_se", "seed", "z"]
    return pd.DataFrame(rows, columns=names)


def test_cells_are_counted_for_each_seed_and_in_their_mean() -> None:
    text = seeds_text(cells((0.0, 4.0), (-3.0, 2.0)))
    assert "| 0 | 1 | 1 | 2.83 |" in text and "| 1 | 2 | 2 | 2.55 |" in text
    assert "| Mean | 1.5 | 1.5 | 2.69 |" in text and "| Range | 1 … 2 | 1 … 2 |" in text
    assert "of 2 cells then 2 to 2" in text  # both seeds have the same values


def test_a_choice_that_is_replaced_changes_its_own_cells_alone() -> None:
    base = cells((0.0, 1.0), (2.0, 3.0))
    changed = base[base["metric"] == "1"].assign(z=9.0)
    other = replaced(base, CHOICES[0], changed)
    assert sorted(other["z"]) == [0.0, 2.0, 9.0, 9.0]
    assert "| 1 | +1 (+1 … +1) |" in choices_text(base, {CHOICES[0]: changed})
    one = choices_text(base[base["seed"] == 0], {CHOICES[0]: changed[changed["seed"] == 0]})
    assert "(seed 0)" in one and "| 1 | +1 |" in one  # no mean of seeds that were not run


def test_every_seed_and_setting_has_a_file_of_its_own() -> None:
    few = ("suite.benchmarks=[cifar10_repvgg]", "splits.count=1")
    runs = [units_of(choice, 2, few) for choice in (None, *CHOICES)]
    paths = {(unit.fit_path, str(unit.settings.calibrator)) for units in runs for unit in units}
    assert len({path for path, _ in paths}) == len(paths)
    assert {unit.settings.splits.seed for units in runs for unit in units} == {0, 1}
