"""The dual encoders that this library trains, read from a checkpoint."""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Float

from binding_lib.checks import unknown_name
from binding_lib.encoders.base import ModelEncoder
from binding_lib.encoders.weights import fingerprint
from binding_lib.scenes import SceneSet
from binding_lib.trained import load_dual_encoder
from binding_lib.views.captions import object_phrases


class DualSceneEncoder(ModelEncoder):
    """The scene encoder of a trained pair, behind the same door as every other encoder.

    It knows no language but that of its own space: a caption is read back into the scene that it
    was written from (`SceneSet.captions`), and that scene is encoded.

    Parameters
    ----------
    name : str
        What the encoder shall be called.
    folder : str
        The checkpoint.
    device : str
    """

    def __init__(self, name: str, folder: str, device: str = "auto") -> None:
        self.name = name
        self._model = load_dual_encoder(folder, device).model
        self.dim = self._model.dim
        space = self._model.space
        self._object_ids = {phrase: i for i, phrase in enumerate(object_phrases(space))}
        if len(self._object_ids) < space.n_objects:
            raise ValueError(
                f'{space!r} has two objects of one phrase, such as "light" with "blue ball" and '
                '"light blue" with "ball": what a caption names is not certain'
            )
        self.fingerprint = fingerprint(self._model, self._model.config, space.to_dict())

    def _embed_text(self, captions: list[str]) -> Float[np.ndarray, "N d"]:
        read = [self._read(caption) for caption in captions]
        lengths = np.array([len(ids) for ids in read])
        result = np.empty((len(read), self.dim), dtype=np.float32)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            scenes = SceneSet(self._model.space, [read[row] for row in rows])
            result[rows] = self._model.encode_scenes(scenes)
        return result

    def _read(self, caption: str) -> list[int]:
        """Find the objects that a caption names, in order."""
        phrases = re.split(", | and ", caption)
        for phrase in phrases:
            if phrase not in self._object_ids:
                raise unknown_name("object", phrase, self._object_ids)
        return [self._object_ids[phrase] for phrase in phrases]
