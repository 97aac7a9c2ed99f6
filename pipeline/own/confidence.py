"""One column for two classes that holds the confidence in the predicted class, at least ½.

With the predictions beside it, it says the probability of either class. Alone, it says of no point
which class it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from .cells import FileColumns, distinct_labels, plain_column
from .choices import Choices
from .file_points import FilePoints
from .message_text import cut_off
from .patterns import borne_alone
from .usual_names import spelt

PREDICTED = (
    *("pred", "prediction", "predictions", "predicted", "y_pred", "yhat", "y_hat"),
    *("pred_label", "predicted_label", "pred_class", "predicted_class", "decision"),
)
"""Usual names of a column with the predicted class of each point."""


def is_confidence(values: Any) -> bool:
    """Whether numbers [n] can be confidences in the predicted one of two classes, as in [½, 1]."""
    numbers = np.asarray(values, dtype=np.float64)
    in_range = bool(((numbers >= 0.5) & (numbers <= 1)).all())
    return in_range and bool((numbers % 1 != 0).any())


def by_predictions(
    given: FilePoints, held: FileColumns, column: str, choices: Choices
) -> FilePoints:
    """`given` with the probability of the class `single`, where --predictions names predictions.

    Raises:
        InputError: the column is no confidence in them.
    """
    if choices.predictions is None or not _may_be_probabilities(given, choices):
        return given
    values = _plain(given)
    names = given.names or ["0", "1"]
    single = int(given.single or 0)
    is_single = _are_predicted(held[choices.predictions], names, single, choices.predictions)
    if (values < 0.5).any():
        message = "below 0.5, so it is no confidence in a prediction"
        row = int((values < 0.5).argmax())
        raise InputError(message, row=row, column=column, fixes="leave out --predictions")
    note = f"`{column}` is the confidence in the class that `{choices.predictions}` names"
    matrix = np.where(is_single, values, 1 - values)[:, None]
    return replace(given, matrix=matrix, notes=(*given.notes, note))


def check_meaning(
    given: FilePoints, held: FileColumns, column: str, texts: Sequence[str], choices: Choices
) -> None:
    """Raise `InputError` if a single column never falls below ½ and may mean either of `texts`."""
    if choices.predictions is not None or not _may_be_probabilities(given, choices):
        return
    is_named = not isinstance(held[column], np.ndarray) and borne_alone(column, texts)
    if is_named or not is_confidence(_plain(given)):
        return
    likely = [name for name in held if spelt(name) in PREDICTED] or ["NAME"]
    message = "never below 0.5, as the confidence in the predicted class, which may be either,"
    fixes = [
        f"name the column of predictions: --predictions {cut_off(likely[0])}",
        "give a column with the probability of each class",
    ]
    raise InputError(message, column=column, fixes=fixes)


def _may_be_probabilities(given: FilePoints, choices: Choices) -> bool:
    """Whether there is one column for two classes that nobody calls logits."""
    return given.single is not None and "logits" not in (given.kind, choices.values)


def _plain(given: FilePoints) -> NDArray[np.float64]:
    return np.asarray(given.matrix, dtype=np.float64).reshape(-1)


def _are_predicted(
    predictions: Any, names: list[str], single: int, field: str
) -> NDArray[np.bool_]:
    """Whether each point's prediction [n] is the class `single` of two `names`."""
    mistakes = list[InputError]()
    predicted = distinct_labels(plain_column(predictions), field, mistakes)
    if mistakes:
        raise InputError.of_all(mistakes)
    odd = [text for text in predicted.texts if text not in names]
    if odd:
        message = f"{cut_off(odd[0])}, which is none of the classes {' and '.join(names)},"
        raise InputError(
            message, field=field, row=predicted.row(odd[0]), fixes="name other columns"
        )
    is_single = np.array([text == names[single] for text in predicted.texts])
    return is_single[predicted.places]
