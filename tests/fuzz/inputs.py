"""Files that nobody would give on purpose, each from one seed, and the functions that read them."""

import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.calibrators import TemperatureScaling
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.pipeline.own.applying.deployed import unlabelled
from utility_calibration.pipeline.own.request.similarity import file_similarity
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.pipeline.sources.file import file_logits

Random = np.random.Generator
CALIBRATOR = TemperatureScaling().fit(np.eye(3) + np.arange(3), np.arange(3))

NAMES = ["logits", "labels", "probabilities", "label", "class_names", "groups", "matrix", "x"]
SHAPES = [(), (0,), (1,), (6,), (6, 3), (6, 1), (3, 3), (6, 0), (0, 3), (6, 3, 1), (6, 2), (7, 3)]
SPECIAL = [0, 1, -1, 2, 0.5, 1e-320, 1e308, -1e308, 1e38, np.nan, np.inf, -np.inf, 2**53, 100]
TOKENS = [
    *("", " ", "nan", "NA", "inf", "-inf", "1e999", "-0", "0x10", "1_000", "True", "cat", "é"),
    *("\0", '"', '""', "'", ",", ";", "\t", "\n", "\r", "1,5", "=1+1", "#", "\ufeff", "\U0001f600"),
    *("9" * 400, "label", "labels", "c0", "id", "0.3", "1.00002", "-1", "2020-01-01", "\x1b[31m"),
]
HEADERS = ["(10**12, 3)", "(12, 2**65)", "(True, 3)", "(-1, 3)", "((3,), 2)", "()", "3", "(1e3,)"]


def array(random: Random) -> Any:
    """An array that mostly is no forecast: any shape and values."""
    values = np.asarray(random.normal(size=SHAPES[random.integers(len(SHAPES))]))
    if random.random() < 0.4:
        values = np.round(2 * np.abs(values))
    if values.size and random.random() < 0.3:
        values.flat[random.integers(values.size)] = SPECIAL[random.integers(len(SPECIAL))]
    return values.astype(str) if random.random() < 0.1 else values


def forecast(random: Random, kind: str) -> dict[str, Any]:
    """A file's arrays as they should be, mostly."""
    n, classes = int(random.integers(1, 8)), int(random.integers(2, 5))
    z = random.normal(scale=3, size=(n, classes))
    labels: Any = random.integers(classes, size=n)
    if random.random() < 0.2:
        labels = np.array([f"class {label}" for label in labels])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return {kind: z if kind == "logits" else p, "labels": labels}


def npz(random: Random) -> bytes:
    """An archive, then damaged: bytes changed, cut, moved or a header rewritten."""
    buffer = io.BytesIO()
    arrays = forecast(random, str(random.choice(["logits", "probabilities", "matrix"])))
    if random.random() < 0.2:
        arrays[NAMES[random.integers(len(NAMES))]] = array(random)
    if random.random() < 0.3:
        arrays = {str(name): array(random) for name in random.choice(NAMES, size=3)}
    (np.savez if random.random() < 0.5 else np.savez_compressed)(buffer, **arrays)
    content = buffer.getvalue()
    if random.random() < 0.3:
        shape = HEADERS[random.integers(len(HEADERS))].encode()
        start = content.find(b"'shape': ") + 9
        content = content[:start] + shape + content[start + len(shape) :]
    return damaged(content, random)


@cache
def saved_calibrator() -> bytes:
    """A calibrator as `save` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        return CALIBRATOR.save(Path(folder) / "t.npz").read_bytes()


def changed_calibrator(random: Random) -> bytes:
    """A calibrator in which one value is another: checksums do not show it."""
    with np.load(io.BytesIO(saved_calibrator())) as archive:
        content = dict(archive)
    name = str(random.choice([name for name in content if name.endswith("_")]))
    value = content[name]
    if random.random() < 0.5 and value.dtype.kind in "if":
        content[name] = value * SPECIAL[random.integers(len(SPECIAL))]
    else:
        content[name] = array(random)
    buffer = io.BytesIO()
    with np.errstate(all="ignore"):
        np.savez(buffer, **content)
    return buffer.getvalue()


def load_and_predict(path: Path) -> None:
    """What is loaded must predict; the caller sees any other error than an `InputError`.

    A temperature of 1e38 is one that a fit gives for logits as large, and makes all classes equal:
    that is no other order.
    """
    p = Calibrator.load(path).predict_proba(np.eye(3))
    assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)
    assert (p.diagonal() == p.max(axis=1)).all(), "the order of the classes has changed"


def damaged(content: bytes, random: Random) -> bytes:
    """The same bytes, or with some changed, cut off, repeated or swapped."""
    held = bytearray(content)
    for _ in range(random.integers(4)):
        if not held:
            break
        place, length = int(random.integers(len(held))), int(random.integers(1, 20))
        match random.integers(5):
            case 0:
                held[place] ^= 1 << int(random.integers(8))
            case 1:
                held[place] = int(random.choice([0, 1, 0x7F, 0x80, 0xFF]))
            case 2:
                del held[place:]
            case 3:
                del held[place : place + length]
            case 4:
                held[place:place] = held[place // 2 : place // 2 + length]
    return bytes(held)


def csv(random: Random) -> bytes:
    """A table in which cells, names, separators and the encoding went wrong."""
    matrix, labels = forecast(random, str(random.choice(["logits", "probabilities"]))).values()
    names = ["label", *(f"c{k}" for k in range(matrix.shape[1]))]
    rows = [names, *([str(y), *map(str, row)] for y, row in zip(labels, matrix))]
    for _ in range(random.integers(5)):
        row = rows[random.integers(len(rows))]
        place, token = int(random.integers(len(row) + 1)), TOKENS[random.integers(len(TOKENS))]
        match random.integers(4):
            case 0:
                row[place : place + 1] = [token]
            case 1:
                row.insert(place, token)
            case 2:
                del row[place:]
            case 3:
                rows.append(list(row))
    separator = str(random.choice([",", ",", ",", ";", "\t", "|", ", "]))
    end = str(random.choice(["\n", "\n", "\r\n", "\r", "\n\n"]))
    text = end.join(separator.join(row) for row in rows) + end
    encoding = str(random.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    content = text.encode(encoding, "replace")
    return damaged(content, random) if random.random() < 0.3 else content


BYTES: dict[str, Callable[[Random], bytes]] = {
    "npz": npz,
    "csv": csv,
    "similarity": npz,
    "calibrator": lambda random: damaged(saved_calibrator(), random),
    "changed": changed_calibrator,
    "points": npz,
    "table": csv,
}
"""Makers of files by the target that reads them."""

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "npz": (".npz", lambda path: file_logits(path=path)),
    "csv": (".csv", lambda path: file_logits(path=path)),
    "similarity": (".npz", lambda path: file_similarity(path=path)),
    "calibrator": (".npz", load_and_predict),
    "changed": (".npz", load_and_predict),
    "points": (".npz", lambda path: list(unlabelled(path, CALIBRATOR, FileOptions()))),
    "table": (".csv", lambda path: list(unlabelled(path, CALIBRATOR, FileOptions()))),
}
"""Ending of the file, and the function that reads it."""
