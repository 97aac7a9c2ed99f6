"""The error of bad input, in a file that needs no other package: programs start fast."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: what is wrong, where, and the fix."""
