"""The decimal sign of a file of text, and numbers without a sign."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, OWN, N, Y, own_of, read, table, written
from tests.refusals import refuses
from utility_calibration.pipeline.own.reading.read import read_table
from utility_calibration.pipeline.sources.file import file_logits


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_numbers_without_a_sign_are_numbers(tmp_path, kind):
    logits = np.random.default_rng(0).integers(0, 200, (N, 3)).astype(kind)
    content = {"logits": logits, "labels": Y.astype(kind), "weight": (Y + 1).astype(kind)}
    result = read(tmp_path / "a", content)
    np.testing.assert_array_equal(result.logits, logits)


@pytest.mark.parametrize(("sign", "decimal"), [(";", ","), ("\t", ","), ("|", ".")])
def test_decimal_commas_are_seen_after_whole_numbers(tmp_path, sign, decimal):
    names, *rows = table().to_csv(sep=sign, decimal=decimal, index=False).splitlines()
    text = "\n".join([names, sign.join(["1", "0", "0", "0"]), *rows])
    np.testing.assert_allclose(own_of(read(tmp_path / "a.csv", text))[0][1:], OWN, rtol=1e-4)


@pytest.mark.parametrize(
    ("cells", "decimal", "value"),
    [
        ("1.234;0,5", None, 1234),
        ("1,234;0.5", None, 1234),
        ("1.234,5;2", None, 1234.5),
        ("1,234,567;2", None, 1234567),
        ("0.125;2", None, 0.125),
        ("-1.234;2", ".", -1.234),
        ("-1.234;2", ",", -1234),
        ("1,234;2", ",", 1.234),
    ],
)
def test_a_number_shows_which_sign_begins_decimals_or_the_person_says_it(
    tmp_path, cells, decimal, value
):
    path = written(tmp_path / "a.csv", f"z;y\n{cells}\n")
    assert float(read_table(path, decimal)["z"][0]) == value


@pytest.mark.parametrize("cells", ["1.234;2", "1,234;2", "-12.345;1.000", "123,456|2"])
def test_a_number_of_two_readings_is_refused(tmp_path, cells):
    names = "z;y" if ";" in cells else "z|y"
    path = written(tmp_path / "a.csv", f"{names}\n{cells}\n")
    with refuses(fix="--decimal '.'", file=path):
        read_table(path)


def test_a_minus_that_is_no_hyphen_is_named(tmp_path):
    path = tmp_path / "a.csv"
    table(LOGITS).map(lambda value: str(value).replace("-", "\u2212")).to_csv(path, index=False)
    with refuses(fix="hyphen"):
        file_logits(path=path)


@pytest.mark.parametrize(
    ("form", "decimal"), [("{:,.0f}", "."), ("{:,.2f}", "."), ("{:.4f}", ","), ("{:.3f}", ",")]
)
def test_quoted_numbers_with_commas_name_the_option_that_reads_them(tmp_path, form, decimal):
    scores = np.round(3000 * LOGITS)
    cells = [[form.format(value) for value in row] for row in scores]
    if decimal == ",":
        cells = [[cell.replace(".", ",") for cell in row] for row in cells]
    path = written(tmp_path / "a.csv", table(cells))
    with refuses(fix=f"--decimal '{decimal}'", column="p_0"):
        file_logits(path=path)
    result = file_logits(path=path, decimal=decimal)
    np.testing.assert_array_equal(result.logits.argsort(axis=1), scores.argsort(axis=1))
    assert np.ptp(result.logits) == np.ptp(scores)


@pytest.mark.parametrize("form", ["{:.9e}", "{:.9E}", "{:.9g}"])
def test_the_named_comma_reads_powers_of_ten_in_quotes(tmp_path, form):
    p = softmax(6 * LOGITS, axis=1)
    cells = [[form.format(value).replace(".", ",") for value in row] for row in p]
    result = read(tmp_path / "a.csv", table(cells), decimal=",")
    np.testing.assert_allclose(own_of(result)[0], p[range(N), Y], rtol=1e-4)
