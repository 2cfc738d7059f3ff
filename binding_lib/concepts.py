"""What can exist: concepts, their values, and the objects that combine them.

An object takes one value of each concept, so the objects are the cells of a grid. They are numbered
by mixed radix: with concepts of sizes (V_1, ..., V_C) the object with value indices (v_1, ..., v_C)
has the id ``((v_1 * V_2 + v_2) * V_3 + v_3) ...``, the last concept moving fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from binding_lib.checks import unknown_name

Seed = int | np.random.Generator

OBJECT = "object"
"""The name that stands for whole objects wherever a concept's name may be given as a target."""


class ConceptSpace:
    """Named concepts and their values; the grid of all objects (paper, section 2).

    Parameters
    ----------
    concepts : mapping of str to sequence of str
        For each concept, in order, the names of its values.

    Attributes
    ----------
    names : tuple of str
        The concepts' names, C of them.
    sizes : tuple of int
        The number of values of each concept, (V_1, ..., V_C).
    n_objects : int
        The size of the object space, the product of `sizes`.

    Raises
    ------
    ValueError
        If there is no concept, a concept has no value or names one twice, or a concept is called
        "object" (that name stands for whole objects).

    Examples
    --------
    >>> space = ConceptSpace({"colour": ["red", "blue"], "shape": ["cube", "ball", "cone"]})
    >>> space.n_objects
    6
    >>> space.object_id("blue", "cube")
    3
    >>> space.object_name(3)
    'blue cube'
    """

    def __init__(self, concepts: Mapping[str, Sequence[str]]) -> None:
        if not isinstance(concepts, Mapping) or not concepts:
            raise ValueError(
                "a concept space needs a mapping of at least one concept's name to its values, "
                f"got {concepts!r}"
            )
        for name, values in concepts.items():
            if not isinstance(name, str) or name == OBJECT:
                raise ValueError(
                    f"a concept needs a name other than {OBJECT!r} (which stands for whole "
                    f"objects), got {name!r}"
                )
            if isinstance(values, str) or not all(isinstance(value, str) for value in values):
                raise ValueError(f"the values of concept {name!r} must be a list of names")
            if len(values) == 0:
                raise ValueError(f"concept {name!r} has no values; expected at least one")
            if len(set(values)) < len(values):
                twice = next(value for value in values if list(values).count(value) > 1)
                raise ValueError(f"concept {name!r} names the value {twice!r} more than once")
        self._values = {name: tuple(values) for name, values in concepts.items()}
        self._index = {
            name: {value: i for i, value in enumerate(values)}
            for name, values in self._values.items()
        }
        self.names: tuple[str, ...] = tuple(self._values)
        self.sizes: tuple[int, ...] = tuple(len(values) for values in self._values.values())
        self.n_objects: int = math.prod(self.sizes)
        if self.n_objects >= 2**62:
            raise ValueError(f"{self.n_objects} objects do not fit into 64-bit ids")

    @classmethod
    def grid(cls, n_concepts: int = 2, n_values: int = 20) -> ConceptSpace:
        """Make an abstract space of C concepts with V values each: "a0", "a1", ..., "b0", ...

        Parameters
        ----------
        n_concepts : int
            C, from 1 to 26.
        n_values : int
            V, at least 1.
        """
        if not 1 <= n_concepts <= 26:
            raise ValueError(f"n_concepts must be from 1 to 26, got {n_concepts}")
        if n_values < 1:
            raise ValueError(f"n_values must be at least 1, got {n_values}")
        letters = "abcdefghijklmnopqrstuvwxyz"[:n_concepts]
        return cls({letter: [f"{letter}{i}" for i in range(n_values)] for letter in letters})

    @property
    def n_concepts(self) -> int:
        """C, the number of concepts."""
        return len(self.sizes)

    def value_names(self, concept: str) -> tuple[str, ...]:
        """The names of one concept's values, in index order."""
        return self._values[self.names[self.concept_index(concept)]]

    def concept_index(self, concept: str) -> int:
        """The position of a concept; ValueError with the nearest name if there is none."""
        if concept not in self._values:
            raise unknown_name("concept", concept, self.names)
        return self.names.index(concept)

    def value_index(self, concept: str, value: str) -> int:
        """The index of a value of a concept; ValueError with the nearest name if there is none."""
        self.concept_index(concept)
        if value not in self._index[concept]:
            raise unknown_name(f"value of concept {concept!r}", value, self._values[concept])
        return self._index[concept][value]

    def ids(self, values: ArrayLike) -> Int[np.ndarray, "..."]:
        """Object ids of value indices.

        Parameters
        ----------
        values : array-like of int, shape (..., C)

        Returns
        -------
        ndarray of int64, shape (...)

        Raises
        ------
        ValueError
            If the last axis does not have C entries, or an index is outside its concept.
        """
        array = _integers(values, "value indices")
        if array.ndim == 0 or array.shape[-1] != self.n_concepts:
            raise ValueError(
                f"value indices must have shape (..., {self.n_concepts}), one for each of "
                f"{', '.join(self.names)}; got shape {array.shape}"
            )
        for k, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            column = array[..., k]
            if column.size and (column.min() < 0 or column.max() >= size):
                wrong = column[(column < 0) | (column >= size)].flat[0]
                raise ValueError(f"concept {name!r} has values 0 to {size - 1}, got {wrong}")
        return array @ self._strides()

    def values(self, ids: ArrayLike) -> Int[np.ndarray, "... C"]:
        """Value indices of object ids: the inverse of `ids`.

        Parameters
        ----------
        ids : array-like of int, shape (...)

        Returns
        -------
        ndarray of int64, shape (..., C)

        Raises
        ------
        ValueError
            If an id lies outside the space.
        """
        array = self.check_ids(ids)
        return (array[..., None] // self._strides()) % np.array(self.sizes)

    def check_ids(self, ids: ArrayLike) -> Int[np.ndarray, "..."]:
        """Return `ids` as int64; ValueError if one lies outside the space."""
        array = _integers(ids, "object ids")
        if array.size and (array.min() < 0 or array.max() >= self.n_objects):
            wrong = array[(array < 0) | (array >= self.n_objects)].flat[0]
            raise ValueError(
                f"object id {wrong} is outside the space; expected 0 to {self.n_objects - 1} "
                f"({' x '.join(map(str, self.sizes))} objects)"
            )
        return array

    def object_id(self, *values: str) -> int:
        """The id of the object with these value names, one for each concept in order."""
        if len(values) != self.n_concepts:
            raise ValueError(f"expected one value for each of {self.names}, got {values}")
        indices = [self.value_index(name, v) for name, v in zip(self.names, values, strict=True)]
        return int(self.ids(indices))

    def object_name(self, object_id: int) -> str:
        """The value names of an object, joined by a space: "red cube"."""
        indices = self.values(object_id)
        return " ".join(self._values[n][i] for n, i in zip(self.names, indices, strict=True))

    def split(self, coverage: float = 0.8, seed: Seed = 0) -> ObjectSplit:
        """Split the object space into training and held-out objects at random.

        Parameters
        ----------
        coverage : float
            The fraction of the object space that training may see, in (0, 1]. The number of
            training objects is ``round(coverage * n_objects)``, at least one, and below
            coverage 1 at least one object is held out.
        seed : int or numpy Generator

        Notes
        -----
        Every value of every concept occurs among the training objects whenever there are at least
        as many of them as the largest concept has values: a value that was never seen would say
        nothing about binding. The rest of the training objects are drawn uniformly.

        Raises
        ------
        ValueError
            If coverage is outside (0, 1].
        """
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage must be in (0, 1], got {coverage}")
        rng = np.random.default_rng(seed)
        n_train = max(1, round(coverage * self.n_objects))
        if coverage < 1 and self.n_objects > 1:
            n_train = min(n_train, self.n_objects - 1)
        # One random "diagonal" shows every value at least once, in max(sizes) distinct objects.
        steps = np.arange(max(self.sizes))
        diagonal = self.ids(np.stack([rng.permutation(v)[steps % v] for v in self.sizes], axis=-1))
        train = np.zeros(self.n_objects, dtype=bool)
        train[diagonal[:n_train]] = True
        others = rng.permutation(np.flatnonzero(~train))
        train[others[: n_train - train.sum()]] = True
        return ObjectSplit(self, np.flatnonzero(train), np.flatnonzero(~train))

    def _strides(self) -> Int[np.ndarray, " C"]:
        sizes = np.array((*self.sizes[1:], 1), dtype=np.int64)
        return np.cumprod(sizes[::-1])[::-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConceptSpace) and list(self._values.items()) == list(
            other._values.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {v}" for n, v in zip(self.names, self.sizes, strict=True))
        return f"ConceptSpace({sizes}; {self.n_objects} objects)"

    def to_dict(self) -> dict[str, list[str]]:
        """The concepts as plain lists, fit for JSON; ``ConceptSpace(space.to_dict()) == space``."""
        return {name: list(values) for name, values in self._values.items()}


@dataclass(frozen=True, eq=False)
class ObjectSplit:
    """Coverage of the object space: which objects training may see (paper, section 5).

    Attributes
    ----------
    space : ConceptSpace
    train : ndarray of int64, shape (n_train,)
        Ids of training objects, ascending.
    held_out : ndarray of int64, shape (n_held_out,)
        Ids of the objects that no training scene may hold, ascending.

    Raises
    ------
    ValueError
        If an id is outside the space, stands twice, or stands on both sides.
    """

    space: ConceptSpace
    train: Int[np.ndarray, " n_train"]
    held_out: Int[np.ndarray, " n_held_out"]

    def __post_init__(self) -> None:
        both = np.concatenate([self.space.check_ids(self.train), self.space.check_ids(self.held_out)])
        if len(both) and np.bincount(both).max() > 1:
            raise ValueError("an object stands more than once in train and held_out together")

    @property
    def coverage(self) -> float:
        """The share of the object space that is in `train`."""
        return len(self.train) / self.space.n_objects

    def __repr__(self) -> str:
        return f"ObjectSplit(train={len(self.train)}, held_out={len(self.held_out)})"


def _integers(values: ArrayLike, what: str) -> np.ndarray:
    """`values` as int64, refusing floats and booleans that would be cut or misread in silence."""
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers, got dtype {array.dtype}")
    return array.astype(np.int64)
