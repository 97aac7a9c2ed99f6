"""The site of `make docs` builds: no link leads nowhere, and pdoc has nothing to warn of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import PAGES, ROOT

LINK = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("pdoc", "markdown2"):
        pytest.importorskip(package, reason=f"{package}, of the extra `docs`, is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "docs/build_site.py", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_the_reference_has_the_public_names(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file()
    for package, name in (("metrics", "TopK"), ("calibrators", "LogitShiftPatching")):
        assert f'id="{name}"' in (site / "api" / f"{package}.html").read_text(encoding="utf-8")


def test_every_link_of_the_pages_leads_to_a_file_and_a_heading(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(text) if "api" not in page.parts else ():
            address = urlsplit(link)
            if not address.scheme:
                file = page.parent / unquote(address.path) if address.path else page
                assert file.is_file(), f"{page.name}: {link}"
                if address.fragment:
                    assert f'id="{address.fragment}"' in file.read_text(encoding="utf-8"), link
