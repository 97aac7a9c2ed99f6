"""What settings name is called with the settings' own texts."""

import pytest
from hydra.errors import InstantiationException

from calibrators import TemperatureScaling
from pipeline.harness.command import is_user_error
from pipeline.harness.targets import made_of

TEXTS = ["out/${x}/b", r"a\${x}"]
KEPT = "tests.pipeline.harness.test_targets.kept"


def kept(**values):
    return values


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_not_interpolated_however_deep(text):
    inner = {"_target_": KEPT, "name": text}
    given = {"path": text, "names": [text, 1, None], "of": {"name": text}}
    made = made_of({"_target_": KEPT, **given, "each": [inner]}, workers=2)
    assert made == {**given, "each": [{"name": text}], "workers": 2}


def test_what_is_named_is_made_and_nothing_of_nothing():
    made = made_of({"_target_": "calibrators.TemperatureScaling", "loss": "brier"})
    assert isinstance(made, TemperatureScaling) and made.loss == "brier"
    assert made_of(None) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"_target_": "calibrators.PlattScaling"},
        {"_target_": "calibrators.TemperatureScaling", "step": 1},
        {"_target_": "no_such_module.Name"},
    ],
)
def test_a_wrong_name_or_argument_is_the_users_error(entry):
    with pytest.raises(InstantiationException) as caught:
        made_of(entry)
    assert is_user_error(caught.value)
