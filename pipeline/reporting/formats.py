"""A ResultTable in LaTeX and Markdown; the page has a template of its own.

A metric's heading is written as in the paper's tables. Its forms in LaTeX, Markdown and HTML follow
from the plain one: U_CWE, CWE_bin, "U_lin 95 %".
"""

import re
from html import escape

from utility_calibration.metrics.registry import METRICS, Metric

from .names import method_name
from .table_notes import all_notes, brief_notes
from .tables import Form, ResultTable
from .wording import titled_table

UTILITY = re.compile(r"U_(.+?)( median| 95 %)?")
BINNED = re.compile(r"(.+)_bin")
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
WIDE = 4  # from so many metrics on, a table is scaled to the line width, as in the paper
HEADINGS = {
    "latex": (
        r"$\mathcal{{U}}_{{\mathrm{{{}}}}}${}",
        r"$\mathrm{{{}}}^{{\mathrm{{bin}}}}$",
        r"\texttt{{{}}}",
        "Brier Score",
    ),
    "html": ("U<sub>{}</sub>{}", "{}<sup>bin</sup>", "<code>{}</code>", "Brier score"),
    "markdown": ("U<sub>{}</sub>{}", "{}<sup>bin</sup>", "`{}`", "Brier score"),
}
"""Heading patterns: utility, binned error, a user's own utility, Brier score."""


def heading(metric: Metric, form: str) -> str:
    """The heading without the scale in a form of HEADINGS."""
    of_utility, of_binned, of_user, of_brier = HEADINGS[form]
    clean = escape_latex if form == "latex" else escape
    if metric.key not in METRICS:
        return of_user.format(clean(metric.key))
    utility = UTILITY.fullmatch(metric.text)
    if utility:
        return of_utility.format(clean(utility[1]), clean(utility[2] or ""))
    binned = BINNED.fullmatch(metric.text)
    if binned:
        return of_binned.format(binned[1])
    return of_brier if metric.key == "brier" else metric.text


def escape_latex(text: str) -> str:
    """Plain text as LaTeX text."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in text)


def latex(table: ResultTable) -> str:
    r"""The paper's columns as a `table*` for `\input`, and a second one for all other columns."""
    keys = [column.metric.key for column in table.columns]
    printed = [key for key in keys if key in PRINTED]
    others = [key for key in keys if key not in PRINTED]
    parts = zip(filter(None, [printed, others]), ("", "_more"))
    environments = [_latex_table(table.with_columns(chosen), end) for chosen, end in parts]
    return LATEX_HEADER + "\n".join(environments)


def _math(text: str) -> str:
    """A table's cell in LaTeX, where words are in text mode."""
    if text == "–":
        return "--"
    for plain, typeset in (("∞", r"\infty"), ("–", r"\mbox{--}")):
        text = text.replace(plain, typeset)
    return f"${text}$"


LATEX = Form(
    lambda m: heading(m, "latex") + (rf" ($\times 10^{{{m.power}}}$)" if m.power else ""),
    lambda method: escape_latex(method_name(method)),
    _math,
    *(r" \pm ", r"\bm{{{}}}", r"^{\dagger}", r"\;({})"),
)
MARKDOWN = Form(lambda m: f"{heading(m, 'markdown')} {m.scale}".strip(), best="**{}**")


def _latex_table(table: ResultTable, end: str) -> str:
    heading, rows = table.lines(LATEX)
    first, *body = (rf"{' & '.join(row)} \\" for row in [heading, *rows])
    lines = [r"\toprule", first, r"\midrule", *body, r"\bottomrule"]
    inner = "\n".join(f"    {line}" for line in lines)
    alignment = "@{}l" + r"@{\hspace{0.8em}}c" * len(table.columns) + "@{}"
    tabular = f"\\begin{{tabular}}{{{alignment}}}\n{inner}\n\\end{{tabular}}"
    if len(table.columns) >= WIDE:
        tabular = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}%\n}}"
    what = ", further columns" if end else ""
    caption = escape_latex(f"{table.spec.title}{what}. {' '.join(brief_notes(table, 'Bold'))}")
    return (
        f"\\begin{{table*}}[t]\n"
        f"  \\caption{{{caption}}}\n  \\label{{tab:{table.spec.name}{end}}}\n"
        f"  \\centering\n  \\small\n  \\vspace{{4pt}}\n{tabular}\n\\end{{table*}}\n"
    )


def markdown(table: ResultTable, is_file: bool = True) -> str:
    """The same table as GitHub-flavoured Markdown, with its notes below, and that of the floors.

    Args:
        is_file: whether it is a file of its own, which has all counts.
    """
    heading, rows = table.lines(MARKDOWN)
    notes = [*all_notes(table), *(table.spec.counts if is_file else ())]
    parts = [titled_table(table.spec.title, heading, rows, notes)]
    if table.has_floor:
        parts.append(table.floors().markdown())
    return "\n\n".join(parts) + "\n"
