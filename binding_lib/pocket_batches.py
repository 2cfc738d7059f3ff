"""What the pocket pair is shown at each step of its training: pictures, captions, and what is true.

Pictures are of two kinds:

- scenes of two training objects, captioned twice: in full, the objects named in any order, and in
  part ("a red circle", "red", "a circle");
- concept-only pictures: two named shapes in colours that have no name, captioned by one shape, and
  two shapeless blobs in named colours, captioned by one colour.

The second kind is what makes words for colours and shapes mean more than the objects that training
saw: without it a pair that sees few objects learns those by heart, and no concepts at all.

A batch's scenes are made of few objects (a **sub-grid**, as in `binding_lib.batches`), so that the
swap of a scene is often in the same batch. Among random scenes of 256 objects it hardly ever is,
and a bag of concepts is all that the loss asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt8

from binding_lib.batches import grid_sides
from binding_lib.concepts import ConceptSpace, ObjectSplit, Seed
from binding_lib.scenes import SceneSet
from binding_lib.views.captions import object_phrases, value_phrases
from binding_lib.views.colours import COLOURS
from binding_lib.views.flat import BACKGROUND, SHAPES, Outline, Places, paint, polygon


@dataclass(frozen=True)
class PocketBatch:
    """P pictures and two lists of captions for them.

    Attributes
    ----------
    images : ndarray of uint8, shape (P, size, size, 3)
    captions : list of (list of str, ndarray of bool)
        Twice: P captions, the one of row i for picture i; and, of shape (P, P), whether caption j
        is true of picture i. First with scenes captioned in full, then in part.
    """

    images: UInt8[np.ndarray, "P size size 3"]
    captions: list[tuple[list[str], Bool[np.ndarray, "P P"]]]


class PocketBatches:
    """Draws batches from the training objects of a split.

    Parameters
    ----------
    split : ObjectSplit
        Of a space with the concepts "colour" and "shape", in this order.
    n_scenes : int
        Pictures of scenes in a batch, all different; there may be fewer where `n_objects` do not
        make as many.
    n_objects : int
        About how many training objects the scenes of a batch are made of: all those with some
        values of each concept, drawn anew for every batch.
    n_concept_only : int
        Concept-only pictures besides: half of them shapes, half of them colours.
    size : int
        Pixels of a picture's side.
    jitter : float
        How far positions and sizes vary.
    """

    def __init__(
        self,
        split: ObjectSplit,
        n_scenes: int,
        n_objects: int,
        n_concept_only: int,
        size: int,
        jitter: float,
    ) -> None:
        self.space, self.size = split.space, size
        scenes = differing_pairs(split.space, split.train)
        self.pairs, self.pair_values = scenes.object_ids, scenes.values
        self.sides = grid_sides(list(split.space.sizes), n_objects / split.coverage)
        self.n_scenes = n_scenes
        self.n_shape_only = n_concept_only // 2
        self.n_colour_only = n_concept_only - self.n_shape_only
        self.colours = np.array([COLOURS[c] for c in self.space.value_names("colour")], np.uint8)
        self.shapes = np.array([list(SHAPES).index(s) for s in self.space.value_names("shape")])
        self.unnamed = unnamed_colours()
        self.blobs = [blob(seed) for seed in range(32)]
        # Facts about a picture, one column each: its objects, then its colours, then its shapes.
        self.phrases = [
            *object_phrases(self.space),
            *value_phrases(self.space, "colour"),
            *value_phrases(self.space, "shape"),
        ]
        self.first_colour = self.space.n_objects
        self.first_shape = self.first_colour + len(self.colours)
        self.places = Places(n_slots=2, size=size, jitter=jitter)

    def draw(self, rng: np.random.Generator) -> PocketBatch:
        """Draw one batch."""
        ids = self._scenes(rng)  # (n, 2)
        values = self.space.values(ids)  # (n, 2, 2): colour, shape
        lone_shapes = _two_different(len(self.shapes), self.n_shape_only, rng)
        lone_colours = _two_different(len(self.colours), self.n_colour_only, rng)
        facts = np.zeros((len(ids) + len(lone_shapes) + len(lone_colours), len(self.phrases)), bool)
        scenes, shape_only, colour_only = np.split(
            np.arange(len(facts)), [len(ids), len(ids) + len(lone_shapes)]
        )
        facts[scenes[:, None], ids] = True
        facts[scenes[:, None], self.first_colour + values[..., 0]] = True
        facts[scenes[:, None], self.first_shape + values[..., 1]] = True
        facts[shape_only[:, None], self.first_shape + lone_shapes] = True
        facts[colour_only[:, None], self.first_colour + lone_colours] = True

        full = np.full((len(facts), 2), -1)  # the one or two facts that each caption names
        full[shape_only, 0] = self.first_shape + lone_shapes[:, 0]
        full[colour_only, 0] = self.first_colour + lone_colours[:, 0]
        partial = full.copy()
        full[scenes] = rng.permuted(ids, axis=1)
        slot = rng.integers(2, size=len(ids))
        colour, shape = values[scenes, slot].T
        choices = [ids[scenes, slot], self.first_colour + colour, self.first_shape + shape]
        # Half of them objects: those are what has to be bound.
        kind = rng.choice(3, p=[0.5, 0.25, 0.25], size=len(ids))
        partial[scenes, 0] = np.choose(kind, choices)

        n_unnamed = (len(lone_shapes), 2)
        images = self._paint(
            shapes=np.concatenate(
                [
                    self.shapes[values[..., 1]],
                    self.shapes[lone_shapes],
                    len(SHAPES) + rng.integers(len(self.blobs), size=lone_colours.shape),
                ]
            ),
            colours=np.concatenate(
                [
                    self.colours[values[..., 0]],
                    self.unnamed[rng.integers(len(self.unnamed), size=n_unnamed)],
                    self.colours[lone_colours],
                ]
            ),
            rng=rng,
        )
        return PocketBatch(images, [self._captions(named, facts) for named in (full, partial)])

    def _captions(
        self, named: Int[np.ndarray, "P 2"], facts: Bool[np.ndarray, "P F"]
    ) -> tuple[list[str], Bool[np.ndarray, "P P"]]:
        """Write captions that name one or two facts each, and find which are true of which."""
        captions = [" and ".join(self.phrases[f] for f in row if f >= 0) for row in named]
        first, second = named.T
        return captions, facts[:, first] & (facts[:, second] | (second < 0))

    def _scenes(self, rng: np.random.Generator) -> Int[np.ndarray, "n 2"]:
        """Draw different pairs of training objects from a sub-grid, left and right at random."""
        inside = np.ones(len(self.pairs), dtype=bool)
        for concept, (size, side) in enumerate(zip(self.space.sizes, self.sides, strict=True)):
            chosen = np.zeros(size, dtype=bool)
            chosen[rng.permutation(size)[:side]] = True
            inside &= chosen[self.pair_values[:, :, concept]].all(axis=1)
        rows = rng.permutation(np.flatnonzero(inside))[: self.n_scenes]
        return rng.permuted(self.pairs[rows], axis=1)

    def _paint(
        self, shapes: np.ndarray, colours: np.ndarray, rng: np.random.Generator
    ) -> UInt8[np.ndarray, "P size size 3"]:
        # Any numbers do as ids here: no two pictures of a batch shall stand alike.
        centres, radii = self.places.draw(rng.integers(2**62, size=shapes.shape))
        outlines = [*SHAPES.values(), *self.blobs]
        return paint(outlines, shapes, colours, centres, radii, self.size)


def differing_pairs(space: ConceptSpace, ids: np.ndarray, seed: Seed = 0) -> SceneSet:
    """All scenes of two of these objects that differ in every concept, once for each pair.

    Their order, and which object is left, are drawn from the seed.
    """
    first, second = np.triu_indices(len(ids), k=1)
    pairs = np.stack([ids[first], ids[second]], axis=1)
    values = space.values(pairs)
    pairs = pairs[(values[:, 0] != values[:, 1]).all(axis=1)]
    rng = np.random.default_rng(seed)
    return SceneSet(space, rng.permuted(rng.permutation(pairs), axis=1))


def unnamed_colours(n: int = 4096) -> UInt8[np.ndarray, "n 3"]:
    """Colours that are none of the named ones, nor the ground: at least 40 away from each."""
    known = np.array([*COLOURS.values(), BACKGROUND])
    colours = np.random.default_rng(0).integers(256, size=(4 * n, 3))
    distance = np.linalg.norm(colours[:, None] - known, axis=-1).min(axis=1)
    return colours[distance >= 40][:n].astype(np.uint8)


def blob(seed: int) -> Outline:
    """Draw a closed curve without corners that is none of the named shapes."""
    rng = np.random.default_rng(seed)
    turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    waves = np.arange(2, 6)
    phases = rng.uniform(0, 2 * np.pi, size=len(waves))
    heights = rng.uniform(0.0, 0.5, size=len(waves)) / waves
    radius = 0.75 + (heights[:, None] * np.cos(waves[:, None] * turn + phases[:, None])).sum(axis=0)
    radius /= max(1.0, radius.max())
    return (polygon(np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)),)


def _two_different(n: int, rows: int, rng: np.random.Generator) -> Int[np.ndarray, "rows 2"]:
    first = rng.integers(n, size=rows)
    return np.stack([first, (first + rng.integers(1, n, size=rows)) % n], axis=1)
