"""Logits of the Yahoo Answers topics test set from a fine-tuned DistilBERT (paper, section 4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.validation import InputError
from pipeline.sources.class_names import YAHOO
from pipeline.sources.heavy_imports import require
from pipeline.sources.hub import hub_files
from pipeline.sources.inference import Run, forward_logits, weights_digest
from pipeline.sources.result import MissingResource, Progress, SourceResult, reason_of

MODEL_FILES = ("*.safetensors", "*.json", "*.txt")
"""Pickled weights are left out: loading them runs the code that they hold."""
LOADING = {"local_files_only": True, "trust_remote_code": False}
"""Without the second, transformers asks at the terminal whether to run code beside the model."""
DATA_FILES = ("test-*.parquet", "*/test-*.parquet")
LABEL_FIELD = "topic"


def yahoo_logits(
    *,
    model: str,
    data: str,
    work_dir: Path,
    model_revision: str | None = None,
    data_revision: str | None = None,
    fields: Sequence[str] = ("question_title", "question_content", "best_answer"),
    separator: str = " ",
    max_length: int = 512,
    expected_rows: int | None = 60_000,
    device: str = "auto",
    batch_size: int = 64,
    precision: str = "float32",
    workers: int = 0,
    progress: Progress | None = None,
) -> SourceResult:
    """Run a sequence classifier over the test questions, in the data set's order.

    Args:
        model: a hub name, or a folder with config.json, model.safetensors and the tokenizer.
        data: a hub name, a parquet file, or a folder of test parquet files.
        model_revision, data_revision: commits of the repositories on the hub; None means the
            newest. The record has those that were used, as `commits` of the `origin`.
        work_dir: a killed run finds its shards there.
        fields: columns whose texts are joined; the paper does not say which ones it used.
        separator: put between the fields; empty fields are left out.
        max_length: tokens per text, longer ones are cut.
        expected_rows: the number of rows in the test set; None accepts any number.
        device, batch_size, precision, workers, progress: see `inference.Run`.

    Raises:
        MissingResource: model or data are absent; the message says how to get them.
        InputError: a field is missing, or the model has other labels than the data set.
    """
    run = Run(work_dir, device, batch_size, precision, workers, progress=progress)
    place = hub_files(data, "dataset", DATA_FILES, "data=<path>", data_revision)
    texts, labels = _test_set(place, fields, separator, expected_rows, work_dir / "datasets")
    folder = hub_files(model, "model", MODEL_FILES, "model=<path>", model_revision)
    classifier, tokenizer = _classifier(folder)
    order, warnings = _columns_by_name(classifier.config.id2label)
    key = {
        "texts": _digest(texts, labels),
        "tokenizer": tokenizer.backend_tokenizer.to_str(),
        "max_length": max_length,
    }
    collate = partial(_collate, tokenizer=tokenizer, max_length=max_length)
    items = list(zip(texts, labels, strict=True))
    logits, kept = forward_logits(_Logits(classifier), items, key, run, collate)
    details = {
        "source": "Yahoo Answers topics, test split, transformers classifier",
        "model": model,
        "preprocessing": {"fields": list(fields), "separator": separator, "max_length": max_length},
        **run.described(),
        "origin": {
            "data": data,
            "model_folder": str(folder),
            # Folders of the hub are named by the commit.
            "commits": {n: p.name for n, p in ((model, folder), (data, place)) if p != Path(n)},
            "weights_sha256": weights_digest(classifier),
            "columns": order,
        },
        "class_names": list(YAHOO),
        "warnings": warnings,
    }
    return SourceResult(np.ascontiguousarray(logits[:, order]), kept, details)


class _Logits(torch.nn.Module):
    """A transformers classifier that takes one mapping of tensors and returns the logits alone."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        return self.classifier(**tokens).logits


def _collate(
    items: list[tuple[str, int]], tokenizer: Any, max_length: int
) -> tuple[dict[str, Tensor], Tensor]:
    """Tokens of a batch, padded to its longest text, and its labels."""
    texts, labels = zip(*items)
    tokens = tokenizer(
        list(texts), truncation=True, max_length=max_length, padding=True, return_tensors="pt"
    )
    return dict(tokens), torch.tensor(labels)


def _test_set(
    place: Path, fields: Sequence[str], separator: str, expected: int | None, cache: Path
) -> tuple[list[str], list[int]]:
    """The joined texts and the labels of the test split; `datasets` keeps its tables in `cache`."""
    files = [place] if place.is_file() else sorted(place.rglob("test-*.parquet"))
    if not files:
        raise MissingResource(
            f"Yahoo Answers: {place} holds no parquet file: put test-00000-of-00001.parquet of "
            "community-datasets/yahoo_answers_topics there"
        )
    datasets = require("datasets")
    datasets.disable_progress_bars()
    try:
        rows = datasets.Dataset.from_parquet(list(map(str, files)), cache_dir=str(cache))
    except Exception as error:  # Arrow raises many kinds for damaged files
        raise InputError(f"{files[0]}: not a readable parquet file ({reason_of(error)})") from error
    absent = [name for name in (*fields, LABEL_FIELD) if name not in rows.column_names]
    if absent:
        raise InputError(
            f"{files[0]}: no field {absent[0]}; it has {', '.join(rows.column_names)}; "
            "set benchmark.source.fields"
        )
    if expected is not None and len(rows) != expected:
        raise InputError(
            f"{files[0]}: {len(rows)} rows, expected {expected}; "
            "give the test split, or set benchmark.source.expected_rows=null"
        )
    columns = [list(rows[field]) for field in fields]
    texts = [separator.join(filter(None, parts)) for parts in zip(*columns)]
    return texts, [int(label) for label in rows[LABEL_FIELD]]


def _classifier(folder: Path) -> tuple[Any, Any]:
    """Model and tokenizer from a folder, weights in float32."""
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **LOADING)
        classifier = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(folder), use_safetensors=True, dtype=torch.float32, **LOADING
        )
    except Exception as error:  # missing files, bad JSON and bad tensors have no common base
        raise InputError(
            f"{folder}: model or tokenizer does not load ({reason_of(error)})"
        ) from error
    return classifier, tokenizer


def _columns_by_name(id2label: dict[int, str]) -> tuple[list[int], list[str]]:
    """The model's column for each of the data set's classes, and warnings.

    Raises:
        InputError: the model was trained for other classes.
    """
    labels = [id2label[number] for number in sorted(id2label)]
    if labels == [f"LABEL_{number}" for number in range(len(YAHOO))]:
        warning = "the model does not name its classes (LABEL_0, ...): their order is taken as the "
        return list(range(len(YAHOO))), [warning + "data set's; the accuracy is the check"]
    plain, wanted = [_plain(label) for label in labels], [_plain(name) for name in YAHOO]
    if sorted(plain) != sorted(wanted):
        raise InputError(
            f"the model's classes ({', '.join(labels)}) are not the data set's ({', '.join(YAHOO)})"
        )
    return [plain.index(name) for name in wanted], []


def _plain(name: str) -> str:
    """A label without case, spaces and punctuation: `Society & Culture` = `society_and_culture`."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))


def _digest(texts: list[str], labels: list[int]) -> str:
    digest = hashlib.sha256(np.asarray(labels, dtype=np.int64).data)
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
