"""The frame of a self-contained HTML page: one inlined style, no script, nothing fetched."""

from __future__ import annotations

from html import escape

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1c1c1c;
  background: #fff; max-width: 72rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid #ddd; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p, figcaption { max-width: 60rem; }
a { color: #0072B2; }
nav a { margin-right: 1rem; }
small, .note, figcaption { color: #555; }
.note { font-size: .87rem; }
figure { margin: 1.25rem 0; } figure img { width: 100%; max-width: 60rem; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; }
thead th { border-top: 2px solid #1c1c1c; border-bottom: 1px solid #1c1c1c; font-weight: 600;
  vertical-align: bottom; text-align: right; position: sticky; top: 0; background: #fff; }
tbody tr:last-child > * { border-bottom: 2px solid #1c1c1c; }
th, td { padding: .28rem .65rem; text-align: right; white-space: nowrap; }
th:first-child, td.text, th.text { text-align: left; }
tbody th { font-weight: 400; text-align: left; }
tbody tr:hover > * { background: #f4f7fa; }
td.best { font-weight: 700; }
tr.floor > * { border-top: 1px solid #1c1c1c; color: #666; }
tr.group > * { border-top: 1px solid #ccc; }
td.far { background: #fde3cf; } td.farther { background: #f6b58a; }
td.far, td.farther { font-weight: 600; }
details { margin: .75rem 0; } summary { cursor: pointer; color: #0072B2; }
pre { background: #f6f6f6; padding: .9rem 1rem; overflow-x: auto; font-size: .8rem; }
code { font-size: .9em; background: #f2f2f2; padding: .05em .3em; border-radius: 3px; }
pre code { background: none; padding: 0; }
@media print { body { margin: 0; max-width: none; } details { display: block; } }
"""


def page(title: str, body: str) -> str:
    """A complete HTML document with `body` (HTML) under the heading `title` (text)."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def scrolling(table: str) -> str:
    """A table that scrolls sideways where the window is narrower."""
    return f'<div class="scroll">\n{table}\n</div>'
