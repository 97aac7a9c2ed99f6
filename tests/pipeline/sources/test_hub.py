"""Files of the hub's cache: checked against their hashes, and taken without a request."""

import hashlib
import socket

import pytest

from tests.pipeline.sources.conftest import COMMIT, flip_a_byte, refused
from utility_calibration.pipeline.sources.hub import hub_files, weights_digest

NAME, CONTENT = "somebody/model", bytes(range(200))


def found(revision=None, needed=()):
    return hub_files(NAME, "model", ["*.safetensors", "*.json"], "here", revision, needed)


def git_name(content):
    """How git names a small file; the hub's cache does so, too."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.mark.parametrize("revision", [None, COMMIT])
@pytest.mark.parametrize("name_of", [lambda c: hashlib.sha256(c).hexdigest(), git_name])
def test_a_flipped_byte_in_the_cache_is_one_line(hub_cache, revision, name_of):
    folder = hub_cache("model", NAME, {"model.safetensors": CONTENT})
    (blob,) = (folder / "blobs").iterdir()
    link = folder / "snapshots" / COMMIT / "model.safetensors"
    link.unlink()
    link.symlink_to(blob.rename(blob.with_name(name_of(CONTENT))))
    assert found(revision) == link.parent
    flip_a_byte(link.resolve())
    refused("model.safetensors delete blobs", found, revision)


def test_a_flipped_byte_in_a_file_with_a_known_hash_is_one_line(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(CONTENT)
    known = hashlib.sha256(CONTENT).hexdigest()
    assert weights_digest(path, known.upper()) == weights_digest(path, None) == known
    flip_a_byte(path)
    refused(f"SHA-256 source.sha256= {known}", weights_digest, path, known)


def test_a_pinned_and_cached_commit_makes_no_request(hub_cache, monkeypatch):
    import huggingface_hub

    requests = []

    def refuse(*arguments, **options):
        requests.append(arguments)
        raise socket.gaierror(socket.EAI_NONAME, "no network in tests")

    hub_cache("model", NAME, {"model.safetensors": b"weights", "config.json": b"{}"})
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two requests
    assert found(COMMIT, ("config.json",)).name == COMMIT
    assert requests == []
    # It is not complete: the hub is asked for the rest.
    refused(f"hf download {NAME} --revision {COMMIT}", found, COMMIT, ("tokenizer*",))
    assert requests
