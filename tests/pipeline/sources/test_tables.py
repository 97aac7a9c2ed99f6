"""What is called .csv and is something else is named for what it is."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits

TEXT = "label,a,b\n0,1.5,2\n1,0,3\n"


def zipped() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, labels=np.arange(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT.encode("utf-16"), "text in UTF-8 with commas"),
        (TEXT.encode("utf-32"), "text in UTF-8 with commas"),
        (TEXT.encode("utf-16-be"), "control characters"),
        (TEXT.replace("a", "é").encode("latin-1"), "text in UTF-8"),
        (TEXT.replace(",", ";").encode(), "separate columns by commas"),
        (TEXT.replace(",", ";").replace(".", ",").encode(), "separate columns by commas"),
        (TEXT.replace(",", "\t").encode(), "separate columns by commas"),
        (gzip.compress(TEXT.encode(), mtime=0), "text in UTF-8"),
        (zipped(), "not readable as CSV"),
        (b"PAR1....", "no rows"),
        (b"\n\n", "No columns"),
        (b'label,a,b\n0,"1,2\n', "inside string"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path, content, words):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    assert str(path) in str(caught.value) and words in str(caught.value), str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_as_other_programs_write_it(tmp_path, encoding, end):
    (tmp_path / "x.csv").write_bytes(TEXT.replace("\n", end).encode(encoding))
    result = file_logits(path=tmp_path / "x.csv")
    np.testing.assert_array_equal(result.logits, [[1.5, 2], [0, 3]])
    np.testing.assert_array_equal(result.labels, [0, 1])
