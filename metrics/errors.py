"""The errors of bad input and of what is missing, in a file that needs no other package."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: what is wrong, where, and the fix."""


class MissingResource(RuntimeError):
    """A missing file, package or download. One line: what is missing, how to get it."""


def reason_of(error: BaseException) -> str:
    """Return a library's message, perhaps of many lines, as one line of at most 160 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."
