"""The emulated CUDA device raises where a GPU would, and lets pass what torch allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from tests.devices.emulated_cuda import emulated_cuda


@pytest.fixture(autouse=True)
def emulated() -> Iterator[None]:
    with emulated_cuda():
        yield


@pytest.fixture
def there() -> Tensor:
    """Four numbers on the emulated device."""
    return torch.arange(4.0).to("cuda")


HERE = torch.arange(4.0)
PLACES = torch.tensor([2, 0])

MISTAKES: dict[str, Callable[[Tensor], object]] = {
    "taking its NumPy view": lambda x: x.numpy(),
    "adding a CPU tensor to it": lambda x: x + HERE,
    "masking it by a CPU mask": lambda x: torch.where(HERE > 1, x, 0.0),
    "stacking its number with a CPU number": lambda x: torch.stack([x[0], HERE[0]]),
    "indexing a CPU tensor by it": lambda x: HERE[x.long()],
    "assigning CPU values at places of it": lambda x: x.__setitem__(PLACES, HERE[:2]),
    "drawing it by a CPU generator": lambda x: x.uniform_(generator=torch.Generator()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises(mistake: str, there: Tensor) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"cuda|device"):
        MISTAKES[mistake](there)


LEGAL: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "adding a CPU number": (lambda x: x + torch.tensor(1.0), [1, 2, 3, 4]),
    "indexing it by CPU places": (lambda x: x[PLACES], [2, 0]),
    "making one on its device": (lambda x: torch.ones(2, device=x.device), [1, 1]),
    "moving to its device": (lambda x: PLACES.to(x), [2, 0]),
}


@pytest.mark.parametrize("deed", LEGAL)
def test_what_torch_allows_passes_and_stays_on_the_device(deed: str, there: Tensor) -> None:
    act, expected = LEGAL[deed]
    result = act(there)
    assert result.is_cuda and not result.is_cpu
    assert result.device == torch.device("cuda:0")
    assert result.cpu().numpy().tolist() == expected


def test_moving_copies_in_both_directions(there: Tensor) -> None:
    host = there.cpu()
    there += 1
    assert host.tolist() == [0, 1, 2, 3]
    assert host.device.type == "cpu"
    moved = host.to(there.device)
    host += 5
    assert moved.tolist() == [0, 1, 2, 3]
    assert moved.to("cuda") is moved
