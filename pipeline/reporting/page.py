"""Self-contained HTML pages from the templates beside this file: nothing is fetched by a reader.

Whatever stands in a title, a file name or a class name is escaped by the templates.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("pipeline.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: Any) -> str:
    """The page that `template` makes of `context`."""
    return _templates().get_template(template).render(**context)


def scrolling(table: str) -> str:
    """A table that scrolls sideways where the window is narrower."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="table">\n{table}\n</div>'
