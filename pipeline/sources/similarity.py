"""Similarity of classes for U_w2v from word vectors (paper, appendix: w2v utilities).

A class name becomes lower case, its `_` and `-` become spaces, and it is split into alphanumeric
tokens. The vector of a class is the mean over its tokens that have one; S is the cosine similarity.
If no token of an ImageNet class's name has a vector (gasmask), its first synonym with one is used
(respirator). A class without any vector is similar to itself only, and is reported.
"""

import re
import zlib
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of

from ..scoring.class_names import class_names as resolve_names
from ..scoring.class_names import synonyms_of
from .downloads import not_fetched
from .input_digests import check_is_file, file_content, reads

LONGEST_WORD, LONGEST_NUMBER = 1000, 40  # bytes in a file of word vectors
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


class Tokens(NamedTuple):
    """The words by which a class is looked up."""

    covered: list[str]
    """Those that have a vector."""
    missing: list[str]
    """Those that have none."""
    synonym: str | None = None
    """The name that they are of, if it is not the class's own."""


class Coverage(NamedTuple):
    """What the word vectors have of the classes."""

    without_vector: list[str]
    """The classes that have none."""
    in_part: dict[str, list[str]]
    """By class the tokens without one."""
    by_synonym: dict[str, str]
    """For each class that has no vector of its own: the synonym whose vector it gets."""

    def add(self, name: str, tokens: Tokens) -> None:
        """Note what the tokens of one class say."""
        if not tokens.covered:
            self.without_vector.append(name)
            return
        if tokens.missing:
            self.in_part[name] = tokens.missing
        if tokens.synonym is not None:
            self.by_synonym[name] = tokens.synonym

    def described(self, n_classes: int) -> str:
        """The end of a line for people."""
        text = (
            f"{len(self.without_vector)} of {n_classes} classes have no vector "
            f"({', '.join(self.without_vector) or 'none'}), {len(self.in_part)} are covered in part"
        )
        if self.by_synonym:
            pairs = [f"{name}: {synonym}" for name, synonym in self.by_synonym.items()]
            text += f", {len(self.by_synonym)} by a synonym ({', '.join(pairs)})"
        return text


@reads(vectors_path=file_content)
def class_similarity(
    class_names: str | Sequence[str],
    vectors_path: str | Path | None = None,
    download: str | None = None,
    whole_names: bool = False,
) -> tuple[NDArray[np.float64], dict[str, Any]] | None:
    """Cosine similarity of the classes' mean word vectors, or None without a path and a download.

    Args:
        class_names: cifar10, cifar100, yahoo, imagenet, ... (see `class_names`), or a list of C.
        vectors_path: word2vec file, text or binary, possibly compressed, under any name.
        download: name in gensim's downloader, used without a path (word2vec-google-news-300).
        whole_names: look up a name as a whole if none of its tokens has a vector (some files have
            one vector per class name, such as `aquarium_fish`). This is not the paper's rule.

    Returns:
        S [C, C], symmetric, in [-1, 1], with unit diagonal, and details for the record:
        `out_of_vocabulary`, the classes without any vector; `partly_covered`, for each class the
        tokens without one; `by_synonym`, for each class the synonym that stands for its name; and a
        `line`, which the stage prints.

    Raises:
        MissingResource: there is no such file.
        InputError: the file holds no word vectors, or is cut off, or none can be downloaded.
    """
    if vectors_path is None and download is None:
        return None
    names = resolve_names(class_names)
    path = Path(vectors_path or _downloaded(str(download))).expanduser()
    vectors = _loaded(path)
    means = np.zeros((len(names), vectors.vector_size))
    coverage = Coverage([], {}, {})
    for row, (name, synonyms) in enumerate(zip(names, synonyms_of(class_names), strict=True)):
        tokens = _tokens_of(name, synonyms, vectors, whole_names)
        coverage.add(name, tokens)
        if tokens.covered:
            of_tokens = [vectors[token] for token in tokens.covered]
            means[row] = np.mean(of_tokens, axis=0, dtype=np.float64)
    return _cosine(means), {
        "vectors": path.name,
        "dimensions": vectors.vector_size,
        "classes": len(names),
        "out_of_vocabulary": coverage.without_vector,
        "partly_covered": coverage.in_part,
        "by_synonym": coverage.by_synonym,
        "line": f"word vectors {path.name}: {coverage.described(len(names))}",
    }


def _loaded(path: Path) -> Any:
    """The word vectors of a file, by gensim."""
    is_binary = check_vectors(path)
    load = require("gensim.models").KeyedVectors.load_word2vec_format
    try:
        return load(str(path), binary=is_binary)
    except (ValueError, EOFError, OSError, IndexError, MemoryError, zlib.error) as error:
        reason = reason_of(error)
        raise InputError(f"not a word2vec file, or truncated ({reason})", file=path) from error


def _tokens_of(
    name: str, synonyms: Sequence[str], vectors: Container[str], whole_names: bool
) -> Tokens:
    """The tokens of the first of a class's names that has a vector; the first name is its own."""
    for candidate in (name, *synonyms):
        words = re.findall(r"[^\W_]+", candidate.lower())
        covered = [word for word in words if word in vectors]
        missing = [word for word in words if word not in vectors]
        if covered:
            return Tokens(covered, missing, None if candidate == name else candidate)
    if whole_names:
        for spelling in (name, name.lower()):
            if spelling in vectors:
                return Tokens([spelling], [])
    return Tokens([], [])


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
        url = f"{downloader.DOWNLOAD_BASE_URL}/{name}"
        fixes = [
            f"with network run 'python -m gensim.downloader --download {name}'",
            "set sources.word_vectors=<file>",
            "set benchmark.similarity=null",
        ]
        place = Path(downloader.BASE_DIR) / name
        raise not_fetched(place, url, error, fixes) from error


def check_vectors(path: Path) -> bool:
    """Check at once the first line and the size of a file of word vectors; is it binary?

    The name does not tell: gensim's own download is binary and called word2vec-google-news-300.gz.
    """
    check_is_file(path, "word vectors (sources.word_vectors; without: benchmark.similarity=null)")
    try:
        with require("smart_open", "gensim").open(str(path), "rb") as file:  # as gensim opens it
            sizes = file.readline(100).decode("ascii").split()
            words, dimensions = map(int, sizes)
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
    size = path.stat().st_size
    if path.suffix not in COMPRESSED and size < least:
        message = (
            f"truncated: {size} bytes, and {words} vectors of {dimensions} numbers need at least "
            f"{least}"
        )
        raise InputError(message, file=path, fixes="download it again")
    return is_binary


def _is_line_of_text(line: bytes, dimensions: int) -> bool:
    """Whether a vector's line is a word and `dimensions` numbers in text."""
    _, *texts = line.split() or [b""]
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return False
    return len(numbers) == dimensions
