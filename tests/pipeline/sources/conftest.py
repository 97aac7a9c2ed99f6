"""What the tests of sources share: no network, and the composed configuration."""

import hashlib
import socket

import pytest

from tests.refusals import fails
from utility_calibration.metrics.errors import InputError, MissingResource
from utility_calibration.pipeline.harness.units import composed

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def refused(told, run, *arguments, **options):
    """`run` must end with one line that has each of the names and commands in `told`."""
    with fails((InputError, MissingResource), *told.split()):
        run(*arguments, **options)


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Every look-up of a host fails at once, also where the machine has a network."""

    def refuse(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def benchmark_config():
    """`benchmark_config("yahoo", "benchmark.source.max_length=16")` as the stages compose it."""
    return lambda name, *overrides: composed([f"benchmark={name}", *overrides]).benchmark


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty Hugging Face cache; call it to put a repository there, as a download leaves it."""
    import huggingface_hub.constants

    root = tmp_path / "hub"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)  # else it asks for long

    def store(kind, repository, files):
        folder = root / f"{kind}s--{repository.replace('/', '--')}"
        for part in ("refs", "blobs"):
            (folder / part).mkdir(parents=True)
        (folder / "refs" / "main").write_text(COMMIT)
        for name, content in files.items():
            blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
            blob.write_bytes(content)
            path = folder / "snapshots" / COMMIT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(blob)
        return folder

    return store
