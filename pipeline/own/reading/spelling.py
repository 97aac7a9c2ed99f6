"""Names that are written as numbers in a file of text: labels, groups, clusters, predictions.

pandas would read `01` and `1`, or `1e5` and `100000`, as one number, and two classes would become
one without a word. Such names stay text if one number is written in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from ..words.patterns import SCIENTIFIC

if TYPE_CHECKING:
    import pandas as pd

TRUTHS = "true|True|TRUE|false|False|FALSE"
"""What pandas reads as booleans."""
ZEROS = re.compile(r"[.,]0*$")
"""3.0 is 3 in a column that once had a gap."""


def plain_names(text: pd.Series[Any], decimal: str, spellings: dict[float, str]) -> pd.Series[Any]:
    """A column of text as pandas reads it, but as text if it writes one number in two ways.

    Args:
        text: the cells, NaN for empty ones. What is neither a number nor a boolean stays text, also
            `inf` and `nan`.
        decimal: the decimal sign.
        spellings: how the earlier parts of the file write each number; this part is added.
    """
    import pandas as pd

    words = text.str.strip()
    number = SCIENTIFIC.replace(r"\.", re.escape(decimal))
    are_plain = words.str.fullmatch(f"(?i:{number})|{TRUTHS}")
    if words.isna().all() or not (are_plain | words.isna()).all():
        return text
    # pandas reads the cells once more, so that the numbers are those of any other column.
    one_column: dict[str, Any] = {
        "header": None,
        "names": [0],  # pandas would count the columns in the first row, which may be empty
        "skip_blank_lines": False,
        "sep": "\t",
        "decimal": decimal,
        "keep_default_na": False,
        "na_values": [""],
    }
    lines = StringIO("\n".join(words.fillna("")) + "\n")
    values = pd.read_csv(lines, **one_column)[0].set_axis(text.index).rename(text.name)
    are_numbers = pd.api.types.is_numeric_dtype(values.dtype)
    if not are_numbers or pd.api.types.is_bool_dtype(values.dtype):
        return values
    has_fractions = (values.dropna() % 1 != 0).any()
    if has_fractions or not _are_spelt_twice(values, words, spellings):
        return values
    return text


def _are_spelt_twice(
    numbers: pd.Series[Any], words: pd.Series[Any], spellings: dict[float, str]
) -> bool:
    """Whether any number is written in two ways; `spellings` gets those that are new."""
    import pandas as pd

    pairs = pd.DataFrame({"number": numbers, "word": words}).dropna().drop_duplicates()
    is_twofold = False
    for number, word in zip(pairs["number"].tolist(), pairs["word"], strict=True):
        spelling = ZEROS.sub("", word)
        first = spellings.setdefault(number, spelling)
        is_twofold = is_twofold or first != spelling
    return is_twofold


def one_number_twice(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two of some names that write one number in two ways, such as 1 and 01."""
    spellings = dict[float, str]()
    for name in names:
        if re.fullmatch(SCIENTIFIC, name, re.IGNORECASE):
            first = spellings.setdefault(float(name), name)
            if first != name:
                return first, name
    return None
