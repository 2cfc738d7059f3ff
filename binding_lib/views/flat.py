"""Flat pictures: one-coloured shapes side by side on a grey ground.

Pillow draws each shape once, as an anti-aliased mask for every radius that is needed; numpy then
lays the masks of all scenes at the same time. So a picture costs a few microseconds, and training
can draw new ones for every step.

Slots stand from left to right. Where objects overlap, **the later slot is in front**: the second
object covers part of the first, the third part of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw

from binding_lib.checks import check_count
from binding_lib.scenes import SceneSet
from binding_lib.views.colours import COLOURS, object_looks

BACKGROUND = (150, 150, 150)

Polygon = tuple[tuple[float, float], ...]
Outline = tuple[Polygon, ...]
"""Polygons whose union is a shape: corners (x, y) from -1 to 1, y downwards."""

_FINER = 16  # pixels of Pillow's drawing for each pixel of the mask, in either direction
_AT_A_TIME = 2048  # scenes, so that memory does not grow with their number


def polygon(corners: ArrayLike) -> Polygon:
    """Make a polygon of an array of shape (n, 2)."""
    return tuple((float(x), float(y)) for x, y in np.asarray(corners))


def _disc(x: float = 0, y: float = 0, radius: float = 1) -> Polygon:
    turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    return polygon(np.stack([x + radius * np.cos(turn), y + radius * np.sin(turn)], axis=1))


def _star() -> Polygon:
    turn = np.arange(10) * np.pi / 5
    radius = np.where(np.arange(10) % 2 == 0, 1.05, 0.44)
    return polygon(np.stack([radius * np.sin(turn), 0.1 - radius * np.cos(turn)], axis=1))


def _heart() -> Polygon:
    t = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return polygon(np.stack([np.sin(t) ** 3, -(y + 2.5) / 15], axis=1))


def _crescent() -> Polygon:
    outer = np.linspace(0.25 * np.pi, 1.75 * np.pi, 40)
    moon = np.stack([np.cos(outer), np.sin(outer)], axis=1)
    inner = np.linspace(1.5 * np.pi, 0.5 * np.pi, 40)  # from the upper horn back to the lower one
    bite = np.stack([np.cos(outer[0]) + 0.55 * np.cos(inner), np.sin(outer[0]) * np.sin(inner)], 1)
    return polygon(np.concatenate([moon, bite]) + np.array([0.15, 0.0]))


SHAPES: dict[str, Outline] = {
    "square": (((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),),
    "triangle": (((0, -1), (1, 0.85), (-1, 0.85)),),
    "circle": (_disc(radius=0.95),),
    "diamond": (((0, -1), (0.75, 0), (0, 1), (-0.75, 0)),),
    "star": (_star(),),
    "heart": (_heart(),),
    "cross": (
        ((-0.32, -1), (0.32, -1), (0.32, 1), (-0.32, 1)),
        ((-1, -0.32), (1, -0.32), (1, 0.32), (-1, 0.32)),
    ),
    "arrow": (
        ((-1, -0.28), (0.1, -0.28), (0.1, 0.28), (-1, 0.28)),
        ((0, -0.9), (1, 0), (0, 0.9)),
    ),
    "bolt": (
        ((0.45, -1), (-0.6, 0.2), (0.1, 0.2)),
        ((-0.45, 1), (0.6, -0.2), (-0.1, -0.2)),
    ),
    "bar": (((-1, -0.38), (1, -0.38), (1, 0.38), (-1, 0.38)),),
    "tee": (
        ((-0.9, -0.9), (0.9, -0.9), (0.9, -0.35), (-0.9, -0.35)),
        ((-0.28, -0.4), (0.28, -0.4), (0.28, 1), (-0.28, 1)),
    ),
    "hourglass": (((-0.85, -1), (0.85, -1), (0.2, 0), (0.85, 1), (-0.85, 1), (-0.2, 0)),),
    "crescent": (_crescent(),),
    "drop": (
        _disc(y=0.4, radius=0.6),
        ((0, -1), (0.53, 0.15), (-0.53, 0.15)),
    ),
    "flower": (
        _disc(x=-0.5, radius=0.48),
        _disc(x=0.5, radius=0.48),
        _disc(y=-0.5, radius=0.48),
        _disc(y=0.5, radius=0.48),
        _disc(radius=0.3),
    ),
    "crown": (((-1, -0.8), (-0.5, 0), (0, -0.8), (0.5, 0), (1, -0.8), (1, 0.75), (-1, 0.75)),),
}
"""Outlines by name; all of them cover their own middle."""


def render_flat(
    scenes: SceneSet, size: int = 64, seed: int = 0, jitter: float = 0.0, overlap: float = 0.0
) -> UInt8[np.ndarray, "N size size 3"]:
    """Draw scenes as flat shapes: see `binding_lib.views.images.render_images`."""
    looks = object_looks(scenes.space, list(SHAPES))
    colours = np.array([COLOURS[colour] for colour, _ in looks], dtype=np.uint8)
    names = list(SHAPES)
    shapes = np.array([names.index(shape) for _, shape in looks])
    ids = scenes.object_ids
    places = Places(scenes.n_slots, size, jitter, overlap)
    centres, radii = places.draw(ids, seed)
    return paint(list(SHAPES.values()), shapes[ids], colours[ids], centres, radii, size)


class Places:
    """Where objects stand in a picture, and how large they are.

    Parameters
    ----------
    n_slots : int
        m, the number of objects in each picture.
    size : int
        Pixels of a picture's side; at least 8 for each slot, and 16.
    jitter : float
        From 0 to 1: how far positions and radii leave their standard. At 1 a radius shrinks by up
        to three tenths and a centre moves by up to a fifth of the picture up and down, and
        sideways as far as its slot has room.
    overlap : float
        The share of an object's width that the next object covers when there is no jitter. At 0
        objects stand apart, in the middle of their slots.
    """

    def __init__(
        self, n_slots: int, size: int = 64, jitter: float = 0.0, overlap: float = 0.0
    ) -> None:
        least = max(16, 8 * n_slots)
        if check_count("size", size) < least:
            raise ValueError(f"pictures of {n_slots} objects need a size of {least}, got {size}")
        for name, value, limit in (("jitter", jitter, 1), ("overlap", overlap, 0.9)):
            if not 0 <= value <= limit:
                raise ValueError(f"{name} must be from 0 to {limit}, got {value!r}")
        self.size, self.jitter, self.overlap = size, jitter, overlap
        self.slot = size / max(n_slots, 2)
        self.radius = np.floor(2 * 0.42 * self.slot) / 2  # whole half pixels, as all radii
        slots = np.arange(n_slots)
        step = 2 * self.radius * (1 - overlap) if overlap else size / n_slots
        self.centres = size / 2 + (slots - (n_slots - 1) / 2) * step

    def draw(
        self, ids: Int[np.ndarray, "N m"], seed: int = 0
    ) -> tuple[Int[np.ndarray, "N m 2"], Float[np.ndarray, "N m"]]:
        """Centres (x, y), on the corners of pixels, and radii, in half pixels.

        They hang on the seed and on the objects of the picture alone.
        """
        smaller, across, down = np.moveaxis(_uniform(ids, seed, 3), -1, 0)  # (N, m) each
        radii = np.round(2 * self.radius * (1 - 0.3 * self.jitter * smaller)) / 2
        # Half a pixel is left for the rounding of centres.
        room = 0.0 if self.overlap else np.maximum(self.slot / 2 - radii - 0.5, 0)
        x = self.centres + self.jitter * (2 * across - 1) * room
        y = self.size / 2 + self.jitter * (2 * down - 1) * self.size / 5
        return np.stack([np.round(x), np.round(y)], axis=-1).astype(np.int64), radii


def paint(
    outlines: Sequence[Outline],
    shapes: Int[np.ndarray, "N m"],
    colours: UInt8[np.ndarray, "N m 3"],
    centres: Int[np.ndarray, "N m 2"],
    radii: Float[np.ndarray, "N m"],
    size: int,
) -> UInt8[np.ndarray, "N size size 3"]:
    """Lay coloured shapes on the ground, the last slot of each picture in front.

    Parameters
    ----------
    outlines : sequence of Outline
    shapes : ndarray of int, shape (N, m)
        Which of the outlines.
    colours : ndarray of uint8, shape (N, m, 3)
    centres : ndarray of int, shape (N, m, 2)
        Corners of pixels, (x, y), inside the picture.
    radii : ndarray of float, shape (N, m)
        In pixels, multiples of a half.
    size : int
    """
    n, m = shapes.shape
    halves = np.round(2 * radii).astype(np.int64)
    used, rows = np.unique(shapes * (2 * size) + halves, return_inverse=True)
    rows = rows.reshape(n, m)
    side = 2 * (int(halves.max(initial=2)) // 2 + 1)  # pixels of a mask that holds the largest
    masks = np.stack(
        [draw_mask(outlines[key // (2 * size)], key % (2 * size) / 2, side) for key in used]
        or [np.empty((side, side), dtype=np.uint8)]
    )
    half = side // 2
    wide = size + side  # a margin takes what reaches over the edges
    inside = (np.arange(side)[:, None] * wide + np.arange(side)).reshape(-1)  # from its corner
    pictures = np.empty((n, size, size, 3), dtype=np.uint8)
    for start in range(0, n, _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        canvas = np.empty((len(pictures[part]), wide * wide, 3), dtype=np.uint8)
        canvas[:] = BACKGROUND
        picture = np.arange(len(canvas))[:, None]
        for slot in range(m):
            x, y = centres[part, slot].T
            pixels = (y * wide + x)[:, None] + inside  # (n, side * side)
            alpha = masks[rows[part, slot]].reshape(len(x), -1, 1).astype(np.uint16)
            above = colours[part, slot, None].astype(np.uint16)
            # Exact where a mask is 0 or 255; 255 * 255 + 127 just fits into 16 bits.
            blend = ((255 - alpha) * canvas[picture, pixels] + alpha * above + 127) // 255
            canvas[picture, pixels] = blend
        middle = slice(half, half + size)
        pictures[part] = canvas.reshape(-1, wide, wide, 3)[:, middle, middle]
    return pictures


@lru_cache(maxsize=4096)
def draw_mask(outline: Outline, radius: float, side: int) -> UInt8[np.ndarray, "side side"]:
    """How much of each pixel a shape covers, 0 to 255, in the middle of a square mask."""
    finer = Image.new("L", (side * _FINER, side * _FINER))
    pen = ImageDraw.Draw(finer)
    for part in outline:
        # Pillow's pixels have their centres at whole numbers.
        corners = (side / 2 + radius * np.array(part)) * _FINER - 0.5
        pen.polygon([tuple(corner) for corner in corners], fill=255)
    mask = np.array(finer.reduce(_FINER))
    mask.setflags(write=False)  # it is kept
    return mask


def _uniform(ids: Int[np.ndarray, "N m"], seed: int, n: int) -> Float[np.ndarray, "N m n"]:
    """Numbers in [0, 1) that hang on the seed, the picture's objects and the slot, on nothing else.

    A hash (the finaliser of SplitMix64) takes the place of a generator, so that a scene looks the
    same whatever other scenes are drawn beside it.
    """
    key = np.full(len(ids), check_count("seed", seed, least=0), dtype=np.uint64)
    for slot in range(ids.shape[1]):
        key = _mixed(key + ids[:, slot].astype(np.uint64))
    counters = np.arange(1, ids.shape[1] * n + 1, dtype=np.uint64).reshape(ids.shape[1], n)
    return (_mixed(key[:, None, None] + counters) >> np.uint64(11)) / 2.0**53


def _mixed(x: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit numbers (Steele, Lea & Flood 2014)."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
