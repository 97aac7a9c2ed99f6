"""A CUDA device made of CPU memory: finds tensors on the wrong device where there is no GPU.

Inside `emulated_cuda()`, `tensor.to("cuda")` and `torch.empty(…, device="cuda")` give tensors that
report the device cuda:0 and compute on the CPU. As on a GPU, these raise:

* NumPy's view of such a tensor (`.numpy()`, `np.asarray`)
* an operation on tensors of both devices, unless the CPU's are numbers (0-d) given as arguments
* a CPU tensor indexed by such a tensor (the reverse is legal, as in torch)
* values of the other device assigned to what a tensor picks (to slices: legal, torch copies)
* random numbers for such a tensor from a CPU generator

Moving between the devices copies. All rests on torch's documented extension points: a subclass's
`__torch_function__`, and `TorchFunctionMode` for calls that get no such tensor, such as `.to`.

What it cannot see, because every call is judged by its own arguments and nothing below it:

* rounding, the order of sums and of equal keys on a GPU; missing, asynchronous or
  non-deterministic GPU kernels; memory limits
* devices inside the C++ code of a call, `torch.cuda.*`, and `torch.Generator(device="cuda")`,
  which fails without a GPU
* `data_ptr()` handed to a C library
* the few functions that want even 0-d tensors on one device (`torch.searchsorted`)
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import EllipsisType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)

ANSWERS = {
    Tensor.device.__get__: CUDA,
    Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
    Tensor.get_device: 0,
}
TO_NUMPY = {Tensor.numpy, Tensor.__array__, Tensor.__dlpack__}
INDEXING = {Tensor.__getitem__, Tensor.__setitem__}
MOVING = {Tensor.to, Tensor.cpu, Tensor.cuda, Tensor.type_as}
SHAPE_OF_ANOTHER = {Tensor.copy_, Tensor.expand_as, Tensor.view_as, Tensor.reshape_as}
"""Functions whose second tensor may lie anywhere: they copy it or read its shape alone."""


class CudaTensor(Tensor):
    """A tensor on the emulated device; its memory is the CPU's."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _call(func, args, kwargs or {})


class _Everywhere(TorchFunctionMode):
    """Sends each torch function of this thread through the emulator."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _call(func, args, kwargs or {})


@contextmanager
def emulated_cuda() -> Iterator[None]:
    """Let "cuda" mean the emulated device, here and in threads of pools used meanwhile."""
    plain_submit = ThreadPoolExecutor.submit

    def submit(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        def emulated() -> Any:
            with _Everywhere():
                return work(*args, **kwargs)

        return plain_submit(pool, emulated)

    with patch.object(ThreadPoolExecutor, "submit", submit), _Everywhere():
        yield


def _call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Judge one call of a torch function, compute it on the CPU, and place its result."""
    tensors = list(_tensors((args, kwargs)))
    emulated = any(isinstance(tensor, CudaTensor) for tensor in tensors)
    if emulated and func in ANSWERS:
        return ANSWERS[func]
    if emulated and func in TO_NUMPY:
        raise TypeError("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu() first")
    if func in INDEXING:
        _check_index(*args)
    elif func not in MOVING | SHAPE_OF_ANOTHER:
        _check_same_device(func, args, kwargs)
    asked = _asked_device(func, args, kwargs)
    if func in INDEXING | SHAPE_OF_ANOTHER:
        emulated = isinstance(args[0], CudaTensor)
    on_cuda = emulated if asked is None else asked.type == "cuda"
    if on_cuda and any(isinstance(value, torch.Generator) for value in kwargs.values()):
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found 'cpu' ({func})")
    result = _compute(func, args, kwargs)
    moved = asked is not None and on_cuda != emulated
    return _placed(result.clone() if moved else result, on_cuda)


def _compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `func` on the memory of its arguments, with "cuda" read as "cpu"."""
    if func in (Tensor.cpu, Tensor.cuda):
        func, args = Tensor.to, (args[0], CPU)
    elif func is Tensor.to:
        args = tuple(CPU if isinstance(arg, str | torch.device) else arg for arg in args)
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": CPU}
    return _plain(func, *args, **kwargs)


def _plain(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `func` as if no argument were of a subclass; an argument it returns keeps its type."""
    return Tensor.__torch_function__(func, (), args, kwargs)


def _placed(result: Any, on_cuda: bool) -> Any:
    """Return `result` with its tensors on the device; one that is there already is kept."""
    if isinstance(result, Tensor):
        if isinstance(result, CudaTensor) == on_cuda:
            return result
        return _plain(Tensor.as_subclass, result, CudaTensor if on_cuda else Tensor)
    if type(result) in (list, tuple) or type(result).__module__ == "torch.return_types":
        return type(result)([_placed(part, on_cuda) for part in result])
    return result


def _asked_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Return the device that the call names, if it names one."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"])
    if func in (Tensor.cpu, Tensor.cuda):
        return CPU if func is Tensor.cpu else CUDA
    if func in MOVING:
        for arg in (*args[1:], *kwargs.values()):
            if isinstance(arg, str | torch.device):
                return torch.device(arg)
            if isinstance(arg, Tensor):
                return CUDA if isinstance(arg, CudaTensor) else CPU
    return None


def _check_same_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Numbers (0-d) of the CPU may stand beside tensors of the GPU, but not together in a list."""
    arguments = (*args, *kwargs.values())
    tensors = list(_tensors(arguments))
    if not any(isinstance(tensor, CudaTensor) for tensor in tensors):
        return
    on_cpu = [tensor for tensor in tensors if not isinstance(tensor, CudaTensor)]
    direct = [id(argument) for argument in arguments]
    if any(tensor.dim() > 0 or id(tensor) not in direct for tensor in on_cpu):
        raise RuntimeError(f"Expected all tensors on one device, found cuda:0 and cpu, in {func}")


def _check_index(owner: Tensor, index: Any, value: Any = None) -> None:
    """Indices lie on the CPU or beside their owner; so do values, where indices pick the places."""
    on_cuda = isinstance(owner, CudaTensor)
    parts = index if isinstance(index, tuple) else (index,)
    if not on_cuda and any(isinstance(i, CudaTensor) and i.dim() > 0 for i in _tensors(parts)):
        raise RuntimeError("indices should be on the cpu, as the indexed tensor is; found cuda:0")
    picks = not all(part is None or isinstance(part, int | slice | EllipsisType) for part in parts)
    elsewhere = isinstance(value, Tensor) and isinstance(value, CudaTensor) != on_cuda
    if picks and elsewhere and value.dim() > 0:
        raise RuntimeError("values to assign lie on another device than the indexed tensor")


def _tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested arguments."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))
