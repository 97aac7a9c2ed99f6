"""CalArena's HDF5 files: probabilities, the file's own split, and what may be wrong with a file."""

import numpy as np
import pytest
from hydra.utils import instantiate
from scipy.special import softmax

from tests.pipeline.sources.conftest import refused
from utility_calibration.pipeline.sources.calarena import calarena_logits

h5py = pytest.importorskip("h5py", reason="h5py is not installed (the extra `sources` has it)")
CALIBRATE, TEST, CLASSES = 30, 50, 4
FILES = {"imagenet": ["imagenet/beit", "imagenet/vit"], "cv": ["c10/lenet5"]}


@pytest.fixture
def folder(tmp_path):
    """Both files with small experiments in CalArena's layout."""
    random = np.random.default_rng(0)
    for name, groups in FILES.items():
        with h5py.File(tmp_path / f"{name}-multiclass.h5", "w") as file:
            for group in groups:
                for side, n in (("cal", CALIBRATE), ("test", TEST)):
                    p = random.dirichlet(np.ones(CLASSES), n).astype(np.float32)
                    file[f"{group}/probas_{side}"] = p
                    file[f"{group}/labels_{side}"] = np.arange(n) % CLASSES
    return tmp_path


def test_the_first_points_calibrate_and_softmax_gives_the_probabilities_back(
    folder, benchmark_config
):
    places = ("dataset=c10", "model=lenet5", f"data_dir={folder}")
    benchmark = benchmark_config("calarena", *(f"benchmark.source.{text}" for text in places))
    assert benchmark.name == "calarena_c10_lenet5"
    source = benchmark.source
    result = instantiate(source)
    with h5py.File(folder / "cv-multiclass.h5") as file:
        p = np.concatenate([file[f"c10/lenet5/probas_{side}"] for side in ("cal", "test")])
    np.testing.assert_allclose(softmax(result.logits.astype(float), axis=1), p, atol=1e-6)
    assert result.tested.tolist() == [[False] * CALIBRATE + [True] * TEST]
    assert result.labels[CALIBRATE] == 0 and result.labels.dtype == np.int64
    assert result.details["preprocessing"] == "logarithm of probabilities"


def test_an_absent_group_and_a_damaged_or_absent_file_are_one_line(folder):
    (folder / "cv-multiclass.h5").write_bytes(b"no HDF5")
    for dataset, model, place, told in (
        ("imagenet", "swin", folder, "imagenet/swin imagenet/beit"),
        ("c10", "lenet5", folder, "c10/lenet5 download"),
        ("c10", "lenet5", folder / "nowhere", "cv-multiclass.h5"),
    ):
        refused(told, calarena_logits, dataset=dataset, model=model, data_dir=place)
