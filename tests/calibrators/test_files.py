"""Saved calibrators come back or are refused in one line."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refuses
from utility_calibration.calibrators import (
    Calibrator,
    DirichletCalibration,
    IsotonicCalibration,
    LogitShiftPatching,
    StructuredVectorScaling,
    TemperatureScaling,
    Uncalibrated,
    UtilityPatching,
    VectorScaling,
    files,
)
from utility_calibration.calibrators.stored import OF_ALL
from utility_calibration.metrics import archive as archives


@pytest.fixture
def saved(made_up, tmp_path):
    return VectorScaling().fit(*made_up()).save(tmp_path / "vector.npz")


def test_the_steps_of_the_theory_need_no_size(made_up, tmp_path):
    fitted = UtilityPatching(steps=3, sampled=False, line_search="theory").fit(*made_up())
    loaded = Calibrator.load(fitted.save(tmp_path / "theory.npz"))
    z = made_up()[0]
    np.testing.assert_array_equal(loaded.predict_proba(z), fitted.predict_proba(z))


def test_no_option_of_numpy_becomes_an_array_and_files_that_have_one_are_read(saved, made_up):
    """NumPy before 2.2 stores `allow_pickle=False` as an array."""
    assert "allow_pickle" not in np.load(saved).files
    changed(saved, allow_pickle=False)
    assert Calibrator.load(saved).classes_.size == made_up()[0].shape[1]


def test_a_fitted_value_of_python_objects_is_named_and_nothing_is_written(made_up, tmp_path):
    fitted = TemperatureScaling().fit(*made_up())
    fitted.notes_ = {"by": "me"}
    with refuses("notes_"):
        fitted.save(tmp_path / "mine.npz")
    assert not list(tmp_path.iterdir())


def changed(path, **arrays):
    """Write the file at `path` anew with other arrays; None leaves one out."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files} | arrays
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


@pytest.mark.parametrize("name", ["padding", "padding_", "scale_", "classes_", "params"])
def test_an_array_that_no_calibrator_has_is_refused_before_it_is_unpacked(saved, name, monkeypatch):
    with np.load(saved) as archive:
        content = dict(archive) | {name: np.zeros(1000)}
    np.savez_compressed(saved, **content)
    monkeypatch.setattr(files, "LARGEST_VALUE", 999)
    monkeypatch.setattr(archives, "_unpacked", small_only)
    with refuses(fix="save it again"):
        Calibrator.load(saved)


def small_only(stream, stored, unpacked=archives._unpacked):
    """What `metrics.archive` unpacks, which is no large array."""
    assert stored.shape == ()
    return unpacked(stream, stored)


@pytest.mark.parametrize(
    ("kind", "damage", "fix"),
    [
        (Calibrator, Path.unlink, "fit and save"),
        (Calibrator, lambda path: path.write_text("hello\nworld"), "fit and save"),
        (Calibrator, lambda path: np.savez(path, logits=0), "fit and save"),
        (TemperatureScaling, lambda path: None, "Calibrator.load"),
        (Calibrator, partial(changed, calibrator="Mine"), "import the module"),
        (Calibrator, partial(changed, format=None), "fit and save"),
        (Calibrator, partial(changed, format=2), "update"),
        (Calibrator, partial(changed, format=[1, 1]), "fit and save"),
        (Calibrator, partial(changed, kept_=None), "fit and save"),
        (Calibrator, partial(changed, format="one"), "fit and save"),
        (Calibrator, partial(changed, params=np.array('{"l2": 1e-8, "gone": 1}')), "fit again"),
        (Calibrator, partial(changed, conditioning_=None), "fit and save"),
        (Calibrator, partial(changed, present_=None), "fit and save"),
        *((Calibrator, partial(changed, params=np.array(t)), "fit and save") for t in ("1", "[1]")),
    ],
)
def test_files_that_hold_something_else_are_refused_in_one_line(saved, kind, damage, fix):
    damage(saved)
    with refuses(file=saved, fix=fix):
        kind.load(saved)


