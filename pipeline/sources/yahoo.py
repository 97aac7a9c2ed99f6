"""Logits of the Yahoo Answers topics test set from a fine-tuned DistilBERT (paper, section 4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.harness.parallel import Progress, no_progress
from pipeline.sources.class_names import YAHOO
from pipeline.sources.content import files_content, is_hub_name, reads
from pipeline.sources.hub import check_sha256, hub_files
from pipeline.sources.inference import Run, forward_logits, warnings_on
from pipeline.sources.result import SourceResult, reason_of
from pipeline.sources.yahoo_data import parquet_files, plain, read_rows

WEIGHTS = "model.safetensors"
MODEL_FILES = (WEIGHTS, "*.json", "*.txt")  # no pickle: loading it runs the code that it holds
NEEDED = (WEIGHTS, "config.json", "tokenizer*")
LOADING = {"local_files_only": True, "trust_remote_code": False}
"""Without the second, transformers asks at the terminal whether to run code beside the model."""
DATA_FILES = ("test-*.parquet", "*/test-*.parquet")


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
    progress: Progress = no_progress,
) -> SourceResult:
    """Run a sequence classifier over the test questions, in the data set's order.

    Args: those of conf/benchmark/yahoo.yaml; `device` and `progress` as in `inference.Run`.
    """
    run = Run(device, batch_size, 0, progress, on_error)  # padding a batch is quick
    if not isinstance(max_length, int) or max_length < 3:
        raise InputError(f"benchmark.source.max_length={max_length}: expected a whole number >= 3")
    setting = "sources.yahoo_model=<folder>"
    folder = hub_files(model, "model", MODEL_FILES, setting, model_revision, NEEDED)
    network, tokenizer = _loaded(folder)
    numbers, warnings = _outputs_by_class(network.config, columns)
    weights_sha256 = check_sha256(folder / WEIGHTS, sha256)
    place = hub_files(data, "dataset", DATA_FILES, "sources.yahoo_data=<path>", data_revision)
    texts, classes, missing = read_rows(
        place, fields, separator, label_field, first_label, expected_rows, on_error == "skip"
    )
    # The tokenizer's own threads use all cores. More processes were not faster.
    tokens = tokenizer(texts, truncation=True, max_length=max_length).input_ids
    logits, labels, skipped = _pass(network, tokenizer, numbers, tokens, classes, run)
    # Folders of the hub are named by the commit.
    commits = {n: p.name for n, p in ((model, folder), (data, place)) if p != Path(n).expanduser()}
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
        raise InputError(f"{folder}: model or tokenizer does not load ({reason})") from error
    return network, tokenizer


def _outputs_by_class(config: Any, chosen: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """The number of the model's output for each class of YAHOO, and warnings."""
    outputs, count = config.num_labels, len(YAHOO)
    names = [str(config.id2label.get(number, f"LABEL_{number}")) for number in range(outputs)]
    setting = "benchmark.source.columns=[...] (the output of each class)"
    if chosen is not None:
        numbers = list(chosen)
        if len(set(numbers)) != count or not all(n in range(outputs) for n in numbers):
            raise InputError(
                f"benchmark.source.columns={numbers}: expected {count} different numbers from 0 to "
                f"{outputs - 1}"
            )
        return numbers, []
    if outputs != count:
        raise InputError(
            f"the model has {outputs} outputs ({', '.join(names[:12])}), Yahoo Answers has {count} "
            f"classes; choose another sources.yahoo_model, or set {setting}"
        )
    labels, wanted = [plain(name) for name in names], [plain(name) for name in YAHOO]
    if sorted(labels) == sorted(wanted):
        return [labels.index(name) for name in wanted], []
    if set(labels) & set(wanted):
        others = ", ".join(n for n, label in zip(names, labels) if label not in wanted)
        raise InputError(
            "the model's outputs are only in part named as the classes "
            f"({others or 'a name stands twice'}); set {setting}"
        )
    warning = (
        f"the model's classes ({', '.join(names)}) are not named as the data set's; "
        "their order is taken as the data set's, and the accuracy is the check"
    )
    return list(range(count)), [warning]


def _pass(
    network: Any, tokenizer: Any, numbers: list[int], tokens: Any, labels: list[int], run: Run
) -> tuple[Any, Any, list[str]]:
    """The forward pass, from tokens to the logits of the outputs `numbers`."""
    longest, largest = max(map(len, tokens)), max(map(max, tokens))
    # Both would be an index error in the pass.
    positions = getattr(network.config, "max_position_embeddings", longest)
    if longest > positions:
        raise InputError(
            f"a text has {longest} tokens, the model {positions} positions; set "
            f"benchmark.source.max_length={positions}"
        )
    if largest >= (known := network.get_input_embeddings().num_embeddings):
        raise InputError(
            f"the tokenizer gives token {largest}, the model knows {known}; they do not belong "
            "together: choose another sources.yahoo_model"
        )

    def padded(items: list[tuple[list[int], int]]) -> tuple[dict[str, Tensor], Tensor]:
        batch, classes = zip(*items)
        filled = tokenizer.pad({"input_ids": list(batch)}, padding=True, return_tensors="pt")
        return dict(filled), torch.tensor(classes)

    # A batch is padded to its longest text, so texts of similar length are together. The longest
    # come first, so that a memory which is too small shows at once.
    order = np.argsort([-len(row) for row in tokens], kind="stable").tolist()
    items = list(zip(tokens, labels, strict=True))
    return forward_logits(_Logits(network, numbers), items, run, padded, order, "row {}".format)


class _Logits(torch.nn.Module):
    def __init__(self, network: Any, numbers: list[int]) -> None:
        super().__init__()
        self.network, self.numbers = network, numbers

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        return self.network(**tokens).logits[:, self.numbers]
