"""Logits of the Yahoo Answers topics test set from a fine-tuned DistilBERT (paper, section 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.parallel import Progress
from pipeline.sources.class_names import YAHOO
from pipeline.sources.heavy_imports import require
from pipeline.sources.hub import hub_files
from pipeline.sources.inference import Run, forward_logits
from pipeline.sources.result import MissingResource, SourceResult, reason_of

WEIGHTS = "model.safetensors"
MODEL_FILES = (WEIGHTS, "*.json", "*.txt")
"""Pickled weights are left out: loading them runs the code that they hold."""
LOADING = {"local_files_only": True, "trust_remote_code": False}
"""Without the second, transformers asks at the terminal whether to run code beside the model."""
DATA_FILES = ("test-*.parquet", "*/test-*.parquet")
LABEL_FIELD = "topic"


def yahoo_logits(
    *,
    model: str,
    data: str,
    model_revision: str | None = None,
    data_revision: str | None = None,
    fields: Sequence[str] = ("question_title", "question_content", "best_answer"),
    separator: str = " ",
    max_length: int = 512,
    expected_rows: int | None = 60_000,
    device: str = "auto",
    batch_size: int = 64,
    workers: int = 0,
    progress: Progress | None = None,
) -> SourceResult:
    """Run a sequence classifier over the test questions, in the data set's order.

    Args:
        model: a hub name, or a folder with config.json, model.safetensors and the tokenizer.
        data: a hub name, a parquet file, or a folder of test parquet files.
        model_revision, data_revision: commits of the repositories on the hub; None means the
            newest. The record has those that were used, as `commits` of the `origin`.
        fields: columns whose texts are joined; the paper does not say which ones it used.
        separator: put between the fields; empty fields are left out.
        max_length: tokens per text, longer ones are cut.
        expected_rows: the number of rows in the test set; None accepts any number.
        device, batch_size, workers, progress: see `inference.Run`.

    Raises:
        MissingResource: model or data are absent; the message says how to get them.
        InputError: a field is missing, or a file is damaged.
    """
    run = Run(device, batch_size, workers, progress)
    place = hub_files(data, "dataset", DATA_FILES, "data=<path>", data_revision)
    texts, labels = _test_set(place, fields, separator, expected_rows)
    folder = hub_files(model, "model", MODEL_FILES, "model=<path>", model_revision)
    classifier, tokenizer = _classifier(folder)
    order, warnings = _columns_by_name(classifier.config.id2label)
    collate = partial(_collate, tokenizer=tokenizer, max_length=max_length)
    items = list(zip(texts, labels, strict=True))
    logits, truth = forward_logits(_Logits(classifier), items, run, collate)
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
            "weights_sha256": sha256_of(folder / WEIGHTS),
            "columns": order,
        },
        "class_names": list(YAHOO),
        "warnings": warnings,
    }
    return SourceResult(np.ascontiguousarray(logits[:, order]), truth, details)


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
    place: Path, fields: Sequence[str], separator: str, expected: int | None
) -> tuple[list[str], list[int]]:
    """The joined texts and the labels of the test split."""
    files = [place] if place.is_file() else sorted(place.rglob("test-*.parquet"))
    if not files:
        raise MissingResource(
            f"Yahoo Answers: {place} holds no parquet file: put test-00000-of-00001.parquet of "
            "community-datasets/yahoo_answers_topics there"
        )
    datasets = require("datasets")
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # the error below says it
    wanted = [*fields, LABEL_FIELD]
    try:
        with TemporaryDirectory() as cache:
            rows = datasets.Dataset.from_parquet(
                list(map(str, files)), columns=wanted, cache_dir=cache, keep_in_memory=True
            )
            columns = rows[:]
    except Exception as error:  # a damaged file and a missing field have no common base
        raise InputError(
            f"{files[0]}: no parquet file with the fields {', '.join(wanted)} "
            f"({reason_of(error.__cause__ or error)}); set benchmark.source.data or "
            "benchmark.source.fields"
        ) from error
    if expected is not None and len(rows) != expected:
        raise InputError(
            f"{files[0]}: {len(rows)} rows, expected {expected}; "
            "give the test split, or set benchmark.source.expected_rows=null"
        )
    texts = [separator.join(filter(None, parts)) for parts in zip(*map(columns.get, fields))]
    return texts, columns[LABEL_FIELD]


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
    """The model's column for each of the data set's classes, and warnings."""
    labels = [_plain(id2label[number]) for number in sorted(id2label)]
    wanted = [_plain(name) for name in YAHOO]
    if sorted(labels) == sorted(wanted):
        return [labels.index(name) for name in wanted], []
    warning = (
        f"the model's classes ({', '.join(id2label.values())}) are not named as the data set's; "
        "their order is taken as the data set's, and the accuracy is the check"
    )
    return list(range(len(YAHOO))), [warning]


def _plain(name: str) -> str:
    """A label without case, spaces and punctuation: `Society & Culture` = `society_and_culture`."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))
