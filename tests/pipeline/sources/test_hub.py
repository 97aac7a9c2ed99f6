"""Files of the hub's cache: checked against their hashes, and taken without a request."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metrics.validation import InputError
from pipeline.sources.hub import check_sha256, hub_files
from pipeline.sources.result import MissingResource

NAME, COMMIT = "somebody/model", "0123456789abcdef0123456789abcdef01234567"


def found(revision: str | None = None, needed: tuple[str, ...] = ()) -> Path:
    return hub_files(NAME, "model", ["*.safetensors", "*.json"], "here", revision, needed)


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def git_name(content: bytes) -> str:
    """How git names a small file; the hub's cache does so, too."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.mark.parametrize("revision", [None, COMMIT])
@pytest.mark.parametrize("name_of", [lambda c: hashlib.sha256(c).hexdigest(), git_name])
def test_a_flipped_byte_in_the_cache_is_one_line(
    hub_cache: Callable[..., Path], revision: str | None, name_of: Callable[[bytes], str]
) -> None:
    content = bytes(range(200))
    folder = hub_cache("model", NAME, {"model.safetensors": content})
    (blob,) = (folder / "blobs").iterdir()
    link = folder / "snapshots" / COMMIT / "model.safetensors"
    link.unlink()
    link.symlink_to(blob.rename(blob.with_name(name_of(content))))
    assert found(revision) == link.parent
    flip_a_byte(link.resolve())
    with pytest.raises(InputError, match=r"model\.safetensors: damaged.*; delete .*blobs") as error:
        found(revision)
    assert "\n" not in str(error.value)


def test_a_flipped_byte_in_a_file_with_a_known_hash_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(range(200)))
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    assert check_sha256(path, known.upper()) == check_sha256(path, None) == known
    flip_a_byte(path)
    with pytest.raises(InputError, match=rf"SHA-256 is .*source\.sha256 says {known}") as error:
        check_sha256(path, known)
    assert "\n" not in str(error.value)


def test_a_pinned_and_cached_commit_makes_no_request(
    hub_cache: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    requests = []

    def refuse(*arguments: Any, **options: Any) -> Any:
        requests.append(arguments)
        raise socket.gaierror(socket.EAI_NONAME, "no network in tests")

    hub_cache("model", NAME, {"model.safetensors": b"weights", "config.json": b"{}"})
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two requests
    assert found(COMMIT, ("config.json",)).name == COMMIT
    assert requests == []
    with pytest.raises(MissingResource, match=f"hf download {NAME} --revision {COMMIT}"):
        found(COMMIT, ("tokenizer*",))  # it is not complete: the hub is asked for the rest
    assert requests
