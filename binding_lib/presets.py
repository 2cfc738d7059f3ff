"""Named sizes for training: one place that says how large a run is on which machine.

Each preset overrides defaults of `DualEncoderConfig` and `TrainingConfig`. The defaults are the
`laptop` recipe. No preset but `smoke` tells the encoders which tokens belong to one object, with
`same_object_bias`.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from binding_lib.checks import check_choice

PRESETS: dict[str, dict[str, Any]] = {
    # Seconds: enough to leave chance behind on a space of about 8 x 8, for tests. So short a
    # training finds no groups by itself.
    "smoke": {
        "steps": 300,
        "width": 32,
        "mlp_width": 64,
        "output": 32,
        "n_scenes": 128,
        "same_object_bias": 3.0,
        "grow_from": None,
    },
    # Less than a minute on two cores, for spaces of 100 to 1,024 objects.
    "laptop": {},
    # Minutes on a small GPU, for spaces of up to some ten thousand objects.
    "gpu": {
        "steps": 6000,
        "width": 128,
        "layers": 3,
        "mlp_width": 344,
        "output": 128,
        "embedding_rank": 6,
        "n_scenes": 1024,
        "n_queries": 1024,
        "matrix_rate": 0.02,
        "rate": 5e-3,
        "embedding_rate": 1e-2,
    },
    # The published shape, about 20 M parameters an encoder, and all values from the first step on.
    "paper": {
        "steps": 50_000,
        "layout": "marked",
        "width": 512,
        "layers": 6,
        "heads": 8,
        "mlp": "gelu",
        "mlp_width": 2048,
        "output": 512,
        "position_std": 1.0,
        "embedding_rank": None,
        "grow_from": None,
        "weight_decay": 0.1,
        "n_scenes": 512,
        "n_queries": 512,
        "single_share": 0.25,
        "concept_weight": 1.0,
        "symmetric": True,
        "optimizer": "adamw",
        "matrix_rate": 3e-4,
        "rate": 3e-4,
        "embedding_rate": 3e-4,
        "warmup": 0.02,
        "evaluate_every": 1000,
    },
}

VARIABLE = "BINDING_LIB_PRESET"


def is_smoke_run() -> bool:
    """Tell whether ``BINDING_LIB_PRESET`` is "smoke": everything should run, and nothing counts.

    Then trainings of dual encoders stop at the smoke preset's steps whatever a chapter asks for,
    and numbers are not compared with recorded ones.
    """
    return os.environ.get(VARIABLE) == "smoke"


def steps_to_take(steps: int) -> int:
    """Return how many steps a training takes: in a smoke run no more than that preset's."""
    return min(steps, PRESETS["smoke"]["steps"]) if is_smoke_run() else steps


def choose_preset(preset: str = "auto") -> str:
    """Name the preset to use.

    Parameters
    ----------
    preset : str
        A preset's name is returned as it is. "auto" means the environment variable
        ``BINDING_LIB_PRESET`` if it is set, else ``gpu`` where there is a CUDA device, else
        ``laptop``.

    Raises
    ------
    ValueError
        If there is no such preset.
    """
    if preset == "auto":
        preset = os.environ.get(VARIABLE) or ("gpu" if torch.cuda.is_available() else "laptop")
    return check_choice("preset", preset, tuple(PRESETS))
