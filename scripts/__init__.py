"""What a person runs by hand: score and apply. In speed/ and maintain/ are the maintainers' own."""

import lazy_loader

if __name__ != "utility_calibration.scripts":
    raise ImportError("scripts: its name is utility_calibration.scripts", name=__name__)

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["score", "apply"])
