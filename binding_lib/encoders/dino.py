"""Images through timm: DINOv2 and every other image model there, pretrained or untrained."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from binding_lib.checks import unknown_name
from binding_lib.encoders.base import ModelEncoder, in_batches
from binding_lib.encoders.weights import (
    fetch,
    fingerprint,
    require,
    resolve_device,
    seeded_weights,
)

_BATCH_SIZE = 64


class DinoEncoder(ModelEncoder):
    """A timm model without its classifier: the pooled features are the embedding.

    Parameters
    ----------
    name : str
        What the encoder shall be called.
    model_name : str
        A name that timm knows, such as "vit_small_patch14_dinov2.lvd142m".
    random : bool
        Draw the weights from `seed`, rather than downloading them.
    device : str
    seed : int

    Raises
    ------
    ValueError
        If timm knows no such model, or has no pretrained weights for it.
    WeightsUnavailableError
        If they cannot be downloaded.
    """

    def __init__(
        self, name: str, model_name: str, random: bool, device: str = "auto", seed: int = 0
    ) -> None:
        timm = require("timm", "dino")
        place = resolve_device(device)
        if not timm.is_model(model_name):
            raise unknown_name("timm model", model_name, timm.list_models())
        if random:
            with seeded_weights(seed):
                model = timm.create_model(model_name, pretrained=False, num_classes=0)
        else:
            if not timm.models.is_model_pretrained(model_name):
                raise ValueError(
                    f"timm has no pretrained weights of {model_name!r}; "
                    f"expected another model, or dino:{model_name}/random"
                )
            model = fetch(
                name, lambda: timm.create_model(model_name, pretrained=True, num_classes=0)
            )
        preprocessing = timm.data.resolve_model_data_config(model)
        self._preprocess = timm.data.create_transform(**preprocessing, is_training=False)
        self.name = name
        self.dim = int(model.head_hidden_size)
        self.fingerprint = fingerprint(model, model_name, preprocessing, timm.__version__)
        self._model = model.to(place).eval()
        self._device = place

    def _embed_images(self, images: UInt8[np.ndarray, "N H W 3"]) -> Float[np.ndarray, "N d"]:
        def embed(rows: np.ndarray) -> torch.Tensor:
            batch = torch.stack([self._preprocess(Image.fromarray(images[row])) for row in rows])
            return self._model(batch.to(self._device))  # (K, 3, size, size) -> (K, d)

        return in_batches(
            embed, len(images), self.dim, batch_size=_BATCH_SIZE, what=f"images by {self.name}"
        )
