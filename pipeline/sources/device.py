"""The device of forward passes, and plain float32 on it."""

import os

import torch


class MissingDevice(RuntimeError):
    """A device that is not there. One line."""


def device_name(device: str) -> str:
    """The device to compute on: `auto` is cuda where there is a GPU, and else cpu.

    MissingDevice: no such GPU.
    """
    if device == "cpu":
        return "cpu"
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not torch.cuda.is_available():
        fix = "set sources.device=cpu, or install a CUDA build of torch on a machine with a GPU"
        message = f"sources.device={device}: torch {torch.__version__} sees no CUDA GPU"
        raise MissingDevice(f"{message}; {fix}")
    index, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
    if index >= count:
        message = f"sources.device={device}: there are {count} GPUs, numbered from cuda:0"
        raise MissingDevice(message)
    return device


def use_plain_float32() -> None:
    """Turn TF32 off for matrices and convolutions, whatever the environment says.

    With TF32, GPUs round float32 numbers to 10 bits. TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 turns it on
    for matrices while torch loads, and NVIDIA's libraries have a variable of their own.
    """
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # read when cuBLAS and cuDNN begin
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
