"""What the tests of sources share: no network, one thread, and the composed configuration."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir

CONF = Path(__file__).resolve().parents[3] / "conf"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look-up of a host fails at once, also where the machine has a network."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def benchmark_config() -> Callable[..., Any]:
    """`benchmark_config("yahoo", "benchmark.source.max_length=16")` as the stages compose it."""

    def composed(name: str, *overrides: str) -> Any:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", overrides=[f"benchmark={name}", *overrides]).benchmark

    return composed


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """An empty Hugging Face cache; call it to put a repository there, as a download leaves it."""
    import huggingface_hub.constants

    root = tmp_path / "hub"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)  # else it asks for long

    def store(kind: str, repository: str, files: dict[str, bytes]) -> Path:
        folder = root / f"{kind}s--{repository.replace('/', '--')}"
        commit = "0123456789abcdef0123456789abcdef01234567"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(commit)
        (folder / "blobs").mkdir()
        for name, content in files.items():
            blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
            blob.write_bytes(content)
            path = folder / "snapshots" / commit / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(blob)
        return folder

    return store
