"""One training run, step by step: the loss, the exams, and what a checkpoint must hold to go on."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from binding_lib.batches import Batch, BatchSampler
from binding_lib.checkpoints import history_table, part_of, read_checkpoint, write_checkpoint
from binding_lib.checks import check_count
from binding_lib.concepts import ObjectSplit
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.encoders.weights import seeded_weights
from binding_lib.exams import Exam
from binding_lib.optimisation import (
    TrainingConfig,
    descend,
    load_optimizers,
    make_optimizers,
    optimizer_tensors,
    set_rates,
    use_bf16,
)
from binding_lib.trained import HISTORY, TrainedDualEncoder


class TrainingRun:
    """All that one training carries from step to step."""

    def __init__(
        self,
        config: DualEncoderConfig,
        split: ObjectSplit,
        training: TrainingConfig,
        seed: int,
        device: torch.device,
    ) -> None:
        _check_split(split, config.n_objects)
        self.split, self.training = split, training
        self.seed = seed = check_count("seed", seed, least=0, most=2**63 - 1)
        with seeded_weights(seed):
            self.model = DualEncoder(config, split.space).to(device)
        self.optimizers = make_optimizers(self.model, training)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.sampler = BatchSampler(
            split,
            training.n_scenes,
            training.n_queries,
            config.n_objects,
            training.single_share,
            device,
        )
        # However few values a growing vocabulary starts with, each scene must have a rival.
        self.fewest_in_play = self.sampler.fewest_values(config.n_objects + 1)
        rng = np.random.default_rng(seed)
        n_validation = max(len(split.held_out) // 4, config.n_objects)
        held_out = rng.permutation(split.held_out)
        pools = {
            "seen": split.train,
            "validation": held_out[:n_validation],
            "held_out": held_out[n_validation:],
        }
        self.exams = {
            name: Exam(
                split.space,
                ids,
                training.exam_scenes,
                config.n_objects,
                seed=int(rng.integers(2**31)),
                device=device,
            )
            for name, ids in pools.items()
        }
        self.bf16 = use_bf16(training.precision, device)
        self.step, self.seconds, self.rows = 0, 0.0, list[dict[str, Any]]()

    def advance(self) -> None:
        """Take one step."""
        started = time.perf_counter()
        set_rates(self.optimizers, self.training.rate_factor(self.step))
        in_play = self.training.values_in_play(self.step, max(self.split.space.sizes))
        in_play = max(in_play, self.fewest_in_play)
        self.loss = self._loss(self.sampler.draw(self.generator, in_play))
        descend(self.loss, self.optimizers)
        self.step += 1
        self.seconds += time.perf_counter() - started

    def _loss(self, batch: Batch) -> Tensor:
        with torch.autocast(self.generator.device.type, torch.bfloat16, enabled=self.bf16):
            scenes = torch.cat([self.model.scenes(values) for values in batch.scenes])  # (N, d)
            objects = self.model.objects(batch.objects)  # (K, d)
            concepts = self.model.concepts(batch.concepts)  # (Q, d)
        scenes = scenes * self.model.log_scale.exp().clamp(max=100)
        of_objects = self._contrast(scenes @ objects.T, batch.object_targets)
        of_concepts = self._contrast(scenes @ concepts.T, batch.concept_targets)
        return of_objects + self.training.concept_weight * of_concepts

    def _contrast(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Soft cross-entropy: probability belongs on what is present, in equal shares."""
        loss = cross_entropy(logits, targets)
        if not self.training.symmetric:
            return loss
        met = targets.sum(dim=0)  # a query that no scene answers has nothing to ask for
        shares = (targets / met.clamp(min=1e-9)).T
        return (loss + cross_entropy(logits.T, shares) * len(met) / (met > 0).sum()) / 2

    def examine(self) -> dict[str, str]:
        """Add rows to the history; return what a progress bar should show of them."""
        live = {"loss": f"{self.loss.item():.3f}"}
        for name, exam in self.exams.items():
            grades = exam.grade(self.model)
            self.rows.append(
                {
                    "step": self.step,
                    "seconds": round(self.seconds, 3),
                    "objects": name,
                    "candidates": len(exam.candidates),
                    **grades,
                    "loss": self.loss.item(),
                    "scale": self.model.log_scale.exp().clamp(max=100).item(),
                }
            )
            if name != "validation":
                live[name.replace("_", "-")] = f"{grades['object']:.2f}"
        live |= {"concept": f"{grades['concept']:.2f}", "swap": f"{grades['swap']:.2f}"}
        return live

    def result(self) -> TrainedDualEncoder:
        """Hand out the model as it is."""
        self.model.eval()
        history = history_table(self.rows, HISTORY)
        settings = asdict(self.training)
        return TrainedDualEncoder(self.model, self.split, history, settings, self.seed, self.step)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint with all that `resume` needs."""
        result = self.result()
        state = {"generator": self.generator.get_state()} | optimizer_tensors(self.optimizers)
        record = result.record() | {"seconds": self.seconds}
        write_checkpoint(folder, result.tensors() | state, record)

    def resume(self, folder: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint; ValueError if it belongs to another run."""
        tensors, record = read_checkpoint(folder)
        here = self.result()
        differing = [
            part
            for part, value in here.record().items()
            if part in ("space", "model", "training", "seed") and record.get(part) != value
        ]
        if not differing and not torch.equal(tensors["split.train"], here.tensors()["split.train"]):
            differing = ["split"]
        if differing:
            raise ValueError(
                f"{os.fspath(folder)!r} holds the checkpoint of another run: its "
                f"{' and '.join(differing)} differ from what was asked for; choose another folder"
            )
        if "generator" not in tensors:
            raise ValueError(
                f"{os.fspath(folder)!r} holds a saved model without the state of its optimizers; "
                "training can only go on from a folder that it kept itself"
            )
        self.model.load_state_dict(part_of(tensors, "model."))
        self.generator.set_state(tensors["generator"])
        load_optimizers(self.optimizers, tensors)
        self.step, self.seconds = record["step"], record["seconds"]
        self.rows = record["history"]


def _check_split(split: ObjectSplit, n_objects: int) -> None:
    """Refuse splits on which binding cannot be trained or cannot be measured."""
    sizes = split.space.sizes
    if len(sizes) < 2 or min(sizes) < 2:
        raise ValueError(
            f"binding needs at least two concepts of at least two values each, got {split.space!r}"
        )
    if len(split.train) < max(*sizes, n_objects):
        raise ValueError(
            f"coverage {split.coverage:.3g} leaves {len(split.train)} objects for training; "
            f"expected {max(*sizes, n_objects)} or more: every value and a whole scene must be seen"
        )
    if len(split.held_out) < 2 * n_objects:
        raise ValueError(
            f"coverage {split.coverage:.3g} holds out {len(split.held_out)} objects; expected at "
            f"least {2 * n_objects}: a scene of {n_objects} for validation and one for the report"
        )
