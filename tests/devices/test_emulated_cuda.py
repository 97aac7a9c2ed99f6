"""The emulated CUDA device raises where a GPU would; test_same_on_cuda.py needs what it allows."""

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
