"""Similarity of classes from a person's file."""

import numpy as np
import pytest

from metrics import InputError
from pipeline.sources.result import MissingResource
from pipeline.sources.similarity_file import file_similarity


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_similarity_from_npz_and_csv(tmp_path):
    matrix = np.array([[1.0, 0.2], [0.2, 1.0]])
    path = save(tmp_path / "s.npz", matrix=matrix)
    np.testing.assert_array_equal(file_similarity(path=path).matrix, matrix)
    np.savetxt(tmp_path / "s.csv", matrix, delimiter=",")
    np.testing.assert_array_equal(file_similarity(path=tmp_path / "s.csv").matrix, matrix)


def test_bad_similarity(tmp_path):
    with pytest.raises(InputError, match="matrix"):
        file_similarity(path=save(tmp_path / "s.npz", other=np.eye(2)))
    with pytest.raises(InputError, match="C, C"):
        file_similarity(path=save(tmp_path / "s.npz", matrix=np.ones((2, 3))))
    with pytest.raises(MissingResource):
        file_similarity(path=tmp_path / "none.csv")
    (tmp_path / "s.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="not a CSV of numbers"):
        file_similarity(path=tmp_path / "s.csv")


def test_a_folder_is_called_a_folder(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path.name}: this is a folder; give the path"):
        file_similarity(path=tmp_path)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.array([["a", "b"], ["b", "a"]]), "real numbers"),
        (np.eye(2, dtype=complex), "complex128"),
        (np.zeros((2, 2), "datetime64[D]"), "datetime64"),
        (np.array([[1, 0.5], [0.2, 1]]), "not symmetric: 0.5 in row 0, column 1, but 0.2"),
        (np.array([[1, np.nan], [np.nan, 1]]), "nan in row 0, column 1"),
        (np.zeros((0, 0)), "expected a matrix"),
    ],
)
def test_what_is_no_similarity_is_one_line(tmp_path, matrix, words):
    with pytest.raises(InputError) as caught:
        file_similarity(path=save(tmp_path / "s.npz", matrix=matrix))
    assert words in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1;0.5\n0.5;1\n", "CSV of numbers"),
        ("1\t0.5\n0.5\t1\n", "CSV of numbers"),
        ("1,0.5\n0.5,1\n".encode("utf-16"), "utf-8"),
    ],
)
def test_another_kind_of_text_is_named(tmp_path, content, words):
    path = tmp_path / "s.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=words):
        file_similarity(path=path)
