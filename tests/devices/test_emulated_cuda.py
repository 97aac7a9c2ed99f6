"""The emulated CUDA device raises where a GPU would, and lets pass what torch allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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
    "making an array of it": np.asarray,
    "making an array of its numbers": lambda x: np.asarray([x[0], x[1]]),
    "adding a CPU tensor to it": lambda x: x + HERE,
    "adding it to a CPU tensor": lambda x: HERE + x,
    "adding its sum to a CPU tensor": lambda x: HERE + x.sum(),
    "adding a CPU tensor in place": lambda x: x.add_(HERE),
    "adding it to a CPU tensor in place": lambda x: HERE.clone().add_(x),
    "comparing it with a CPU tensor": lambda x: x <= HERE,
    "multiplying it by a CPU matrix": lambda x: x @ torch.eye(4),
    "masking it by a CPU mask": lambda x: torch.where(HERE > 1, x, 0.0),
    "gathering from it by CPU places": lambda x: x.gather(0, PLACES),
    "selecting from it by CPU places": lambda x: x.index_select(0, PLACES),
    "joining it with a CPU tensor": lambda x: torch.cat([x, HERE]),
    "stacking its number with a CPU number": lambda x: torch.stack([x[0], HERE[0]]),
    "writing results of CPU tensors to it": lambda x: torch.exp(HERE, out=x),
    "indexing a CPU tensor by it": lambda x: HERE[x.long()],
    "indexing a CPU tensor by its mask": lambda x: HERE[x > 1],
    "indexing a CPU tensor by a slice and it": lambda x: torch.eye(4)[:, x.long()],
    "assigning to a CPU tensor at its places": lambda x: HERE.clone().__setitem__(x.long(), 0.0),
    "assigning CPU values at places of it": lambda x: x.__setitem__(PLACES, HERE[:2]),
    "assigning it at places of a CPU tensor": lambda x: HERE.clone().__setitem__(PLACES, x[:2]),
    "drawing it by a CPU generator": lambda x: x.uniform_(generator=torch.Generator()),
    "drawing a new one by a CPU generator": lambda x: torch.rand(
        3, generator=torch.Generator(), device=x.device
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises(mistake: str, there: Tensor) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"cuda|device"):
        MISTAKES[mistake](there)


LEGAL: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "adding a CPU number": (lambda x: x + torch.tensor(1.0), [1, 2, 3, 4]),
    "choosing a CPU number": (lambda x: torch.where(x > 1, x, torch.tensor(9.0)), [9, 9, 2, 3]),
    "indexing it by CPU places": (lambda x: x[PLACES], [2, 0]),
    "indexing it by a CPU mask": (lambda x: x[HERE > 1], [2, 3]),
    "indexing it by an array": (lambda x: x[np.array([3, 1])], [3, 1]),
    "indexing it by its own places": (lambda x: x[x.argsort(descending=True)], [3, 2, 1, 0]),
    "iterating over it": (lambda x: torch.stack(list(x)), [0, 1, 2, 3]),
    "sorting it": (lambda x: x.sort(descending=True).values, [3, 2, 1, 0]),
    "splitting it": (lambda x: torch.cat(x.split(3)[::-1]), [3, 0, 1, 2]),
    "viewing it": (lambda x: x.view(2, 2).T.flatten(), [0, 2, 1, 3]),
    "making one like it": (lambda x: torch.full_like(x, 5), [5, 5, 5, 5]),
    "making a new one from it": (lambda x: x.new_tensor([7.0]), [7]),
    "making one on its device": (lambda x: torch.arange(2.0, device=x.device), [0, 1]),
    "copying an array to its device": (
        lambda x: torch.as_tensor(np.ones(2), device=x.device),
        [1, 1],
    ),
    "copying CPU values into it": (lambda x: x.copy_(HERE + 1), [1, 2, 3, 4]),
    "spreading it over a CPU shape": (lambda x: x[1:2].expand_as(HERE), [1, 1, 1, 1]),
    "writing results to a part of it": (
        lambda x: (torch.exp(x[:2] * 0, out=x[:2]), x)[1],
        [1, 1, 2, 3],
    ),
    "taking it along to another's device": (lambda x: PLACES.to(x), [2, 0]),
    "taking it to its device by name": (lambda x: HERE[:1].cuda(), [0]),
}


@pytest.mark.parametrize("deed", LEGAL)
def test_what_torch_allows_passes_and_stays_on_the_device(deed: str, there: Tensor) -> None:
    act, expected = LEGAL[deed]
    result = act(there)
    assert result.is_cuda and not result.is_cpu
    assert result.device == torch.device("cuda:0")
    assert result.cpu().numpy().tolist() == expected


def test_assigning_changes_the_tensor_on_the_device(there: Tensor) -> None:
    there[1:] = HERE[:3] + 5  # torch copies to slices from any device
    there[PLACES] = torch.tensor(-1.0)
    assert there.tolist() == [-1, 5, -1, 7]


def test_moving_copies_in_both_directions(there: Tensor) -> None:
    host = there.cpu()
    there += 1
    assert host.tolist() == [0, 1, 2, 3]
    assert host.device.type == "cpu"
    moved = host.to(there.device)
    host += 5
    assert moved.tolist() == [0, 1, 2, 3]
    assert moved.to("cuda") is moved
    assert there.to("cpu", torch.int32).numpy().tolist() == [1, 2, 3, 4]


def test_numbers_come_back_without_moving(there: Tensor) -> None:
    assert float(there.sum()) == 6
    assert int(there.argmax()) == 3
    assert bool((there >= 0).all())
    assert there.max(dim=0).indices.item() == 3


def test_the_threads_of_a_pool_see_the_device_too() -> None:
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: torch.zeros(2, device="cuda")).result()
        moved = next(pool.map(lambda x: x.to("cuda"), [HERE]))
    assert made.is_cuda and moved.is_cuda


def test_afterwards_the_device_is_gone() -> None:
    before = ThreadPoolExecutor.submit
    with emulated_cuda():
        assert ThreadPoolExecutor.submit is not before
    assert ThreadPoolExecutor.submit is before
    assert HERE.to("cpu").numpy() is not None
