"""Score points beyond memory in one pass, with a bar; a killed run resumes at a shard.

Methods are fitted on a uniform sample of the points, and all other points test. Without methods all
points are scored.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics import ClassWise, StreamingCalibration, TopK
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.validation import InputError

from ..harness.artifacts import read_npz, sha256_of, write_json, write_npz, write_text
from ..harness.command import UsageError
from ..harness.progress import Bar, say
from ..harness.settings import Settings
from ..plan import key_of
from ..reporting.names import PRESENT
from ..reporting.wording import markdown_table, p_value
from .batches import Points, Stream, is_too_large
from .choices import Choices
from .folder import only_run
from .forms import shards_of
from .job import settings_of, takes
from .options import Options

SECONDS_BETWEEN_SAVES = 10.0
MOST_RANKED, MOST_CLASSES = 1000, 10_000
"""Classes up to which all K of top-K, and all classes of class-wise utilities, are scored."""
FEW, BUCKETS_OF_FEW = 100, 4000
"""Up to this number of classes there are more buckets: 32 MB for a forecast of 100 classes."""
REFUSED = (
    *("test", "groups", "clusters", "save", "similarity", "calibrate_for", "splits"),
    *("payoffs", "valuations", "losses", "gain", "utility"),
)
"""Options for what needs all points at once."""
FILES = ("streaming.json", "streaming.md", "data/stream", "data/locks")
HEADINGS = (
    *("Forecast", "Metric", "At least", "At most", "By chance, mean", "p-value"),
    *("True error, from", "to"),
)
Forecaster = Callable[[NDArray[np.float32]], Any]


def is_streamed(options: Options) -> bool:
    """Whether the points are read in one pass: by choice, or because they are too many."""
    given = [name for name in REFUSED if getattr(options, name)]
    shards = shards_of(options.file)
    is_asked = options.stream or options.calibrator is not None or shards != [options.file]
    if is_asked and given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{flags}: needs all points at once, which one pass does not have")
    return is_asked or (not given and is_too_large(options.file))


def forecasters_of(
    options: Options, stream: Stream, methods: Mapping[str, Settings], folder: Path
) -> tuple[dict[str, Forecaster], float]:
    """What is scored, by name, and the largest random number of the points that were fitted on.

    The present forecast, the saved calibrator, and the `methods` that the person names. `folder`
    has what an interrupted run has fitted.
    """
    found: dict[str, Forecaster] = {PRESENT: lambda z: softmax(z)}
    if (saved := options.calibrator) is not None:
        is_taken = saved.stem in (PRESENT, *methods)
        found[saved.name if is_taken else saved.stem] = _loaded(saved, stream.known.classes.texts)
    if not methods:
        return found, -1.0
    file = folder / "sample.npz"
    if not file.exists():
        sample, limit = stream.sample(options.sample)
        write_npz(file, limit=limit, **sample._asdict())
    held = read_npz(file)
    limit = float(held.pop("limit"))
    sample = Points(**held)
    is_weighted = len(set(sample.weights)) > 1
    for name, settings in methods.items():
        if is_weighted and not takes(settings, "weights"):
            raise UsageError(f"--methods {name}: cannot be fitted with weights; leave it out")
        fitted = folder / f"{name}.npz"
        if not fitted.exists():
            calibrator: Calibrator = instantiate(settings.calibrator, _convert_="all")
            weights = sample.weights if is_weighted else None
            calibrator.fit(sample.logits, sample.labels, sample_weight=weights)
            calibrator.save(fitted)
        found[name] = Calibrator.load(fitted).predict_proba
    return found, limit


def _loaded(path: Path, classes: list[str]) -> Forecaster:
    """The forecasts of a saved calibrator; InputError: it is for other classes or for groups."""
    calibrator = Calibrator.load(path)
    names = [str(name) for name in getattr(calibrator, "class_names_", classes)]
    if getattr(calibrator, "groups_from_", ""):
        raise InputError("has patches of groups, which one pass does not read", file=path)
    if calibrator.n_features_in_ != len(names) or set(names) != set(classes):
        told = f"fitted on {calibrator.n_features_in_} classes that are not those of the points"
        raise InputError(f"{told} ({', '.join(classes[:5])}, …)", file=path)
    place = {name: number for number, name in enumerate(classes)}
    places = [place[name] for name in names]
    back = np.argsort(places)
    return lambda logits: calibrator.predict_proba(logits[:, places])[:, back]


Passes = Mapping[str, Mapping[str, StreamingCalibration]]


def passed(options: Options) -> Passes:
    """One pass over all points: by forecast, the accumulators u_cwe and u_topk.

    After a shard the sums are written to a folder that is named by their key.
    """
    stream = Stream.of(options.file, Choices.of(options), options.seed)
    named = [] if options.may_add else [name for name in options.methods if name != PRESENT]
    methods = settings_of(options, named)
    folder = options.output / "data/stream" / _key(options, stream, methods)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    forecasters, limit = forecasters_of(options, stream, methods, folder)
    passes = {name: _accumulators(len(stream.known.classes.texts)) for name in forecasters}
    first = _resumed(folder / "state.npz", passes)
    saved, n = monotonic(), 0
    with Bar("score", len(stream.shards)) as bar:
        for number in range(first, len(stream.shards)):
            for points in stream.points(number):
                points = points.at(points.numbers > limit)
                n += len(points.labels)
                _add(points, forecasters, passes)
                bar(number, bar.total, f"{n:,} points")
            is_last = number + 1 == len(stream.shards)
            if is_last or monotonic() - saved >= SECONDS_BETWEEN_SAVES:
                _save(folder / "state.npz", passes, number + 1)
                saved = monotonic()
    return passes


def _key(options: Options, stream: Stream, methods: Mapping[str, Settings]) -> str:
    """The key of a pass: the shards, what they are taken for, what is scored, and the code."""
    calibrator, known = options.calibrator, stream.known
    content = {
        "shards": [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in stream.shards],
        "choices": vars(stream.choices),
        "known": [known.kind, known.classes.texts, known.classes.is_text, known.codes],
        "seed": stream.seed,
        "methods": {name: settings.calibrator for name, settings in methods.items()},
        "sample": options.sample,
        "calibrator": None if calibrator is None else [calibrator.name, sha256_of(calibrator)],
    }
    return key_of(content, __name__)


def _accumulators(classes: int) -> dict[str, StreamingCalibration]:
    ks = None if classes <= MOST_RANKED else range(1, 21)
    buckets = BUCKETS_OF_FEW if classes <= FEW else None
    found = {"u_topk": StreamingCalibration(TopK(ks), classes, buckets)}
    if classes <= MOST_CLASSES:
        found = {"u_cwe": StreamingCalibration(ClassWise(), classes, buckets), **found}
    return found


def _add(points: Points, forecasters: Mapping[str, Forecaster], passes: Passes) -> None:
    if not points.weights.any():
        return
    for name, forecaster in forecasters.items():
        probabilities = forecaster(points.logits)
        for streaming in passes[name].values():
            streaming.update(probabilities, points.labels, points.weights)


def _save(path: Path, passes: Passes, done: int) -> None:
    arrays: dict[str, Any] = {"done": done}
    for name, its in passes.items():
        for key, streaming in its.items():
            streaming.save(file := io.BytesIO())
            arrays[f"{name}.{key}"] = np.frombuffer(file.getvalue(), np.uint8)
    write_npz(path, **arrays)


def _resumed(path: Path, passes: Passes) -> int:
    """Take what an interrupted run has added up, and return the number of its shards."""
    if not path.exists():
        return 0
    held = read_npz(path)
    for name, its in passes.items():
        for key, streaming in its.items():
            streaming.load(io.BytesIO(held[f"{name}.{key}"].tobytes()))
    return int(held["done"])


def score_streamed(options: Options) -> None:
    """Score, write and print what the module says: streaming.json and streaming.md."""
    with only_run(options.output, FILES, options.wait):
        record = {name: _numbers(its) for name, its in passed(options).items()}
        write_json(options.output / "streaming.json", record)
        text = "\n\n".join([f"# {options.title or options.file}", *_text(record)]) + "\n"
        write_text(options.output / "streaming.md", text)
        say(text)
        say(f"wrote {options.output / 'streaming.md'}, and streaming.json with all digits")


def _numbers(its: Mapping[str, StreamingCalibration]) -> dict[str, Any]:
    """All numbers of one forecast; an error lies between `lower` and `upper`."""
    results = {key: streaming.result() for key, streaming in its.items()}
    first = results["u_topk"]
    numbers: dict[str, Any] = {
        name: getattr(first, name) for name in ("n", "accuracy", "brier", "nll")
    }
    numbers["u_tce"] = {"lower": float(first.lower[0]), "upper": float(first.upper[0])}
    for key, result in results.items():
        floor, bounds = result.noise_floor(), result.calibration_interval()
        numbers[key] = {
            "lower": float(result.lower.max()),
            "upper": float(result.upper.max()),
            "floor": floor.mean,
            "p_value": floor.p_value,
            "interval": [bounds.lower, bounds.upper],
        }
    return numbers


def _text(record: Mapping[str, Any]) -> list[str]:
    """The numbers as two tables."""
    scores = [
        [name, f"{its['n']:,}", *(f"{its[key]:.4f}" for key in ("accuracy", "brier", "nll"))]
        for name, its in record.items()
    ]
    errors = [
        [
            *(name, key.replace("u_", "U_")),
            *(f"{its[key][end]:.5f}" for end in ("lower", "upper")),
            f"{its[key]['floor']:.4f}",
            p_value(its[key]["p_value"]).removeprefix("p ").removeprefix("= "),
            *(f"{end:.5f}" for end in its[key]["interval"]),
        ]
        for name, its in record.items()
        for key in ("u_cwe", "u_topk")
        if key in its
    ]
    return [
        markdown_table(("Forecast", "Points", "Accuracy", "Brier", "NLL"), scores),
        markdown_table(HEADINGS, errors, text=2),
    ]
