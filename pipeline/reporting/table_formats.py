"""A ResultTable in LaTeX and Markdown; the page has a template of its own."""

from __future__ import annotations

import math

from metrics.registry import METRICS, Metric
from pipeline.reporting.headings import html_heading, latex_heading
from pipeline.reporting.markdown import escape_markdown, markdown_table
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
PRINTED = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_comb", "u_dcg", "u_w2v")
"""The columns of the paper's tables."""
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
    r"""The paper's columns as a `table*` for `\input`, and a second one for all other columns."""
    keys = [column.key for column in table.metrics]
    printed = [key for key in keys if key in PRINTED]
    parts = [printed, [key for key in keys if key not in PRINTED]]
    environments = [
        _latex_table(table.with_columns(columns), "_more" if printed and number else "")
        for number, columns in enumerate(parts)
        if columns
    ]
    return LATEX_HEADER + "\n".join(environments)


def _latex_table(table: ResultTable, end: str) -> str:
    headings = [rf"{latex_heading(m)} ($\times 10^{{{m.power}}}$)" for m in table.metrics]
    heading = " & ".join(["Method", *headings])
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
    what = ", further columns" if end else ""
    caption = escape_latex(f"{table.title}{what}. {' '.join(table.brief('Bold'))}")
    return (
        f"\\begin{{table*}}[t]\n"
        f"  \\caption{{{caption}}}\n  \\label{{tab:{table.name}{end}}}\n"
        f"  \\centering\n  \\small\n  \\vspace{{4pt}}\n{tabular}\n\\end{{table*}}\n"
    )


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
    return f"${_latex_math(cell.mean)}$"


def plain_number(cell: Cell) -> str:
    """`mean ± spread`, or the mean alone."""
    return f"{cell.mean} ± {cell.spread}" if cell.spread else cell.mean


def plain_marks(cell: Cell) -> str:
    """What follows the number: the mark of the noise floor and a note."""
    return (MARK if cell.beyond else "") + (f" ({cell.note})" if cell.note else "")


def plain_cell(cell: Cell) -> str:
    """`mean ± spread` with its marks."""
    return plain_number(cell) + plain_marks(cell)


def plain_floor_cell(cell: Cell) -> str:
    """The noise floor, or `–` where there is none."""
    return cell.mean or "–"


def markdown(table: ResultTable) -> str:
    """The same table as GitHub-flavoured Markdown, with its notes below."""
    heading = ["Method", *(f"{_markdown_name(m)} {m.scale}" for m in table.metrics)]
    rows = [[r.name, *(_markdown_cell(c) for c in r.cells)] for r in table.rows]
    if table.floor is not None:
        rows.append([f"*{table.floor.name}*", *(plain_floor_cell(c) for c in table.floor.cells)])
    notes = "\n\n".join(map(escape_markdown, table.notes))
    title = escape_markdown(table.title)
    return f"### {title}\n\n{markdown_table(heading, rows)}\n\n{notes}\n"


def _markdown_name(column: Metric) -> str:
    return html_heading(column) if column.key in METRICS else f"`{column.text}`"


def _markdown_cell(cell: Cell) -> str:
    return f"**{plain_number(cell)}**{plain_marks(cell)}" if cell.best else plain_cell(cell)
