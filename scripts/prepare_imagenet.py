"""Turn the official ImageNet-1k validation archive into synset folders, and check it.

    python scripts/prepare_imagenet.py --images ILSVRC2012_img_val.tar \\
        --devkit ILSVRC2012_devkit_t12.tar.gz --output data/imagenet

Both archives come from https://image-net.org after accepting the licence. The output is
<output>/n01440764/ILSVRC2012_val_00000293.JPEG and so on: 50,000 images in 1000 folders, which
`benchmark=imagenet_vit` and `imagenet_resnet` read. Each image is written whole or not at all; a
run that was interrupted continues when it is started again.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import sys
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import scipy.io

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs from a bare clone, too

from metrics.validation import InputError
from pipeline.harness.command import Parser, user_errors_in_one_line
from pipeline.harness.progress import Bar, say
from pipeline.sources.result import MissingResource

IMAGES, SYNSETS = 50_000, 1000
IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
DEVKIT_MD5 = "fa75699e90414af021442c21a62c3abf"
WHERE = "download it from https://image-net.org (ILSVRC2012) after accepting the licence"
SYNSET_NAME = re.compile(r"n\d{8}")
IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.JPEG")


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the archives, unpack the images, check that all are there.

    Raises:
        MissingResource, InputError: something is missing or wrong; one line.
    """
    options = _parser().parse_args(arguments)
    for path, md5 in ((options.images, IMAGES_MD5), (options.devkit, DEVKIT_MD5)):
        check_archive(path, None if options.skip_checksums else md5)
    synsets = read_devkit(options.devkit, options.expected_images, options.expected_synsets)
    extract(options.images, synsets, options.output)
    check_complete(options.output, synsets)
    say(
        f"{len(synsets)} images in {len(set(synsets))} synset folders: {options.output} "
        f"(benchmark.source.data_dir={options.output})"
    )


def check_archive(path: Path, md5: str | None) -> None:
    """Check that an archive is there and, if `md5` is given, that it is the official one.

    Raises:
        MissingResource: no such file.
        InputError: another checksum.
    """
    if not path.is_file():
        raise MissingResource(f"{path} does not exist: {WHERE}")
    if md5 is None:
        return
    digest, size, done = hashlib.md5(usedforsecurity=False), path.stat().st_size, 0
    with path.open("rb") as file, Bar(f"checksum of {path.name}", size) as bar:
        while piece := file.read(1 << 24):
            digest.update(piece)
            done += len(piece)
            bar(done, size, "bytes")
    if digest.hexdigest() != md5:
        raise InputError(
            f"{path}: MD5 is {digest.hexdigest()}, the official file's is {md5}; "
            f"download it again, or give --skip-checksums for a repacked archive"
        )


def read_devkit(path: Path, images: int = IMAGES, synsets: int = SYNSETS) -> list[str]:
    """The synset of each validation image, in the order of the images' numbers.

    Raises:
        InputError: not the development kit, or one of another size than expected.
    """
    with _readable(path):
        truth, meta = _members(path, "ILSVRC2012_validation_ground_truth.txt", "meta.mat")
    # Fields: ILSVRC2012_ID, WNID, words, gloss, num_children, ...; only leaves are classes.
    try:
        table = scipy.io.loadmat(io.BytesIO(meta), squeeze_me=True)["synsets"]
        leaves = {int(row[0]): str(row[1]) for row in table if int(row[4]) == 0}
        answers = [leaves[int(line)] for line in truth.decode().split()]
    except (ValueError, KeyError, TypeError, IndexError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: meta.mat or the ground truth is not as expected; {WHERE}"
        ) from error
    for synset in leaves.values():
        if SYNSET_NAME.fullmatch(synset) is None:  # they become folders: no ../ and no /
            raise InputError(f"{path}: {synset[:40]!r} is no synset such as n01440764; {WHERE}")
    if len(leaves) != synsets or len(answers) != images:
        raise InputError(
            f"{path}: describes {len(answers)} images of {len(leaves)} synsets, "
            f"expected {images} of {synsets}; {WHERE}"
        )
    return answers


def extract(path: Path, synsets: Sequence[str], output: Path) -> None:
    """Write each image of the tar into its synset's folder; what is there already is skipped.

    Raises:
        InputError: the tar is truncated, or holds an image beyond the ground truth.
    """
    for synset in set(synsets):
        (output / synset).mkdir(parents=True, exist_ok=True)
    done = 0
    with _readable(path), tarfile.open(path) as archive, Bar("images", len(synsets)) as bar:
        for member in archive:
            name = IMAGE_NAME.fullmatch(Path(member.name).name)
            if not member.isfile() or name is None:
                continue
            number = int(name[1])
            if not 1 <= number <= len(synsets):
                raise InputError(f"{path}: {name[0]} has no ground truth; {WHERE}")
            _write(archive, member, output / synsets[number - 1] / name[0])
            done += 1
            bar(done, len(synsets), name[0])


def check_complete(output: Path, synsets: Sequence[str]) -> None:
    """Check that exactly the images of the ground truth are there.

    Raises:
        InputError: images are missing, or there are others.
    """
    wanted = {
        Path(synset) / f"ILSVRC2012_val_{number:08d}.JPEG"
        for number, synset in enumerate(synsets, start=1)
    }
    found = {file.relative_to(output) for file in output.rglob("*.JPEG")}
    if missing := wanted - found:
        raise InputError(
            f"{output}: {len(missing)} of {len(wanted)} images are missing, the first is "
            f"{min(missing)}; is the tar complete? {WHERE}"
        )
    if extra := found - wanted:
        raise InputError(
            f"{output}: {len(extra)} files do not belong there, the first is {min(extra)}; "
            "remove them, or choose an empty --output"
        )


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    if target.is_file() and target.stat().st_size == member.size:
        return
    partial = target.with_suffix(".partial")
    content = archive.extractfile(member)
    assert content is not None  # it is a regular file
    with content, partial.open("wb") as file:
        shutil.copyfileobj(content, file)
    partial.replace(target)


def _members(path: Path, *names: str) -> list[bytes]:
    """The contents of the archive's files with these base names."""
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            content = archive.extractfile(member) if name in names else None
            if content is not None:
                found[name] = content.read()
    for name in names:
        if name not in found:
            raise InputError(f"{path}: holds no {name}; {WHERE}")
    return [found[name] for name in names]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # disk full, no permission
            where = error.filename or f"while unpacking {path}"
            raise InputError(f"{where}: {error.strerror}; run it again to go on") from error
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: truncated or not a tar archive ({reason}); {WHERE}") from error


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument("--images", type=Path, required=True, help="ILSVRC2012_img_val.tar")
    parser.add_argument("--devkit", type=Path, required=True, help="ILSVRC2012_devkit_t12.tar.gz")
    parser.add_argument("--output", type=Path, required=True, help="folder for the synset folders")
    parser.add_argument("--skip-checksums", action="store_true", help="for repacked archives")
    parser.add_argument("--expected-images", type=int, default=IMAGES, metavar="N")
    parser.add_argument("--expected-synsets", type=int, default=SYNSETS, metavar="N")
    return parser


if __name__ == "__main__":
    with user_errors_in_one_line():
        main()
