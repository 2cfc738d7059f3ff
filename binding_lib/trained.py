"""A trained dual encoder with all that is known about its training, and its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from binding_lib.checkpoints import (
    CONFIG,
    history_rows,
    history_table,
    part_of,
    read_checkpoint,
    write_checkpoint,
)
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.encoders.weights import resolve_device
from binding_lib.scenes import SceneSet

# Trained models that come with the library, one folder each (`benchmarks/make_shipped.py`).
SHIPPED = Path(__file__).parent / "shipped"

# The columns of a history.
HISTORY = {
    "step": int,
    "seconds": float,
    "objects": str,
    "candidates": int,
    **dict.fromkeys(("concept", "object", "swap", "loss", "scale"), float),
}


class TrainedDualEncoder:
    """What training returns: encoders whose cosine is the score, the split, and the history.

    Attributes
    ----------
    model : DualEncoder
    split : ObjectSplit
        Which objects training saw.
    history : DataFrame
        One row for each time the model was examined and each kind of object that the exam scenes
        were made of. Columns: ``step``; ``seconds`` of training so far; ``objects`` ("seen",
        "validation", "held_out"); ``candidates``, the number of objects that every scene is
        compared with; the strict rates ``concept``, ``object`` and ``swap``; the training ``loss``
        and the ``scale`` of the cosines at that step. Settings are meant to be chosen by the rows
        of "validation", a quarter of the objects that training never sees, and reported by those of
        "held_out", the others.
    training : dict
        The settings of the training.
    seed : int
    step : int
        The number of training steps taken: if it is not given, up to the last exam.
    """

    def __init__(
        self,
        model: DualEncoder,
        split: ObjectSplit,
        history: pd.DataFrame,
        training: Mapping[str, Any],
        seed: int,
        step: int | None = None,
    ) -> None:
        self.model, self.split, self.history = model, split, history
        self.training, self.seed = dict(training), seed
        self.step = int(history["step"].max() if step is None else step)

    @property
    def space(self) -> ConceptSpace:
        """The concepts and values that the model knows."""
        return self.model.space

    @property
    def dim(self) -> int:
        """d, the dimension of the embeddings."""
        return self.model.dim

    @property
    def finished(self) -> bool:
        """Whether training went to its end (and was not interrupted)."""
        return self.step >= self.training["steps"]

    def encode_scenes(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """Embed scenes, as vectors of length 1."""
        return self.model.encode_scenes(scenes)

    def encode_objects(self, object_ids: ArrayLike) -> Float[np.ndarray, "K d"]:
        """Embed object queries, given object ids, as vectors of length 1."""
        return self.model.encode_queries(object_ids)

    def encode_concepts(self) -> Float[np.ndarray, "K d"]:
        """Embed every value of every concept as a query, in order: K = sum(space.sizes)."""
        return self.model.encode_concepts()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint that `load_dual_encoder` reads."""
        write_checkpoint(folder, self.tensors(), self.record())

    def tensors(self) -> dict[str, Tensor]:
        """The numbers of a checkpoint: the weights, and one bit for each training object."""
        is_train = np.zeros(self.space.n_objects, dtype=bool)
        is_train[self.split.train] = True
        weights = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        return {**weights, "split.train": torch.from_numpy(np.packbits(is_train))}

    def record(self) -> dict[str, Any]:
        """Everything else of a checkpoint, fit for JSON."""
        return {
            "space": self.space.to_dict(),
            "model": asdict(self.model.config),
            "training": self.training,
            "seed": self.seed,
            "torch": str(torch.__version__),
            "step": self.step,
            "history": history_rows(self.history),
        }

    def __repr__(self) -> str:
        grades = self.history.loc[self.history["objects"] == "held_out", "object"]
        seen = f"held-out objects {grades.iloc[-1]:.3f}" if len(grades) else "no exam yet"
        return (
            f"TrainedDualEncoder({self.space!r}, coverage={self.split.coverage:.3g}, "
            f"step={self.step}, {seen})"
        )


def load_dual_encoder(folder: str | os.PathLike[str], device: str = "auto") -> TrainedDualEncoder:
    """Read the checkpoint of a trained dual encoder.

    Parameters
    ----------
    folder : path
        What `TrainedDualEncoder.save` wrote, or the folder of a training that still runs. Or the
        name of a model that comes with the library: "binding" recognises unseen objects, "failing"
        saw too few objects for that, "bag" stayed a bag of concepts. A folder of such a name is
        read as "./binding".
    device : str
        "auto", "cpu", "cuda" or "mps".

    Raises
    ------
    FileNotFoundError
        If the folder holds no checkpoint.
    ValueError
        If the checkpoint is damaged.
    """
    if folder in shipped_dual_encoders():
        folder = SHIPPED / folder
    tensors, record = read_checkpoint(folder)
    try:
        space = ConceptSpace(record["space"])
        bits = np.unpackbits(tensors["split.train"].numpy(), count=space.n_objects)
        split = ObjectSplit(space, np.flatnonzero(bits), np.flatnonzero(bits == 0))
        model = DualEncoder(DualEncoderConfig(**record["model"]), space)
        model.load_state_dict(part_of(tensors, "model."))
        history = history_table(record["history"], HISTORY)
        trained = TrainedDualEncoder(
            model, split, history, record["training"], record["seed"], record.get("step")
        )
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"the checkpoint in {os.fspath(folder)!r} is not one of a dual encoder: {error}"
        ) from error
    model.to(resolve_device(device)).eval()
    return trained


def shipped_dual_encoders() -> list[str]:
    """List the names of the models that come with the library."""
    return sorted(config.parent.name for config in SHIPPED.glob(f"*/{CONFIG}"))
