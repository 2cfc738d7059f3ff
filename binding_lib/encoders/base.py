"""What every encoder does: the protocol, checked inputs, and batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from binding_lib.encoders.kinds import encoders_of

if TYPE_CHECKING:
    import torch


class Encoder(Protocol):
    """Whatever turns captions or images into embeddings.

    Attributes
    ----------
    name : str
        The name that `load_encoder` was given.
    dim : int
        d, the length of an embedding.
    fingerprint : str
        A hash of the weights and of all else that decides the output: equal fingerprints give
        equal embeddings.
    """

    name: str
    dim: int
    fingerprint: str

    def encode_text(self, captions: Sequence[str]) -> Float[np.ndarray, "N d"]:
        """Embed N captions as float32, one row each, not normalised."""
        ...

    def encode_images(self, images: ArrayLike) -> Float[np.ndarray, "N d"]:
        """Embed N images, uint8 of shape (N, H, W, 3), as float32, not normalised."""
        ...


class ModelEncoder:
    """An encoder around a model: checks what comes in, and computes each distinct caption once.

    An adapter sets the attributes and overrides `_embed_text`, `_embed_images` or both. Parameters
    and errors are those of `Encoder`; a modality without an override raises a ValueError.
    """

    name: str
    dim: int
    fingerprint: str

    def encode_text(self, captions: Sequence[str]) -> Float[np.ndarray, "N d"]:
        """Embed N captions as float32, one row each, not normalised.

        Raises
        ------
        ValueError
            If the encoder reads no text, or `captions` is not a non-empty sequence of strings.
        """
        texts = check_captions(captions)
        row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        distinct = self._embed_text(list(row_of))
        return distinct[[row_of[text] for text in texts]]

    def encode_images(self, images: ArrayLike) -> Float[np.ndarray, "N d"]:
        """Embed N images as float32, one row each, not normalised.

        Parameters
        ----------
        images : array-like of uint8, shape (N, H, W, 3)

        Raises
        ------
        ValueError
            If the encoder sees no images, or `images` has another shape or dtype.
        """
        return self._embed_images(check_images(images))

    def _embed_text(self, captions: list[str]) -> Float[np.ndarray, "N d"]:
        raise ValueError(
            f"{self.name!r} encodes images only; encoders of text: {encoders_of('text')}"
        )

    def _embed_images(self, images: UInt8[np.ndarray, "N H W 3"]) -> Float[np.ndarray, "N d"]:
        raise ValueError(
            f"{self.name!r} encodes text only; encoders of images: {encoders_of('images')}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, dim={self.dim})"


def check_captions(captions: Sequence[str]) -> list[str]:
    """Return `captions` as a list; ValueError unless it is a non-empty sequence of strings."""
    if isinstance(captions, str):
        raise ValueError(f"expected a sequence of captions, got the single string {captions!r}")
    texts = list(captions)
    if not texts:
        raise ValueError("got no captions; expected at least one")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"captions must be strings, got {text!r} in row {row}")
    return texts


def check_images(images: ArrayLike) -> UInt8[np.ndarray, "N H W 3"]:
    """Return `images` as an array; ValueError unless it is uint8 of shape (N, H, W, 3)."""
    try:
        array = np.asarray(images)
    except ValueError as error:
        raise ValueError("images must all have one shape, (H, W, 3)") from error
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] != 3 or array.size == 0:
        raise ValueError(
            "images must be uint8 (0 to 255) of shape (N, H, W, 3), N at least 1; "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array


def cut_short(caption: str, most: int) -> ValueError:
    """Make the error for a caption that an encoder would read the beginning of."""
    return ValueError(
        f"the caption {caption[:60]!r}... has more than the {most} tokens that this encoder reads, "
        "and would be cut; use fewer objects a scene"
    )


def in_batches(
    embed: Callable[[np.ndarray], torch.Tensor],
    n: int,
    dim: int,
    *,
    batch_size: int,
    what: str,
    lengths: ArrayLike | None = None,
) -> Float[np.ndarray, "n dim"]:
    """Call `embed` on batches of rows 0 to n - 1 and put the results back in order.

    Parameters
    ----------
    embed : callable
        Takes row numbers (K,), returns their embeddings (K, dim).
    n, dim : int
        The shape of the result.
    batch_size : int
    what : str
        What the rows are, for the progress bar (it appears after two seconds).
    lengths : array-like of int, shape (n,), optional
        Numbers of tokens. Rows of like length share a batch, so that little is spent on padding;
        the longest come first, so that a batch too big for memory fails at once.
    """
    import torch

    from binding_lib.progress import progress_bar

    order = np.arange(n) if lengths is None else np.argsort(-np.asarray(lengths), kind="stable")
    result = np.empty((n, dim), dtype=np.float32)
    with torch.inference_mode(), progress_bar(total=n, desc=what, delay=2, leave=False) as bar:
        for start in range(0, n, batch_size):
            rows = order[start : start + batch_size]
            result[rows] = embed(rows).float().cpu().numpy()
            bar.update(len(rows))
    return result
