"""Files from the network: one way to fetch them, one error where that fails, one check of a digest.

A source looks for a file where a person may have put it. Only if it is nowhere, it is downloaded.
"""

import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfileobj

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError, reason_of

SECONDS = 30  # without an answer of the server
DIGESTS = {32: "MD5", 40: "SHA-1", 64: "SHA-256"}
"""The name of a digest by its number of hexadecimal digits."""


def not_fetched(
    place: object, url: str, reason: BaseException | str, fixes: str | Sequence[str]
) -> InputError:
    """Return the error of what is neither there nor can be downloaded.

    Args:
        place: where it was looked for.
        url: where it is public.
        reason: what failed.
        fixes: each one gets it, such as the setting that names another folder.
    """
    if isinstance(reason, BaseException):
        reason = reason_of(reason)
    message = f"it is not there, and the download from {url} failed ({reason})"
    return InputError(message, file=place, fixes=fixes)


def download(url: str, path: Path, fixes: str | Sequence[str]) -> None:
    """Write what an address holds to a file, which appears whole or not at all.

    Raises:
        InputError: `not_fetched`.
    """
    try:
        with (
            urllib.request.urlopen(url, timeout=SECONDS) as answer,
            atomic_path(path) as temporary,
            temporary.open("wb") as file,
        ):
            copyfileobj(answer, file)
    except (urllib.error.URLError, OSError) as error:
        raise not_fetched(path, url, error, fixes) from error


def check_digest(
    path: object,
    digest: str,
    expected: str,
    fixes: str | Sequence[str],
    content: str = "its content",
    field: str = "",
) -> None:
    """Raise `InputError` unless a digest is the expected one.

    Args:
        path: the file or folder, for the message.
        digest: in lower case and hexadecimal, of MD5, SHA-1 or SHA-256.
        expected: the whole digest, or only its first digits, which a file's name may have.
        fixes: what settles it.
        content: what was digested, for the message.
        field: the setting that has the expected digest, if one has it.
    """
    if digest.startswith(expected.lower()):
        return
    wanted = expected if len(expected) == len(digest) else f"one that begins with {expected}"
    message = f"the {DIGESTS[len(digest)]} of {content} is {digest}, expected {wanted}"
    raise InputError(message, field=field, file=path, fixes=fixes)
