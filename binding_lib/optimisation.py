"""How models are trained: the settings, the learning rates and the optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from binding_lib.checkpoints import part_of
from binding_lib.checks import check_choice, check_count, check_number
from binding_lib.muon import BatchedMuon


def settle(config: object, check: Callable[..., object], *names: str, **limits: float) -> None:
    """Replace fields of a frozen configuration by what a check returns: plain Python values."""
    for name in names:
        object.__setattr__(config, name, check(name, getattr(config, name), **limits))


def _check_flag(name: str, got: object) -> bool:
    if not isinstance(got, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {got!r}")
    return bool(got)


@dataclass(frozen=True)
class OptimisationConfig:
    """What every training here has to settle.

    Attributes
    ----------
    steps : int
    n_scenes : int
        Scenes in a batch.
    optimizer : str
        "muon" (the matrices of the transformer layers; AdamW does the rest) or "adamw" (all).
    matrix_rate, rate, embedding_rate : float
        Learning rates: of the layers' matrices; of the rest; of token embeddings and the
        same-object attention bias.
    weight_decay : float
    warmup, hold : float
        The learning rate rises over the first `warmup` of the steps and is held until the share
        `hold` of them is done; then it falls to zero in a straight line.
    precision : str
        "bf16" or "fp32"; "auto" is bf16 where the processor has instructions for it.
    evaluate_every : int
        Steps between two exams.
    exam_scenes : int
        Scenes in each exam.
    """

    steps: int = 2400
    n_scenes: int = 256
    optimizer: str = "muon"
    matrix_rate: float = 0.04
    rate: float = 1e-2
    embedding_rate: float = 2e-2
    weight_decay: float = 0.03
    warmup: float = 0.1
    hold: float = 0.1
    precision: str = "auto"
    evaluate_every: int = 250
    exam_scenes: int = 1000

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, ("muon", "adamw"))
        check_choice("precision", self.precision, ("auto", "bf16", "fp32"))
        settle(self, check_count, "steps", "n_scenes", "evaluate_every", "exam_scenes")
        settle(self, check_number, "matrix_rate", "rate", "embedding_rate", "weight_decay")
        settle(self, check_number, "warmup", "hold", most=1)

    def rate_factor(self, step: int) -> float:
        """What learning rates are multiplied by at a step (counted from 0)."""
        done, left = (step + 1) / self.steps, (self.steps - step) / self.steps
        rise = done / self.warmup if self.warmup else 1.0
        return min(1.0, rise, left / max(1 - self.hold, 1 / self.steps))


@dataclass(frozen=True)
class TrainingConfig(OptimisationConfig):
    """How a dual encoder is trained; the rest of the settings are those of `OptimisationConfig`.

    Attributes
    ----------
    n_queries : int
        About how many training objects a batch's scenes are drawn from, all of which serve as
        queries (`binding_lib.batches`).
    single_share : float
        The share of scenes that hold a single object.
    concept_weight : float
        The weight of the concept queries in the loss; that of the object queries is 1.
    symmetric : bool
        Also ask each query for its scenes, as CLIP's loss does; the two directions are averaged.
    grow_from : int or None
        A growing vocabulary: batches start with the first so many values of each concept (with
        more, where training objects are few), and the rest join evenly until the share `grow_until`
        of the steps is done. None: all at once.
    grow_until : float
    """

    n_queries: int = 256
    single_share: float = 0.0
    concept_weight: float = 0.3
    symmetric: bool = False
    grow_from: int | None = 2
    grow_until: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, check_count, "n_queries")
        settle(self, check_number, "concept_weight")
        settle(self, check_number, "single_share", "grow_until", most=1)
        settle(self, _check_flag, "symmetric")
        if self.grow_from is not None:
            settle(self, check_count, "grow_from")

    def values_in_play(self, step: int, most: int) -> int:
        """How many values of each concept batches may use at a step, of `most`."""
        if self.grow_from is None:
            return most
        share = min(1.0, step / max(1.0, self.grow_until * self.steps))
        return min(most, round(self.grow_from + share * (most - self.grow_from)))


def make_optimizers(model: nn.Module, training: OptimisationConfig) -> list[Optimizer]:
    """Make the optimizers; each group of parameters knows its `full_rate`."""
    matrices, embeddings, rest = [], [], []
    for name, parameter in model.named_parameters():
        if ".blocks." in name and parameter.ndim == 2:
            matrices.append(parameter)
        elif "embedding" in name or "same_object_bias" in name:
            embeddings.append(parameter)
        else:
            rest.append(parameter)
    groups = [
        {"params": rest, "full_rate": training.rate},
        {"params": embeddings, "full_rate": training.embedding_rate},
    ]
    of_matrices = {"params": matrices, "full_rate": training.matrix_rate}
    decay = training.weight_decay
    if training.optimizer == "adamw":
        return [AdamW([*groups, of_matrices], betas=(0.9, 0.98), weight_decay=decay, fused=True)]
    return [
        BatchedMuon([of_matrices], weight_decay=decay),
        AdamW(groups, betas=(0.9, 0.98), weight_decay=decay, fused=True),
    ]


def set_rates(optimizers: Sequence[Optimizer], factor: float) -> None:
    """Set every learning rate to its full value times a factor."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["full_rate"] * factor


def descend(loss: Tensor, optimizers: Sequence[Optimizer]) -> None:
    """Take one step down the gradient of a loss."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()


def optimizer_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """What the optimizers remember, as named tensors for a checkpoint."""
    return {
        f"optimizer.{i}.{j}.{name}": tensor
        for i, optimizer in enumerate(optimizers)
        for j, entries in optimizer.state_dict()["state"].items()
        for name, tensor in entries.items()
    }


def load_optimizers(optimizers: Sequence[Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Give optimizers back what `optimizer_tensors` took from them."""
    for i, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in part_of(tensors, f"optimizer.{i}.").items():
            number, _, entry = name.partition(".")
            state.setdefault(int(number), {})[entry] = tensor
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def use_bf16(precision: str, device: torch.device) -> bool:
    """Whether to compute in bfloat16: "auto" does where the device has instructions for it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        has = torch.cpu.get_capabilities()
        return bool(has.get("avx512_bf16") or has.get("amx_bf16"))
    return False
