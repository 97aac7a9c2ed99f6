"""The stages, one module each, in the order data flows: logits, fit, evaluate, dynamics, users,
report.

Each runs by itself (`utility-calibration fit benchmark=digits calibrator=temperature split=3`) and
as a stage of `dvc repro`. `status` says what is up to date, `sweep` runs all stages as jobs.
"""

import lazy_loader

if __name__ != "utility_calibration.pipeline":
    raise ImportError(
        "pipeline: its name is utility_calibration.pipeline; type utility-calibration fit "
        "(or another stage) to run one",
        name=__name__,
    )

STAGES = ("logits", "fit", "evaluate", "dynamics", "users", "report")
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, [*STAGES, "status", "sweep"])
