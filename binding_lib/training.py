"""Training dual encoders: the loss, the loop, and a history of what the model could do when."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from binding_lib.batches import Batch, BatchSampler
from binding_lib.checkpoints import has_checkpoint, read_checkpoint, write_checkpoint
from binding_lib.checks import unknown_name
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.encoders.weights import resolve_device, seeded_weights
from binding_lib.exams import Exam
from binding_lib.optimisation import TrainingConfig, make_optimizers, use_bf16
from binding_lib.presets import PRESETS, choose_preset
from binding_lib.progress import progress_bar
from binding_lib.trained import TrainedDualEncoder, part_of


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
    model as it is then is examined, kept in `folder` and returned.
    """
    run = Run(config, split, training, seed, resolve_device(device))
    if folder is not None and has_checkpoint(folder):
        run.resume(folder)
    saved = time.monotonic()
    with (
        _interrupts() as interrupted,
        progress_bar(
            total=training.steps,
            initial=run.step,
            desc="training",
            unit="step",
            disable=not progress,
        ) as bar,
    ):
        while run.step < training.steps:
            run.advance()
            bar.update()
            last = run.step == training.steps or interrupted.is_set()
            if last or run.step % training.evaluate_every == 0:
                bar.set_postfix(run.examine())
            if folder is not None and (last or time.monotonic() - saved > 60):
                run.save(folder)
                saved = time.monotonic()
            if last:
                break
    return run.result()


class Run:
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
        self.split, self.training, self.seed = split, training, seed
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
        factor = self.training.rate_factor(self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["full_rate"] * factor
        in_play = self.training.values_in_play(self.step, max(self.split.space.sizes))
        self.loss = self._loss(self.sampler.draw(self.generator, in_play))
        self.model.zero_grad()
        self.loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
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
        settings = asdict(self.training)
        return TrainedDualEncoder(
            self.model, self.split, pd.DataFrame(self.rows), settings, self.seed
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint with all that `resume` needs."""
        result = self.result()
        state = {"generator": self.generator.get_state()}
        for i, optimizer in enumerate(self.optimizers):
            for j, entries in optimizer.state_dict()["state"].items():
                state |= {f"optimizer.{i}.{j}.{name}": t for name, t in entries.items()}
        progress = {"step": self.step, "seconds": self.seconds}
        write_checkpoint(folder, result.tensors() | state, result.record() | progress)

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
        for i, optimizer in enumerate(self.optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in part_of(tensors, f"optimizer.{i}.").items():
                number, _, entry = name.partition(".")
                state.setdefault(int(number), {})[entry] = tensor
            optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
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


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no step is cut in half; a second one raises."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread is told of signals
        return

    def stop(number: int, frame: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
