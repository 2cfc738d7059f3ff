"""The encoders that we train ourselves: one transformer reads scenes, another reads queries.

A model scores a scene against a query (one concept value, or one object) by the cosine of their
embeddings (paper, section 2). Both transformers are pre-norm and see whole sequences at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize

from binding_lib.checks import check_choice, check_count, check_number
from binding_lib.concepts import ConceptSpace
from binding_lib.optimisation import settle
from binding_lib.scenes import SceneSet
from binding_lib.views.tokens import LAYOUTS, TokenLayout


@dataclass(frozen=True)
class DualEncoderConfig:
    """The shape of a dual encoder.

    Attributes
    ----------
    n_objects : int
        m, the largest number of objects in a scene.
    layout : str
        How a scene is laid out: "marked", "plain" or "objects" (see `binding_lib.views.tokens`).
    width, layers, heads : int
        Of both transformers.
    mlp : str
        "gelu", or "gated": two linear maps multiplied element by element. A gated model has
        multiplication built in; take "gelu" to ask whether a model learns to multiply.
    mlp_width : int
        Hidden numbers in each MLP.
    output : int
        d, the dimension of the embeddings.
    readout : str
        "end" reads the end token, "mean" the mean over all tokens.
    positions : str
        "learned", or "none": tokens come without their places. Without places and without
        `same_object_bias` an encoder of plain tokens is a bag of concepts by construction.
    position_std : float
        The spread of the learned positions before training.
    embedding_rank : int or None
        Token embeddings are (vocabulary x rank) times (rank x width); None means full rank.
    same_object_bias : float or None
        Added, in each head of the scene encoder, to the attention between tokens of one object;
        learned from this start (3 is enough to hand the grouping over). None leaves it out: the
        model must find out by itself which tokens belong together.
    """

    n_objects: int = 2
    layout: str = "plain"
    width: int = 48
    layers: int = 2
    heads: int = 4
    mlp: str = "gated"
    mlp_width: int = 128
    output: int = 64
    readout: str = "end"
    positions: str = "learned"
    position_std: float = 0.7
    embedding_rank: int | None = 4
    same_object_bias: float | None = None

    def __post_init__(self) -> None:
        check_choice("token layout", self.layout, LAYOUTS)
        check_choice("MLP", self.mlp, ("gated", "gelu"))
        check_choice("readout", self.readout, ("end", "mean"))
        check_choice("positional scheme", self.positions, ("learned", "none"))
        settle(self, check_count, "n_objects", "width", "layers", "heads", "mlp_width", "output")
        settle(self, check_number, "position_std")
        if self.embedding_rank is not None:
            settle(self, check_count, "embedding_rank")
        if self.same_object_bias is not None:
            settle(self, _check_finite, "same_object_bias")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} does not divide into {self.heads} heads")


def _check_finite(name: str, got: object) -> float:
    if isinstance(got, bool) or not isinstance(got, Real) or not math.isfinite(got):
        raise ValueError(f"{name} must be a finite number or None, got {got!r}")
    return float(got)


class Block(nn.Module):
    """One layer: attention, then an MLP, each added to what it read."""

    def __init__(self, config: DualEncoderConfig, same_object_bias: float | None) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_width
        self.heads, self.gated = config.heads, config.mlp == "gated"
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.mix = nn.Linear(width, width), nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        # A gated MLP reads its input twice and multiplies the two readings.
        self.up = nn.Linear(width, 2 * hidden if self.gated else hidden)
        self.down = nn.Linear(hidden, width)
        if same_object_bias is not None:
            self.same_object_bias = nn.Parameter(torch.full((config.heads, 1, 1), same_object_bias))

    def forward(self, x: Float[Tensor, "N L w"], same: Tensor | None, last: bool) -> Tensor:
        """Return (N, L, w), or only the end token's row (N, 1, w) if `last`."""
        normed = self.attention_norm(x)
        rows = slice(-1, None) if last else slice(None)
        q = self._split(self.query(normed[:, rows]))  # (N, heads, L or 1, w / heads)
        k, v = (self._split(part) for part in self.key_value(normed).chunk(2, dim=2))
        # Written out: for a dozen tokens this is faster than torch's fused attention.
        logits = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])  # (N, heads, L or 1, L)
        if same is not None:
            logits = logits + (self.same_object_bias * same[rows]).to(logits.dtype)
        attended = logits.softmax(dim=-1).to(v.dtype) @ v
        x = x[:, rows] + self.mix(attended.transpose(1, 2).flatten(2))
        hidden = self.up(self.mlp_norm(x))  # (N, L or 1, mlp_width, or twice that if gated)
        hidden = torch.mul(*hidden.chunk(2, dim=2)) if self.gated else gelu(hidden)
        return x + self.down(hidden)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Encoder(nn.Module):
    """Token ids (N, L, J) in, unit-length embeddings (N, d) out."""

    def __init__(
        self,
        config: DualEncoderConfig,
        layout: TokenLayout,
        n_objects: int,
        same_object_bias: float | None = None,
    ) -> None:
        super().__init__()
        self.end_readout = config.readout == "end"
        rank = config.embedding_rank or config.width
        self.embedding = nn.Embedding(layout.n_ids, rank, padding_idx=layout.padding)
        if config.embedding_rank:
            self.widen = nn.Linear(rank, config.width, bias=False)
        if config.positions == "learned":
            places = torch.randn(layout.length(n_objects), config.width)
            self.positions = nn.Parameter(places * config.position_std)
        self.blocks = nn.ModuleList(Block(config, same_object_bias) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, config.output)

    def forward(self, tokens: Int[Tensor, "N L J"], same: Tensor | None = None) -> Tensor:
        """Encode; `same` (L, L) marks the pairs of tokens that belong to one object."""
        x = self.embedding(tokens).sum(dim=2)  # (N, L, rank)
        if hasattr(self, "widen"):
            x = self.widen(x)  # (N, L, w)
        if hasattr(self, "positions"):
            x = x + self.positions[: x.shape[1]]
        for block in self.blocks[:-1]:
            x = block(x, same, last=False)
        # Only the end token is read, so the last layer need not compute the others.
        x = self.blocks[-1](x, same, last=self.end_readout)
        x = self.output(self.norm(x).mean(dim=1))  # (N, d)
        return normalize(x.float(), dim=-1)


