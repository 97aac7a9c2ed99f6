"""Every fix that a refusal names works: each option is typed, each change of the file is made."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, N, P, Y, table, written
from tests.pipeline.own.test_refused import PARTS, UNCLEAR
from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.own.request.options import parsed
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.pipeline.sources.file import file_logits

OPTIONS = re.compile(r"--[a-z-]+[ =](?:'[^']*'|[^\s;)]+)")
PLACEHOLDERS = ("NAME", "LABEL", "FILE")
REJECTING = np.c_[0.8 * P, np.full(N, 0.2)]
SCORES = pd.DataFrame({"scores": [None, *LOGITS[1:]], "label": Y})
CASES = [
    *(case[0] for case in UNCLEAR),
    *map(table, PARTS.values()),
    {"predictions": P, "labels": Y},
    table(np.log(REJECTING), names=["z_0", "z_1", "z_2", "z_unknown"]),
    table(REJECTING, names=["p_0", "p_1", "p_2", "p_unknown"], id=np.arange(N)),
    pd.DataFrame({"age": np.arange(N), "risk": P[:, 1], "outcome": 1 * (Y == 1)}),
    SCORES,
    table(P, **{"True Label": Y, "y true": Y}).drop(columns="label"),
    table(P, **{"Sample Weight": np.arange(1, N + 1), "weight": np.ones(N)}),
    table(LOGITS, **{"sex of patient": np.arange(N)}),
    pd.DataFrame(
        {
            "risk score": 0.5 + P[:, 1] / 2,
            "Predicted Class": np.where(Y == 1, "a b", "c"),
            "label": np.where(Y == 2, "a b", "c"),
        }
    ),
]


def matrix_of(content):
    """The name of the answers, or those of their columns, and the values."""
    if isinstance(content, dict):
        (name,) = {"logits", "probabilities"} & set(content)
        return name, np.asarray(content[name], float)
    names = [name for name in content if name != "label"]
    return names, content[names].to_numpy(float)


def with_matrix(content, values):
    name, _ = matrix_of(content)
    if isinstance(content, dict):
        return {**content, name: values}
    changed = content.copy()
    changed[name] = values
    return changed


def divided(content):
    values = matrix_of(content)[1]
    return with_matrix(content, values / values.sum(axis=1, keepdims=True))


def differences(content):
    values = matrix_of(content)[1]
    rises = (np.diff(values, axis=1) >= 0).all()
    neighbours = np.diff(values, axis=1, prepend=0) if rises else -np.diff(values, axis=1, append=0)
    return with_matrix(content, neighbours)


CHANGES = {
    "divide each row by its sum": divided,
    "divide each row by its sum and save them as `probabilities`": divided,
    "divide each row by its sum if such a class cannot occur": divided,
    "divide all by one constant": lambda content: {**content, "logits": content["logits"] / 1e50},
    "give the differences between neighbouring columns, one per class": differences,
    "give the number of each point's class (argmax of one-hot rows)": lambda content: {
        **content,
        "labels": content["labels"].argmax(axis=1),
    },
    "save labels[:, 0]": lambda content: {**content, "labels": content["labels"][:, 0]},
    "save the names: class_names[labels]": lambda content: {
        **content,
        "labels": np.array(content["class_names"]).astype(str)[content["labels"]],
        "class_names": np.array(content["class_names"]).astype(str),
    },
    "give probabilities, where a fit takes 0 as 1e-12": lambda content: {
        "probabilities": softmax(content["logits"], axis=1),
        "labels": content["labels"],
    },
    "leave this row out of the file": lambda content: content[content["scores"].notna()],
    "remove this line": lambda text: text.partition("\n")[2],
}
"""What a person does to the file when a fix says so."""


def typed(path, options):
    """What is read after these options were typed on the command line."""
    said = FileOptions.of(parsed("", [str(path), *options]))
    return file_logits(path=path, **asdict(said))


def options_in(fix):
    """The ways that a fix names, of which each settles it: the words of the command line."""
    ways = [shlex.split(option.replace("=", " ", 1)) for option in OPTIONS.findall(fix)]
    ways = [[f"{name}={value}"] for name, value in ways]
    return [way for way in ways if not any(word in way[0] for word in PLACEHOLDERS)]


def settles(path, options, refused, depth=2):
    """Whether typing the options leads to a reading, perhaps after another refusal's fixes."""
    try:
        typed(path, options)
    except InputError as error:
        ways = [way for fix in error.fixes for way in options_in(fix)]
        is_new = str(error) != str(refused)
        return is_new and any(
            settles(path, [*options, *w], error, depth - 1) for w in ways if depth
        )
    return True


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_fix_works_when_it_is_typed_or_made(tmp_path, number):
    content = CASES[number]
    path = tmp_path / ("a.parquet" if content is SCORES else "a.csv")
    path = written(path, content)
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    error = caught.value
    for fix in error.fixes:
        for way in options_in(fix):
            assert settles(path, way, error), (fix, str(error))
        if fix in CHANGES:
            changed = written(tmp_path / f"b{path.suffix}", CHANGES[fix](content))
            assert settles(changed, [], error), (fix, str(error))


def test_the_harness_types_what_a_fix_says():
    assert options_in("choose: --labels gold") == [["--labels=gold"]]
    assert options_in("if so: --classes 'p_*'") == [["--classes=p_*"]]
    assert options_in("name one: --logits NAME or --probabilities NAME") == []
    assert options_in("--classes=0,1,3") == [["--classes=0,1,3"]]


def test_a_wrong_fix_would_be_found(tmp_path):
    path = written(tmp_path / "a.csv", table(LOGITS, id=np.arange(N)))
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    assert settles(path, ["--ignore=id"], caught.value)
    assert not settles(path, ["--labels=labels"], caught.value)
