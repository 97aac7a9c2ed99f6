"""Stand-ins in the real formats for what the paper's seven benchmarks need, with random weights."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from tests.pipeline.conftest import write_example
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.scoring.class_names import YAHOO

CIFAR = {"cifar10_repvgg_a0": 10, "cifar10_resnet44": 10, "cifar100_repvgg_a2": 100}
CIFAR |= {"cifar100_resnet56": 100}
WORDS = [f"w{number}" for number in range(60)]


def cifar(folder: Path) -> Path:
    """Ready-made logits of the four CIFAR benchmarks."""
    folder.mkdir()
    for name, classes in CIFAR.items():
        write_example(folder / f"{name}.npz", n=400, classes=classes)
    return folder


def images(folder: Path, count: int) -> Path:
    """`count` small images in as many synset folders."""
    random = np.random.default_rng(0)
    for number, synset in enumerate(require("timm.data").ImageNetInfo().label_names()[:count]):
        (folder / synset).mkdir(parents=True)
        pixels = random.integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / synset / f"ILSVRC2012_val_{number:08d}.JPEG")
    return folder


def weights(folder: Path, *models: str) -> Path:
    """timm's models with random weights, under the names that `sources.checkpoints` expects."""
    from safetensors.torch import save_file

    folder.mkdir()
    for name in models:
        torch.manual_seed(1)
        network = require("timm").create_model(name)
        save_file(network.state_dict(), folder / f"{name}.safetensors")
    return folder


def vectors(path: Path) -> Path:
    """Word vectors, in word2vec's text format, of all words in ImageNet's class names."""
    names = " ".join(require("timm.data").ImageNetInfo().label_descriptions()).lower()
    words = sorted(set(re.findall(r"[^\W_]+", re.sub("[-_]", " ", names))))
    numbers = np.random.default_rng(0).normal(size=(len(words), 8))
    lines = (f"{word} {' '.join(f'{x:.4f}' for x in row)}" for word, row in zip(words, numbers))
    path.write_text("\n".join([f"{len(words)} 8", *lines]) + "\n", encoding="utf-8")
    return path


def yahoo_model(folder: Path, names: Sequence[str] = YAHOO[::-1]) -> Path:
    """A small DistilBERT of these classes; by default in another order than the data's.

    Its random weights are large, so that the logits depend visibly on every token.
    """
    transformers = require("transformers")
    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    shape = {"dim": 16, "n_heads": 2, "hidden_dim": 32, "n_layers": 1, "initializer_range": 1.0}
    labels = dict(enumerate(names))
    config = transformers.DistilBertConfig(vocab_size=len(vocabulary), id2label=labels, **shape)
    torch.manual_seed(0)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(folder)
    return folder


def yahoo_data(path: Path, rows: int) -> Path:
    """Questions of very different lengths, some without text, in the columns of the data set."""
    random = np.random.default_rng(0)

    def texts(longest: int) -> list[str]:
        return [" ".join(random.choice(WORDS, random.integers(1, longest))) for _ in range(rows)]

    lengths = {"question_title": 8, "question_content": 40, "best_answer": 300}
    columns = {name: texts(longest) for name, longest in lengths.items()}
    columns["question_content"][::3] = [""] * len(columns["question_content"][::3])
    table = pd.DataFrame({"id": range(rows), "topic": [row % 10 for row in range(rows)], **columns})
    table.loc[::4, "best_answer"] = None
    table.to_parquet(path)
    return path