class DualEncoder(nn.Module):
    """A scene encoder and a query encoder whose embeddings are compared by cosine.

    Parameters
    ----------
    config : DualEncoderConfig
    space : ConceptSpace
        The concepts and values that scenes are made of; it fixes the vocabulary.

    Attributes
    ----------
    log_scale : Parameter
        The logarithm of the factor that training multiplies cosines by (the inverse temperature).
    """

    def __init__(self, config: DualEncoderConfig, space: ConceptSpace) -> None:
        super().__init__()
        self.config, self.space = config, space
        self.layout = TokenLayout(space.sizes, config.layout)
        self.scene_encoder = Encoder(config, self.layout, config.n_objects, config.same_object_bias)
        self.query_encoder = Encoder(config, self.layout, n_objects=1)
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    @property
    def dim(self) -> int:
        """d, the dimension of the embeddings."""
        return self.config.output

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.log_scale.device

    def scenes(self, values: Int[Tensor, "N m C"]) -> Float[Tensor, "N d"]:
        """Embed scenes, given the value index of each concept of each object."""
        same = None
        if self.config.same_object_bias is not None:
            same = self.layout.same_object(values.shape[1], values.device)
        return self.scene_encoder(self.layout.scenes(values), same)

    def objects(self, values: Int[Tensor, "K C"]) -> Float[Tensor, "K d"]:
        """Embed object queries, given the value index of each concept."""
        return self.query_encoder(self.layout.objects(values))

    def concepts(self, values: Int[Tensor, " K"]) -> Float[Tensor, "K d"]:
        """Embed concept queries: value ids count through all concepts, 0 to sum(sizes) - 1."""
        return self.query_encoder(self.layout.concepts(values))

    def encode_scenes(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """Embed scenes of this encoder's space, of up to `config.n_objects` objects each."""
        if scenes.space != self.space:
            raise ValueError(f"this encoder reads scenes of {self.space!r}, got {scenes.space!r}")
        if scenes.n_slots > self.config.n_objects:
            raise ValueError(
                f"this encoder reads up to {self.config.n_objects} objects a scene, "
                f"got {scenes.n_slots}"
            )
        return self._embed(self.scenes, scenes.values)

    def encode_queries(self, objects: ArrayLike) -> Float[np.ndarray, "K d"]:
        """Embed object queries, given object ids."""
        return self._embed(self.objects, self.space.values(objects))

    def encode_concepts(self) -> Float[np.ndarray, "K d"]:
        """Embed every concept value as a query, concept by concept: K = sum(space.sizes)."""
        return self._embed(self.concepts, np.arange(self.layout.n_values))

    @torch.inference_mode()
    def _embed(
        self, function: Callable[[Tensor], Tensor], values: np.ndarray, batch: int = 8192
    ) -> np.ndarray:
        if len(values) == 0:
            return np.empty((0, self.dim), dtype=np.float32)
        parts = torch.tensor(values).split(batch)
        return np.concatenate([function(part.to(self.device)).cpu().numpy() for part in parts])
