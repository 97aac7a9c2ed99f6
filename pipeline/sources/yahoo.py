"""Logits of the Yahoo Answers topics test set from a fine-tuned DistilBERT (paper, section 4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utility_calibration.metrics.errors import InputError

from ..harness.task import Progress, no_progress
from ..scoring.class_names import YAHOO
from .forward_pass import Run, warnings_on
from .hub import hub_files, is_hub_name, weights_digest
from .input_digests import files_content, reads
from .source_result import SourceResult, drawn_rows
from .text_networks import MODEL_FILES, NEEDED, WEIGHTS, forward_texts, load_network, model_content
from .yahoo_rows import parquet_files, plain, read_rows

DATA_FILES = ("test-*.parquet", "*/test-*.parquet")


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
    network, tokenizer = load_network(folder, "AutoModelForSequenceClassification")
    weights_sha256 = weights_digest(folder / WEIGHTS, sha256)
    outputs, warnings = _outputs_by_class(network.config, columns)
    place = hub_files(data, "dataset", DATA_FILES, "sources.yahoo_data=<path>", data_revision)
    questions = read_rows(place, fields, separator, label_field, first_label, expected_rows)
    if on_error != "skip":
        questions.check_classes(place, label_field)
    # Drawn before the tokenizer, whose time they save.
    drawn = drawn_rows(len(questions.texts), rows)
    texts, classes = questions.part(drawn)
    # The tokenizer's own threads use all cores. More processes were not faster.
    tokens = tokenizer(texts, truncation=True, max_length=max_length).input_ids
    head = _Logits(network, outputs)
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
            "columns": outputs,
        },
        "class_names": list(YAHOO),
        "warnings": [*warnings, *warnings_on([*questions.without_class, *skipped])],
    }
    return SourceResult(logits, labels, details)


def _outputs_by_class(config: Any, chosen: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """The number of the model's output for each class of YAHOO, and warnings."""
    n_outputs, n_classes = config.num_labels, len(YAHOO)
    setting = "benchmark.source.columns=[...] (the output of each class)"
    if chosen is not None:
        return _checked_outputs(list(chosen), n_outputs), []
    names = [str(config.id2label.get(number, f"LABEL_{number}")) for number in range(n_outputs)]
    if n_outputs != n_classes:
        raise InputError(
            f"the model has {n_outputs} outputs ({', '.join(names[:12])}), Yahoo Answers has "
            f"{n_classes} classes",
            fixes=f"choose another sources.yahoo_model, or set {setting}",
        )
    outputs_of = {plain(name): output for output, name in enumerate(names)}
    wanted = [plain(name) for name in YAHOO]
    if outputs_of.keys() == set(wanted):
        return [outputs_of[name] for name in wanted], []
    if outputs_of.keys() & set(wanted):
        odd_names = [name for name in names if plain(name) not in wanted]
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
    return list(range(n_classes)), [warning]


def _checked_outputs(outputs: list[int], n_outputs: int) -> list[int]:
    """The outputs that a person chose, each once and all of them there."""
    n_classes = len(YAHOO)
    are_there = all(output in range(n_outputs) for output in outputs)
    if len(set(outputs)) != n_classes or not are_there:
        message = f"{outputs}, expected {n_classes} different numbers from 0 to {n_outputs - 1}"
        raise InputError(message, field="benchmark.source.columns")
    return outputs


class _Logits(torch.nn.Module):
    """A classifier that gives the logits of the classes alone, in their order."""

    def __init__(self, network: Any, outputs: list[int]) -> None:
        super().__init__()
        self.network, self.outputs = network, outputs

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        return self.network(**tokens).logits[:, self.outputs]
