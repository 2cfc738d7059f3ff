"""Scenes as shaded pictures in the manner of CLEVR: solids on a plane, with soft shadows.

Mitsuba 3 traces the light (the extra "shaded"). Everything that varies from picture to picture is
drawn by `place`, so that whoever needs to know where an object lies can ask there.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from binding_lib.checks import check_count
from binding_lib.encoders.weights import require
from binding_lib.progress import in_threads
from binding_lib.scenes import SceneSet
from binding_lib.views.colours import COLOURS, object_looks

SHAPES = ("cube", "cylinder", "sphere")
MAX_OBJECTS = 3

_SAMPLES = 25  # light paths a pixel
_FIELD_OF_VIEW = 27.0  # degrees, of both sides: pictures are square
_TARGET = np.array([0.0, 0.0, 0.5])  # what the camera looks at

_RADIUS = (0.58, 0.66)  # at least and at most; a cube's half side is smaller, for its turning edges
_CUBE = 0.8
# Sideways between neighbours: two turned cubes at one depth do not touch.
_GAP = 1.6
# In depth between neighbours that overlap in the picture.
_DEPTH = 1.9

Look = tuple[str, str]  # colour and shape


@dataclass(frozen=True)
class Placement:
    """Where the things of one picture are; x points right, y away from the viewer, z up.

    Attributes
    ----------
    centres : ndarray, shape (m, 3)
        The objects' centres, in slot order, which is from left to right.
    halves : ndarray, shape (m,)
        Half of their heights, and of a cube's sides; the radii of the others.
    turns : ndarray, shape (m,)
        Degrees about the vertical, which show on cubes.
    camera, light : ndarray, shape (3,)
    """

    centres: Float[np.ndarray, "m 3"]
    halves: Float[np.ndarray, " m"]
    turns: Float[np.ndarray, " m"]
    camera: Float[np.ndarray, " 3"]
    light: Float[np.ndarray, " 3"]

    def pixels(self, size: int) -> Float[np.ndarray, "m 2"]:
        """Row and column at which each centre lies in a picture of size × size."""
        forward = (_TARGET - self.camera) / np.linalg.norm(_TARGET - self.camera)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        rays = self.centres - self.camera
        depth = rays @ forward * np.tan(np.radians(_FIELD_OF_VIEW / 2))
        across = np.stack([-(rays @ up), rays @ right], axis=1) / depth[:, None]  # from -1 to 1
        return (across + 1) / 2 * size


def place(looks: Sequence[Look], seed: int = 0, overlap: float = 0.0) -> Placement:
    """Draw where objects, camera and light of one picture are.

    Parameters
    ----------
    looks : sequence of (str, str)
        Colour and shape of each object, from left to right. They and the seed decide the draw, so
        that a scene looks the same in whatever company it is rendered.
    seed : int
    overlap : float
        How much of its width an object shares with its neighbour, from 0 to 0.9; above 0, either
        the first or the last object stands in front, by chance.
    """
    names = " ".join(word for look in looks for word in look)
    rng = np.random.default_rng([seed, zlib.crc32(names.encode())])
    m = len(looks)
    halves = rng.uniform(*_RADIUS, size=m)
    halves *= [_CUBE if shape == "cube" else 1 for _, shape in looks]
    gap = sum(_RADIUS) * (1 - overlap) if overlap else _GAP
    steps = np.arange(m) - (m - 1) / 2
    x = gap * steps + rng.uniform(-0.05, 0.05, size=m)
    if overlap:
        y = rng.choice([-_DEPTH, _DEPTH]) * steps + rng.uniform(-0.1, 0.1, size=m)
    else:
        y = rng.uniform(-1, 1, size=m)
    return Placement(
        centres=np.stack([x, y, halves], axis=1),
        halves=halves,
        turns=rng.uniform(0, 90, size=m),
        camera=np.array([0.0, -9.5, 5.0]) + rng.uniform(-0.4, 0.4, size=3),
        light=np.array([-3.5, -3.5, 7.0]) + rng.uniform(-0.6, 0.6, size=3),
    )


def render_shaded(
    scenes: SceneSet, size: int = 64, seed: int = 0, overlap: float = 0.0
) -> UInt8[np.ndarray, "N size size 3"]:
    """Render scenes as shaded solids.

    Parameters
    ----------
    scenes : SceneSet
        Of one to three objects, from left to right; concepts "colour" (values among
        `binding_lib.views.colours.COLOURS`) and "shape" (among cube, cylinder, sphere).
    size : int
        Pixels a side.
    seed : int
        Another seed gives another picture of every scene; one seed always gives the same picture
        of a scene, whatever other scenes are rendered with it.
    overlap : float
        How much of its width an object shares with its neighbour, from 0 to 0.9; above 0, either
        the first or the last object stands in front, by chance.

    Returns
    -------
    ndarray of uint8, shape (N, size, size, 3)

    Raises
    ------
    MissingExtraError
        If Mitsuba is not installed.
    ValueError
        If the space has other concepts or values, the scenes have more than three objects, or the
        overlap is outside its range.
    """
    size, seed = check_count("size", size, least=8), check_count("seed", seed, least=0)
    if scenes.n_slots > MAX_OBJECTS:
        raise ValueError(
            f"shaded scenes hold at most {MAX_OBJECTS} objects, got {scenes.n_slots} a scene"
        )
    if not 0 <= overlap <= 0.9:
        raise ValueError(f"overlap must be from 0 to 0.9, got {overlap}")
    look_of = object_looks(scenes.space, SHAPES)
    _start_ray_tracer()
    # A scene that is asked for several times is rendered once.
    distinct, rows = np.unique(scenes.object_ids, axis=0, return_inverse=True)
    pictures = np.empty((len(distinct), size, size, 3), dtype=np.uint8)
    jobs = [([look_of[i] for i in ids], size, seed, overlap) for ids in distinct]
    # Threads suffice: Mitsuba lets go of Python's lock while it traces.
    for row, picture in enumerate(in_threads(_render, jobs, "rendering")):
        pictures[row] = picture
    return pictures[rows.reshape(-1)]


@cache
def _start_ray_tracer() -> None:
    """Load a first scene: threads that load theirs first, and together, mix up two ray tracers."""
    mi = require("mitsuba", extra="shaded")
    mi.set_variant("scalar_rgb")
    mi.load_dict({"type": "scene", "any": {"type": "sphere"}})


def _render(
    looks: list[Look], size: int, seed: int, overlap: float
) -> UInt8[np.ndarray, "size size 3"]:
    mi = require("mitsuba", extra="shaded")
    mi.set_variant("scalar_rgb")
    placement = place(looks, seed, overlap)
    scene = mi.load_dict(_describe(mi, looks, placement, size))
    light = np.array(mi.render(scene, seed=seed))  # (size, size, 3), linear
    return _to_srgb(light)


def _describe(mi: ModuleType, looks: list[Look], where: Placement, size: int) -> dict[str, Any]:
    """The scene as Mitsuba wants it."""
    transform = mi.ScalarTransform4f()
    scene: dict[str, Any] = {
        "type": "scene",
        # From lamp and sky to a surface and into the camera; further ways would add specks.
        "integrator": {"type": "direct", "emitter_samples": 1, "bsdf_samples": 1},
        "sensor": {
            "type": "perspective",
            "fov": _FIELD_OF_VIEW,
            "to_world": transform.look_at(
                origin=where.camera.tolist(), target=_TARGET.tolist(), up=[0, 0, 1]
            ),
            "film": {
                "type": "hdrfilm",
                "width": size,
                "height": size,
                "pixel_format": "rgb",
                # Each pixel of its own light alone: sums do not depend on the order of threads.
                "rfilter": {"type": "box"},
            },
            "sampler": {"type": "multijitter", "sample_count": _SAMPLES},
        },
        "sky": {"type": "constant", "radiance": _grey(0.45)},
        "lamp": {
            "type": "sphere",
            "center": where.light.tolist(),
            "radius": 1.0,
            "emitter": {"type": "area", "radiance": _grey(40.0)},
        },
        "ground": {
            "type": "rectangle",
            "to_world": transform.scale(50),
            "bsdf": {"type": "diffuse", "reflectance": _grey(0.5)},
        },
    }
    for slot, (colour, shape) in enumerate(looks):
        surface = {
            "type": "principled",
            "base_color": {"type": "rgb", "value": _to_linear(COLOURS[colour]).tolist()},
            "roughness": 0.4,
            "specular": 0.5,
        }
        solid = _solid(
            transform,
            shape,
            where.centres[slot],
            float(where.halves[slot]),
            float(where.turns[slot]),
        )
        for i, part in enumerate(solid):
            scene[f"object{slot}_{i}"] = part | {"bsdf": surface}
    return scene


def _solid(
    transform: Any, shape: str, centre: np.ndarray, half: float, turn: float
) -> list[dict[str, Any]]:
    """The surfaces of a shape."""
    if shape == "sphere":
        return [{"type": "sphere", "center": centre.tolist(), "radius": half}]
    if shape == "cube":
        pose = transform.translate(centre.tolist()).rotate([0, 0, 1], turn).scale(half)
        return [{"type": "cube", "to_world": pose}]
    x, y, z = centre.tolist()
    top = transform.translate([x, y, z + half]).scale(half)
    return [
        {"type": "cylinder", "p0": [x, y, 0.0], "p1": [x, y, z + half], "radius": half},
        {"type": "disk", "to_world": top},
    ]


def _grey(level: float) -> dict[str, Any]:
    return {"type": "rgb", "value": level}


def _to_linear(rgb: Sequence[int]) -> np.ndarray:
    """Linear light of an sRGB colour (0 to 255)."""
    level = np.asarray(rgb) / 255
    return np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)


def _to_srgb(light: np.ndarray) -> UInt8[np.ndarray, ...]:
    """The sRGB bytes of linear light, cut off at white."""
    light = np.clip(light, 0, 1)
    level = np.where(light > 0.0031308, 1.055 * light ** (1 / 2.4) - 0.055, light * 12.92)
    return (level * 255).round().astype(np.uint8)
