"""The synthetic classifier: a seed gives the same points, and a preset is as hard as ImageNet."""

import numpy as np
from hydra.utils import instantiate
from scipy.special import softmax

from tests.pipeline.sources.conftest import refused
from utility_calibration.pipeline.sources.synthetic import SyntheticClassifier, synthetic_logits

OVERCONFIDENT = SyntheticClassifier(
    classes=6, margin_mean=2.0, margin_std=1.5, temperature=0.6, class_bias=0.4, noise=0.5
)


def test_a_seed_gives_the_same_points_and_a_smaller_sample_is_their_beginning():
    first, again, other = (OVERCONFIDENT.sample(5000, seed) for seed in (3, 3, 4))
    for one, same, beginning in zip(first, again, OVERCONFIDENT.sample(2500, 3)):
        np.testing.assert_array_equal(one, same)
        np.testing.assert_array_equal(one[:2500], beginning)
    assert (first.logits != other.logits).any()
    assert first.logits.dtype == np.float32 and first.labels.dtype == np.int64
    np.testing.assert_allclose(first.true_probabilities.sum(axis=1), 1.0, atol=1e-12)


def test_the_imagenet_preset_has_imagenets_shape_and_difficulty(benchmark_config):
    source = benchmark_config("synthetic_imagenet").source
    assert (source.samples, source.classes) == (50_000, 1000)
    source.samples = 6000
    result = instantiate(source)
    probabilities = softmax(result.logits.astype(np.float64), axis=1)
    accuracy = (probabilities.argmax(axis=1) == result.labels).mean()
    assert 0.77 < accuracy < 0.83
    assert 0.03 < probabilities.max(axis=1).mean() - accuracy < 0.1
    order = np.argsort(-probabilities, axis=1)[:, :5]
    assert 0.93 < (order == result.labels[:, None]).any(axis=1).mean() < 0.99


def test_bad_settings_name_themselves():
    refused("temperature 0.0", SyntheticClassifier, classes=6, temperature=0.0)
    refused("samples 0", synthetic_logits, samples=0)
    refused("sharpness", synthetic_logits, samples=10, sharpness=2)
