"""Similarity of classes for U_w2v (paper, appendix: w2v utilities): from a file or word vectors.

Of word vectors: class name → lower case, `_` and `-` to spaces, alphanumeric tokens; a class is the
mean of its tokens that have a vector; S = cosine similarity. A class without any vector is similar
to itself only, and is reported.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.archive import array_names, read_arrays
from metrics.validation import InputError
from pipeline.sources.class_names import class_names as resolve_names
from pipeline.sources.file import check_is_file
from pipeline.sources.heavy_imports import require
from pipeline.sources.result import MissingResource, SimilarityResult, reason_of

ASYMMETRY = 1e-6
"""Largest difference of S_ij and S_ji, relative to the largest entry, that counts as rounding."""


def class_similarity(
    class_names: str | Sequence[str],
    vectors_path: str | Path | None = None,
    download: str | None = None,
    whole_names: bool = False,
) -> SimilarityResult | None:
    """The matrix S [C, C] that a benchmark's `similarity:` section asks for, or None if neither a
    path nor a download is given (U_w2v is then left out).

    Args:
        class_names: cifar10, cifar100, yahoo, imagenet, ... (see `class_names`), or a list.
        vectors_path: word2vec file, binary or text, possibly gzipped.
        download: name in gensim's downloader, used without a path (word2vec-google-news-300).
        whole_names: see `similarity_matrix`.

    Raises:
        MissingResource: the vectors are not there and cannot be downloaded.
        InputError: unknown class names, or a file that is not in word2vec's format.
    """
    if vectors_path is None and download is None:
        return None
    names = resolve_names(class_names)
    path = _existing(Path(vectors_path)) if vectors_path is not None else _downloaded(str(download))
    matrix, report = similarity_matrix(names, path, whole_names=whole_names)
    missing = report["out_of_vocabulary"]
    line = (
        f"word vectors {path.name}: {len(missing)} of {len(names)} classes have no vector "
        f"({', '.join(missing) or 'none'}), {len(report['partly_covered'])} are covered in part"
    )
    return SimilarityResult(matrix, {**report, "line": line})


def similarity_matrix(
    class_names: Sequence[str], vectors_path: str | Path, *, whole_names: bool = False
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Cosine similarity of the classes' mean word vectors.

    Args:
        class_names: C names.
        vectors_path: word2vec file, binary or text, possibly gzipped.
        whole_names: look a name up as it is spelled if none of its tokens has a vector (files that
            hold one vector per class name, such as `aquarium_fish`). Not the paper's rule.

    Returns:
        S float64 [C, C], symmetric, in [-1, 1], unit diagonal; and what the vectors cover:
        `out_of_vocabulary`, the classes without any vector, and `partly_covered`, by class the
        tokens without one.

    Raises:
        MissingResource: no such file.
        InputError: not in word2vec's format.
    """
    path = _existing(Path(vectors_path))
    vectors = _load(path)
    classes = np.zeros((len(class_names), vectors.vector_size))
    unknown, partly = [], {}
    for row, name in enumerate(class_names):
        tokens = tokenize(name)
        known = [token for token in tokens if token in vectors]
        if not known and whole_names:
            known = [spelling for spelling in (name, name.lower()) if spelling in vectors][:1]
            tokens = known or tokens
        if not known:
            unknown.append(name)
            continue
        if len(known) < len(tokens):
            partly[name] = [token for token in tokens if token not in vectors]
        classes[row] = np.mean([vectors[token] for token in known], axis=0, dtype=np.float64)
    return _cosine(classes), {
        "vectors": path.name,
        "dimensions": vectors.vector_size,
        "classes": len(class_names),
        "out_of_vocabulary": unknown,
        "partly_covered": partly,
    }


def tokenize(name: str) -> list[str]:
    """Lower case, `_` and `-` to spaces, alphanumeric tokens: the paper's rule."""
    return re.findall(r"[^\W_]+", name.lower().replace("_", " ").replace("-", " "))