def test_parameters_that_json_cannot_hold_are_named(made_up, tmp_path):
    fitted = VectorScaling(max_iterations=np.int64(300)).fit(*made_up())
    assert VectorScaling.load(fitted.save(tmp_path / "good.npz")).max_iterations == 300
    fitted.set_params(l2=lambda: 1.0)
    with refuses("l2"):
        fitted.save(tmp_path / "bad.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["good.npz"]


DECLARING = [
    TemperatureScaling,
    VectorScaling,
    DirichletCalibration,
    IsotonicCalibration,
    StructuredVectorScaling,
    partial(LogitShiftPatching, steps=3),
]
CHANGES = {  # of the learned value that a class declares, as an edit or a damaged disk may leave it
    "nan": lambda value: np.full_like(value, np.nan, dtype=float),
    "infinite": lambda value: np.full_like(value, np.inf, dtype=float),
    "another shape": lambda value: np.concatenate([np.ravel(value), np.ravel(value), [1.0]]),
    "text": lambda value: np.full(np.shape(value), "x"),
}
OTHERS = [  # numbers of the right type and shape, which no fit gives
    (TemperatureScaling, "temperature_", lambda value: -value),
    (TemperatureScaling, "temperature_", lambda value: 0 * value),
    (TemperatureScaling, "conditioning_", lambda value: -value),
    (TemperatureScaling, "present_", lambda value: value[::-1]),
    (TemperatureScaling, "present_", lambda value: value + 1),
    (TemperatureScaling, "class_names_", lambda value: np.array(["\x1b[31m", *"bcde"])),
    (IsotonicCalibration, "values_", lambda value: 1 - value),
    (IsotonicCalibration, "values_", lambda value: 0 * value),
    (IsotonicCalibration, "thresholds_", lambda value: value[::-1]),
    (IsotonicCalibration, "offsets_", lambda value: value + 1),
    (IsotonicCalibration, "present_", lambda value: value[:-1]),
    (StructuredVectorScaling, "inverse_temperature_", lambda value: -value),
    (StructuredVectorScaling, "uniform_share_", lambda value: value + 2),
    (partial(UtilityPatching, 0.1, 3, False), "kinds_", lambda value: value + 99),
    (partial(UtilityPatching, 0.1, 3, False), "indices_", lambda value: value + 99),
    (partial(UtilityPatching, 0.1, 3, False), "shifts_", lambda value: value * 1e250),
    (TemperatureScaling, "n_features_in_", lambda value: value[None]),
    (TemperatureScaling, "n_features_in_", lambda value: value + 0j),
]


def content_of(make, data, path):
    """The content of the file of a fitted calibrator, whose classes have names."""
    fitted = make().fit(*data)
    fitted.class_names_ = np.array(list("abcde"))
    with np.load(fitted.save(path)) as archive:
        return fitted, dict(archive)


@pytest.mark.parametrize("make", DECLARING, ids=str)
def test_a_value_of_another_type_shape_or_range_than_a_fits_is_refused(make, made_up, tmp_path):
    path = tmp_path / "x.npz"
    fitted, content = content_of(make, made_up(), path)
    assert Calibrator.load(path).class_names_.size == 5
    kinds = type(fitted).__mro__
    names = {*OF_ALL, *(name for kind in kinds for name in vars(kind).get("learned", {}))}
    for name in [name for name in names & content.keys() if content[name].size]:
        changes = CHANGES.copy()
        if name in ("lows_", "highs_"):  # an interval may have no end
            del changes["infinite"]
        for change in changes.values():
            np.savez(path, **{**content, name: change(content[name])})
            with refuses(file=path):
                Calibrator.load(path)


@pytest.mark.parametrize(("make", "name", "change"), OTHERS)
def test_numbers_that_no_fit_gives_are_refused_by_name(make, name, change, made_up, tmp_path):
    path = tmp_path / "x.npz"
    _, content = content_of(make, made_up(), path)
    np.savez(path, **{**content, name: change(content[name])})
    with refuses(file=path, fix="fit and save"):
        Calibrator.load(path)


@pytest.mark.parametrize("gone", ["groups_", "group_names_", "group_utilities_", "group_numbers_"])
def test_patches_of_groups_are_whole_or_refused(gone, made_up, tmp_path):
    (logits, labels), path = made_up(), tmp_path / "x.npz"
    groups = np.where(logits[:, 0] > 0, "a", "b")
    LogitShiftPatching(steps=1).fit(logits, labels, groups=groups).save(path)
    changed(path, **{gone: None})
    with refuses(file=path, fix="fit and save"):
        Calibrator.load(path)


@pytest.mark.parametrize(
    ("make", "gone"),
    [
        (Uncalibrated, "n_points_"),
        (Uncalibrated, "shares_"),
        (TemperatureScaling, "n_points_"),
        (TemperatureScaling, "present_"),
        (VectorScaling, "shares_"),
    ],
)
def test_a_file_without_a_value_that_every_fit_gives_is_refused(make, gone, made_up, tmp_path):
    """Without the number of points `apply --prior estimate` ended with an AttributeError."""
    path = tmp_path / "x.npz"
    make().fit(*made_up()).save(path)
    changed(path, **{gone: None})
    with refuses(file=path, fix="fit and save", number=gone):
        Calibrator.load(path)
