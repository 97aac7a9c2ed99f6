"""Numbers, bounds, p-values, intervals and lists of methods as sentences print them; Markdown."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

import numpy as np

from ..scoring.cost_gaps import ROUNDING
from .names import method_name

SMALLEST_BOUND = 1e-9  # A smaller bound is printed as this one: what lies below is rounding error
SMALLEST_P = 1e-4  # a smaller one is printed as less than this; draws and tails are no more exact
MOST_NAMED = 3  # A sentence names up to this many methods; it gives the number of more
AMPERSAND = re.compile(r"&(?=#?\w+;)")  # an entity would become another character
TAG = re.compile(r"<(?=\S)")  # HTML or an address
SPECIAL = re.compile(
    r"([\\`*\[\]|$~]"  # markup, cells of tables, formulas
    r"|(?<!\w)_|_(?!\w)"  # within a word it is no markup
    r"|^[#>]|^[+-](?=\s))"  # headings, quotes and lists begin a line
)
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_DIGITS = 4  # decimals of the ends of an interval


def short(value: float, significant: int = 2) -> str:
    """A number in two (or so many) significant digits, without a leading zero: `.0061`."""
    if not math.isfinite(value):
        return "?"
    digits = significant - 1 - math.floor(math.log10(abs(value))) if value else significant
    return bare(value, max(digits, 0))


def bound(value: float) -> str:
    """An upper bound in two digits, rounded up, so that it stays one; `–` where there is none."""
    if not math.isfinite(value):
        return "–"
    if value > 0:
        # Decimal of the shortest text: .13 is rounded up to .13, not to .14.
        exact = Decimal(repr(max(float(value), SMALLEST_BOUND)))
        unit = Decimal(1).scaleb(exact.adjusted() - 1)
        value = float(exact.quantize(unit, rounding=ROUND_CEILING))
    return short(value)


def per_hundred(value: float) -> str:
    """An upper bound on an error per point, as a number per 100 points: `4.8` for .0473."""
    return bound(round(100 * value, 9))  # 100 · .07 is a little more than 7


def with_zero(text: str) -> str:
    """The text with a 0 before each decimal point that lacks it, as costs are printed."""
    return re.sub(r"(?<![\d.])\.(?=\d)", "0.", text)


def p_value(value: float) -> str:
    """`p = .013`, with at most two significant digits and four decimals; `p < .0001` below that."""
    if value < SMALLEST_P:
        return f"p < {SMALLEST_P:.4f}".replace("0.", ".")
    return f"p = {short(value, 1 if value < 10 * SMALLEST_P else 2)}"


def interval(low: float, high: float) -> str:
    """`.00–.15`, `-.37 to -.08`: two decimals, up to MOST_DIGITS where it is narrow; or `.00`."""
    width = abs(high - low)
    digits = 2 if width == 0 or width >= 0.05 else 1 - math.floor(math.log10(width))
    ends = [bare(value, min(digits, MOST_DIGITS)) for value in (low, high)]
    return ends[0] if ends[0] == ends[1] else (" to " if low < 0 else "–").join(ends)


def percents(low: float, high: float) -> str:
    """`44 to 87 %`: probabilities, with more digits where they are close to each other."""
    width = 100 * abs(high - low)
    digits = 0 if width == 0 or width >= 5 else 1 - math.floor(math.log10(width))
    ends = [f"{100 * value:.{min(digits, MOST_DIGITS)}f}" for value in (low, high)]
    return f"{ends[0]} %" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} %"


def number(value: float, decimals: int) -> str:
    """A rounded number as text; `∞` for infinity, `–` for no value, never `-0.0`."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def bare(value: float, decimals: int) -> str:
    """As `number`, without a leading zero: `.0207`."""
    return re.sub(r"^(-?)0\.", r"\1.", number(value, decimals))


def decimals(means: Sequence[float], spreads: Sequence[float], most: int = 3) -> int:
    """Decimal places of a column: two significant digits of the median spread, at `most` so many.

    Without a spread (one split, or all equal) the median mean gets three significant digits.
    """
    usable = [spread for spread in spreads if np.isfinite(spread) and spread > 0]
    sizes = usable or [abs(mean) for mean in means if np.isfinite(mean) and mean != 0] or [1.0]
    significant = 2 if usable else 3
    return int(np.clip(significant - 1 - np.floor(np.log10(np.median(sizes))), 0, most))


def listed(words: Sequence[str], last: str = "and") -> str:
    """`A, B and C`."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def names(methods: Iterable[str], last: str = "and") -> str:
    """The methods' names as people read them: `A, B and C`."""
    return listed([method_name(method) for method in methods], last)


def counted(count: int) -> str:
    """A count as a word up to ten."""
    return COUNTS[count] if count < len(COUNTS) else str(count)


def with_half(values: Mapping[str, Any], name: str, sign: int = 1) -> str:
    """`0.138 ± 0.010`: a value and half of its interval, in as many digits as the latter needs.

    Args:
        sign: 1, or -1 for minus the value.
    """
    value, half = sign * values[name], values[f"{name}_half_width"]
    value = value if abs(value) > ROUNDING else 0.0
    if half is None or half <= ROUNDING:
        return f"{value:.3g}" + ("" if half is None else " ± 0")
    digits = max(1 - math.floor(math.log10(half)), 0)
    return f"{round(value, digits) + 0.0:.{digits}f} ± {half:.{digits}f}"  # no -0.00


def escape_markdown(text: str) -> str:
    """Plain text as Markdown text: no markup, no HTML, one line.

    What no reader of Markdown takes for markup stays as it is, so that the file can be read, too.
    """
    line = " ".join(text.split())
    line = TAG.sub("&lt;", AMPERSAND.sub("&amp;", line))
    return SPECIAL.sub(r"\\\1", line)


def markdown_table(heading: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table of cells that are Markdown; the first `text` columns are not right-aligned."""
    rule = ["---" if column < text else "--:" for column in range(len(heading))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, rule, *lines])


def titled_table(
    title: str, heading: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str]
) -> str:
    """A Markdown table under a heading of the third level, with notes of plain text below it."""
    parts = [f"### {escape_markdown(title)}", markdown_table(heading, rows)]
    return "\n\n".join([*parts, *map(escape_markdown, notes)])


class TextTable(NamedTuple):
    """A table of plain text with a note below it; `values`: of each row what a page sorts by."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    values: Sequence[Sequence[Any]] = ()

    def markdown(self) -> str:
        """As Markdown under a heading of the third level."""
        heading, *rows = (list(map(escape_markdown, row)) for row in (self.heading, *self.rows))
        return titled_table(self.title, heading, rows, [self.note])
