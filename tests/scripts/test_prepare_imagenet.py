"""The preparation of ImageNet: torchvision unpacks the archives; what is missing is one line."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from utility_calibration.metrics.validation import InputError
from utility_calibration.scripts.maintain import prepare_imagenet


def test_missing_archives_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ILSVRC2012_devkit_t12.tar.gz is not present") as error:
        prepare_imagenet.main([str(tmp_path)])
    assert "https://image-net.org" in str(error.value)


def test_a_wrong_archive_is_named_with_its_md5(tmp_path: Path) -> None:
    name = "ILSVRC2012_devkit_t12.tar.gz"
    (tmp_path / name).write_bytes(b"another archive")
    found, wanted = "85e4524d4141ff4bb6055fb022142e60", "fa75699e90414af021442c21a62c3abf"
    with pytest.raises(InputError, match=rf"{name} has MD5 {found}, expected {wanted}") as error:
        prepare_imagenet.main([str(tmp_path)])
    assert "\n" not in str(error.value)


def test_a_folder_is_checked_for_all_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Images(list[int]):
        targets = (0, 1)

    datasets = SimpleNamespace(ImageNet=lambda folder, split: Images(range(2)))
    monkeypatch.setattr(prepare_imagenet, "require", lambda name: datasets)
    with pytest.raises(InputError, match="2 images of 2 synsets, expected 50000 of 1000; delete"):
        prepare_imagenet.main([str(tmp_path)])
