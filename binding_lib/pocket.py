"""Pocket CLIP: a small image-text pair of this course's own, trained on its own pictures.

It has CLIP's form (an image encoder, a text encoder, cosines) and CLIP's loss, and nothing else of
CLIP: it knows sixteen colours, sixteen shapes and the words for them, and was trained in minutes on
one processor core. Two of them are shipped, which saw a quarter and four fifths of the objects.

The text encoder is **told which words form a phrase**: a learned number, started at +3, is added to
the attention between words of one phrase. Otherwise words carry no places, because captions name
the objects in any order. So these models cannot show how a text encoder finds phrases; they show
what it takes to bind inside of them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from binding_lib.checkpoints import (
    history_rows,
    history_table,
    part_of,
    read_checkpoint,
    write_checkpoint,
)
from binding_lib.checks import unknown_name
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.dual_encoder import Block, DualEncoderConfig
from binding_lib.encoders.weights import resolve_device
from binding_lib.views.flat import SHAPES

PICTURE_SIZE = 32
"""Pixels of a side of the pictures that the image encoder sees."""

JITTER = 0.5
"""How far positions and sizes vary in the pictures of training and of exams."""

_COLOURS = (
    "red orange yellow lime green teal cyan blue "
    "purple magenta pink lavender brown black gray white"
)
_SEPARATORS = ("and", ",")

# The columns of a history.
HISTORY = {
    "step": int,
    "seconds": float,
    "objects": str,
    "n_scenes": int,
    **dict.fromkeys(("colour", "shape", "object", "swap", "loss", "scale"), float),
}


def pocket_space() -> ConceptSpace:
    """Return the pocket pair's space: 16 colours x 16 shapes, 256 objects."""
    return ConceptSpace({"colour": _COLOURS.split(), "shape": list(SHAPES)})


@dataclass(frozen=True)
class PocketClipConfig:
    """The shape of both encoders.

    Attributes
    ----------
    width, layers, heads, mlp_width : int
        Of either transformer.
    output : int
        d, the dimension of the embeddings.
    same_phrase_bias : float
        Added, in each head of the text encoder, to the attention between words of one phrase;
        learned from this start.
    """

    width: int = 64
    layers: int = 2
    heads: int = 4
    mlp_width: int = 128
    output: int = 128
    same_phrase_bias: float = 3.0

    def blocks(self, same_object_bias: float | None = None) -> nn.ModuleList:
        """Build the layers of one transformer."""
        config = DualEncoderConfig(
            width=self.width, heads=self.heads, mlp="gelu", mlp_width=self.mlp_width
        )
        return nn.ModuleList(Block(config, same_object_bias) for _ in range(self.layers))


