"""Yahoo Answers: a DistilBERT with random weights in a folder, parquet in the data's schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hydra.utils import instantiate
from safetensors.torch import load_file

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.sources.class_names import YAHOO
from pipeline.sources.result import MissingResource
from pipeline.sources.yahoo import yahoo_logits
from tests.paper.standins import yahoo_data, yahoo_model

ROWS = 11


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return yahoo_model(tmp_path_factory.mktemp("models") / "named", YAHOO)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return yahoo_data(tmp_path_factory.mktemp("yahoo") / "test-00000-of-00001.parquet", ROWS)


def logits_of(model: Path | str, data: Path | str, **options: Any) -> Any:
    defaults = {"device": "cpu", "batch_size": 4, "expected_rows": None}
    return yahoo_logits(model=str(model), data=str(data), **{**defaults, **options})


def direct_logits(model: Path, texts: list[str], max_length: int = 512) -> Any:
    transformers = require("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    classifier = transformers.AutoModelForSequenceClassification.from_pretrained(model).eval()
    found = []
    for text in texts:
        tokens = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
        with torch.inference_mode():
            found.append(classifier(**tokens).logits[0].numpy())
    return np.stack(found)


def test_logits_through_the_configuration_equal_the_model_text_by_text(
    model: Path, data: Path, benchmark_config: Callable[..., Any]
) -> None:
    config = benchmark_config(
        "yahoo",
        f"benchmark.source.model={model}",
        f"benchmark.source.data={data}",
        f"benchmark.source.expected_rows={ROWS}",
        "benchmark.source.max_length=200",
        "benchmark.source.batch_size=3",
    )
    result = instantiate(config.source, device="cpu")
    columns = pd.read_parquet(data).fillna("").to_dict("list")
    parts = zip(columns["question_title"], columns["question_content"], columns["best_answer"])
    texts = [" ".join(part for part in row if part) for row in parts]
    # Padding changes the logits as much as float32 rounds them: here 1e-5 of about 30.
    np.testing.assert_allclose(
        result.logits, direct_logits(model, texts, 200), atol=1e-5, rtol=1e-5
    )
    assert result.logits.dtype == np.float32 and np.ptp(result.logits, axis=0).min() > 1
    assert result.labels.tolist() == columns["topic"]
    assert result.details["class_names"] == list(YAHOO)
    assert result.details["warnings"] == []


def test_a_permuted_id2label_is_put_in_the_data_sets_order(
    model: Path, data: Path, tmp_path: Path
) -> None:
    reference = logits_of(model, data).logits
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    names = [YAHOO[number] for number in order]
    names[0] = names[0].replace("&", "and").upper()  # spelled differently, still the same
    permuted = yahoo_model(tmp_path / "permuted", names)
    state = require("safetensors.torch").load_file(permuted / "model.safetensors")
    state["classifier.weight"] = state["classifier.weight"][order].contiguous()
    state["classifier.bias"] = state["classifier.bias"][order].contiguous()
    require("safetensors.torch").save_file(state, permuted / "model.safetensors", {"format": "pt"})
    result = logits_of(permuted, data)
    np.testing.assert_allclose(result.logits, reference, atol=1e-3)


def test_a_folder_and_the_hubs_cache_serve_without_network(
    model: Path, data: Path, hub_cache: Callable[..., Path]
) -> None:
    reference = logits_of(model, data).logits
    np.testing.assert_array_equal(logits_of(model, data.parent).logits, reference)
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    hub_cache("model", "Koushim/distilbert-yahoo-answers-topic-classifier", files)
    content = {"yahoo_answers_topics/test-00000-of-00001.parquet": data.read_bytes()}
    hub_cache("dataset", "community-datasets/yahoo_answers_topics", content)
    result = logits_of(
        "Koushim/distilbert-yahoo-answers-topic-classifier",
        "community-datasets/yahoo_answers_topics",
    )
    np.testing.assert_array_equal(result.logits, reference)


def test_pickled_weights_are_not_loaded(model: Path, data: Path, tmp_path: Path) -> None:
    folder = yahoo_model(tmp_path / "pickled", YAHOO)
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(InputError, match="pickled: model or tokenizer does not load"):
        logits_of(folder, data)


def test_what_is_missing_is_one_line(
    model: Path, data: Path, tmp_path: Path, hub_cache: Callable[..., Path]
) -> None:
    hub = "community-datasets/yahoo_answers_topics"
    for arguments, said in (
        ((model, hub), f"'hf download {hub} --repo-type dataset'"),
        (("Koushim/distilbert", data), "'hf download Koushim/distilbert'"),
        ((model, tmp_path), "holds no parquet file"),
    ):
        with pytest.raises(MissingResource) as caught:
            logits_of(*arguments)
        assert said in str(caught.value) and "\n" not in str(caught.value)


def test_damaged_or_too_few_rows_are_named(model: Path, data: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data.read_bytes()[:300])
    with pytest.raises(
        InputError, match=r"broken\.parquet: no parquet file with the fields"
    ) as caught:
        logits_of(model, broken)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="11 rows, expected 60000"):
        logits_of(model, data, expected_rows=60_000)


def test_what_does_not_fit_is_refused_before_the_pass(
    model: Path, data: Path, tmp_path: Path
) -> None:
    def changed(**columns: Any) -> Path:
        path = tmp_path / f"test-{len(list(tmp_path.iterdir()))}.parquet"
        pd.read_parquet(data).assign(**columns).to_parquet(path)
        return path

    two = yahoo_model(tmp_path / "two", ["no", "yes"])
    part = yahoo_model(tmp_path / "part", [*YAHOO[:-1], "Cooking"])
    topics = pd.read_parquet(data)["topic"]
    for arguments, words in (
        ((two, data), r"2 outputs \(no, yes\), Yahoo Answers has 10 classes.*source\.columns"),
        ((part, data), r"in part named as the classes \(Cooking\).*source\.columns"),
        ((model, changed(topic=topics + 1)), r"goes from 1 to 10.*first_label=1"),
        ((model, changed(topic=topics.where(topics > 0))), r"2 rows have no topic.*on_error=skip"),
        ((model, changed(best_answer=topics)), r"best_answer: holds int, not text.*fields"),
        ((model, changed(topic="cooking")), r"cooking: no topic of Yahoo Answers.*label_field"),
    ):
        with pytest.raises(InputError, match=words):
            logits_of(*arguments)
    named = [YAHOO[number] for number in topics]
    reference = logits_of(model, data)
    by_name = logits_of(model, changed(topic=named))
    assert by_name.labels.tolist() == reference.labels.tolist()
    missing = logits_of(model, changed(topic=topics.where(topics > 0)), on_error="skip")
    np.testing.assert_allclose(missing.logits, reference.logits[topics > 0], atol=1e-5)
