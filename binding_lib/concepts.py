"""What can exist: concepts, their values, and the objects that combine them.

An object takes one value of each concept, so the objects are the cells of a grid. They are numbered
by mixed radix: with concepts of sizes (V_1, ..., V_C) the object with value indices (v_1, ..., v_C)
has the id ``((v_1 * V_2 + v_2) * V_3 + v_3) ...``, the last concept moving fastest.
"""

from __future__ import annotations

import math
import reprlib
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from binding_lib.checks import check_count, check_integers, unknown_name

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
        If there is no concept, a concept has no value or names one twice, a name is empty, or a
        concept is called "object" (that name stands for whole objects).

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
            if not isinstance(name, str) or name in ("", OBJECT):
                raise ValueError(
                    f"a concept needs a name, and not {OBJECT!r} (which stands for whole objects), "
                    f"got {name!r}"
                )
            # A set is no Sequence: its order, and with it the ids, would change from run to run.
            is_list = isinstance(values, Sequence) and not isinstance(values, str)
            if not is_list or not all(isinstance(value, str) and value for value in values):
                raise ValueError(
                    f"the values of concept {name!r} must be a list of names, "
                    f"got {reprlib.repr(values)}"
                )
            check_count(f"the number of values of concept {name!r}", len(values))
            if len(set(values)) < len(values):
                twice = next(value for value in values if list(values).count(value) > 1)
                raise ValueError(f"concept {name!r} names the value {twice!r} more than once")
        self._values = {name: tuple(map(str, values)) for name, values in concepts.items()}
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
        """Make a space of 1 to 26 concepts with V values each: "a0", "a1", ..., "b0", ..."""
        if check_count("n_concepts", n_concepts) > 26:
            raise ValueError(f"n_concepts must be from 1 to 26, got {n_concepts}")
        check_count("n_values", n_values)
        letters = string.ascii_lowercase[:n_concepts]
        return cls({letter: [f"{letter}{i}" for i in range(n_values)] for letter in letters})

    @property
    def n_concepts(self) -> int:
        """C, the number of concepts."""
        return len(self.sizes)

    def value_names(self, concept: str) -> tuple[str, ...]:
        """Return the names of one concept's values, in index order."""
        return self._values[self.names[self.concept_index(concept)]]

    def concept_index(self, concept: str) -> int:
        """Return the position of a concept; ValueError with the nearest name if there is none."""
        if concept not in self.names:
            raise unknown_name("concept", concept, self.names)
        return self.names.index(concept)

    def value_index(self, concept: str, value: str) -> int:
        """Return the index of a value; ValueError with the nearest name if there is none."""
        self.concept_index(concept)
        if not isinstance(value, str) or value not in self._index[concept]:
            raise unknown_name(f"value of concept {concept!r}", value, self._values[concept])
        return self._index[concept][value]

    def ids(self, values: ArrayLike) -> Int[np.ndarray, "*n"]:
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
        array = check_integers(values, "value indices")
        if array.ndim == 0 or array.shape[-1] != self.n_concepts:
            raise ValueError(
                f"value indices must have shape (..., {self.n_concepts}), one for each of "
                f"{', '.join(self.names)}; got shape {array.shape}"
            )
        ids = np.zeros(array.shape[:-1], dtype=np.int64)
        for k, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            column = array[..., k]
            if column.size and (column.min() < 0 or column.max() >= size):
                wrong = column[(column < 0) | (column >= size)].flat[0]
                raise ValueError(f"concept {name!r} has values 0 to {size - 1}, got {wrong}")
            ids = ids * size + column.astype(np.int64)
        return ids

    def values(self, ids: ArrayLike) -> Int[np.ndarray, "*n C"]:
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
        rest = self.check_ids(ids)
        values = np.empty((*rest.shape, self.n_concepts), dtype=np.int64)
        for k in reversed(range(self.n_concepts)):
            rest, values[..., k] = np.divmod(rest, self.sizes[k])
        return values

    def check_ids(self, ids: ArrayLike) -> Int[np.ndarray, "*n"]:
        """Return a copy of `ids` as int64; ValueError if one lies outside the space."""
        array = check_integers(ids, "object ids")
        if array.size and (array.min() < 0 or array.max() >= self.n_objects):
            wrong = array[(array < 0) | (array >= self.n_objects)].flat[0]
            raise ValueError(
                f"object id {wrong} is outside the space; expected 0 to {self.n_objects - 1} "
                f"({' x '.join(map(str, self.sizes))} objects)"
            )
        return array.astype(np.int64, order="C")

    def object_id(self, *values: str) -> int:
        """Return the id of the object with these value names, one for each concept in order."""
        if len(values) != self.n_concepts:
            raise ValueError(f"expected one value for each of {self.names}, got {values}")
        indices = [self.value_index(name, v) for name, v in zip(self.names, values, strict=True)]
        return int(self.ids(indices))

    def object_name(self, object_id: int) -> str:
        """Return the value names of an object, joined by a space: "red cube"."""
        return self.object_names([object_id])[0]

    def object_names(self, ids: ArrayLike) -> list[str]:
        """Return the names of K objects: ["red cube", "blue ball"]."""
        names = list(self._values.values())
        rows = self.values(ids).tolist()
        return [" ".join(n[i] for n, i in zip(names, row, strict=True)) for row in rows]

    def split(self, coverage: float = 0.8, seed: Seed = 0) -> ObjectSplit:
        """Split the object space into training and held-out objects at random.

        Parameters
        ----------
        coverage : float
            The fraction of the object space that training may see, in (0, 1]; ValueError outside.
            There are ``round(coverage * n_objects)`` training objects, but at least one, and at
            coverage below 1 at least one object is held out.
        seed : int or numpy Generator

        Notes
        -----
        Every value of every concept occurs among the training objects whenever there are at least
        as many of them as the largest concept has values: a value that was never seen would say
        nothing about binding. The rest of the training objects are drawn uniformly.
        """
        if not isinstance(coverage, Real) or not 0 < coverage <= 1:
            raise ValueError(f"coverage must be a number in (0, 1], got {coverage!r}")
        rng = np.random.default_rng(seed)
        n_train = max(1, round(float(coverage) * self.n_objects))
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
        """Return what the constructor takes, as plain lists fit for JSON."""
        return {name: list(values) for name, values in self._values.items()}


