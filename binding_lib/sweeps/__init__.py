"""Many models: a set of configurations in, one row of measurements a model out."""

from __future__ import annotations

from binding_lib.sweeps.plan import grid_configurations, random_configurations
from binding_lib.sweeps.running import run_sweep
from binding_lib.sweeps.store import SweepStore, read_sweep, sweep_status

__all__ = [
    "SweepStore",
    "grid_configurations",
    "random_configurations",
    "read_sweep",
    "run_sweep",
    "sweep_status",
]
