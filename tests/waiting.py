"""Waiting for other processes."""

import time


def wait_until(what, seconds=60):
    """Return once `what()` holds; fail where that takes too long."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.05)