@dataclass(frozen=True, eq=False)
class ObjectSplit:
    """Coverage of the object space: which objects training may see (paper, section 5).

    Attributes
    ----------
    space : ConceptSpace
    train : ndarray of int64, shape (n_train,), read-only
        Ids of training objects, ascending.
    held_out : ndarray of int64, shape (n_held_out,), read-only
        Ids of the objects that no training scene may hold, ascending.

    Raises
    ------
    ValueError
        If a side is not 1-D, or an id is outside the space, stands twice, or on both sides.
    """

    space: ConceptSpace
    train: Int[np.ndarray, " n_train"]
    held_out: Int[np.ndarray, " n_held_out"]

    def __post_init__(self) -> None:
        for side in ("train", "held_out"):
            ids = self.space.check_ids(getattr(self, side))
            if ids.ndim != 1:
                raise ValueError(f"{side} must be 1-D, got shape {ids.shape}")
            ids.sort()
            ids.setflags(write=False)
            object.__setattr__(self, side, ids)
        both = np.sort(np.concatenate([self.train, self.held_out]))
        if (again := both[1:][both[1:] == both[:-1]]).size:
            name = self.space.object_name(again[0])
            raise ValueError(f"object {name!r} stands more than once in train and held_out")

    @property
    def coverage(self) -> float:
        """The share of the object space that is in `train`."""
        return len(self.train) / self.space.n_objects

    def __repr__(self) -> str:
        return f"ObjectSplit(train={len(self.train)}, held_out={len(self.held_out)})"
