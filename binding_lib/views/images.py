"""Scenes as pictures: flat shapes, or solid bodies in light and shadow."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence

import numpy as np
from IPython.display import HTML
from jaxtyping import UInt8
from PIL import Image

from binding_lib.checks import check_choice, check_count
from binding_lib.encoders.base import check_images
from binding_lib.scenes import SceneSet
from binding_lib.views.flat import render_flat

STYLES = ("flat", "shaded")

_LARGEST = 2048  # pixels of a side: a shape's mask takes 256 times the memory of its pixels


def render_images(
    scenes: SceneSet,
    style: str = "flat",
    size: int = 64,
    seed: int = 0,
    *,
    overlap: float = 0.0,
    jitter: float = 0.0,
) -> UInt8[np.ndarray, "N size size 3"]:
    """Draw one picture of each scene.

    Parameters
    ----------
    scenes : SceneSet
        Of a space with the concepts "colour" (or "color") and "shape".
    style : str
        "flat": the shapes of `binding_lib.views.flat.SHAPES` on a grey ground. "shaded": cubes,
        cylinders and spheres on a ground plane, with shadows (`binding_lib.views.shaded`; it needs
        the package extra of that name).
    size : int
        Pixels of a picture's side, at most 2048.
    seed : int
        Less than 2 ** 32. Decides all that varies. A scene's picture hangs on the scene and the
        seed alone, so the same scene looks the same whatever else is drawn; another seed gives
        another picture (of flat shapes, only with `jitter`).
    overlap : float
        From 0 to 0.9: about which share of an object's width its neighbour covers. In flat pictures
        the later slot is in front; in shaded ones the seed decides.
    jitter : float
        From 0 to 1: how far positions and sizes vary in flat pictures. Shaded ones always vary.

    Returns
    -------
    ndarray of uint8, shape (N, size, size, 3)

    Raises
    ------
    ValueError
        If a colour or shape cannot be drawn (the known ones are named), or a number is out of
        range.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, SceneSet, render_images
    >>> space = ConceptSpace({"colour": ["red", "blue"], "shape": ["square", "circle"]})
    >>> picture = render_images(SceneSet(space, [[0, 3]]), size=32)[0]
    >>> picture[16, 8].tolist(), picture[16, 24].tolist()  # left red, right blue
    ([173, 35, 35], [42, 75, 215])
    """
    check_count("size", size, most=_LARGEST)
    check_count("seed", seed, least=0, most=2**32 - 1)
    if check_choice("picture style", style, STYLES) == "flat":
        return render_flat(scenes, size, seed, jitter, overlap)
    if jitter:
        raise ValueError(f"shaded pictures vary by themselves; expected jitter 0, got {jitter}")
    # Imported here because most readers draw flat pictures only.
    from binding_lib.views.shaded import render_shaded

    return render_shaded(scenes, size, seed, overlap)


def gallery(
    images: UInt8[np.ndarray, "N H W 3"],
    captions: Sequence[str],
    *,
    width: int = 112,
) -> HTML:
    """Lay pictures out in rows that break where the page ends, each with its caption below.

    Parameters
    ----------
    images : ndarray of uint8, shape (N, H, W, 3)
    captions : sequence of str, length N
        Also read out by screen readers, in the picture's place.
    width : int
        Pixels of a picture on the page; small pictures are enlarged without blurring.

    Returns
    -------
    IPython.display.HTML
        Self-contained: the pictures are in it.
    """
    pictures = check_images(images)
    if len(captions) != len(pictures):
        raise ValueError(f"got {len(captions)} captions for {len(pictures)} pictures")
    figures = [
        f'<figure style="margin:0;width:{width}px">'
        f'<img src="{data_url(picture)}" alt="{html.escape(caption)}" '
        f'style="width:{width}px;height:auto;image-rendering:pixelated">'
        # The caption repeats the picture's text, which need not be read out twice.
        f'<figcaption aria-hidden="true" style="font-size:0.8em;line-height:1.25">'
        f"{html.escape(caption)}</figcaption></figure>"
        for picture, caption in zip(pictures, captions, strict=True)
    ]
    style = "display:flex;flex-wrap:wrap;gap:12px"
    return HTML(f'<div style="{style}">' + "".join(figures) + "</div>")


def data_url(picture: UInt8[np.ndarray, "H W 3"]) -> str:
    """Write a picture as the address of a PNG that holds it."""
    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
