"""What is in front of us: scenes of m objects, how to draw them, and their binding distractors."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from binding_lib.checks import check_count
from binding_lib.concepts import OBJECT, ConceptSpace, Seed
from binding_lib.files import atomic_path


class SceneSet:
    """N scenes of m objects each, in slot order (first, second, ...; left, right).

    Parameters
    ----------
    space : ConceptSpace
    object_ids : array-like of int, shape (N, m)
        The object that stands in each slot. N may be 0; m is at least 1.

    Attributes
    ----------
    space : ConceptSpace
    object_ids : ndarray of int64, shape (N, m), read-only

    Raises
    ------
    ValueError
        If the shape is not (N, m) or an id lies outside the space.

    Examples
    --------
    >>> space = ConceptSpace({"colour": ["red", "blue"], "shape": ["cube", "ball"]})
    >>> scenes = SceneSet(space, [[0, 3]])
    >>> scenes.captions()
    ['a red cube and a blue ball']
    >>> [space.object_name(i) for i in swaps(scenes)[0]]
    ['red ball', 'blue cube']
    """

    def __init__(self, space: ConceptSpace, object_ids: ArrayLike) -> None:
        ids = space.check_ids(object_ids)
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(
                f"object_ids must have shape (N, m) with m >= 1 objects a scene, got {ids.shape}"
            )
        ids.setflags(write=False)
        self.space = space
        self.object_ids: Int[np.ndarray, "N m"] = ids

    @property
    def n_slots(self) -> int:
        """m, the number of objects in each scene."""
        return self.object_ids.shape[1]

    @property
    def values(self) -> Int[np.ndarray, "N m C"]:
        """The value index of each concept of each object."""
        return self.space.values(self.object_ids)

    def captions(self) -> list[str]:
        """One English caption a scene: see `binding_lib.views.captions`."""
        # Imported here because views are built on scenes, not the other way round.
        from binding_lib.views.captions import captions

        return captions(self)

    def present(self, target: str = OBJECT) -> Bool[np.ndarray, "N K"]:
        """Which objects, or which values of one concept, each scene holds.

        Parameters
        ----------
        target : str
            "object" (K = n_objects) or a concept's name (K = its number of values).
        """
        if target == OBJECT:
            columns, n_columns = self.object_ids, self.space.n_objects
        else:
            k = self.space.concept_index(target)
            columns, n_columns = self.values[..., k], self.space.sizes[k]
        present = np.zeros((len(self), n_columns), dtype=bool)
        np.put_along_axis(present, columns, True, axis=1)
        return present

    def __len__(self) -> int:
        return len(self.object_ids)

    def __getitem__(self, rows: int | slice | Sequence[int] | np.ndarray) -> SceneSet:
        """Select scenes by an integer, a slice, a list of rows or a boolean mask."""
        if isinstance(rows, (int, np.integer)):
            return SceneSet(self.space, self.object_ids[int(rows)][None])
        return SceneSet(self.space, self.object_ids[rows])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SceneSet)
            and self.space == other.space
            and np.array_equal(self.object_ids, other.object_ids)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SceneSet({len(self)} scenes of {self.n_slots}, {self.space!r})"

    @classmethod
    def concatenate(cls, parts: Iterable[SceneSet]) -> SceneSet:
        """Join scene sets of one space and one m, in order."""
        parts = list(parts)
        if not parts:
            raise ValueError("got no scene sets to concatenate; expected at least one")
        first = parts[0]
        for part in parts[1:]:
            if part.space != first.space:
                raise ValueError(
                    f"cannot join scenes of {part.space!r} to scenes of {first.space!r}"
                )
            if part.n_slots != first.n_slots:
                raise ValueError(
                    f"cannot join scenes of {part.n_slots} objects to scenes of {first.n_slots}"
                )
        return cls(first.space, np.concatenate([part.object_ids for part in parts]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scenes and their space to an ``.npz`` file (no pickle), atomically."""
        if Path(path).suffix != ".npz":
            raise ValueError(f"expected a path that ends in .npz, got {os.fspath(path)!r}")
        with atomic_path(path) as temporary:
            np.savez_compressed(
                temporary,
                object_ids=self.object_ids,
                space=np.array(json.dumps(self.space.to_dict())),
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SceneSet:
        """Read what `save` wrote; ValueError if the file is something else."""
        try:
            with np.load(path, allow_pickle=False) as data:
                space = ConceptSpace(json.loads(str(data["space"])))
                return cls(space, data["object_ids"])
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # zipfile, numpy and json each raise their own kinds
            raise ValueError(f"{os.fspath(path)!r} is not a saved SceneSet: {error}") from error


def sample_scenes(
    space: ConceptSpace,
    n: int,
    n_objects: int = 2,
    ids: ArrayLike | None = None,
    seed: Seed = 0,
) -> SceneSet:
    """Draw scenes at random; the objects of one scene are distinct.

    Parameters
    ----------
    space : ConceptSpace
    n : int
        The number of scenes; two of them may be equal.
    n_objects : int
        m, the number of objects in each scene.
    ids : array-like of int, optional
        The objects to draw from (such as ``split.train``); all of the space by default.
    seed : int or numpy Generator

    Raises
    ------
    ValueError
        If n is negative, n_objects is less than 1, there are fewer objects than slots, or an id
        lies outside the space.
    """
    n, n_objects = check_count("n", n, least=0), check_count("n_objects", n_objects)
    pool = None
    if ids is not None:
        # np.unique, which hashes, takes 100 times longer on millions of ids.
        pool = np.sort(space.check_ids(ids), axis=None)
        pool = pool[np.diff(pool, prepend=-1) > 0]
    n_pool = space.n_objects if pool is None else len(pool)
    if n_pool < n_objects:
        raise ValueError(
            f"scenes of {n_objects} distinct objects need as many to draw from, got {n_pool}"
        )
    rng = np.random.default_rng(seed)
    draws = np.empty((n, n_objects), dtype=np.int64)
    for slot in range(n_objects):
        # Draw among the objects not yet taken, then step over the taken ones in ascending order.
        draw = rng.integers(n_pool - slot, size=n)
        for taken in np.sort(draws[:, :slot], axis=1).T:
            draw += draw >= taken
        draws[:, slot] = draw
    return SceneSet(space, draws if pool is None else pool[draws])


def all_scenes(space: ConceptSpace, n_objects: int = 2) -> SceneSet:
    """Enumerate every ordered scene, the last slot moving fastest.

    Scenes that hold one object twice are among them: the 20 x 20 text set has 400 ** 2 = 160,000
    ordered pairs (paper, appendix on data).

    Raises
    ------
    ValueError
        If n_objects is less than 1, or the scenes would hold more than 10 ** 8 object ids (nearly
        a gigabyte).
    """
    m = check_count("n_objects", n_objects)
    # Two objects in 27 slots are past the limit already; a larger power would only take time.
    total = space.n_objects ** min(m, 27)
    if total * m > 10**8:
        raise ValueError(
            f"expected at most 10 ** 8 object ids, got {space.n_objects} ** {m} scenes of {m} "
            "(sample_scenes draws some of them)"
        )
    ids = np.empty((total, m), dtype=np.int64)
    rest = np.arange(total)
    for slot in reversed(range(m)):
        rest, ids[:, slot] = np.divmod(rest, space.n_objects)
    return SceneSet(space, ids)


def swaps(scenes: SceneSet) -> Int[np.ndarray, "N K"]:
    """Find the binding distractors of each scene: objects made by recombining its concept values.

    A red cube and a blue ball give "red ball" and "blue cube": right concepts, wrong binding.

    Parameters
    ----------
    scenes : SceneSet
        N scenes of m objects with C concepts.

    Returns
    -------
    ndarray of int64, shape (N, m ** C - m)
        Object ids. Where a recombination is present in the scene, or stands further left already
        (objects that share values), the entry is -1: there is no such distractor.
    """
    n_slots, n_concepts = scenes.n_slots, scenes.space.n_concepts
    # A choice says, for each concept, from which slot its value is taken.
    choices = np.array(
        [c for c in itertools.product(range(n_slots), repeat=n_concepts) if len(set(c)) > 1],
        dtype=np.int64,
    ).reshape(-1, n_concepts)
    ids = scenes.space.ids(scenes.values[:, choices, np.arange(n_concepts)])  # (N, K)
    gone = np.zeros(ids.shape, dtype=bool)
    for slot in range(n_slots):
        gone |= ids == scenes.object_ids[:, slot, None]
    for k in range(1, ids.shape[1]):
        gone[:, k] |= (ids[:, :k] == ids[:, k, None]).any(axis=1)
    ids[gone] = -1
    return ids


def exchanged(scenes: SceneSet, concept: str | None = None) -> SceneSet:
    """Move the values of one concept to the next slot: the same concepts, bound otherwise.

    A red cube and a blue ball become a blue cube and a red ball.

    Parameters
    ----------
    scenes : SceneSet
    concept : str, optional
        The concept whose values move; the space's first by default.

    Returns
    -------
    SceneSet
        Of the same length. Where the objects share values a scene may come back as it was.
    """
    k = scenes.space.concept_index(scenes.space.names[0] if concept is None else concept)
    values = scenes.values
    values[..., k] = np.roll(values[..., k], 1, axis=1)
    return SceneSet(scenes.space, scenes.space.ids(values))
