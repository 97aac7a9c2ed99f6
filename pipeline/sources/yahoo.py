"""Logits of the Yahoo Answers topics test set from a fine-tuned DistilBERT (paper, section 4)."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, MissingResource, naming, reason_of

from ..harness.parallel import Progress, no_progress
from ..scoring.class_names import YAHOO
from .content import SourceResult, drawn_rows, files_content, is_hub_name, reads
from .inference import Run, check_sha256, hub_files, warnings_on
from .texts import forward_texts

WEIGHTS = "model.safetensors"
MODEL_FILES = (WEIGHTS, "*.json", "*.txt")  # no pickle: loading it runs the code that it holds
NEEDED = (WEIGHTS, "config.json", "tokenizer*")
LOADING = {"local_files_only": True, "trust_remote_code": False}
"""Without the second, transformers asks at the terminal whether to run code beside the model."""
Columns = dict[str, list[Any]]
DATA_FILES = ("test-*.parquet", "*/test-*.parquet")


def parquet_files(data: str | Path) -> list[Path]:
    """The file itself, or the test split's files in a folder."""
    place = Path(data).expanduser()
    return [place] if place.is_file() else sorted(place.rglob("test-*.parquet"))


def model_content(model: str) -> str | None:
    """A digest of a local model's files; of one on the hub its name."""
    if is_hub_name(model):
        return model
    folder = Path(model).expanduser()
    return files_content(path for pattern in MODEL_FILES for path in folder.glob(pattern))


@reads(
    lambda _: len(YAHOO),
    ("sha256", "expected_rows"),
    model=model_content,
    data=lambda data: data if is_hub_name(data) else files_content(parquet_files(data)),
)
def yahoo_logits(
    *,
    model: str,
    data: str,
    model_revision: str | None = None,
    data_revision: str | None = None,
    sha256: str | None = None,
    fields: Sequence[str] = ("question_title", "question_content", "best_answer"),
    separator: str = " ",
    label_field: str = "topic",
    first_label: int = 0,
    columns: Sequence[int] | None = None,
    max_length: int = 512,
    expected_rows: int | None = 60_000,
    device: str = "auto",
    batch_size: int = 64,
    on_error: str = "stop",
    rows: int | None = None,
    progress: Progress = no_progress,
) -> SourceResult:
    """Run a classifier over the test questions in their order; Args: conf/benchmark/yahoo.yaml."""
    run = Run(device, batch_size, 0, progress, on_error)  # padding a batch is quick
    if not isinstance(max_length, int) or max_length < 3:
        message = f"{max_length}, expected a whole number of at least 3"
        raise InputError(message, field="benchmark.source.max_length")
    setting = "sources.yahoo_model=<folder>"
    folder = hub_files(model, "model", MODEL_FILES, setting, model_revision, NEEDED)
    network, tokenizer = _loaded(folder)
    numbers, warnings = _outputs_by_class(network.config, columns)
    weights_sha256 = check_sha256(folder / WEIGHTS, sha256)
    place = hub_files(data, "dataset", DATA_FILES, "sources.yahoo_data=<path>", data_revision)
    texts, classes, missing = read_rows(
        place, fields, separator, label_field, first_label, expected_rows, on_error == "skip"
    )
    drawn = drawn_rows(len(texts), rows)  # before the tokenizer, whose time they save
    texts, classes = [texts[k] for k in drawn], [classes[k] for k in drawn]
    # The tokenizer's own threads use all cores. More processes were not faster.
    tokens = tokenizer(texts, truncation=True, max_length=max_length).input_ids
    head = _Logits(network, numbers)
    logits, labels, skipped = forward_texts(head, network, tokenizer, tokens, classes, run)
    commits = {}
    for name, path in ((model, folder), (data, place)):
        if path != Path(name).expanduser():  # a folder of the hub, which is named by the commit
            commits[name] = path.name
    details = {
        "source": "Yahoo Answers topics, test split, transformers classifier",
        "model": model if model in commits else folder.name,
        "preprocessing": {"fields": list(fields), "separator": separator, "max_length": max_length},
        **run.described(),
        "origin": {
            "data": data if data in commits else place.name,
            "commits": commits,
            "weights_sha256": weights_sha256,
            "columns": numbers,
        },
        "class_names": list(YAHOO),
        "warnings": [*warnings, *warnings_on([*missing, *skipped])],
    }
    return SourceResult(logits, labels, details)