class ImageEncoder(nn.Module):
    """Three convolutions halve the picture to 4 x 4 tokens; a transformer relates those."""

    def __init__(self, config: PocketClipConfig) -> None:
        super().__init__()
        widths = (3, config.width // 2, config.width, config.width)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, 3, stride=2, padding=1) for before, after in pairwise(widths)
        )
        # One group: each picture is normalised by itself, whatever else is in the batch.
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for width in widths[1:])
        self.positions = nn.Parameter(torch.randn((PICTURE_SIZE // 8) ** 2, config.width) * 0.1)
        self.blocks = config.blocks()
        self.norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, config.output)

    def forward(self, images: UInt8[Tensor, "N 32 32 3"]) -> Float[Tensor, "N d"]:
        """Encode; embeddings are not normalised."""
        x = images.permute(0, 3, 1, 2).float() / 127.5 - 1  # (N, 3, 32, 32)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = nn.functional.gelu(norm(convolution(x)))
        x = x.flatten(2).transpose(1, 2) + self.positions  # (N, 16, w)
        for block in self.blocks:
            x = block(x, None, last=False)
        return self.output(self.norm(x).mean(dim=1)).float()


class TextEncoder(nn.Module):
    """A transformer over the words of a caption, each tied to the others of its phrase."""

    def __init__(self, config: PocketClipConfig, space: ConceptSpace) -> None:
        super().__init__()
        values = [value for name in space.names for value in space.value_names(name)]
        self.words = (*_SEPARATORS, "a", "an", *values)
        self.embedding = nn.Embedding(len(self.words), config.width)
        self.blocks = config.blocks(config.same_phrase_bias)
        self.norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, config.output)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def tokens(self, caption: str) -> list[int]:
        """Word ids of a caption; ValueError if it holds a word that the model never met."""
        words = re.findall(r"[^\s,]+|,", caption.lower())
        if not words:
            raise ValueError("a caption needs at least one word, got none")
        for word in words:
            if word not in self._ids:
                raise unknown_name("word (the pocket pair knows few)", word, self.words[4:])
        return [self._ids[word] for word in words]

    def forward(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N d"]:
        """Encode captions of one length; embeddings are not normalised."""
        apart = tokens < len(_SEPARATORS)  # (N, L)
        phrase = apart.cumsum(dim=1).masked_fill(apart, -1)
        same = (phrase[:, :, None] == phrase[:, None, :]) & ~apart[:, None, :]  # (N, L, L)
        x = self.embedding(tokens)  # (N, L, w)
        for block in self.blocks:
            x = block(x, same[:, None].float(), last=False)
        return self.output(self.norm(x).mean(dim=1)).float()


class PocketClip(nn.Module):
    """An image encoder and a text encoder whose embeddings are compared by cosine.

    Parameters
    ----------
    config : PocketClipConfig
    space : ConceptSpace
        Its values are the words that the text encoder knows.

    Attributes
    ----------
    log_scale : Parameter
        The logarithm of the factor that training multiplies cosines by (the inverse temperature).
    """

    def __init__(self, config: PocketClipConfig, space: ConceptSpace) -> None:
        super().__init__()
        self.config, self.space = config, space
        self.images = ImageEncoder(config)
        self.text = TextEncoder(config, space)
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def encode_captions(self, captions: Sequence[str]) -> Float[Tensor, "N d"]:
        """Embed captions of any lengths; equal ones are computed once."""
        row_of = {caption: row for row, caption in enumerate(dict.fromkeys(captions))}
        tokens = [self.text.tokens(caption) for caption in row_of]
        lengths = np.array([len(ids) for ids in tokens])
        device = self.log_scale.device
        # Without padding, captions of one length at a time.
        groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        parts = [
            self.text(torch.tensor([tokens[row] for row in rows], device=device)) for rows in groups
        ]
        place = np.argsort(np.concatenate(groups))
        wanted = place[[row_of[caption] for caption in captions]]
        return torch.cat(parts)[torch.from_numpy(wanted).to(device)]


class TrainedPocketClip:
    """What training returns: the pair, which objects it saw, and the history of its training.

    Attributes
    ----------
    model : PocketClip
    split : ObjectSplit
        The objects that training saw and those that it did not.
    validation, test : ndarray of int
        The unseen objects in two parts: settings were chosen by the first, reports use the second.
    history : DataFrame
        One row for each exam and each kind of object that its scenes were made of. Columns:
        ``step``; ``seconds`` of training so far; ``objects`` ("seen", "validation", "test"); the
        strict rates ``colour``, ``shape``, ``object`` across modalities; ``swap``, how often a
        picture prefers its caption to the swapped one; the training ``loss`` and the ``scale``.
    training : dict
        The settings of the training.
    seed : int
    step : int
        The number of training steps taken: if it is not given, up to the last exam.
    """

    def __init__(
        self,
        model: PocketClip,
        split: ObjectSplit,
        history: pd.DataFrame,
        training: Mapping[str, Any],
        seed: int,
        step: int | None = None,
    ) -> None:
        self.model, self.split, self.history = model, split, history
        self.training, self.seed = dict(training), seed
        self.step = int(history["step"].max() if step is None else step)
        self.validation, self.test = validation_and_test(split, seed)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint that `load_pocket_clip` reads."""
        write_checkpoint(folder, self.tensors(), self.record())

    def tensors(self) -> dict[str, Tensor]:
        """The numbers of a checkpoint."""
        return {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}

    def record(self) -> dict[str, Any]:
        """Everything else of a checkpoint, fit for JSON."""
        return {
            "what": "pocket CLIP, an image-text pair trained by the course's own library; not CLIP",
            "space": self.model.space.to_dict(),
            "train_objects": self.split.train.tolist(),
            "model": asdict(self.model.config),
            "training": self.training,
            "seed": self.seed,
            "torch": str(torch.__version__),
            "step": self.step,
            "history": history_rows(self.history),
        }


def validation_and_test(split: ObjectSplit, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Divide the unseen objects at random: a quarter to choose settings by, the rest to report."""
    order = np.random.default_rng(seed).permutation(len(split.held_out))
    held_out = split.held_out[order]
    n_validation = len(held_out) // 4
    return np.sort(held_out[:n_validation]), np.sort(held_out[n_validation:])


def load_pocket_clip(folder: str | os.PathLike[str], device: str = "auto") -> TrainedPocketClip:
    """Read the checkpoint of a pocket pair.

    Raises
    ------
    FileNotFoundError
        If the folder holds no checkpoint.
    ValueError
        If the checkpoint is damaged.
    """
    tensors, record = read_checkpoint(folder)
    try:
        space = ConceptSpace(record["space"])
        held_out = np.setdiff1d(np.arange(space.n_objects), record["train_objects"])
        split = ObjectSplit(space, np.array(record["train_objects"]), held_out)
        model = PocketClip(PocketClipConfig(**record["model"]), space)
        model.load_state_dict(part_of(tensors, "model."))
        history = history_table(record["history"], HISTORY)
        trained = TrainedPocketClip(
            model, split, history, record["training"], record["seed"], record.get("step")
        )
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"the checkpoint in {os.fspath(folder)!r} is not one of a pocket pair: {error}"
        ) from error
    model.to(resolve_device(device)).eval()
    return trained
