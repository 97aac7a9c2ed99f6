"""Similarity of classes from word vectors, against numbers computed by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metrics.validation import InputError
from pipeline.sources.class_names import CIFAR100, class_names
from pipeline.sources.heavy_imports import require
from pipeline.sources.result import MissingResource
from pipeline.sources.similarity import class_similarity, similarity_matrix, tokenize

VECTORS = {
    "tiger": [1.0, 0.0, 0.0],
    "shark": [0.0, 2.0, 0.0],
    "cat": [3.0, 4.0, 0.0],
    "great": [0.0, 0.0, 0.5],
    "nothing": [0.0, 0.0, 0.0],
}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """The folder with one vocabulary as word2vec binary (small.bin) and text (small.txt)."""
    keyed = require("gensim.models").KeyedVectors(vector_size=3)
    keyed.add_vectors(list(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32))
    keyed.save_word2vec_format(str(tmp_path / "small.bin"), binary=True)
    keyed.save_word2vec_format(str(tmp_path / "small.txt"), binary=False)
    for name in ("small.bin", "small.txt"):
        with gzip.open(tmp_path / f"{name}.gz", "wb") as file:
            file.write((tmp_path / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", ["small.bin", "small.txt", "small.bin.gz", "small.txt.gz"])
def test_binary_and_text_give_the_cosines_of_mean_vectors(vectors: Path, name: str) -> None:
    names = ["Tiger_Shark", "cat", "great white-shark", "kangaroo"]
    matrix, report = similarity_matrix(names, vectors / name)
    means = [[0.5, 1.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 0.25], [0.0, 0.0, 0.0]]
    expected = np.eye(4)
    for row in range(3):
        for column in range(3):
            a, b = np.array(means[row]), np.array(means[column])
            expected[row, column] = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    assert matrix.dtype == np.float64
    assert report == {
        "vectors": name,
        "dimensions": 3,
        "classes": 4,
        "out_of_vocabulary": ["kangaroo"],
        "partly_covered": {"great white-shark": ["white"]},
    }


def test_tokens_follow_the_papers_rule() -> None:
    assert tokenize("Great_white-Shark, man-eater") == ["great", "white", "shark", "man", "eater"]
    assert tokenize("black-and-gold garden spider, Argiope aurantia")[-2:] == [
        "argiope",
        "aurantia",
    ]
    assert tokenize("T-shirt (4 pieces)") == ["t", "shirt", "4", "pieces"]
    assert tokenize("Society & Culture") == ["society", "culture"]


def test_a_zero_vector_is_similar_to_itself_only(vectors: Path) -> None:
    matrix, _ = similarity_matrix(["nothing", "cat"], vectors / "small.txt")
    np.testing.assert_array_equal(matrix, np.eye(2))


def test_glove_for_cifar100_gives_a_sensible_symmetric_matrix(shared_dir: Path) -> None:
    path = shared_dir / "embeddings" / "cifar100_classes_glove100.txt"
    matrix, report = similarity_matrix(CIFAR100, path)
    # One vector per class name as spelled: two-word names have none under the paper's rule.
    assert report["out_of_vocabulary"] == [name for name in CIFAR100 if "_" in name]
    for name in report["out_of_vocabulary"]:
        row = CIFAR100.index(name)
        np.testing.assert_array_equal(matrix[row], np.eye(100)[row])
    whole, report = similarity_matrix(CIFAR100, path, whole_names=True)
    assert report["out_of_vocabulary"] == [] and report["partly_covered"] == {}
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(np.diag(whole), 1.0)
    assert np.abs(whole).max() == 1.0 and np.linalg.eigvalsh(whole).min() > -1e-9

    def likeness(a: str, b: str) -> float:
        return float(whole[CIFAR100.index(a), CIFAR100.index(b)])

    assert likeness("boy", "girl") > 0.9 > likeness("boy", "rocket")
    assert likeness("maple_tree", "oak_tree") > likeness("maple_tree", "telephone")


def test_missing_classes_are_reported(vectors: Path) -> None:
    found = class_similarity(["cat", "kangaroo", "great ape"], vectors / "small.bin")
    assert found is not None and found.details["out_of_vocabulary"] == ["kangaroo"]
    line = found.details["line"]
    assert "1 of 3 classes have no vector (kangaroo), 1 are covered in part" in line


def test_gensims_downloader_is_asked_and_its_folder_used(
    vectors: Path, monkeypatch: pytest.MonkeyPatch, benchmark_config: Callable[..., Any]
) -> None:
    downloader = require("gensim.downloader")
    monkeypatch.setattr(downloader, "BASE_DIR", str(vectors / "gensim"))
    monkeypatch.setattr(downloader, "base_dir", str(vectors / "gensim"))
    config = benchmark_config("imagenet_vit").similarity
    arguments = {key: value for key, value in config.items() if key != "_target_"}
    with pytest.raises(MissingResource) as caught:
        class_similarity(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "python -m gensim.downloader --download word2vec-google-news-300" in message
    assert "benchmark.similarity.vectors_path=<file>" in message
    folder = vectors / "gensim" / config.download
    folder.mkdir(parents=True)
    (vectors / "small.bin.gz").rename(folder / f"{config.download}.gz")
    found = class_similarity(**arguments)
    assert found is not None
    matrix = found.matrix
    assert matrix.shape == (1000, 1000)
    names = class_names("imagenet")
    place = {name.partition(",")[0]: number for number, name in enumerate(names)}
    # Only `tiger`, `shark`, `cat` and `great` have vectors; the rest is similar to itself alone.
    assert matrix[place["tiger shark"], place["tiger"]] > 0
    assert matrix[place["tiger shark"], place["goldfish"]] == 0


def test_files_that_are_not_vectors(vectors: Path) -> None:
    with pytest.raises(MissingResource, match=r"absent\.bin do not exist: download GoogleNews"):
        class_similarity("cifar10", vectors / "absent.bin")
    cut = vectors / "cut.bin"
    cut.write_bytes((vectors / "small.bin").read_bytes()[:-7])
    text = vectors / "cut.txt"
    text.write_text("5 3\ntiger 1 0 0\nshark 0 2 0\n")
    short = vectors / "short.txt"
    short.write_text("2 3\ntiger 1 0 0\nshark 0 2\n")
    other = vectors / "page.html"
    other.write_text("<html>not found</html>")
    packed = vectors / "cut.bin.gz"
    packed.write_bytes((vectors / "small.bin.gz").read_bytes()[:40])
    for path in (cut, text, short, other, packed):
        with pytest.raises(InputError, match=path.name) as caught:
            class_similarity("cifar10", path)
        assert "\n" not in str(caught.value)


def test_cifar100_names_are_those_of_the_real_data_set(shared_dir: Path) -> None:
    path = shared_dir / "embeddings" / "cifar100_classes_glove100.txt"
    lines = path.read_text().splitlines()[1:]
    assert [line.split(" ")[0] for line in lines] == list(CIFAR100)
