"""Networks over texts: loading one from a folder, and its forward pass over padded batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of

from .forward_pass import Run, forward_logits
from .hub import is_hub_name
from .input_digests import files_content

WEIGHTS = "model.safetensors"
MODEL_FILES = (WEIGHTS, "*.json", "*.txt")  # no pickle: loading it runs the code that it holds
NEEDED = (WEIGHTS, "config.json", "tokenizer*")
LOADING = {"local_files_only": True, "trust_remote_code": False}
"""Without the second, transformers asks at the terminal whether to run code beside the model."""
Tokens = Sequence[Sequence[int]]


def model_content(model: str) -> str | None:
    """A digest of a local model's files; of one on the hub its name."""
    if is_hub_name(model):
        return model
    folder = Path(model).expanduser()
    paths: list[Path] = []
    for pattern in MODEL_FILES:
        paths += folder.glob(pattern)
    return files_content(paths)


def load_network(folder: Path, kind: str) -> tuple[Any, Any]:
    """Network, with weights in float32, and tokenizer of a folder.

    Args:
        folder: has MODEL_FILES.
        kind: the class of transformers, such as AutoModel.

    Raises:
        InputError: they do not load.
    """
    transformers = require("transformers")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # no advice on how to pad
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **LOADING)
        network = getattr(transformers, kind).from_pretrained(
            str(folder), use_safetensors=True, dtype=torch.float32, **LOADING
        )
    except Exception as error:  # missing files, bad JSON and bad tensors have no common base
        message = f"model or tokenizer does not load ({reason_of(error)})"
        raise InputError(message, file=folder) from error
    return network, tokenizer


def forward_texts(
    head: torch.nn.Module,
    network: Any,
    tokenizer: Any,
    tokens: Tokens,
    labels: Sequence[int],
    run: Run,
) -> tuple[NDArray[np.float32], NDArray[np.int64], list[str]]:
    """Outputs [n, k] of `head`, labels [n], and the texts left out, in the order of the texts.

    Args:
        head: takes a padded batch of tokens (a mapping of tensors) and returns [b, k].
        network: the transformers model inside `head`, whose limits are checked first.
        tokenizer: the one that made the tokens; it pads a batch.
        tokens: for each text the numbers of its tokens.
        labels: for each text its class.
        run: device, size of a batch, progress.

    Raises:
        InputError: the tokens do not fit the network, or the pass fails (`forward_logits`).
    """
    _check_fit(network, tokens)

    def padded(items: list[tuple[Sequence[int], int]]) -> tuple[dict[str, Tensor], Tensor]:
        batch, classes = zip(*items)
        filled = tokenizer.pad({"input_ids": list(batch)}, padding=True, return_tensors="pt")
        return dict(filled), torch.tensor(classes)

    # A batch is padded to its longest text, so texts of similar length go together. The longest
    # come first, so that a memory which is too small shows at once.
    lengths = np.array([len(text) for text in tokens])
    longest_first = np.argsort(-lengths, kind="stable").tolist()
    items = list(zip(tokens, labels, strict=True))
    return forward_logits(head, items, run, padded, longest_first, "row {}".format)


def _check_fit(network: Any, tokens: Tokens) -> None:
    """Check what would be an index error in the middle of the pass."""
    longest = max(len(text) for text in tokens)
    positions = getattr(network.config, "max_position_embeddings", longest)
    if longest > positions:
        message = f"a text has {longest} tokens, the model {positions} positions"
        fix = f"set benchmark.source.max_length={positions}"
        raise InputError(message, fixes=fix)
    largest = max(max(text) for text in tokens)
    vocabulary = network.get_input_embeddings().num_embeddings
    if largest >= vocabulary:
        message = f"the tokenizer gives token {largest}, the model knows {vocabulary}"
        fix = "they do not belong together: choose another model"
        raise InputError(message, fixes=fix)
