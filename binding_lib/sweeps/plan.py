"""Which models a sweep trains: grids and random samples of configurations."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from binding_lib.checks import check_choice, check_count
from binding_lib.dual_encoder import DualEncoderConfig
from binding_lib.optimisation import TrainingConfig
from binding_lib.presets import PRESETS, is_smoke_run, steps_to_take

Configuration: TypeAlias = dict[str, Any]
"""One model to be: `concepts` (C), `values` (V), `coverage`, `preset` and `seed`, and whichever
settings of `train_dual_encoder` differ from the preset."""

NEEDED = ("concepts", "values", "coverage", "preset", "seed")
"""What every configuration says."""

# Object spaces as (concepts, values): from 100 objects to 576.
SPACES = ((2, 10), (2, 12), (2, 16), (2, 20), (2, 24), (3, 5), (3, 6), (3, 8))

# The learning rate of the layers' matrices with each optimizer, before it is varied.
MATRIX_RATES = {"muon": 0.04, "adamw": 5e-3}


def random_configurations(n: int, preset: str = "laptop", seed: int = 0) -> list[Configuration]:
    """Draw models that differ in everything a training has to choose.

    Drawn are the object space (of 100 to 576 objects), the coverage, width, layers, output size,
    token layout, readout, MLP kind, rank of the token embeddings, optimizer, learning rate, steps,
    whether the vocabulary grows, whether the grouping of tokens is handed over, and the seed.

    Parameters
    ----------
    n : int
    preset : str
        Widths and steps are shares and multiples of its own.
    seed : int
        The first models of a larger sample are those of a smaller one with the same seed.

    Returns
    -------
    list of dict
        Configurations, as `run_sweep` takes them.
    """
    check_choice("preset", preset, tuple(PRESETS))
    check_count("seed", seed, least=0)
    return [
        _random_configuration(preset, np.random.default_rng((seed, i)))
        for i in range(check_count("models", n))
    ]


def grid_configurations(axes: Mapping[str, Sequence[Any]], **fixed: Any) -> list[Configuration]:
    """Combine every value of every axis.

    Parameters
    ----------
    axes : mapping of str to sequence
        Such as ``{"coverage": [0.2, 0.5, 0.8], "seed": range(3)}``.
    **fixed
        What all models have in common.

    Returns
    -------
    list of dict
        Configurations, as `run_sweep` takes them.
    """
    combinations = (
        fixed | dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    )
    return [{name: _plain(value) for name, value in model.items()} for model in combinations]


def check_configurations(models: Sequence[Configuration]) -> list[Configuration]:
    """Return configurations as they will be trained.

    While the environment variable ``BINDING_LIB_PRESET`` is "smoke" trainings are short, and the
    configurations say so: their rows are never taken for those of whole trainings.

    Raises
    ------
    TypeError
        If one is no dict.
    ValueError
        If there are none, or one lacks an entry that every configuration needs.
    """
    if not len(models):
        raise ValueError("expected at least one configuration, got none")
    for number, model in enumerate(models):
        if not isinstance(model, Mapping):
            raise TypeError(
                f"expected dicts, as grid_configurations makes, got {model!r} (number {number})"
            )
        missing = [name for name in NEEDED if name not in model]
        if missing:
            raise ValueError(f"model {number} lacks {', '.join(missing)}: {dict(model)}")
    if not is_smoke_run():
        return list(models)
    return [{**model, "steps": steps_to_take(_settings(model)["steps"])} for model in models]


def run_id(configuration: Mapping[str, Any]) -> str:
    """Name a configuration by 16 hexadecimal digits that depend on all it says."""
    content = json.dumps(configuration, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def amount_of_work(configuration: Mapping[str, Any]) -> float:
    """Tell, in no unit, how long a model takes to train: for an honest estimate of time left.

    Below a width of about a hundred numbers a layer's time hardly depends on its width.
    """
    settings = _settings(configuration)
    return float(settings["steps"] * settings["layers"] * (100 + settings["width"]))


def _plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a model: its own, its preset's, and the defaults."""
    defaults = {**asdict(DualEncoderConfig()), **asdict(TrainingConfig())}
    return {**defaults, **PRESETS.get(configuration["preset"], {}), **configuration}


def _random_configuration(preset: str, rng: np.random.Generator) -> Configuration:
    def one_of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    usual = {**asdict(DualEncoderConfig()), **asdict(TrainingConfig()), **PRESETS[preset]}
    concepts, values = one_of(*SPACES)
    times_as_wide = one_of(0.5, 0.75, 1, 1.5)
    optimizer = one_of("muon", "muon", "adamw")
    rate = float(np.exp(rng.uniform(np.log(0.25), np.log(1.5))))
    mlp = one_of("gated", "gelu")
    return {
        "concepts": concepts,
        "values": values,
        "coverage": round(float(rng.uniform(0.1, 0.9)), 2),
        "preset": preset,
        "seed": int(rng.integers(1000)),
        "width": int(usual["width"] * times_as_wide),
        # A gate has two maps where GELU has one: the same number of weights for both.
        "mlp_width": int(usual["mlp_width"] * times_as_wide * (1.5 if mlp == "gelu" else 1)),
        "layers": one_of(1, 2, 3),
        "output": one_of(16, 32, 64, 128),
        "layout": one_of("plain", "marked", "objects"),
        "readout": one_of("end", "mean"),
        "mlp": mlp,
        "embedding_rank": one_of(4, None),
        "same_object_bias": one_of(None, 3.0),
        "optimizer": optimizer,
        "matrix_rate": round(MATRIX_RATES[optimizer] * rate, 5),
        "rate": round(1e-2 * rate, 5),
        "embedding_rate": round(2e-2 * rate, 5),
        "steps": int(usual["steps"] * one_of(0.25, 0.5, 1)),
        "grow_from": one_of(2, 2, None),
        # One exam, at the end.
        "evaluate_every": int(usual["steps"]),
    }
