"""Similarity of classes for U_w2v (paper, appendix: w2v utilities), from a file or word vectors.

With word vectors: a class name becomes lower case, its `_` and `-` become spaces, and it is split
into alphanumeric tokens. The vector of a class is the mean over its tokens that have one; S is the
cosine similarity. A class without any vector is similar to itself only, and is reported.

Each function returns the similarity [C, C], and details for the record, whose `line` the stage
prints. What is absent raises `MissingResource`, a file of another kind `InputError`.
"""

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics import Similarity
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.errors import InputError, MissingResource, naming, reason_of

from ..own.cells import numbers_of, text_column, text_of
from ..own.forms import check_is_file, is_table
from ..own.read import read_table
from ..own.told import normal, some_of
from ..own.utilities import FIX, check_match
from ..scoring.class_names import class_names as resolve_names
from .content import file_content, reads

LONGEST_WORD, LONGEST_NUMBER = 1000, 40  # bytes in a file of word vectors
ASYMMETRY = 1e-6  # of S_ij and S_ji, relative to the largest entry: up to this it is rounding
Found = tuple[NDArray[np.float64], dict[str, Any]]


@reads(vectors_path=file_content)
def class_similarity(
    class_names: str | Sequence[str],
    vectors_path: str | Path | None = None,
    download: str | None = None,
    whole_names: bool = False,
) -> Found | None:
    """Cosine similarity of the classes' mean word vectors, or None without a path and a download.

    Args:
        class_names: cifar10, cifar100, yahoo, imagenet, ... (see `class_names`), or a list of C.
        vectors_path: word2vec file, text or binary, possibly compressed, under any name.
        download: name in gensim's downloader, used without a path (word2vec-google-news-300).
        whole_names: look up a name as a whole if none of its tokens has a vector (some files have
            one vector per class name, such as `aquarium_fish`). This is not the paper's rule.

    Returns:
        S [C, C], symmetric, in [-1, 1], with unit diagonal. Its details have `out_of_vocabulary`,
        the classes without any vector, and `partly_covered`, for each class the tokens without one.
    """
    if vectors_path is None and download is None:
        return None
    names = resolve_names(class_names)
    path = Path(vectors_path or _downloaded(str(download))).expanduser()
    is_binary = check_vectors(path)
    load = require("gensim.models").KeyedVectors.load_word2vec_format
    try:
        vectors = load(str(path), binary=is_binary)
    except (ValueError, EOFError, OSError, IndexError, MemoryError, zlib.error) as error:
        reason = reason_of(error)
        raise InputError(f"not a word2vec file, or truncated ({reason})", file=path) from error
    means = np.zeros((len(names), vectors.vector_size))
    missing, partly = [], {}
    for row, name in enumerate(names):
        tokens = re.findall(r"[^\W_]+", name.lower())
        covered = [token for token in tokens if token in vectors]
        if not covered and whole_names:
            tokens = covered = [word for word in (name, name.lower()) if word in vectors][:1]
        if not covered:
            missing.append(name)
            continue
        if len(covered) < len(tokens):
            partly[name] = [token for token in tokens if token not in vectors]
        means[row] = np.mean([vectors[token] for token in covered], axis=0, dtype=np.float64)
    line = (
        f"word vectors {path.name}: {len(missing)} of {len(names)} classes have no vector "
        f"({', '.join(missing) or 'none'}), {len(partly)} are covered in part"
    )
    return _cosine(means), {
        "vectors": path.name,
        "dimensions": vectors.vector_size,
        "classes": len(names),
        "out_of_vocabulary": missing,
        "partly_covered": partly,
        "line": line,
    }


def _cosine(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    matrix = np.clip(unit @ unit.T, -1.0, 1.0)
    matrix = (matrix + matrix.T) / 2  # BLAS does not promise symmetry to the last bit
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _downloaded(name: str) -> Path:
    """The file of a model of gensim's downloader, from its folder or downloaded."""
    downloader = require("gensim.downloader")
    try:
        return Path(downloader.load(name, return_path=True))
    except Exception as error:  # gensim raises bare Exception for a failed checksum
        raise MissingResource(
            f"word vectors {name} are not in {downloader.BASE_DIR} and the download failed "
            f"({reason_of(error)}): with network run 'python -m gensim.downloader --download "
            f"{name}', or set sources.word_vectors=<file>, or benchmark.similarity=null"
        ) from error


def check_vectors(path: Path) -> bool:
    """Check at once the first line and the size of a file of word vectors; is it binary?

    The name does not tell: gensim's own download is binary and called word2vec-google-news-300.gz.
    """
    check_is_file(path, "word vectors (sources.word_vectors; without: benchmark.similarity=null)")
    try:
        with require("smart_open", "gensim").open(str(path), "rb") as file:  # as gensim opens it
            words, dimensions = map(int, file.readline(100).decode("ascii").split())
            first = file.readline(LONGEST_WORD + LONGEST_NUMBER * max(dimensions, 1))
        if min(words, dimensions) < 1:
            raise ValueError(f"{words} words of {dimensions} numbers")
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"not a word2vec file, whose first line is '<words> <dimensions>' ({reason_of(error)})",
            file=path,
            fixes="correct sources.word_vectors",
        ) from error
    is_binary = not _is_line_of_text(first, dimensions)
    least = words * dimensions * (4 if is_binary else 2)
    is_compressed = path.suffix in (".gz", ".bz2", ".xz", ".zst")
    if not is_compressed and (size := path.stat().st_size) < least:
        told = f"{size} bytes, and {words} vectors of {dimensions} numbers need {least} at least"
        raise InputError(f"truncated: {told}", file=path, fixes="download it again")
    return is_binary


