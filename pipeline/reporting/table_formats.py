"""A ResultTable in LaTeX, Markdown and HTML."""

from __future__ import annotations

import math
import re
from html import escape

from metrics.registry import METRICS, Metric
from pipeline.reporting.table_model import MARK, Cell, ResultTable

# Works with booktabs alone: where bm or graphicx is not loaded, bold and scaling degrade.
LATEX_HEADER = r"""% Needs \usepackage{booktabs}; \usepackage{bm,graphicx} give the paper's look.
\providecommand{\bm}[1]{\mathbf{#1}}
\providecommand{\resizebox}[3]{#3}
"""
LATEX_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "†": r"$\dagger$",
    "∞": r"$\infty$",
}
WIDE = 6  # from so many metrics on, a table is scaled to the line width, as in the paper


def number(value: float, decimals: int) -> str:
    """A rounded number as text; `∞` for infinity, `–` for no value, never `-0.0`."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def escape_latex(text: str) -> str:
    """Plain text as LaTeX text."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in text)


def latex(table: ResultTable) -> str:
    r"""A `table*` environment for `\input`, laid out as in the paper."""
    heading = " & ".join(["Method", *(_latex_heading(m) for m in table.metrics)])
    body = [" & ".join([escape_latex(r.name), *map(_latex_cell, r.cells)]) for r in table.rows]
    lines = [r"\toprule", rf"{heading} \\", r"\midrule", *(rf"{row} \\" for row in body)]
    if table.floor is not None:
        cells = " & ".join(_latex_floor_cell(cell) for cell in table.floor.cells)
        lines += [r"\midrule", rf"{escape_latex(table.floor.name)} & {cells} \\"]
    inner = "\n".join(f"    {line}" for line in [*lines, r"\bottomrule"])
    columns = "@{}l" + r"@{\hspace{0.8em}}c" * len(table.metrics) + "@{}"
    tabular = f"\\begin{{tabular}}{{{columns}}}\n{inner}\n\\end{{tabular}}"
    if len(table.metrics) >= WIDE:
        tabular = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}%\n}}"
    notes = " ".join(table.notes)
    caption = escape_latex(f"{table.title}: calibration after each post-hoc method. {notes}")
    return (
        f"{LATEX_HEADER}\\begin{{table*}}[t]\n"
        f"  \\caption{{{caption}}}\n  \\label{{tab:{table.name}}}\n"
        f"  \\centering\n  \\small\n  \\vspace{{4pt}}\n{tabular}\n\\end{{table*}}\n"
    )


def _latex_heading(column: Metric) -> str:
    return rf"{column.latex} ($\times 10^{{{column.power}}}$)"


def _latex_math(text: str) -> str:
    return text.replace("∞", r"\infty").replace("–", r"\mbox{--}")


def _latex_cell(cell: Cell) -> str:
    text = _latex_math(cell.mean)
    if cell.spread:
        text = rf"{text} \pm {_latex_math(cell.spread)}"
    text = rf"\bm{{{text}}}" if cell.best else text
    mark = r"^{\dagger}" if cell.beyond else ""
    note = rf"\;({_latex_math(cell.note)})" if cell.note else ""
    return f"${text}{mark}{note}$"


def _latex_floor_cell(cell: Cell) -> str:
    if not cell.mean:
        return "--"
    return f"${_latex_math(cell.mean)}\\;[{_latex_math(cell.spread)}]$"


def plain_number(cell: Cell) -> str:
    """`mean ± spread`, or the mean alone."""
    return f"{cell.mean} ± {cell.spread}" if cell.spread else cell.mean


def plain_marks(cell: Cell) -> str:
    """What stands behind the number: the mark of the noise floor, a note."""
    return (MARK if cell.beyond else "") + (f" ({cell.note})" if cell.note else "")


def plain_cell(cell: Cell) -> str:
    """`mean ± spread` with its marks."""
    return plain_number(cell) + plain_marks(cell)


def plain_floor_cell(cell: Cell) -> str:
    """`mean [95 % quantile]` of the noise floor."""
    return f"{cell.mean} [{cell.spread}]" if cell.mean else "–"


def escape_markdown(text: str) -> str:
    """Plain text as Markdown text: no markup, no HTML, one line."""
    line = " ".join(escape(text, quote=False).split())
    return re.sub(r"([\\`*\[\]|$]|(?<!\w)_|_(?!\w))", r"\\\1", line)


def markdown(table: ResultTable) -> str:
    """The same table as GitHub-flavoured Markdown, with its notes below."""
    heading = ["Method", *(f"{_markdown_name(m)} {m.scale}" for m in table.metrics)]
    rows = [[r.name, *(_markdown_cell(c) for c in r.cells)] for r in table.rows]
    if table.floor is not None:
        rows.append([f"*{table.floor.name}*", *(plain_floor_cell(c) for c in table.floor.cells)])
    rule = ["---", *("--:" for _ in table.metrics)]
    lines = [f"| {' | '.join(row)} |" for row in [heading, rule, *rows]]
    notes = "\n\n".join(map(escape_markdown, table.notes))
    return f"### {escape_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n\n{notes}\n"


def _markdown_name(column: Metric) -> str:
    return column.html if column.key in METRICS else f"`{column.text}`"


def _markdown_cell(cell: Cell) -> str:
    return f"**{plain_number(cell)}**{plain_marks(cell)}" if cell.best else plain_cell(cell)


def html(table: ResultTable) -> str:
    """The same table as an HTML `table`, for a page with the style of page.py."""
    heading = "".join(f"<th>{m.html}<br><small>{m.scale}</small></th>" for m in table.metrics)
    rows = [
        f"<tr><th>{escape(row.name)}</th>" + "".join(map(_html_cell, row.cells)) + "</tr>"
        for row in table.rows
    ]
    if table.floor is not None:
        cells = "".join(f"<td>{plain_floor_cell(c)}</td>" for c in table.floor.cells)
        rows.append(f'<tr class="floor"><th>{table.floor.name}</th>{cells}</tr>')
    body = "\n".join(rows)
    return (
        f'<table class="results">\n<thead><tr><th>Method</th>{heading}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def _html_cell(cell: Cell) -> str:
    classes = [name for name, on in (("best", cell.best), ("beyond", cell.beyond)) if on]
    kind = f' class="{" ".join(classes)}"' if classes else ""
    return f"<td{kind}>{plain_cell(cell)}</td>"
