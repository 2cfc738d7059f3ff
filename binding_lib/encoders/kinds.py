"""The kinds of encoder there are: one table that listings, look-ups and errors all read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EncoderKind:
    """One way to name an encoder.

    Attributes
    ----------
    name : str
        The name, or its pattern with the parts to fill in between angle brackets.
    text, images : bool
        What it encodes.
    network : bool
        Whether the weights are downloaded, once, the first time.
    description : str
    """

    name: str
    text: bool
    images: bool
    network: bool
    description: str


KINDS = (
    EncoderKind("minilm", True, False, False, "all-MiniLM-L6-v2, pretrained"),
    EncoderKind(
        "pocket-clip:low",
        True,
        True,
        False,
        "our own small image-text pair (not CLIP), trained on a quarter of 256 objects",
    ),
    EncoderKind(
        "pocket-clip:high",
        True,
        True,
        False,
        "the same, trained on four fifths of the objects",
    ),
    EncoderKind("pocket-clip:random", True, True, False, "the same, untrained"),
    EncoderKind("pocket-clip:<folder>", True, True, False, "one that you trained"),
    EncoderKind(
        "sentence:<name or folder>", True, False, True, "any sentence-transformers text model"
    ),
    EncoderKind(
        "clip:<architecture>/<weights>",
        True,
        True,
        True,
        "any open_clip model, by pretrained tag or checkpoint file",
    ),
    EncoderKind(
        "clip:<architecture>/random",
        True,
        True,
        False,
        "the same, untrained, weights drawn by seed",
    ),
    EncoderKind("dino:<timm name>", False, True, True, "any timm image model, such as DINOv2"),
    EncoderKind(
        "dino:<timm name>/random", False, True, False, "the same, untrained, weights drawn by seed"
    ),
    EncoderKind(
        "dual:<checkpoint>",
        True,
        False,
        False,
        "the scene encoder of a pair trained here; binding, failing and bag come with the library",
    ),
)


def offline_choices() -> str:
    """List the names that work without a network, as a phrase."""
    return ", ".join(kind.name for kind in KINDS if not kind.network)


def encoders_of(modality: str) -> str:
    """List the names of encoders that take a modality ("text" or "images"), as a phrase."""
    return ", ".join(kind.name for kind in KINDS if getattr(kind, modality))