def _loaded(folder: Path) -> tuple[Any, Any]:
    """Model, with weights in float32, and tokenizer of a folder."""
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # no advice on how to pad
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **LOADING)
        network = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(folder), use_safetensors=True, dtype=torch.float32, **LOADING
        )
    except Exception as error:  # missing files, bad JSON and bad tensors have no common base
        reason = reason_of(error)
        raise InputError(f"model or tokenizer does not load ({reason})", file=folder) from error
    return network, tokenizer


def _outputs_by_class(config: Any, chosen: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """The number of the model's output for each class of YAHOO, and warnings."""
    outputs, count = config.num_labels, len(YAHOO)
    names = [str(config.id2label.get(number, f"LABEL_{number}")) for number in range(outputs)]
    setting = "benchmark.source.columns=[...] (the output of each class)"
    if chosen is not None:
        numbers = list(chosen)
        if len(set(numbers)) != count or not all(n in range(outputs) for n in numbers):
            message = f"{numbers}, expected {count} different numbers from 0 to {outputs - 1}"
            raise InputError(message, field="benchmark.source.columns")
        return numbers, []
    if outputs != count:
        raise InputError(
            f"the model has {outputs} outputs ({', '.join(names[:12])}), Yahoo Answers has {count} "
            "classes",
            fixes=f"choose another sources.yahoo_model, or set {setting}",
        )
    labels, wanted = [plain(name) for name in names], [plain(name) for name in YAHOO]
    if sorted(labels) == sorted(wanted):
        return [labels.index(name) for name in wanted], []
    if set(labels) & set(wanted):
        odd_names = [name for name, label in zip(names, labels) if label not in wanted]
        others = ", ".join(odd_names)
        raise InputError(
            "the model's outputs are only in part named as the classes "
            f"({others or 'a name stands twice'})",
            fixes=f"set {setting}",
        )
    warning = (
        f"the model's classes ({', '.join(names)}) are not named as the data set's; "
        "their order is taken as the data set's, and the accuracy is the check"
    )
    return list(range(count)), [warning]


class _Logits(torch.nn.Module):
    def __init__(self, network: Any, numbers: list[int]) -> None:
        super().__init__()
        self.network, self.numbers = network, numbers

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        return self.network(**tokens).logits[:, self.numbers]


def read_rows(
    place: Path,
    fields: Sequence[str],
    separator: str,
    label_field: str,
    first_label: int,
    expected_rows: int | None,
    skip: bool,
) -> tuple[list[str], list[int], list[str]]:
    """Texts, classes in [0, 10), and the rows that `skip` leaves out for want of a class."""
    files = parquet_files(place)
    if not files:
        raise MissingResource(
            f"Yahoo Answers: {place} holds no parquet file of the test split: put "
            "test-00000-of-00001.parquet of community-datasets/yahoo_answers_topics there"
        )
    table, file_names = _read(files, [*fields, label_field])
    _check_text(table, fields, files[0])
    texts = [separator.join(filter(None, row)) for row in zip(*(table[name] for name in fields))]
    if expected_rows not in (None, len(texts)):
        fix = "give the test split, or set benchmark.source.expected_rows=null"
        message = f"{len(texts)} rows, expected {expected_rows}"
        raise InputError(message, file=files[0], fixes=fix)
    with naming(files[0]):
        classes = _classes(table[label_field], file_names, first_label, label_field)
    missing = [f"row {row}" for row, number in enumerate(classes) if number is None]
    if missing and not skip:
        message = f"{len(missing)} rows have no {label_field} (first: {missing[0]})"
        fix = "set benchmark.source.on_error=skip to leave them out"
        raise InputError(message, file=files[0], fixes=fix)
    pairs = [(text, number) for text, number in zip(texts, classes) if number is not None]
    if not pairs:
        raise InputError(f"no row has a {label_field}", file=files[0])
    return [text for text, _ in pairs], [number for _, number in pairs], missing


def _check_text(table: Columns, fields: Sequence[str], file: Path) -> None:
    """Raise `InputError` if a field holds anything but texts and gaps."""
    for name in fields:
        kinds = {type(value).__name__ for value in table[name] if not isinstance(value, str | None)}
        if kinds:
            message = f"holds {', '.join(sorted(kinds))}, not text"
            fix = "correct benchmark.source.fields"
            raise InputError(message, field=name, file=file, fixes=fix)


def _read(files: Sequence[Path], wanted: Sequence[str]) -> tuple[Columns, list[str]]:
    """The columns by name, and the file's own names of the classes, if it has any.

    The last of the `wanted` columns is that of the classes.
    """
    parquet = require("pyarrow.parquet", "pyarrow")
    columns: Columns = {name: [] for name in wanted}
    for file in files:
        try:
            table = parquet.ParquetFile(file).read()
        except Exception as error:  # pyarrow raises errors of many kinds at damaged bytes
            message = f"no parquet file with the fields {', '.join(wanted)} ({reason_of(error)})"
            fix = "correct sources.yahoo_data, or download it again"
            raise InputError(message, file=file, fixes=fix) from error
        absent = [name for name in wanted if name not in table.column_names]
        if absent:
            message = f"no column {', '.join(absent)}; it has {', '.join(table.column_names)}"
            fix = "set benchmark.source.fields or benchmark.source.label_field"
            raise InputError(message, file=file, fixes=fix)
        for name in wanted:
            columns[name] += table[name].to_pylist()
    metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = metadata.get("info", {}).get("features", {})
    class_names = features.get(wanted[-1], {}).get("names") or []
    return columns, list(class_names)


def _classes(
    values: Sequence[Any], file_names: Sequence[str], first_label: int, field: str
) -> list[int | None]:
    """The class of each row, in the order of YAHOO; None where the row has none.

    Args:
        values: for each row the name of its class, or its number, or a gap.
        file_names: the names of the numbers, in the file's order, if it has any.
        first_label: the number of the first class.
        field: the column, for messages.
    """
    if any(isinstance(value, str) for value in values):
        return _classes_of_names(values, field)
    return _classes_of_numbers(values, file_names, first_label, field)


def _classes_of_names(values: Sequence[Any], field: str) -> list[int | None]:
    classes: list[int | None] = []
    unknown = set()
    for value in values:
        key = None if value in (None, "") else plain(str(value))
        if key is not None and key not in CLASS_OF:
            unknown.add(str(value))
        classes.append(None if key is None else CLASS_OF.get(key))
    if unknown:
        message = f"{', '.join(sorted(unknown)[:3])}: no topic of Yahoo Answers"
        fix = "correct benchmark.source.label_field"
        raise InputError(message, field=field, fixes=fix)
    return classes


def _classes_of_numbers(
    values: Sequence[Any], file_names: Sequence[str], first_label: int, field: str
) -> list[int | None]:
    count = len(YAHOO)
    numbers = [value for value in values if value is not None and value == value]  # NaN is a gap
    outside = [number for number in numbers if number - first_label not in range(count)]
    if outside:
        raise InputError(
            f"goes from {min(numbers)} to {max(numbers)}, expected {first_label} to "
            f"{first_label + count - 1} ({len(outside)} rows are outside)",
            field=field,
            fixes="set benchmark.source.first_label=1 where classes count from 1, or label_field",
        )
    # The file may number the topics in another order, and then says so.
    order = list(range(count))
    if file_names:
        keys = [plain(name) for name in file_names]
        if sorted(keys) != sorted(CLASS_OF):
            message = f"its classes are {', '.join(file_names)}, not Yahoo Answers' ten"
            raise InputError(message, field=field)
        order = [CLASS_OF[key] for key in keys]
    classes: list[int | None] = []
    for value in values:
        is_gap = value is None or value != value
        classes.append(None if is_gap else order[int(value) - first_label])
    return classes


def plain(name: str) -> str:
    """A label without case, spaces and punctuation: `Society & Culture` = `society_and_culture`."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))


CLASS_OF = {plain(name): number for number, name in enumerate(YAHOO)}
"""The number of each class by its name."""
