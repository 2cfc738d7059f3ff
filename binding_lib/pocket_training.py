"""Training a pocket pair with CLIP's symmetric contrastive loss."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from binding_lib.checkpoints import history_table, part_of, read_checkpoint, write_checkpoint
from binding_lib.checks import check_choice, check_count
from binding_lib.concepts import ObjectSplit
from binding_lib.cross_modal import IMAGE_TO_CAPTION, across_outcomes
from binding_lib.encoders.pocket import PocketEncoder
from binding_lib.encoders.weights import seeded_weights
from binding_lib.files import atomic_path
from binding_lib.loops import run_to_end
from binding_lib.optimisation import (
    OptimisationConfig,
    descend,
    load_optimizers,
    make_optimizers,
    optimizer_tensors,
    set_rates,
    settle,
    use_bf16,
)
from binding_lib.pocket import (
    HISTORY,
    JITTER,
    PICTURE_SIZE,
    PocketClip,
    PocketClipConfig,
    TrainedPocketClip,
    pocket_space,
    validation_and_test,
)
from binding_lib.pocket_batches import PocketBatch, PocketBatches, differing_pairs
from binding_lib.views.images import render_images

LOG = "log.csv"


@dataclass(frozen=True)
class PocketTrainingConfig(OptimisationConfig):
    """How a pocket pair is trained; the rest of the settings are those of `OptimisationConfig`.

    Attributes
    ----------
    n_objects : int
        About how many training objects the scenes of a batch are made of.
    n_concept_only : int
        Concept-only pictures in a batch (`binding_lib.pocket_batches`).
    """

    steps: int = 3200
    matrix_rate: float = 0.02
    rate: float = 6e-3
    embedding_rate: float = 1e-2
    exam_scenes: int = 300
    n_objects: int = 32
    n_concept_only: int = 96

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, check_count, "n_objects", least=2)
        settle(self, check_count, "n_concept_only", least=0)


def train_pocket_clip(
    coverage: float = 0.8,
    seed: int = 0,
    *,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **overrides: Any,
) -> TrainedPocketClip:
    """Train a pocket pair on part of the 256 objects, on the processor.

    Parameters
    ----------
    coverage : float
        The share of the objects that training may see.
    seed : int
        Decides the split, the first weights and the batches.
    folder : path, optional
        Keep a checkpoint there, and go on from the one that is there already, with the same result
        as without the stop. At the end it holds what `load_pocket_clip` reads, and the history of
        the training as a table, ``log.csv``.
    progress : bool
        Show a progress bar with live metrics.
    **overrides
        Fields of `PocketTrainingConfig` that differ from its defaults.

    Returns
    -------
    TrainedPocketClip
        After an interrupt (Ctrl-C) the pair as it was then.
    """
    known = [field.name for field in fields(PocketTrainingConfig)]
    for name in overrides:
        check_choice("setting", name, known)
    training = PocketTrainingConfig(**overrides)
    run = PocketRun(pocket_space().split(coverage, seed), training, seed)
    run_to_end(run, folder, progress)
    trained = run.result()
    if folder is not None and run.step == training.steps:
        trained.save(folder)  # without the optimizers' memory
        with atomic_path(Path(folder) / LOG) as temporary:
            trained.history.to_csv(temporary, index=False)
    return trained


class PocketRun:
    """All that one training carries from step to step."""

    def __init__(self, split: ObjectSplit, training: PocketTrainingConfig, seed: int) -> None:
        self.split, self.training = split, training
        self.seed = seed = check_count("seed", seed, least=0, most=2**63 - 1)
        validation, test = validation_and_test(split, seed)
        pools = {"seen": split.train, "validation": validation, "test": test}
        self.exams = {}
        for name, ids in pools.items():
            scenes = differing_pairs(split.space, ids, seed)[: training.exam_scenes]
            if len(scenes) == 0:
                raise ValueError(
                    f"coverage {split.coverage:.3g} leaves no scene of two {name} objects that "
                    "differ in colour and shape; expected at least one of each kind"
                )
            self.exams[name] = scenes
        with seeded_weights(seed):
            self.model = PocketClip(PocketClipConfig(), split.space)
        self.optimizers = make_optimizers(self.model, training)
        self.batches = PocketBatches(
            split,
            training.n_scenes,
            training.n_objects,
            training.n_concept_only,
            PICTURE_SIZE,
            JITTER,
        )
        self.bf16 = use_bf16(training.precision, torch.device("cpu"))
        self.step, self.seconds, self.rows = 0, 0.0, list[dict[str, Any]]()

    def advance(self) -> None:
        """Take one step."""
        started = time.perf_counter()
        set_rates(self.optimizers, self.training.rate_factor(self.step))
        # Each step has a generator of its own, so that a stop in between changes nothing.
        self.loss = self._loss(self.batches.draw(np.random.default_rng((self.seed, self.step))))
        descend(self.loss, self.optimizers)
        self.step += 1
        self.seconds += time.perf_counter() - started

    def _loss(self, batch: PocketBatch) -> Tensor:
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            images = self.model.images(torch.from_numpy(batch.images))  # (P, d)
            texts = [self.model.encode_captions(captions) for captions, _ in batch.captions]
        images = normalize(images, dim=1) * self.model.log_scale.exp().clamp(max=100)
        losses = [
            contrastive_loss(images @ normalize(text, dim=1).T, torch.from_numpy(true))
            for text, (_, true) in zip(texts, batch.captions, strict=True)
        ]
        return torch.stack(losses).mean()

    def examine(self) -> dict[str, str]:
        """Add rows to the history; return what a progress bar should show of them."""
        encoder = PocketEncoder("in training", self.model)
        render = partial(render_images, size=PICTURE_SIZE, seed=self.seed, jitter=JITTER)
        live = {"loss": f"{self.loss.item():.3f}"}
        for name, scenes in self.exams.items():
            outcomes = across_outcomes(encoder, scenes, render)
            grades = {
                reading: float(outcomes[key].mean())
                for reading, key in {
                    "colour": "colour",
                    "shape": "shape",
                    "object": "object",
                    "swap": IMAGE_TO_CAPTION,
                }.items()
            }
            self.rows.append(
                {
                    "step": self.step,
                    "seconds": round(self.seconds, 3),
                    "objects": name,
                    "n_scenes": len(scenes),
                    **grades,
                    "loss": self.loss.item(),
                    "scale": self.model.log_scale.exp().clamp(max=100).item(),
                }
            )
            live[name] = "/".join(f"{grades[r]:.2f}" for r in ("colour", "shape", "object", "swap"))
        return live

    def result(self) -> TrainedPocketClip:
        """Hand out the model as it is."""
        history = history_table(self.rows, HISTORY)
        settings = asdict(self.training)
        return TrainedPocketClip(
            self.model.eval(), self.split, history, settings, self.seed, self.step
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint with all that `resume` needs."""
        result = self.result()
        tensors = result.tensors() | optimizer_tensors(self.optimizers)
        write_checkpoint(folder, tensors, result.record() | {"seconds": self.seconds})

    def resume(self, folder: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint; ValueError if it belongs to another run."""
        tensors, record = read_checkpoint(folder)
        here = self.result().record()
        parts = ("space", "train_objects", "model", "training", "seed")
        differing = [part for part in parts if record.get(part) != here[part]]
        if differing:
            raise ValueError(
                f"{os.fspath(folder)!r} holds the checkpoint of another run: its "
                f"{' and '.join(differing)} differ from what was asked for; choose another folder"
            )
        step = record.get("step", self.training.steps)
        if 0 < step < self.training.steps and not part_of(tensors, "optimizer."):
            raise ValueError(
                f"{os.fspath(folder)!r} holds a saved pair without the state of its optimizers; "
                "training can only go on from a folder that it kept itself"
            )
        self.model.load_state_dict(part_of(tensors, "model."))
        self.step, self.rows = step, record["history"]
        self.seconds = record["seconds"] if "seconds" in record else self.rows[-1]["seconds"]
        if step < self.training.steps:
            load_optimizers(self.optimizers, tensors)


def contrastive_loss(logits: Tensor, true: Tensor) -> Tensor:
    """CLIP's symmetric loss over pairs of which some captions are true of several pictures.

    Parameters
    ----------
    logits : Tensor, shape (P, P)
        Scaled cosines of every picture (rows) with every caption (columns).
    true : Tensor of bool, shape (P, P)
        Which captions are true of which pictures; pairs belong together on the diagonal. Other
        true ones are neither right answers nor wrong ones: they are left out.
    """
    own = torch.eye(len(logits), dtype=torch.bool)
    logits = logits.masked_fill(true & ~own, -torch.inf)
    answers = torch.arange(len(logits))
    return (cross_entropy(logits, answers) + cross_entropy(logits.T, answers)) / 2
