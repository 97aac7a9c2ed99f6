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
OTHER = {",": ".", ".": ","}
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*")
"""Digits in groups of three, 1.234 or 12,345,678; with one group also a decimal fraction."""
FRACTION = re.compile(r"[+-]?\d*([.,])\d+(?:e[+-]?\d+)?", re.IGNORECASE)
BOTH = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+(\.)|(?:\.\d{3})+(,))\d+")
"""Groups and a fraction, 1,234.5 or 1.234,5: the last sign is the decimal one."""


def decimal_sign(text: str, separator: str, named: str | None, may_group: bool = False) -> str:
    """The decimal sign of the numbers in the cells of a `text`.

    Args:
        text: the first lines of a file without its names.
        separator: the sign between two cells; where it is a comma, the dot is the decimal sign.
        named: the sign that the person names; it counts where the numbers show none.
        may_group: whether dots may group digits also beside commas, as in amounts of money.

    Raises:
        InputError: a number has two readings, and the person has named no sign.
    """
    if separator == "," and not may_group:
        return named or "."
    shown, unclear = set[str](), list[str]()
    cells = text.replace("\n", separator).split(separator)
    for cell in cells:
        number = cell.strip(' "\r')
        signs = decimal_signs_of(number)
        if len(signs) == 1:
            shown |= {*signs}
        elif signs:
            unclear.append(number)
    if shown:
        return "," if "," in shown else "."
    if named is not None or not unclear:
        return named or "."
    number = unclear[0]
    sign = _first_sign(number)
    message = f"`{number}` is {number.replace(sign, '.')} or {number.replace(sign, '')}"
    raise InputError(message, field="decimal sign", fixes=fixes_for(number))


def _first_sign(number: str) -> str:
    """Which of SIGNS comes first; one that is not there counts as last (-1 modulo the length)."""
    return min(SIGNS, key=lambda sign: number.find(sign) % len(number))


def decimal_signs_of(number: str) -> str:
    """The decimal signs by which a text can be a number: none, one, or both of SIGNS."""
    with_both = BOTH.fullmatch(number)
    if with_both:
        return with_both[1] or with_both[2]
    grouped = GROUPED.fullmatch(number)
    if grouped:
        sign = grouped[1]
        has_one_group = number.count(sign) == 1
        return ",." if has_one_group else OTHER[sign]
    fraction = FRACTION.fullmatch(number)
    return fraction[1] if fraction else ""


def fixes_for(number: str) -> list[str]:
    """What makes a number of a text such as `1,500`: each option, and when it is right."""
    fixes = []
    if number.startswith("\u2212"):
        fixes.append("write minus as the hyphen - and not as \u2212")
    sign = _first_sign(number)
    for decimal in decimal_signs_of(number):
        reason = "begins the decimals" if decimal == sign else "groups thousands"
        fixes.append(f"if `{sign}` {reason}: --decimal '{decimal}'")
    return fixes


def ungrouped(table: pd.DataFrame, decimal: str) -> pd.DataFrame:
    """The table with numbers in place of text such as 1.500 and 1.234,5, if `decimal` is a comma.

    Only columns of which every cell is a number, or empty, are changed.
    """
    group = re.escape(OTHER[decimal])
    point = re.escape(decimal)
    whole = rf"\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+"
    number = rf"[+-]?(?:(?:{whole})(?:{point}\d+)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return table.apply(lambda column: _as_numbers(column, number, group, decimal))


def _as_numbers(column: pd.Series[Any], number: str, group: str, decimal: str) -> pd.Series[Any]:
    """A column of text as numbers, if each of its cells has the form of a `number`."""
    if column.dtype.kind in "iufb":
        return column
    text = column.astype(str).str.strip()
    is_number = text.str.fullmatch(number)
    if not (is_number | column.isna()).all():
        return column  # names, dates or remarks
    without_groups = text.str.replace(group, "", regex=True)
    plain = without_groups.str.replace(decimal, ".", regex=False)
    return plain.where(column.notna(), "nan").astype(float)
