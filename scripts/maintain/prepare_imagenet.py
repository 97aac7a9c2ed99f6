"""Unpack the official ImageNet-1k validation archive into synset folders, and check it.

    python -m utility_calibration.scripts.maintain.prepare_imagenet data/imagenet

Put ILSVRC2012_img_val.tar and ILSVRC2012_devkit_t12.tar.gz into the folder. They come from
https://image-net.org after accepting the licence; torchvision checks their checksums. The script
writes val/n01440764/ILSVRC2012_val_00000293.JPEG and so on, 50,000 images in 1000 folders, which
`benchmark=imagenet_vit` and `imagenet_resnet` read.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Sequence
from pathlib import Path

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of
from utility_calibration.pipeline.harness.command import Parser, user_errors_in_one_line
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.sources.downloads import check_digest
from utility_calibration.pipeline.sources.imagenet import SYNSETS, VALIDATION_IMAGES

WHERE = "ILSVRC2012_img_val.tar and ILSVRC2012_devkit_t12.tar.gz of https://image-net.org"


def main(arguments: Sequence[str] | None = None) -> None:
    """Unpack what is not unpacked yet, and check that all images are there.

    Raises:
        InputError: an archive is missing or damaged, or images are missing. One line.
    """
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, help="the folder of both archives, and of the result")
    folder = parser.parse_args(arguments).folder
    try:
        images = require("torchvision.datasets").ImageNet(folder, split="val")
    except (RuntimeError, OSError, tarfile.TarError) as error:
        _check_archives(folder)
        raise InputError(reason_of(error), file=folder, fixes=f"put {WHERE} there") from error
    n_images, n_synsets = len(images), len(set(images.targets))
    if (n_images, n_synsets) != (VALIDATION_IMAGES, SYNSETS):
        raise InputError(
            f"{n_images} images of {n_synsets} synsets, expected {VALIDATION_IMAGES} of {SYNSETS}",
            file=folder / "val",
            fixes="delete this folder and run the script again",
        )
    say(f"{n_images} images in {folder / 'val'} (sources.imagenet={folder})")


def _check_archives(folder: Path) -> None:
    """Raise `InputError` for a damaged archive that lies there; torchvision does not name it."""
    archives = require("torchvision.datasets.imagenet").ARCHIVE_META
    for kind in ("val", "devkit"):
        name, md5 = archives[kind]
        path = folder / name
        if not path.is_file():
            continue
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "md5").hexdigest()
        check_digest(path, digest, md5, "download it again")


if __name__ == "__main__":
    with user_errors_in_one_line():
        main()
