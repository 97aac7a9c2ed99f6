"""The usual names of columns and arrays, by purpose, which need no word of the person's."""

import re
from collections.abc import Iterable

from .patterns import folded

LABELS = ("label", "labels")
LIKE_LABELS = (
    *("target", "targets", "truth", "true", "y", "y_true", "class", "true_label", "true_class"),
    *("ground_truth", "gold", "gold_label", "actual", "answer", "obs", "label_ids"),
    *("outcome", "diagnosis"),
)
"""Other usual names of the labels; one of them is taken, with a note, if nothing else is one."""
LOGITS = ("logits", "logit", "log_probabilities", "log_probs", "logprobs", "top_logprobs")
PROBABILITIES = ("probabilities", "probability", "probs", "prob", "proba", "y_prob")
MATRICES = dict.fromkeys(LOGITS, "logits") | dict.fromkeys(PROBABILITIES, "probabilities")
"""The kind of arrays, or columns of lists, with answers. They may be larger than the memory."""
LIKE_MATRICES = {"filtered_resps": "logits", "predictions": "logits", "scores": ""}
"""Names in the logs of language models, taken if nothing else holds answers; "": of either kind."""
ENTRIES = (("label", "score"), ("token", "logprob"))
"""What an object in a list of answers calls its class and its number."""
USUAL = {
    "groups": ("groups",),
    "clusters": ("cluster", "clusters"),
    "predictions": (),  # only if they are named
    "weights": ("weight", "weights", "sample_weight", "sample_weights"),
}
"""Names of other purposes."""
PREDICTED = (
    *("pred", "prediction", "predictions", "predicted", "y_pred", "yhat", "y_hat"),
    *("pred_label", "predicted_label", "pred_class", "predicted_class", "decision"),
)
"""Names of a column with the predicted class of each point."""
LIKE_CLUSTERS = re.compile(
    r"(?:^|[\W_])(?:id|uid|patient|subject|person|user|doc|document|session|image)(?:[\W_]|$)", re.I
)
"""Names of what several rows may belong to."""
SINGLE = re.compile(
    r"(.*_)?(p|pr|probs?|proba|probability|probabilities|scores?|risk)(_.*)?"
    r"|(y_)?logits?|log_?odds|z|output",
    re.IGNORECASE,
)
"""Names of a single column of answers that is taken for the second of two classes."""
CONFIDENCE = re.compile(r"(.*_)?(confidence|conf|certainty)(_.*)?", re.IGNORECASE)
"""Names of a single column that is rather the confidence in the predicted class."""
NO_LABELS = {"-100", "255"}  # of tokens and pixels without a label; -1 may be a class

REJECTS = {
    *("unknown", "other", "others", "rest", "none", "nothing", "background", "void"),
    *("reject", "rejected", "abstain", "abstained", "unsure", "undecided", "dont_know", "idk"),
}
"""Names of a class that no point has as its label: what a classifier says that does not know."""


def spelt(name: str) -> str:
    """A usual name in one spelling: true_label for `True Label`."""
    return folded(name).strip("_")


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def with_names(names: Iterable[str]) -> list[str]:
    """The columns that have a name; others are row numbers."""
    return [name for name in names if name and not re.fullmatch(r"Unnamed: \d+", name)]
