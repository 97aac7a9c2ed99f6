"""The forward pass of a network over texts: tokens, padded batches, one row of numbers per text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from utility_calibration.metrics.errors import InputError

from .inference import Run, forward_logits

Tokens = Sequence[Sequence[int]]


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
