"""The course's own image-text pair behind the same door as every other encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from binding_lib.checkpoints import has_checkpoint
from binding_lib.checks import unknown_name
from binding_lib.encoders.base import ModelEncoder, in_batches
from binding_lib.encoders.weights import fingerprint, resolve_device, seeded_weights
from binding_lib.pocket import (
    PICTURE_SIZE,
    PocketClip,
    PocketClipConfig,
    load_pocket_clip,
    pocket_space,
)

# The checkpoints that come with the library, by their coverage, and where they lie.
SHIPPED = ("low", "high")
WEIGHTS = Path(__file__).parents[1] / "pocket_weights"

_BATCH_SIZE = 512


class PocketEncoder(ModelEncoder):
    """A pocket pair as an encoder. It is ours, and no CLIP.

    Parameters
    ----------
    name : str
        What the encoder shall be called.
    model : PocketClip

    Notes
    -----
    Pictures of another size are scaled to the 32 x 32 pixels that it was trained on. Captions may
    hold the words of its space, "a", "an", "and" and commas.
    """

    def __init__(self, name: str, model: PocketClip) -> None:
        self.name = name
        self.dim = model.config.output
        self.fingerprint = fingerprint(model, model.config, model.space.to_dict())
        self._model = model.eval()

    def _embed_text(self, captions: list[str]) -> Float[np.ndarray, "N d"]:
        return in_batches(
            lambda rows: self._model.encode_captions([captions[row] for row in rows]),
            len(captions),
            self.dim,
            batch_size=_BATCH_SIZE,
            what=f"captions by {self.name}",
        )

    def _embed_images(self, images: UInt8[np.ndarray, "N H W 3"]) -> Float[np.ndarray, "N d"]:
        device = self._model.log_scale.device

        def embed(rows: np.ndarray) -> torch.Tensor:
            batch = np.stack([_fit(image) for image in images[rows]])
            return self._model.images(torch.from_numpy(batch).to(device))

        return in_batches(
            embed,
            len(images),
            self.dim,
            batch_size=_BATCH_SIZE,
            what=f"images by {self.name}",
        )


def pocket_encoder(name: str, weights: str, device: str = "auto", seed: int = 0) -> PocketEncoder:
    """Load the pair that saw few objects ("low"), many ("high"), none at all ("random"), or yours.

    Anything else is the folder of a checkpoint that `train_pocket_clip` keeps.
    """
    if weights == "random":
        with seeded_weights(seed):
            model = PocketClip(PocketClipConfig(), pocket_space())
        return PocketEncoder(name, model.to(resolve_device(device)))
    folder = WEIGHTS / weights if weights in SHIPPED else Path(weights)
    if not has_checkpoint(folder):
        raise unknown_name("pocket pair", weights, (*SHIPPED, "random", "a checkpoint's folder"))
    return PocketEncoder(name, load_pocket_clip(folder, device).model)


def _fit(image: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "32 32 3"]:
    if image.shape[:2] == (PICTURE_SIZE, PICTURE_SIZE):
        return image
    size = (PICTURE_SIZE, PICTURE_SIZE)
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BOX))
