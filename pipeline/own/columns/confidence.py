"""One column for two classes that holds the confidence in the predicted class, at least ½.

With the predictions beside it, it says the probability of either class. Alone, it says of no point
which class it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, distinct_labels, plain_column
from ..words.file_options import FileOptions
from ..words.message_text import cut_off, typed
from ..words.patterns import borne_alone
from ..words.usual_names import PREDICTED, spelt
from .answers import Answers


def is_confidence(values: Any) -> bool:
    """Whether numbers [n] can be confidences in the predicted one of two classes, as in [½, 1]."""
    numbers = np.asarray(values, dtype=np.float64)
    is_in_range = bool(((numbers >= 0.5) & (numbers <= 1)).all())
    return is_in_range and bool((numbers % 1 != 0).any())


def may_be_confidence(single: int | None, kind: str | None, values: str) -> bool:
    """Whether there is one column for two classes that neither file nor person calls logits."""
    return single is not None and "logits" not in (kind, values)


def by_predictions(
    answers: Answers, rows: FileColumns, predictions: str, notes: list[str]
) -> Answers:
    """The probability of the class `single`, from the confidence in the column `predictions`.

    Raises:
        InputError: the column is no confidence in them.
    """
    values = answers.single_values()
    single = int(answers.single or 0)
    names = answers.names or ["0", "1"]
    is_single = _are_predicted(rows[predictions], names, single, predictions)
    is_low = values < 0.5
    if is_low.any():
        message = "below 0.5, so it is no confidence in a prediction"
        row = int(is_low.argmax())
        raise InputError(message, row=row, column=answers.name, fixes="leave out --predictions")
    is_high = values > 1
    if is_high.any():
        message = "above 1, so it is no confidence in a prediction"
        row, fix = int(is_high.argmax()), "divide the column by 100 if it holds percentages"
        raise InputError(message, row=row, column=answers.name, fixes=fix)
    notes.append(f"`{answers.name}` is the confidence in the class that `{predictions}` names")
    return answers._replace(matrix=np.where(is_single, values, 1 - values)[:, None])


def check_meaning(
    answers: Answers, rows: FileColumns, texts: Sequence[str], file_options: FileOptions
) -> None:
    """Raise `InputError` if a single column never falls below ½ and may mean either of `texts`."""
    if file_options.predictions is not None:
        return
    if not may_be_confidence(answers.single, answers.kind, file_options.values):
        return
    is_column = not isinstance(rows[answers.name], np.ndarray)
    # A column that names its class, such as p_sick, is of that class whatever its values.
    if is_column and borne_alone(answers.name, texts):
        return
    if not is_confidence(answers.single_values()):
        return
    likely = [name for name in rows if spelt(name) in PREDICTED] or ["NAME"]
    message = "never below 0.5, as the confidence in the predicted class, which may be either,"
    fixes = [
        f"name the column of predictions: {typed('--predictions', likely[0])}",
        "give a column with the probability of each class",
    ]
    raise InputError(message, column=answers.name, fixes=fixes)


def _are_predicted(
    predictions: Any, names: Sequence[str], single: int, field: str
) -> NDArray[np.bool_]:
    """Whether each point's prediction [n] is the class `single` of two `names`."""
    mistakes = list[InputError]()
    predicted = distinct_labels(plain_column(predictions), field, mistakes)
    for mistake in mistakes:  # it is about the column of predictions, not that of labels
        mistake.field = field
    if mistakes:
        raise InputError.of_all(mistakes)
    odd = [text for text in predicted.texts if text not in names]
    if odd:
        message = f"{cut_off(odd[0])}, which is none of the classes {' and '.join(names)},"
        row = predicted.row(odd[0])
        raise InputError(message, field=field, row=row, fixes="name other columns")
    is_single = np.array([text == names[single] for text in predicted.texts])
    return is_single[predicted.places]
