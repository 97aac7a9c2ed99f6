"""Similarity of classes from word vectors, against numbers by hand, and from a person's file."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.sources.class_names import CIFAR100
from pipeline.sources.result import MissingResource
from pipeline.sources.similarity import (
    class_similarity,
    file_similarity,
    tokenize,
)

VECTORS = {
    "tiger": [1.0, 0.0, 0.0],
    "shark": [0.0, 2.0, 0.0],
    "cat": [3.0, 4.0, 0.0],
    "great": [0.0, 0.0, 0.5],
}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """The folder with one vocabulary as word2vec binary (small.bin) and text (small.txt)."""
    keyed = require("gensim.models").KeyedVectors(vector_size=3)
    keyed.add_vectors(list(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32))
    keyed.save_word2vec_format(str(tmp_path / "small.bin"), binary=True)
    keyed.save_word2vec_format(str(tmp_path / "small.txt"), binary=False)
    with gzip.open(tmp_path / "small.bin.gz", "wb") as file:
        file.write((tmp_path / "small.bin").read_bytes())
    return tmp_path


def covered(names: Sequence[str], path: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The matrix, and what the vectors cover."""
    result = class_similarity(names, path, **options)
    assert result is not None
    return result


@pytest.mark.parametrize("name", ["small.bin", "small.txt", "small.bin.gz"])
def test_binary_and_text_give_the_cosines_of_mean_vectors(vectors: Path, name: str) -> None:
    names = ["Tiger_Shark", "cat", "great white-shark", "kangaroo"]
    matrix, report = covered(names, vectors / name)
    means = [[0.5, 1.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 0.25], [0.0, 0.0, 0.0]]
    expected = np.eye(4)
    for row in range(3):
        for column in range(3):
            a, b = np.array(means[row]), np.array(means[column])
            expected[row, column] = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    assert matrix.dtype == np.float64
    assert report.pop("line").startswith(f"word vectors {name}: 1 of 4 classes have no vector")
    assert report == {
        "vectors": name,
        "dimensions": 3,
        "classes": 4,
        "out_of_vocabulary": ["kangaroo"],
        "partly_covered": {"great white-shark": ["white"]},
    }


def test_tokens_follow_the_papers_rule() -> None:
    assert tokenize("Great_white-Shark, man-eater") == ["great", "white", "shark", "man", "eater"]
    assert tokenize("Society & Culture (4 pieces)") == ["society", "culture", "4", "pieces"]


def test_glove_for_cifar100_gives_a_sensible_symmetric_matrix(shared_dir: Path) -> None:
    path = shared_dir / "embeddings" / "cifar100_classes_glove100.txt"
    matrix, report = covered(CIFAR100, path)
    # One vector per class name as spelled: two-word names have none under the paper's rule.
    assert report["out_of_vocabulary"] == [name for name in CIFAR100 if "_" in name]
    for name in report["out_of_vocabulary"]:
        row = CIFAR100.index(name)
        np.testing.assert_array_equal(matrix[row], np.eye(100)[row])
    whole, report = covered(CIFAR100, path, whole_names=True)
    assert report["out_of_vocabulary"] == []
    np.testing.assert_array_equal(whole, whole.T)
    boy, girl, rocket = (CIFAR100.index(name) for name in ("boy", "girl", "rocket"))
    assert whole[boy, girl] > 0.9 > whole[boy, rocket]


def test_absent_vectors_are_one_line_that_says_how_to_download_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark_config: Callable[..., Any]
) -> None:
    downloader = require("gensim.downloader")
    monkeypatch.setattr(downloader, "BASE_DIR", str(tmp_path / "gensim"))
    monkeypatch.setattr(downloader, "base_dir", str(tmp_path / "gensim"))
    config = benchmark_config("imagenet_vit").similarity
    arguments = {key: value for key, value in config.items() if key != "_target_"}
    with pytest.raises(MissingResource) as caught:
        class_similarity(**arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "python -m gensim.downloader --download word2vec-google-news-300" in message
    assert "sources.word_vectors=<file>" in message


def test_files_that_are_not_vectors(vectors: Path) -> None:
    with pytest.raises(MissingResource, match=r"absent\.bin: no such file; give the path of word"):
        class_similarity("cifar10", vectors / "absent.bin")
    cut = vectors / "cut.bin"
    cut.write_bytes((vectors / "small.bin").read_bytes()[:-7])
    other = vectors / "page.html"
    other.write_text("<html>not found</html>")
    short = vectors / "short.txt"
    short.write_text("3000000 300\ntiger 1 2")
    none = vectors / "none.txt"
    none.write_text("0 300\n")
    for path in (cut, other, short, none):
        with pytest.raises(InputError, match=path.name) as caught:
            class_similarity("cifar10", path)
        assert "\n" not in str(caught.value)


def test_a_persons_matrix_from_npz_and_csv(tmp_path: Path) -> None:
    matrix = np.array([[1.0, 0.2], [0.2, 1.0]])
    np.savez(tmp_path / "s.npz", matrix=matrix)
    np.savetxt(tmp_path / "s.csv", matrix, delimiter=",")
    for name in ("s.npz", "s.csv"):
        np.testing.assert_array_equal(file_similarity(path=tmp_path / name)[0], matrix)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"other": np.eye(2)}, "no array `matrix`"),
        ({"matrix": np.ones((2, 3))}, "not square"),
        ({"matrix": np.array([[1, 0.5], [0.2, 1]])}, "not symmetric"),
        ({"matrix": np.array([[1, np.nan], [np.nan, 1]])}, "NaN or infinite values"),
    ],
)
def test_what_is_no_similarity_is_one_line(
    tmp_path: Path, arrays: dict[str, Any], words: str
) -> None:
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(InputError, match=words) as caught:
        file_similarity(path=tmp_path / "s.npz")
    assert str(caught.value).isprintable()


def test_a_similarity_that_is_absent_or_other_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=r"none\.csv"):
        file_similarity(path=tmp_path / "none.csv")
    (tmp_path / "s.csv").write_text("1;0.5\n0.5;1\n")
    with pytest.raises(InputError, match="not a CSV of numbers"):
        file_similarity(path=tmp_path / "s.csv")
