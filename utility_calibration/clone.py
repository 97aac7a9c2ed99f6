"""In a clone or an editable installation: `utility_calibration.metrics.x` is `metrics.x`.

Both names give the same object, so that a class exists once, whichever name a program imports. The
wheel has no use for this: there the modules bear the long name only (setup.py).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parents[1]
LONG = "utility_calibration."
FOLDERS = ("metrics", "calibrators", "pipeline", "scripts")


class Twin(MetaPathFinder, InspectLoader):
    """Finds a module under its long name, and loads the one that has the short name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification if the name is a long one and the module exists."""
        short = fullname.removeprefix(LONG)
        if short == fullname or short.partition(".")[0] not in FOLDERS or not find_spec(short):
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the short name.

        Raises:
            ImportError: a module of the user has this short name.
        """
        module = import_module(spec.name.removeprefix(LONG))
        own = module.__spec__
        assert own is not None
        places = [*(own.submodule_search_locations or [str(own.origin)])]
        if not any(Path(place).resolve().is_relative_to(ROOT) for place in places):
            raise ImportError(
                f"{own.name}: {places[0]} hides the folder of this clone; rename it, or install "
                f"the package without -e: pip install {ROOT}"
            )
        spec.loader_state = own
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back its own specification; its code has run already."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, which `python -m` runs."""
        spec = find_spec(fullname.removeprefix(LONG))
        assert spec is not None and isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(spec.name)

    def get_source(self, fullname: str) -> None:
        """Return nothing: the module of the short name has the source."""


def join() -> None:
    """Let both names lead to the folders of this clone."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    sys.meta_path.insert(0, Twin())
