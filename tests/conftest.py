"""What all tests share: where the real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Real logits, checkpoint and word vectors: SHARED_DIR, or `shared/` beside the repository.

    Without them the test is skipped; under CI their absence is a failure.
    """
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SHARED_DIR") or beside)
    if not (folder / "logits").is_dir():
        message = f"no real data in {folder}; set SHARED_DIR to the folder that holds logits/"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