def _cosine(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    matrix = np.clip(unit @ unit.T, -1.0, 1.0)
    matrix = (matrix + matrix.T) / 2  # BLAS does not promise symmetry to the last bit
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    raise MissingResource(
        f"word vectors {path} do not exist: download GoogleNews-vectors-negative300.bin.gz "
        "(https://code.google.com/archive/p/word2vec) and set "
        "benchmark.similarity.vectors_path=<file>, or benchmark.similarity=null to leave out U_w2v"
    )


def _downloaded(name: str) -> Path:
    """The file of a model of gensim's downloader, from its folder or fetched."""
    downloader = require("gensim.downloader")
    logging.getLogger("gensim").setLevel(logging.CRITICAL)  # it logs the traceback of a failure
    path = Path(downloader.BASE_DIR) / name / f"{name}.gz"
    if path.is_file():
        return path
    try:
        return Path(downloader.load(name, return_path=True))
    except Exception as error:  # gensim raises bare Exception for a failed checksum
        reason = reason_of(error)
        raise MissingResource(
            f"word vectors {name} are not in {downloader.BASE_DIR} and the download failed "
            f"({reason}): with network run 'python -m gensim.downloader --download {name}', or set "
            "benchmark.similarity.vectors_path=<file>, or benchmark.similarity=null"
        ) from error


def _load(path: Path) -> Any:
    keyed_vectors = require("gensim.models").KeyedVectors
    logging.getLogger("gensim").setLevel(logging.CRITICAL)  # it reports each step of a load
    try:
        return keyed_vectors.load_word2vec_format(str(path), binary=_is_binary(path))
    except (ValueError, EOFError, OSError, IndexError, MemoryError, zlib.error) as error:
        raise InputError(
            f"{path}: not a word2vec file, or truncated ({reason_of(error)})"
        ) from error


def _is_binary(path: Path) -> bool:
    """Whether the first vector is bytes: not as many decimal numbers as the header promises."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header, first = file.readline(64), file.readline(1 << 20)
        _, dimensions = (int(number) for number in header.split())
        return len([float(number) for number in first.split()[1:]]) != dimensions
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not readable ({error})") from error
    except ValueError:
        return True


def file_similarity(*, path: str | Path) -> SimilarityResult:
    """Similarity of classes [C, C] for U_w2v: an npz with `matrix`, or a CSV without header line.

    Raises:
        MissingResource: no such file.
        InputError: it holds no symmetric matrix of finite real numbers; one line with the fix.
    """
    path = Path(path)
    check_is_file(path, "an npz or CSV file with a similarity matrix")
    given = _read_csv(path) if path.suffix.lower() == ".csv" else _read_npz(path)
    if given.dtype.kind not in "biuf":
        raise InputError(f"{path}: a matrix of {given.dtype}; give real numbers, [C, C]")
    matrix = given.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(f"{path}: expected a matrix [C, C], got {list(matrix.shape)}")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"{path}: {matrix[row, column]} in row {row}, column {column}; replace it")
    gap = np.abs(matrix - matrix.T)
    if gap.max() > ASYMMETRY * np.abs(matrix).max():
        row, column = np.unravel_index(int(gap.argmax()), gap.shape)
        raise InputError(
            f"{path}: not symmetric: {matrix[row, column]:.6g} in row {row}, column {column}, but "
            f"{matrix[column, row]:.6g} in row {column}, column {row}; a similarity goes both ways"
        )
    return SimilarityResult(matrix, {"path": str(path)})


def _read_npz(path: Path) -> NDArray[Any]:
    arrays = read_arrays(path, only=("matrix",))
    if "matrix" not in arrays:
        found = ", ".join(array_names(path)) or "nothing"
        raise InputError(f"{path}: no array `matrix` (it holds {found}); name it so")
    return arrays["matrix"]


def _read_csv(path: Path) -> NDArray[Any]:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{path}: not a CSV of numbers without a header line ({reason_of(error)}); export it so"
        ) from error
