"""The decimal sign of a file of text: what its numbers show, or what the person says.

`1.234` is a number between 1 and 2, or more than a thousand whose digits are grouped. A file shows
which by any other number, such as 0.5 or 12.25. If no number shows it, the file is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from utility_calibration.metrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SIGNS = (",", ".")
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*")
"""Digits in groups of three, 1.234 or 12,345,678; with one group also a decimal fraction."""
FRACTION = re.compile(r"[+-]?\d*([.,])\d+(?:e[+-]?\d+)?", re.IGNORECASE)
BOTH = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+(\.)|(?:\.\d{3})+(,))\d+")
"""Groups and a fraction, 1,234.5 or 1.234,5: the last sign is the decimal one."""


def decimal_sign(text: str, separator: str, said: str | None, may_group: bool = False) -> str:
    """The decimal sign of the numbers in the cells of a `text`.

    Args:
        text: the first lines of a file without its names.
        separator: the sign between two cells; where it is a comma, the dot is the decimal sign.
        said: the sign that the person names; it counts where the numbers show none.
        may_group: whether dots may group digits also beside commas, as in amounts of money.

    Raises:
        InputError: a number has two readings, and the person has named no sign.
    """
    if separator == "," and not may_group:
        return "."
    row_ends = text.replace("\n", separator)
    cells = [cell.strip(' "\r') for cell in row_ends.split(separator)]
    shown, grouping, unclear = set[str](), set[str](), dict[str, str]()
    for cell in cells:
        both, grouped, fraction = (form.fullmatch(cell) for form in (BOTH, GROUPED, FRACTION))
        if both:
            shown.add(both[1] or both[2])
        elif grouped and cell.count(grouped[1]) > 1:
            grouping.add(grouped[1])
        elif grouped:
            unclear.setdefault(grouped[1], cell)
        elif fraction:
            shown.add(fraction[1])
    shown |= {other for sign, other in zip(SIGNS, reversed(SIGNS)) if sign in grouping}
    if shown:
        return "," if "," in shown else "."
    if said is not None or not unclear:
        return said or "."
    sign, cell = next(iter(unclear.items()))
    other = SIGNS[SIGNS.index(sign) - 1]
    message = f"`{cell}` is {cell.replace(sign, '.')} or {cell.replace(sign, '')}"
    fixes = [f"if `{sign}` begins the decimals: --decimal '{sign}'"]
    fixes.append(f"if it groups thousands: --decimal '{other}'")
    raise InputError(message, field="decimal sign", fixes=fixes)


def ungrouped(table: pd.DataFrame, decimal: str) -> pd.DataFrame:
    """The table with numbers in place of text such as 1.500 and 1.234,5, if `decimal` is a comma.

    Only columns of which every cell is a number, or empty, are changed.
    """
    group = re.escape(SIGNS[SIGNS.index(decimal) - 1])
    point = re.escape(decimal)
    number = rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)(?:{point}\d+)?"
    return table.apply(lambda column: _as_numbers(column, number, group, decimal))


def _as_numbers(column: pd.Series[Any], number: str, group: str, decimal: str) -> pd.Series[Any]:
    """A column of text as numbers, if each of its cells has the form of a `number`."""
    if column.dtype.kind in "iufb":
        return column
    text = column.astype(str).str.strip()
    if not (text.str.fullmatch(number) | column.isna()).all():
        return column
    plain = text.str.replace(group, "", regex=True).str.replace(decimal, ".", regex=False)
    return plain.where(column.notna(), "nan").astype(float)
