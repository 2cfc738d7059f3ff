"""Scenes as English captions: "a red cube and a blue ball"."""

from __future__ import annotations

import numpy as np

from binding_lib.concepts import ConceptSpace
from binding_lib.scenes import SceneSet

# The vocabulary of the paper's 20 x 20 text set (appendix on data).
_ATTRIBUTES = (
    "red blue green yellow purple orange pink brown gray black "
    "small large tiny round sharp rough bumpy smooth matte glossy"
)
_NOUNS = (
    "circle square triangle star heart spiral sphere cylinder cone pyramid "
    "car cat dog man woman tree flower rock bird fish"
)


def text_space() -> ConceptSpace:
    """Return the paper's text space: 20 attributes x 20 nouns, 400 objects."""
    return ConceptSpace({"attribute": _ATTRIBUTES.split(), "noun": _NOUNS.split()})


def object_phrases(space: ConceptSpace, ids: np.ndarray | None = None) -> list[str]:
    """Noun phrases with their article, "an" before a vowel: "a red cube", "an orange ball".

    Parameters
    ----------
    space : ConceptSpace
        The last concept is the noun; the others stand before it in order.
    ids : ndarray of int, shape (K,), optional
        The objects; all of the space by default.
    """
    names = space.object_names(np.arange(space.n_objects) if ids is None else ids)
    return [_article(name) + name for name in names]


def value_phrases(space: ConceptSpace, concept: str) -> list[str]:
    """Captions that name a single value, in index order: "red", but "a cube" for the noun."""
    values = list(space.value_names(concept))
    return [_article(v) + v for v in values] if concept == space.names[-1] else values


def captions(scenes: SceneSet) -> list[str]:
    """One caption a scene: "a red cube", "a red cube and a blue ball", "a b, a c and a d".

    Parameters
    ----------
    scenes : SceneSet
        N scenes of any number of objects.

    Returns
    -------
    list of str, length N
    """
    used, rows = np.unique(scenes.object_ids, return_inverse=True)
    phrases = object_phrases(scenes.space, used)
    result = []
    for row in rows.reshape(scenes.object_ids.shape):
        *before, last = [phrases[i] for i in row]
        result.append(", ".join(before) + " and " + last if before else last)
    return result


def _article(name: str) -> str:
    return "an " if name[0].lower() in "aeiou" else "a "
