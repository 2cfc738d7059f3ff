"""Scenes and queries as token ids, for the encoders that this library trains itself.

Three layouts show the same scene. With two concepts, a scene of a red cube and a blue ball reads

=========  ==================================================================
marked     ``( red cube ) ( blue ball ) .``   9 tokens, objects in brackets
plain      ``red cube blue ball .``           5 tokens, grouped by place alone
objects    ``red+cube blue+ball .``           3 tokens, grouped from the start
=========  ==================================================================

where ``.`` is the end token, which the encoders read their answer from. An object query is the
scene of that object alone; a concept query is the value and the end token: neither is padded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from binding_lib.checks import check_choice

LAYOUTS = ("marked", "plain", "objects")


@dataclass(frozen=True)
class TokenLayout:
    """The vocabulary of a concept space and the order in which a scene's tokens stand.

    Every token is the sum of J parts, each an id of the vocabulary: J is 1, but for the layout
    "objects", whose tokens sum the C values of one object. Parts that are not needed are `padding`.

    Parameters
    ----------
    sizes : tuple of int
        The number of values of each concept, C of them.
    kind : str
        "marked", "plain" or "objects".

    Attributes
    ----------
    n_values : int
        The number of concept values; they have the ids 0 to n_values - 1, concept by concept.
    end : int
        The id of the end token.
    padding : int or None
        The id that stands for nothing (layout "objects" only).
    n_ids : int
        The size of the vocabulary.

    Examples
    --------
    >>> layout = TokenLayout(sizes=(3, 2), kind="marked")
    >>> layout.scenes(torch.tensor([[[2, 1], [0, 0]]]))[0, :, 0].tolist()
    [6, 2, 4, 7, 6, 0, 3, 7, 5]
    """

    sizes: tuple[int, ...]
    kind: str = "plain"

    def __post_init__(self) -> None:
        check_choice("token layout", self.kind, LAYOUTS)

    @property
    def n_values(self) -> int:  # noqa: D102 (described above, as are the next three)
        return sum(self.sizes)

    @property
    def end(self) -> int:  # noqa: D102
        return self.n_values

    @property
    def padding(self) -> int | None:  # noqa: D102
        return self.n_values + 1 if self.kind == "objects" else None

    @property
    def n_ids(self) -> int:  # noqa: D102
        return self.n_values + {"marked": 3, "plain": 1, "objects": 2}[self.kind]

    def length(self, n_objects: int) -> int:
        """L, the number of tokens of a scene of `n_objects` objects, the end token among them."""
        tokens = {"marked": len(self.sizes) + 2, "plain": len(self.sizes), "objects": 1}
        return n_objects * tokens[self.kind] + 1

    def scenes(self, values: Int[Tensor, "N m C"]) -> Int[Tensor, "N L J"]:
        """Lay out scenes, given the value index of each concept of each object."""
        offsets = torch.tensor((0, *self.sizes[:-1]), device=values.device).cumsum(0)
        ids = values + offsets  # (N, m, C)
        n, m, _ = ids.shape
        if self.kind == "objects":
            end = ids.new_full((n, 1, ids.shape[-1]), self.n_values + 1)
            end[..., 0] = self.end
            return torch.cat([ids, end], dim=1)
        if self.kind == "marked":
            start, stop = (
                ids.new_tensor([self.end + 1, self.end + 2]).expand(n, m, 2).split(1, dim=-1)
            )
            ids = torch.cat([start, ids, stop], dim=-1)
        end = ids.new_full((n, 1), self.end)
        return torch.cat([ids.flatten(1), end], dim=1)[..., None]

    def objects(self, values: Int[Tensor, "K C"]) -> Int[Tensor, "K L J"]:
        """Lay out object queries: scenes of one object each."""
        return self.scenes(values[:, None])

    def concepts(self, values: Int[Tensor, " K"]) -> Int[Tensor, "K 2 J"]:
        """Lay out concept queries, given the ids of the values (0 to n_values - 1)."""
        tokens = torch.stack([values, torch.full_like(values, self.end)], dim=1)[..., None]
        if self.kind == "objects":
            nothing = tokens.new_full((len(tokens), 2, len(self.sizes) - 1), self.n_values + 1)
            tokens = torch.cat([tokens, nothing], dim=-1)
        return tokens

    def same_object(self, n_objects: int, device: torch.device | None = None) -> Tensor:
        """Whether two tokens belong to one object, as 0.0 or 1.0, shape (L, L).

        The end token belongs to no object, so its row and its column are 0.
        """
        per_object = (self.length(n_objects) - 1) // n_objects
        groups = torch.arange(n_objects, device=device).repeat_interleave(per_object)
        same = torch.zeros(len(groups) + 1, len(groups) + 1, device=device)
        same[:-1, :-1] = (groups[:, None] == groups).float()
        return same
