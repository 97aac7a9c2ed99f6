"""Yahoo titles: a small encoder with random weights, and a file in the public one's layout."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from hydra.utils import instantiate

from tests.paper.standins import WORDS
from tests.pipeline.sources.conftest import refused
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.scoring.class_names import YAHOO
from utility_calibration.pipeline.sources import yahoo_titles
from utility_calibration.pipeline.sources.yahoo_titles import read_titles, yahoo_titles_logits

ROWS, FITTED = 60, 40


@pytest.fixture
def titles(tmp_path, monkeypatch):
    """A folder with 60 titles, of which one has a quotation mark; their sum is the expected one."""
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 9))) for _ in range(ROWS)]
    texts[3] = '"a ""quoted"" title"'
    lines = ["sentence\tlabel", *(f"{text}\t{row % 10}" for row, text in enumerate(texts))]
    path = tmp_path / "real" / yahoo_titles.TITLES.name
    path.parent.mkdir()
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode())
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(yahoo_titles, "TITLES", replace(yahoo_titles.TITLES, sha256=sha256))
    return path


@pytest.fixture
def encoder(tmp_path):
    """A BERT of one layer in a folder, as transformers saves it."""
    transformers = require("transformers")
    folder = tmp_path / "encoder"
    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    shape = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    shape |= {"num_hidden_layers": 1, "initializer_range": 1.0}
    config = transformers.BertConfig(vocab_size=len(vocabulary), **shape)
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def logits_of(titles, encoder, **options):
    defaults = {"device": "cpu", "batch_size": 7, "fitted_titles": FITTED}
    options = {**defaults, **options}
    return yahoo_titles_logits(data_dir=titles.parent, encoder=str(encoder), **options)


def test_the_head_is_fitted_on_a_part_that_is_not_in_the_benchmark(
    titles, encoder, benchmark_config
):
    options = {"data_dir": titles.parent, "encoder": encoder, "fitted_titles": FITTED}
    overrides = [f"benchmark.source.{name}={value}" for name, value in options.items()]
    source = benchmark_config("yahoo_titles", *overrides, "benchmark.source.sha256=null").source
    result = instantiate(source, device="cpu")
    left = np.sort(np.random.default_rng(0).permutation(ROWS)[FITTED:])
    assert result.labels.tolist() == (left % 10).tolist()
    assert result.logits.shape == (ROWS - FITTED, 10) and result.logits.dtype == np.float32
    assert result.details["class_names"] == list(YAHOO)
    # Padding changes an embedding as much as float32 rounds it.
    again = logits_of(titles, encoder).logits
    np.testing.assert_allclose(result.logits, again, atol=1e-4)
    assert np.abs(logits_of(titles, encoder, seed=1).logits - again).max() > 1e-2


def test_an_embedding_is_the_mean_over_the_tokens_of_its_text_alone(encoder):
    transformers = require("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    network = transformers.BertModel.from_pretrained(encoder).eval()
    padded = dict(tokenizer(["w1", "w2 w3 w4 w5"], padding=True, return_tensors="pt"))
    alone = dict(tokenizer(["w1"], return_tensors="pt"))
    with torch.inference_mode():
        vectors = network(**alone).last_hidden_state[0].mean(dim=0)
        embedded = yahoo_titles.SentenceEncoder(network)(padded)
    expected = vectors / vectors.norm()
    np.testing.assert_allclose(embedded[0].numpy(), expected.numpy(), atol=1e-5)


def test_what_is_missing_or_impossible_is_one_line(titles, encoder, tmp_path):
    assert read_titles(titles)[0][3] == 'a "quoted" title'
    for options, told in (
        ({"fitted_titles": ROWS}, f"fitted_titles {ROWS - 1}"),
        ({"fitted_titles": 3}, "fitted_titles 10"),
        ({"fitted_titles": 12}, "fitted_titles 12"),  # some class is not among them
        ({"sha256": "0" * 64}, "source.sha256"),
        ({"batch_size": 0}, "source.batch_size"),
    ):
        refused(told, logits_of, titles, encoder, **options)
    refused("nowhere sources.sentence_encoder", logits_of, titles, tmp_path / "nowhere")
    titles.write_bytes(titles.read_bytes() + b"one more\t10\r\n")
    refused(f"{titles.name} SHA-256", logits_of, titles, encoder)
    refused(f"{titles.name} row {ROWS}", read_titles, titles)
