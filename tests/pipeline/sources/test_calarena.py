"""CalArena's HDF5 files: probabilities, the file's own split, and what may be wrong with a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hydra.utils import instantiate

from metrics.validation import InputError
from pipeline.sources.calarena import calarena_logits
from pipeline.sources.result import MissingResource

h5py = pytest.importorskip("h5py", reason="h5py is not installed (the extra `sources` has it)")
CALIBRATE, TEST, CLASSES = 30, 50, 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both files with small experiments in CalArena's layout."""
    random = np.random.default_rng(0)
    for name, groups in (
        ("imagenet-multiclass.h5", ["imagenet/beit", "imagenet/vit"]),
        ("cv-multiclass.h5", ["c10/lenet5"]),
    ):
        with h5py.File(tmp_path / name, "w") as file:
            for group in groups:
                for side, n in (("cal", CALIBRATE), ("test", TEST)):
                    p = random.dirichlet(np.ones(CLASSES), n).astype(np.float32)
                    file[f"{group}/probas_{side}"] = p
                    file[f"{group}/labels_{side}"] = np.arange(n) % CLASSES
    return tmp_path


def test_the_first_points_calibrate_and_softmax_gives_the_probabilities_back(
    folder, benchmark_config
) -> None:
    source = benchmark_config("calarena_c10_lenet5", f"benchmark.source.data_dir={folder}").source
    result = instantiate(source)
    with h5py.File(folder / "cv-multiclass.h5") as file:
        p = np.concatenate([file[f"c10/lenet5/probas_{side}"] for side in ("cal", "test")])
    raised = np.exp(result.logits.astype(np.float64))
    np.testing.assert_allclose(raised / raised.sum(axis=1, keepdims=True), p, atol=1e-6)
    assert result.tested.tolist() == [[False] * CALIBRATE + [True] * TEST]
    assert result.labels[CALIBRATE] == 0 and result.labels.dtype == np.int64
    assert result.details["preprocessing"] == "logarithm of probabilities"


def test_a_group_that_is_not_there_lists_those_that_are(folder) -> None:
    with pytest.raises(InputError, match=r"no group imagenet/swin; it has imagenet/beit, ima.*t$"):
        calarena_logits(dataset="imagenet", model="swin", data_dir=folder)


def test_a_damaged_file_and_an_absent_one_are_one_line(folder) -> None:
    (folder / "cv-multiclass.h5").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match=r"c10/lenet5 cannot be read .*; download it again$"):
        calarena_logits(dataset="c10", model="lenet5", data_dir=folder)
    with pytest.raises(MissingResource, match=r"cv-multiclass\.h5: no such file"):
        calarena_logits(dataset="c10", model="lenet5", data_dir=folder / "nowhere")
