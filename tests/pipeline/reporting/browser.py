"""A page in headless Chromium, where a script looks at it in a frame of a chosen size."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--window-size=1400,1000", "--virtual-time-budget=30000", "--dump-dom")  # fmt: skip
BEFORE = """<script>
errors = []; addEventListener("error", (e) => errors.push(e.message));
</script>"""
OUTSIDE = """<!doctype html><meta charset="utf-8">
<iframe width="{width}" height="{height}" style="border: 0" srcdoc="{page}"></iframe>
<script>
const frame = document.querySelector("iframe");
const until = async (holds) => {{ while (!holds()) await new Promise((go) => setTimeout(go)); }};
const look = async (view, page) => {{ {script} }};
frame.onload = () => look(frame.contentWindow, frame.contentDocument).then(
  (seen) => document.body.textContent = "SEEN" + JSON.stringify(seen) + "END");
</script>"""


def seen_in(page: str, script: str, folder: Path, width: int = 1200, height: int = 900) -> Any:
    """What a JavaScript function body with `view` (the window) and `page` (the document) returns.

    It may wait by `await until(() => …)`; `view.errors` are the errors of the page's own scripts.
    """
    outside = folder / "outside.html"
    frame = {"page": html.escape(BEFORE + page), "width": width, "height": height}
    outside.write_text(OUTSIDE.format(script=script, **frame), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", outside.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    seen = re.search("<body>SEEN(.*)END", done.stdout, re.DOTALL)
    assert seen is not None, done.stdout[-300:]
    return json.loads(html.unescape(seen[1]))
