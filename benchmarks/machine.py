"""What the benchmarks say about the machine that they ran on."""

from __future__ import annotations

import os
import platform
import time

import torch


def describe(device: torch.device) -> str:
    """One line: device, threads, processes that wait for a processor, versions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{device.type} ({name}), {os.cpu_count()} processors, {torch.get_num_threads()} threads"
        f"{load}, torch {torch.__version__}, Python {platform.python_version()}"
    )


def matmul_peak(device: torch.device, dtype: torch.dtype, size: int = 1024) -> float:
    """The fastest matrix product measured on this machine, in operations a second."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(30):
        started = time.perf_counter()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best
