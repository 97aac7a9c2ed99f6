"""The preparation of ImageNet: torchvision unpacks the archives; what is missing is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from metrics.validation import InputError
from scripts import prepare_imagenet


def test_missing_archives_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ILSVRC2012_devkit_t12.tar.gz is not present") as error:
        prepare_imagenet.main([str(tmp_path)])
    assert "https://image-net.org" in str(error.value)


@pytest.mark.parametrize("images", [2, 3])
def test_a_folder_is_checked_for_all_images(
    images: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ImageNet(list[int]):
        def __init__(self, folder: Path, split: str) -> None:
            super().__init__(range(images))
            self.targets = [0, 1, 1][:images]

    class Datasets:
        pass

    Datasets.ImageNet = ImageNet  # type: ignore[attr-defined]
    monkeypatch.setattr(prepare_imagenet, "require", lambda name: Datasets)
    monkeypatch.setattr(prepare_imagenet, "VALIDATION_IMAGES", 3)
    monkeypatch.setattr(prepare_imagenet, "SYNSETS", 2)
    if images == 3:
        prepare_imagenet.main([str(tmp_path)])
    else:
        with pytest.raises(InputError, match="2 images of 2 synsets, expected 3 of 2; delete"):
            prepare_imagenet.main([str(tmp_path)])
