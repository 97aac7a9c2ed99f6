"""Yahoo Answers: a DistilBERT with random weights in a folder, parquet in the data's schema."""

import numpy as np
import pandas as pd
import pytest
import torch
from hydra.utils import instantiate

from tests.paper.standins import yahoo_data, yahoo_model
from tests.pipeline.sources.conftest import refused
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.pipeline.scoring.class_names import YAHOO
from utility_calibration.pipeline.sources.yahoo import yahoo_logits

ROWS = 11
HUB_MODEL = "Koushim/distilbert-yahoo-answers-topic-classifier"
HUB_DATA = "community-datasets/yahoo_answers_topics"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return yahoo_model(tmp_path_factory.mktemp("models") / "named", YAHOO)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return yahoo_data(tmp_path_factory.mktemp("yahoo") / "test-00000-of-00001.parquet", ROWS)


def logits_of(model, data, **options):
    defaults = {"device": "cpu", "batch_size": 4, "expected_rows": None}
    return yahoo_logits(model=str(model), data=str(data), **{**defaults, **options})


def test_logits_through_the_configuration_equal_the_model_text_by_text(
    model, data, benchmark_config
):
    options = {"model": model, "data": data, "expected_rows": ROWS}
    options |= {"max_length": 200, "batch_size": 3}
    overrides = [f"benchmark.source.{name}={value}" for name, value in options.items()]
    result = instantiate(benchmark_config("yahoo", *overrides).source, device="cpu")
    columns = pd.read_parquet(data).fillna("").to_dict("list")
    parts = zip(columns["question_title"], columns["question_content"], columns["best_answer"])
    transformers = require("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    classifier = transformers.AutoModelForSequenceClassification.from_pretrained(model).eval()
    expected, how = [], {"truncation": True, "max_length": 200, "return_tensors": "pt"}
    for text in (" ".join(part for part in row if part) for row in parts):
        with torch.inference_mode():
            expected.append(classifier(**tokenizer(text, **how)).logits[0].numpy())
    # Padding changes the logits as much as float32 rounds them: here 1e-5 of about 30.
    np.testing.assert_allclose(result.logits, np.stack(expected), atol=1e-5, rtol=1e-5)
    assert result.logits.dtype == np.float32 and np.ptp(result.logits, axis=0).min() > 1
    assert result.labels.tolist() == columns["topic"]
    assert result.details["class_names"] == list(YAHOO)
    assert result.details["warnings"] == []


def test_a_permuted_id2label_is_put_in_the_data_sets_order(model, data, tmp_path):
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    names = [YAHOO[number] for number in order]
    names[0] = names[0].replace("&", "and").upper()  # spelled differently, still the same
    permuted = yahoo_model(tmp_path / "permuted", names)
    files = require("safetensors.torch")
    state = files.load_file(permuted / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        state[name] = state[name][order].contiguous()
    files.save_file(state, permuted / "model.safetensors", {"format": "pt"})
    reference = logits_of(model, data).logits
    np.testing.assert_allclose(logits_of(permuted, data).logits, reference, atol=1e-3)


def test_a_folder_and_the_hubs_cache_serve_without_network(model, data, hub_cache):
    reference = logits_of(model, data).logits
    np.testing.assert_array_equal(logits_of(model, data.parent).logits, reference)
    hub_cache("model", HUB_MODEL, {file.name: file.read_bytes() for file in model.iterdir()})
    hub_cache("dataset", HUB_DATA, {"folder/test-00000-of-00001.parquet": data.read_bytes()})
    np.testing.assert_array_equal(logits_of(HUB_MODEL, HUB_DATA).logits, reference)


def test_pickled_weights_are_not_loaded(data, tmp_path):
    folder = yahoo_model(tmp_path / "pickled", YAHOO)
    weights = folder / "model.safetensors"
    torch.save(require("safetensors.torch").load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    refused("pickled", logits_of, folder, data)


@pytest.mark.usefixtures("hub_cache")
def test_what_is_missing_damaged_or_does_not_fit_is_one_line(model, data, tmp_path):
    def changed(**columns):
        path = tmp_path / f"test-{len(list(tmp_path.iterdir()))}.parquet"
        pd.read_parquet(data).assign(**columns).to_parquet(path)
        return path

    two = yahoo_model(tmp_path / "two", ["no", "yes"])
    part = yahoo_model(tmp_path / "part", [*YAHOO[:-1], "Cooking"])
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data.read_bytes()[:300])
    topics = pd.read_parquet(data)["topic"]
    partly = changed(topic=topics.where(topics > 0))
    for arguments, told in (
        ((model, HUB_DATA), f"{HUB_DATA} --repo-type"),
        (("Koushim/distilbert", data), "hf download Koushim/distilbert"),
        ((model, two), "parquet"),
        ((model, broken), "broken.parquet"),
        ((two, data), "2 no, yes 10 source.columns"),
        ((part, data), "Cooking source.columns"),
        ((model, changed(topic=topics + 1)), "1 10 first_label=1"),
        ((model, partly), "2 topic on_error=skip"),
        ((model, changed(best_answer=topics)), "best_answer fields"),
        ((model, changed(topic="cooking")), "cooking label_field"),
    ):
        refused(told, logits_of, *arguments)
    refused("11 60000", logits_of, model, data, expected_rows=60_000)
    refused("source.max_length 2", logits_of, model, data, max_length=2)
    reference = logits_of(model, data)
    by_name = logits_of(model, changed(topic=[YAHOO[number] for number in topics]))
    assert by_name.labels.tolist() == reference.labels.tolist()
    missing = logits_of(model, partly, on_error="skip")
    np.testing.assert_allclose(missing.logits, reference.logits[topics > 0], atol=1e-5)
