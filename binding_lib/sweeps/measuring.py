"""One model of a sweep: train it, and tell what it recognises and how its embeddings multiply."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from binding_lib.approximators import make_approximator
from binding_lib.complexity import complexity_curve
from binding_lib.concepts import ConceptSpace
from binding_lib.curve_data import curve_scenes
from binding_lib.readouts import query_readouts
from binding_lib.sweeps.plan import Configuration, run_id
from binding_lib.trained import TrainedDualEncoder
from binding_lib.training import train_dual_encoder

APPROXIMATORS = ("additive", "per-object", "global", "mlp-64")
"""What is fitted to every model's scene embeddings."""

N_SCENES = 3000
"""Scenes that a model is decomposed on, of any objects, before those that a split lacks."""


def measure_model(configuration: Configuration) -> dict[str, Any]:
    """Train one model, decompose it, and return its row.

    Parameters
    ----------
    configuration : dict
        What `random_configurations` and `grid_configurations` make.

    Returns
    -------
    dict
        ``run_id``, the configuration's own entries, and

        - error: None, or the kind of error and its message; then nothing was measured;
        - seen_concept, seen_object, seen_swap, held_out_concept, held_out_object, held_out_swap:
          the strict rates of the exam at the end of training;
        - for each of `APPROXIMATORS`, fitted on scenes of training objects and read by the model's
          own queries on scenes of held-out objects: NAME_r2, NAME_object, NAME_swap;
        - n_parameters (of the scene encoder), train_seconds, fit_seconds; torch, numpy and
          binding_lib: their versions.

        The seconds are those of the clock. Models are trained on one thread each, so that a row
        does not depend on how many are trained at a time.
    """
    row = {"run_id": run_id(configuration), **configuration, "error": None}
    try:
        with _one_thread():
            row |= _measure(configuration)
    except Exception as error:  # a model that cannot be made shall not end a night's work
        row["error"] = f"{type(error).__name__}: {error}"
    return row


def _measure(configuration: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(configuration)
    space = ConceptSpace.grid(settings.pop("concepts"), settings.pop("values"))
    started = time.perf_counter()
    trained = train_dual_encoder(space, **settings, progress=False)
    if not trained.finished:
        raise KeyboardInterrupt  # stopped half-way: that is no row
    trained_at = time.perf_counter()
    row = {**_grades(trained), **_fits(trained)}
    return row | {
        "n_parameters": sum(p.numel() for p in trained.model.scene_encoder.parameters()),
        "train_seconds": round(trained_at - started, 2),
        "fit_seconds": round(time.perf_counter() - trained_at, 2),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "binding_lib": version("binding_lib"),
    }


def _grades(trained: TrainedDualEncoder) -> dict[str, float]:
    last = trained.history.groupby("objects").last().to_dict("index")
    return {
        f"{objects}_{rate}": round(last[objects][rate], 4)
        for objects in ("seen", "held_out")
        for rate in ("concept", "object", "swap")
    }


def _fits(trained: TrainedDualEncoder) -> dict[str, float]:
    scenes = curve_scenes(trained.space, N_SCENES, [trained.split])
    curve = complexity_curve(
        scenes,
        trained.encode_scenes(scenes),
        [make_approximator(name) for name in APPROXIMATORS],
        [trained.split],
        [*query_readouts(trained)],
        n_jobs=1,
        progress=False,
    )
    fits = curve.set_index("approximator").to_dict("index")
    columns = {"r2": "r2", "object": "object_recognition", "swap": "swap_accuracy"}
    return {
        f"{name}_{short}": round(fits[name][column], 4)
        for name in APPROXIMATORS
        for short, column in columns.items()
    }


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
