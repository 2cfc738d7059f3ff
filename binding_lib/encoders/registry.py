"""Encoders by name."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from binding_lib.checks import unknown_name
from binding_lib.encoders.base import Encoder
from binding_lib.encoders.cache import CachedEncoder
from binding_lib.encoders.kinds import KINDS


def list_encoders() -> pd.DataFrame:
    """List the encoders that `load_encoder` knows, one row a kind.

    Returns
    -------
    DataFrame
        Columns ``name`` (a pattern: fill in the parts between angle brackets), ``text`` and
        ``images`` (whether it encodes them), ``network`` (whether its weights are downloaded, the
        first time), ``description``.
    """
    return pd.DataFrame([asdict(kind) for kind in KINDS])


def load_encoder(name: str, device: str = "auto", seed: int = 0, cache: bool = True) -> Encoder:
    """Load an encoder by its name.

    Parameters
    ----------
    name : str
        "minilm", "clip:ViT-B-32/random", ...: see `list_encoders` and the notes.
    device : str
        "auto" (an accelerator if there is one), or a device of torch.
    seed : int
        What ``random`` weights are drawn from; pretrained weights know no seed.
    cache : bool
        Keep embeddings on disk and read them back when the same encoder meets the same inputs. The
        folder is the user's cache folder, or the environment variable ``BINDING_LIB_CACHE``.

    Returns
    -------
    Encoder
        ``encode_text(captions)`` and, where it can, ``encode_images(images)`` give float32 arrays
        of shape (N, d), not normalised.

    Raises
    ------
    ValueError
        If there is no such encoder.
    WeightsUnavailableError
        If the weights cannot be downloaded. Nothing else is loaded in their place.
    MissingExtraError
        If an optional package is not installed.

    Notes
    -----
    ``clip:<architecture>/<weights>`` goes to open_clip: ``<weights>`` is one of its pretrained
    tags, a checkpoint file, or ``random``. Weights trained with QuickGELU (OpenAI's, for instance)
    need the architecture that ends in ``-quickgelu``; the other one is refused.

    Examples
    --------
    >>> encoder = load_encoder("minilm")  # doctest: +SKIP
    >>> encoder.encode_text(["a red cube and a blue ball"]).shape  # doctest: +SKIP
    (1, 384)
    """
    encoder = _load(name, device, seed)
    return CachedEncoder(encoder) if cache else encoder


def _load(name: str, device: str, seed: int) -> Encoder:
    """Load without a cache. The model libraries take seconds to import, so only one is."""
    kind, _, rest = str(name).partition(":")
    if name == "minilm":
        from binding_lib.encoders.minilm import minilm

        return minilm(device)
    if kind == "pocket-clip" and rest:
        from binding_lib.encoders.pocket import pocket_encoder

        return pocket_encoder(name, rest, device, seed)
    if kind == "sentence" and rest:
        from binding_lib.encoders.sentence import SentenceEncoder

        return SentenceEncoder(name, rest, device)
    architecture, _, weights = rest.partition("/")
    if kind == "clip" and architecture and weights:
        from binding_lib.encoders.clip import ClipEncoder

        return ClipEncoder(name, architecture, weights, device, seed)
    if kind == "dino" and rest:
        from binding_lib.encoders.dino import DinoEncoder

        random = rest.endswith("/random")
        return DinoEncoder(name, rest.removesuffix("/random"), random, device, seed)
    if kind == "dual" and rest:
        from binding_lib.encoders.dual import DualSceneEncoder

        return DualSceneEncoder(name, rest, device)
    raise unknown_name("encoder", name, [known.name for known in KINDS])
