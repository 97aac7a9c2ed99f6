"""What a method's settings say, before anything is read or fitted."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.refusals import fails
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.own.request.job import takes


@pytest.mark.parametrize("target", ["no_such_module.Mine", "utility_calibration.calibrators.Mine"])
def test_settings_that_name_no_class_are_refused_in_one_line(target: str) -> None:
    settings: Any = SimpleNamespace(calibrator={"_target_": target})
    with fails(UsageError, "_target_", target, "module.Class"):
        takes(settings, "weights")
