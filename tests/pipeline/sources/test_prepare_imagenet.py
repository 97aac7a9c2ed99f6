"""The preparation of ImageNet on a small archive and development kit of the official layout."""

from __future__ import annotations

import errno
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.io
from PIL import Image

from pipeline.sources.imagenet import imagenet_logits

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "prepare_imagenet.py"
# By ILSVRC2012_ID; the development kit also holds inner nodes of the tree of words.
SYNSETS = {1: "n02119789", 2: "n01440764", 3: "n15075141"}
TRUTH = [2, 1, 3, 2, 2, 1]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prepare_imagenet", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


prepare_imagenet = load_script()


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def meta_file(synsets: dict[int, str] = SYNSETS) -> bytes:
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O")]
    fields += [("num_children", "O"), ("children", "O"), ("wordnet_height", "O")]
    rows = [(number, wnid, "word", "gloss", 0, 0, 0) for number, wnid in synsets.items()]
    rows.append((4, "n00001740", "entity", "everything", 3, [1, 2, 3], 1))
    file = io.BytesIO()
    scipy.io.savemat(file, {"synsets": np.array(rows, dtype=fields)})
    return file.getvalue()


@pytest.fixture
def official(tmp_path: Path) -> dict[str, Path]:
    """images, devkit and output of a run; the images are real JPEG files."""
    random = np.random.default_rng(0)
    images, devkit = tmp_path / "ILSVRC2012_img_val.tar", tmp_path / "ILSVRC2012_devkit_t12.tar.gz"
    with tarfile.open(images, "w") as tar:
        for number in range(1, len(TRUTH) + 1):
            file = io.BytesIO()
            pixels = random.integers(0, 256, (20, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(file, "JPEG")
            add(tar, f"ILSVRC2012_val_{number:08d}.JPEG", file.getvalue())
    truth = "".join(f"{number}\n" for number in TRUTH).encode()
    with tarfile.open(devkit, "w:gz") as tar:
        data = "ILSVRC2012_devkit_t12/data"
        add(tar, f"{data}/ILSVRC2012_validation_ground_truth.txt", truth)
        add(tar, f"{data}/meta.mat", meta_file())
        add(tar, "ILSVRC2012_devkit_t12/readme.txt", b"development kit")
    return {"images": images, "devkit": devkit, "output": tmp_path / "prepared"}


def command(paths: dict[str, Path], *more: str) -> list[str]:
    named = [text for name, path in paths.items() for text in (f"--{name}", str(path))]
    small = ["--expected-images", str(len(TRUTH)), "--expected-synsets", str(len(SYNSETS))]
    return [*named, *small, "--skip-checksums", *more]


def exit_code(arguments: list[str]) -> int:
    """Run the script as its command line does."""
    try:
        with prepare_imagenet.user_errors_in_one_line():
            prepare_imagenet.main(arguments)
    except SystemExit as end:
        return int(str(end.code))
    return 0


def fails_with(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    assert exit_code(arguments) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ") and "\n" not in error
    return error


def test_the_output_is_what_the_source_reads(official: dict[str, Path], tmp_path: Path) -> None:
    arguments = [sys.executable, str(SCRIPT), *command(official)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "6 images in 3 synset folders" in done.stdout
    result = imagenet_logits(
        model="test_resnet.r160_in1k",
        pretrained=False,
        data_dir=official["output"],
        work_dir=tmp_path / "w",
        expected_images=6,
        expected_synsets=3,
        workers=0,
        device="cpu",
    )
    # n01440764 is class 0, n02119789 class 278, n15075141 class 999.
    assert result.labels.tolist() == [0, 0, 0, 278, 278, 999]
    for number, synset in enumerate((SYNSETS[answer] for answer in TRUTH), start=1):
        assert (official["output"] / synset / f"ILSVRC2012_val_{number:08d}.JPEG").is_file()


def test_a_second_run_writes_only_what_is_missing(official: dict[str, Path]) -> None:
    assert exit_code(command(official)) == 0
    files = sorted(official["output"].rglob("*.JPEG"))
    before = {file: file.stat().st_mtime_ns for file in files}
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[:100])  # a copy that another tool broke off
    files[1].rename(files[1].with_suffix(".partial"))  # what a killed run leaves
    assert exit_code(command(official)) == 0
    assert files[0].read_bytes() == whole
    assert files[1].is_file() and not files[1].with_suffix(".partial").exists()
    assert [f.stat().st_mtime_ns for f in files[2:]] == [before[f] for f in files[2:]]


def test_an_interrupted_run_continues(
    official: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied: list[int] = []
    copy = prepare_imagenet.shutil.copyfileobj

    def interrupted(source: Any, target: Any) -> None:
        copied.append(1)
        if len(copied) == 4:
            target.write(b"half")
            raise KeyboardInterrupt
        copy(source, target)

    monkeypatch.setattr(prepare_imagenet.shutil, "copyfileobj", interrupted)
    assert exit_code(command(official)) == 130
    assert "run it again" in capsys.readouterr().err
    assert len(list(official["output"].rglob("*.JPEG"))) == 3, "the fourth is not there in half"
    assert exit_code(command(official)) == 0
    assert len(copied) == 4 + 3


def test_a_full_disk_is_named(
    official: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(source: Any, target: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepare_imagenet.shutil, "copyfileobj", full)
    error = fails_with(capsys, command(official))
    assert "while unpacking" in error and "No space left on device" in error


def test_missing_archives_name_the_place(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("images", "devkit"):
        paths = {**official, name: official[name].with_name("absent.tar")}
        error = fails_with(capsys, command(paths))
        assert "absent.tar does not exist" in error and "https://image-net.org" in error


def test_a_truncated_tar_is_refused_and_what_was_whole_is_kept(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    content = official["images"].read_bytes()
    official["images"].write_bytes(content[: len(content) // 3])
    error = fails_with(capsys, command(official))
    assert "truncated" in error or "missing" in error
    official["images"].write_bytes(content)
    assert exit_code(command(official)) == 0


def test_checksums_are_checked_by_default(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [text for text in command(official) if text != "--skip-checksums"]
    error = fails_with(capsys, arguments)
    assert "the official file's is 29b22e2961454d5413ddabcf34fc5622" in error


def test_counts_are_checked_against_the_official_ones(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    error = fails_with(capsys, command(official, "--expected-images", "50000"))
    assert "describes 6 images of 3 synsets, expected 50000 of 3" in error
    error = fails_with(capsys, command(official, "--expected-synsets", "1000"))
    assert "expected 6 of 1000" in error


def test_too_few_too_many_and_foreign_images(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = official["images"].read_bytes()
    with tarfile.open(official["images"], "w") as tar:
        add(tar, "ILSVRC2012_val_00000001.JPEG", b"\xff\xd8")
        add(tar, "../../escape.JPEG", b"outside")
    error = fails_with(capsys, command(official))
    assert "5 of 6 images are missing, the first is n01440764/ILSVRC2012_val_00000004" in error
    assert not list(official["output"].parent.rglob("escape.JPEG"))
    with tarfile.open(official["images"], "a") as tar:
        add(tar, "ILSVRC2012_val_00000007.JPEG", b"\xff\xd8")
    assert "ILSVRC2012_val_00000007.JPEG has no ground truth" in fails_with(
        capsys, command(official)
    )
    official["images"].write_bytes(whole)
    (official["output"] / "n01440764" / "mine.JPEG").write_bytes(b"")
    error = fails_with(capsys, command(official))
    assert "1 files do not belong there, the first is n01440764/mine.JPEG" in error


@pytest.mark.parametrize("damage", ["text", "truncated", "no meta", "bad meta"])
def test_a_devkit_that_is_none(
    official: dict[str, Path], capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    path = official["devkit"]
    if damage == "text":
        path.write_text("<html>please log in</html>")
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    else:
        with tarfile.open(path, "w:gz") as tar:
            add(tar, "data/ILSVRC2012_validation_ground_truth.txt", b"1\n2\n")
            if damage == "bad meta":
                add(tar, "data/meta.mat", b"MATLAB" * 40)
    error = fails_with(capsys, command(official))
    assert path.name in error
    if damage == "no meta":
        assert "holds no meta.mat" in error


@pytest.mark.parametrize("name", ["../../outside", "/tmp/outside", "n0144076", "n01440764/x", ""])
def test_synsets_of_the_development_kit_name_no_folder_outside(
    official: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(official["devkit"], "w:gz") as tar:
        truth = "".join(f"{number}\n" for number in TRUTH).encode()
        add(tar, "kit/data/ILSVRC2012_validation_ground_truth.txt", truth)
        add(tar, "kit/data/meta.mat", meta_file({**SYNSETS, 2: name}))
    assert exit_code(command(official)) == 1
    assert "is no synset such as n01440764" in capsys.readouterr().err
    assert not official["output"].exists()
    assert {path.name for path in official["images"].parent.iterdir()} == {
        "ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz",
    }  # fmt: skip