def _is_line_of_text(line: bytes, dimensions: int) -> bool:
    """Whether a vector's line is a word and `dimensions` numbers in text."""
    try:
        return len([float(number) for number in line.split()[1:]]) == dimensions
    except ValueError:
        return False


def file_similarity(*, path: str | Path, decimal: str | None = None) -> Found:
    """Class similarity [C, C] for U_w2v, symmetric: an npz with `matrix`, or a CSV.

    The npz may have `class_names`, the CSV a header of the names, also before each line. The
    details then have `class_names`, in the order of the matrix. `decimal` is the decimal sign of a
    CSV whose numbers do not show it.
    """
    path, names = Path(path), list[str]()
    check_is_file(path, "an npz or CSV file with a similarity matrix")
    if path.suffix.lower() == ".csv":
        held, names = _of_csv(path, decimal)
    else:
        arrays = read_arrays(path, only=("matrix", "class_names"))
        if "matrix" not in arrays:
            raise InputError("no array `matrix`", file=path, fixes="save it under this name")
        held = arrays["matrix"]
        if "class_names" in arrays:
            names = text_of(arrays["class_names"], len(held), "class_names").tolist()
    try:
        matrix: NDArray[np.float64] = Similarity(held).matrix
    except InputError as error:
        raise InputError(str(error), file=path) from error
    if np.abs(matrix - matrix.T).max() > ASYMMETRY * np.abs(matrix).max():
        raise InputError("not symmetric", file=path, fixes="two classes have one similarity")
    return matrix, {"path": str(path)} | ({"class_names": names} if names else {})


def _of_csv(path: Path, decimal: str | None) -> tuple[NDArray[np.float64], list[str]]:
    """The numbers of a CSV, and the names of its header, if it has one."""
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig"), []
    except (ValueError, OverflowError, MemoryError) as error:
        reason = reason_of(error).partition("; use `usecols`")[0]
        told = f"not a CSV of numbers, with or without the names ({reason})"
        if _begins_with_number(path):
            fix = "separate the numbers by commas, as many in each line"
            raise InputError(told, file=path, fixes=fix) from error
        table = read_table(path, decimal)
        names = [str(name) for name in table]
        if len(names) == len(table) + 1:  # the first column has the names of the lines
            names = names[1:]
        if not 1 < len(names) == len(table):
            raise InputError(told, file=path) from error
    if len(names) < len(table.columns):
        lines = [normal(name) for name in text_column(table.iloc[:, 0]).tolist()]
        check_match(lines, names, path, "line", "column")
        table = table.iloc[[lines.index(name) for name in names]]
    with naming(path):
        return numbers_of(table, names, FIX), names


def _begins_with_number(path: Path) -> bool:
    """Whether the first cell is a number, as it is without a line of names."""
    text = path.read_text("utf-8-sig", errors="replace").lstrip()
    try:
        return math.isfinite(float(re.split(r"[,;|\s]", text, maxsplit=1)[0]))
    except ValueError:
        return False


def in_order(found: Found, details: Mapping[str, Any]) -> Found:
    """A similarity in the order of the classes of logits with these `details`.

    InputError: only the classes of the logits have names, whose order in a table is not that of its
    columns, or both have different names.
    """
    matrix, described = found
    if "path" not in described or len(matrix) != details["classes"]:
        return found  # of word vectors, which are for these very names; the size is told elsewhere
    path, held = described["path"], described.get("class_names")
    names = details.get("class_names")
    if held is None:
        if names and is_table(Path(details["origin"]["file"])):
            told = f"no names of classes, which are {some_of(names)}"
            fixes = ["give the CSV a header of the names", "add class_names to the npz"]
            raise InputError(told, field="similarity", file=path, fixes=fixes)
        return found
    wanted = names or [str(number) for number in range(len(matrix))]
    check_match(held, wanted, path, "class name", "class")
    order = [held.index(name) for name in wanted]
    return matrix[np.ix_(order, order)], described
