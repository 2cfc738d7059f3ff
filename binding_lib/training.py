"""Training dual encoders, with a history of what the model could do when."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any

from binding_lib.checks import unknown_name
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.dual_encoder import DualEncoderConfig
from binding_lib.encoders.weights import resolve_device
from binding_lib.loops import run_to_end
from binding_lib.optimisation import TrainingConfig
from binding_lib.presets import PRESETS, choose_preset, steps_to_take
from binding_lib.trained import TrainedDualEncoder
from binding_lib.training_run import TrainingRun

MOST_OBJECTS = 10**8  # a split lists all objects, in some gigabytes for so many


def train_dual_encoder(
    space: ConceptSpace,
    coverage: float = 0.8,
    preset: str = "laptop",
    seed: int = 0,
    *,
    folder: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool = True,
    **overrides: Any,
) -> TrainedDualEncoder:
    """Train a dual encoder on part of an object space.

    Parameters
    ----------
    space : ConceptSpace
    coverage : float
        The share of the objects that training may see.
    preset : str
        "smoke", "laptop", "gpu" or "paper" (`binding_lib.presets`); "auto" chooses by the device
        and the environment variable ``BINDING_LIB_PRESET``.
    seed : int
        Decides the split, the first weights and the batches.
    folder : path, optional
        Keep a checkpoint there, and go on from the one that is there already: with the same
        result as without the stop.
    device : str
        "auto", "cpu", "cuda" or "mps".
    progress : bool
        Show a progress bar with live metrics.
    **overrides
        Fields of `DualEncoderConfig` and `TrainingConfig` that differ from the preset.

    Returns
    -------
    TrainedDualEncoder

    Examples
    --------
    >>> space = ConceptSpace.grid(n_concepts=2, n_values=20)
    >>> trained = train_dual_encoder(space, coverage=0.8)  # doctest: +SKIP
    >>> trained.history.tail(3)  # doctest: +SKIP
    """
    if space.n_objects > MOST_OBJECTS:
        raise ValueError(
            f"a space of {space.n_objects} objects is too large to split; expected at most "
            f"{MOST_OBJECTS}: choose fewer concepts or values"
        )
    settings = {**PRESETS[choose_preset(preset)], **overrides}
    of_model = {field.name for field in fields(DualEncoderConfig)}
    of_training = {field.name for field in fields(TrainingConfig)}
    for name in settings:
        if name not in of_model | of_training:
            raise unknown_name("setting", name, sorted(of_model | of_training))
    return train(
        DualEncoderConfig(**{k: v for k, v in settings.items() if k in of_model}),
        space.split(coverage, seed),
        TrainingConfig(**{k: v for k, v in settings.items() if k in of_training}),
        seed=seed,
        folder=folder,
        device=device,
        progress=progress,
    )


def train(
    config: DualEncoderConfig,
    split: ObjectSplit,
    training: TrainingConfig,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool = True,
) -> TrainedDualEncoder:
    """Train a dual encoder of any shape on any split: see `train_dual_encoder`.

    An interrupt (Ctrl-C, or stopping a notebook's cell) ends training after the step it is in; the
    model as it is then is examined, kept in `folder` and returned. While the environment variable
    ``BINDING_LIB_PRESET`` is "smoke", no training is longer than that preset's.
    """
    training = replace(training, steps=steps_to_take(training.steps))
    run = TrainingRun(config, split, training, seed, resolve_device(device))
    run_to_end(run, folder, progress)
    return run.result()
