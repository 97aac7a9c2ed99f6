"""Logits of Yahoo Answers titles: a frozen sentence encoder and a logistic head.

This is not the paper's model, which is a DistilBERT fine-tuned on other questions (yahoo.py). The
public file has the complete test split, of which the head is fitted on a part of its own. The
benchmark is all other titles.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from utility_calibration.metrics.errors import InputError

from ..harness.task import Progress, no_progress
from ..scoring.class_names import YAHOO
from .forward_pass import Run
from .hub import hub_files, weights_digest
from .input_digests import file_content, reads
from .public_files import PublicFile
from .source_result import SourceResult
from .text_networks import MODEL_FILES, NEEDED, WEIGHTS, forward_texts, load_network, model_content

TITLES = PublicFile(
    repository="mingkaid/rl-prompt",
    commit="34c63583bdce4b736fc67ba573bfed6979e5f52c",
    path="examples/few-shot-classification/data/16-shot/yahoo/16-13/test.tsv",
    name="yahoo_test_titles.tsv",
    sha256="dcbe7625a876edf5034517a46829a3f1ec16008cd2385657dec794446b7df1b2",
)
"""60,000 rows `title<TAB>label`, 6,000 of each class, in the order of the data set."""
LONGEST = 256  # tokens, as the encoder's authors set


def titles_content(data_dir: str | Path) -> str | None:
    """The SHA-256 of the titles in a folder; None where they are not there."""
    path = TITLES.inside(Path(data_dir).expanduser())
    return None if path is None else file_content(path)


@reads(
    lambda _: len(YAHOO),
    ("sha256", "encoder_revision"),
    data_dir=titles_content,
    encoder=model_content,
)
def yahoo_titles_logits(
    *,
    data_dir: str | Path,
    encoder: str,
    encoder_revision: str | None = None,
    sha256: str | None = None,
    fitted_titles: int = 15_000,
    inverse_penalty: float = 0.01,
    seed: int = 0,
    device: str = "auto",
    batch_size: int = 64,
    progress: Progress = no_progress,
) -> SourceResult:
    """Fit the head on `fitted_titles` titles, drawn by `seed`; return the logits of all others.

    Args: those of conf/benchmark/yahoo_titles.yaml; `device` and `progress` are of the pass.

    Raises:
        InputError: the titles or the encoder are neither there nor can be downloaded, a file is
            another one, or a number of the configuration is impossible.
    """
    run = Run(device, batch_size, 0, progress)
    titles, labels = read_titles(TITLES.fetched(Path(data_dir).expanduser(), "sources.real"))
    _check_size(fitted_titles, len(titles))
    setting = "sources.sentence_encoder=<folder>"
    folder = hub_files(encoder, "model", MODEL_FILES, setting, encoder_revision, NEEDED)
    weights_sha256 = weights_digest(folder / WEIGHTS, sha256)
    order = np.random.default_rng(seed).permutation(len(titles))
    fitted, others = np.sort(order[:fitted_titles]), np.sort(order[fitted_titles:])
    _check_classes(labels[fitted])
    embeddings = _embedded(folder, titles, labels, run)
    head = _fitted_head(embeddings[fitted], labels[fitted], inverse_penalty)
    logits = head.decision_function(embeddings[others]).astype(np.float32)
    details = {
        "source": "Yahoo Answers topics, titles of the test split; not the paper's model",
        "model": f"sentence encoder, logistic head fitted on {fitted_titles} of the titles",
        "preprocessing": {"fields": ["question_title"], "max_length": LONGEST},
        **run.described(),
        "origin": {
            "data": TITLES.described() | {"sha256": TITLES.sha256},
            "encoder": encoder if folder != Path(encoder).expanduser() else folder.name,
            "weights_sha256": weights_sha256,
        },
        "class_names": list(YAHOO),
        "warnings": [],
    }
    return SourceResult(logits, labels[others], details)


def read_titles(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Titles and labels [n] of the public file.

    InputError: a row is not a title and a class from 0 to 9.
    """
    titles, labels = [], []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows, None)  # the header
        for number, row in enumerate(rows):
            if len(row) != 2 or row[1] not in map(str, range(len(YAHOO))):
                message = f"expected a title and a class from 0 to {len(YAHOO) - 1}"
                raise InputError(message, row=number, file=path, fixes="download it again")
            titles.append(row[0])
            labels.append(int(row[1]))
    if not titles:
        raise InputError("no title", file=path, fixes="download it again")
    return titles, np.array(labels, dtype=np.int64)


def _check_size(fitted_titles: int, n_titles: int) -> None:
    if not isinstance(fitted_titles, int) or not len(YAHOO) <= fitted_titles < n_titles:
        message = f"{fitted_titles}, expected a whole number from {len(YAHOO)} to {n_titles - 1}"
        raise InputError(message, field="benchmark.source.fitted_titles")


def _check_classes(labels: NDArray[np.int64]) -> None:
    """The head gives a logit only for the classes that it has seen."""
    absent = [name for number, name in enumerate(YAHOO) if number not in labels]
    if absent:
        message = f"none of the {len(labels)} titles is of {', '.join(absent)}"
        field = "benchmark.source.fitted_titles"
        raise InputError(message, field=field, fixes="fit the head on more titles")


def _embedded(
    folder: Path, titles: list[str], labels: NDArray[np.int64], run: Run
) -> NDArray[np.float32]:
    """The embeddings [n, d] of the titles, of length one."""
    network, tokenizer = load_network(folder, "AutoModel")
    tokens = tokenizer(titles, truncation=True, max_length=LONGEST).input_ids
    encoder = SentenceEncoder(network)
    embeddings, _, _ = forward_texts(encoder, network, tokenizer, tokens, labels.tolist(), run)
    return embeddings


class SentenceEncoder(torch.nn.Module):
    """A transformer whose token vectors are averaged over the text and brought to length one.

    Reimers and Gurevych 2019, section 3 (pooling MEAN), normalised as all-MiniLM-L6-v2 is.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        vectors = self.network(**tokens).last_hidden_state
        is_token = tokens["attention_mask"].unsqueeze(-1).to(vectors.dtype)
        mean = (vectors * is_token).sum(dim=1) / is_token.sum(dim=1)
        return torch.nn.functional.normalize(mean, dim=1)


def _fitted_head(
    embeddings: NDArray[np.float32], labels: NDArray[np.int64], inverse_penalty: float
) -> Any:
    """Multinomial logistic regression on standardised embeddings."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    head = make_pipeline(
        StandardScaler(),
        LogisticRegression(C=inverse_penalty, max_iter=1000),
    )
    return head.fit(embeddings.astype(np.float64), labels)
