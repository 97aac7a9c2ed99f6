"""Build the site: the README and the pages it leads to as HTML, and the API reference by pdoc.

    python docs/build_site.py site

The site mirrors the repository, so that relative links stay as they are, `.md` apart. A page that
another one links is built, any other linked file is copied. A link that leads nowhere, and any
warning of pdoc (an annotation that it cannot resolve, say), ends the program with exit code 1.
Nothing is fetched.
"""

from __future__ import annotations

import argparse
import html
import importlib
import re
import shutil
import sys
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import markdown2
import pdoc

ROOT = Path(__file__).resolve().parents[1]
FIRST = Path("README.md")
NAMES = (
    "metrics",
    "metrics.plots",
    "metrics.reference",
    "metrics.reference_additions",
    "calibrators",
    "calibrators.reference",
)
PACKAGES = tuple(f"utility_calibration.{name}" for name in NAMES)
"""What pdoc documents: of each the names in its `__all__`, or else all public ones."""
EXTRAS = ["fenced-code-blocks", "tables", "header-ids", "cuddled-lists", "code-friendly"]
TARGET = re.compile(r'(?<= )(href|src)="([^"]+)"')
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 1rem; }}
img {{ max-width: 100%; }} pre {{ background: #f3f4f6; padding: .7rem; overflow-x: auto; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
th, td {{ border: 1px solid #ccc; padding: .25rem .6rem; }} nav {{ margin-bottom: 1.5rem; }}
</style></head><body>
<nav><a href="{up}index.html">Start</a> · <a href="{up}api/index.html">API</a></nav>
{body}
</body></html>
"""


def place_of(page: Path) -> Path:
    """Where a page of the repository lies in the site."""
    return Path("index.html") if page == FIRST else page.with_suffix(".html")


class Site:
    """The site under construction in a folder; `broken` names links that lead nowhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken: list[str] = []
        self.waiting = [FIRST]
        self.built: set[Path] = set()

    def build_pages(self) -> None:
        """Build the README and every page that it or another one links."""
        while self.waiting:
            page = self.waiting.pop()
            if page not in self.built:
                self.built.add(page)
                self.build_page(page)

    def build_page(self, page: Path) -> None:
        text = (ROOT / page).read_text(encoding="utf-8")
        body = markdown2.markdown(text, extras=EXTRAS)
        linked = TARGET.sub(lambda found: self.linked(page, *found.groups()), body)
        place = self.folder / place_of(page)
        place.parent.mkdir(parents=True, exist_ok=True)
        title = html.escape(text.splitlines()[0].strip("# "))
        up = "../" * (len(page.parts) - 1)
        place.write_text(PAGE.format(title=title, up=up, body=linked), encoding="utf-8")

    def linked(self, page: Path, attribute: str, target: str) -> str:
        """The attribute with its address in the site; what it leads to is built or copied."""
        address = urlsplit(html.unescape(target))
        if address.scheme or not address.path:
            return f'{attribute}="{target}"'
        file = (ROOT / page.parent / address.path).resolve()
        if not file.is_relative_to(ROOT) or not file.is_file():
            self.broken.append(f"{page}: {target} leads to no file")
            return f'{attribute}="{target}"'
        path = file.relative_to(ROOT)
        if path.suffix == ".md":
            self.waiting.append(path)
            target = target.replace(".md", ".html")
        else:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.folder / path)
        return f'{attribute}="{target}"'


def build_reference(folder: Path) -> list[str]:
    """Write the API reference and return what pdoc warns of, such as an unresolved annotation."""
    for name in list(pdoc.extract.walk_specs(PACKAGES)):
        module = importlib.import_module(name)  # what other packages warn of meanwhile is not ours
        for public in getattr(module, "__all__", ()):  # pdoc sees only what is already loaded
            setattr(module, public, getattr(module, public))
    pdoc.render.configure(docformat="google", show_source=False)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        # The constructors that NamedTuple and dataclass generate do not see the imports of the
        # module that declares an inherited field.
        warnings.filterwarnings("ignore", r"Error parsing type annotation ForwardRef\('Any'\)")
        warnings.filterwarnings("ignore", r"Error parsing type annotation .* for .*\.__init__\.")
        pdoc.pdoc(*PACKAGES, output_directory=folder)
    return [f"API reference: {warning.message}" for warning in raised]


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the site of pages and API reference.")
    parser.add_argument("output", type=Path, nargs="?", default=ROOT / "site")
    folder = parser.parse_args().output.resolve()
    site = Site(folder)
    site.build_pages()
    wrong = [*site.broken, *build_reference(folder / "api")]
    print(*(wrong or [f"wrote {folder / 'index.html'}"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
