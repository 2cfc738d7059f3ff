"""What the renderers know by name: colours, and how they read a concept space."""

from __future__ import annotations

from collections.abc import Sequence

from binding_lib.concepts import ConceptSpace

COLOURS: dict[str, tuple[int, int, int]] = {
    # The eight of CLEVR, in the order of the paper's release.
    "blue": (42, 75, 215),
    "brown": (129, 74, 25),
    "cyan": (41, 208, 208),
    "gray": (87, 87, 87),
    "green": (29, 105, 20),
    "purple": (129, 38, 192),
    "red": (173, 35, 35),
    "yellow": (255, 238, 51),
    # More, for larger spaces.
    "black": (18, 18, 18),
    "lavender": (190, 165, 255),
    "lime": (125, 220, 40),
    "magenta": (235, 30, 160),
    "navy": (14, 24, 92),
    "olive": (135, 135, 35),
    "orange": (255, 140, 20),
    "pink": (255, 185, 210),
    "salmon": (250, 110, 95),
    "tan": (215, 180, 130),
    "teal": (0, 125, 125),
    "white": (250, 250, 250),
}
"""RGB of each colour, 0 to 255; CLEVR's eight first."""


def object_looks(space: ConceptSpace, shapes: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and shape of every object of a space, as names that a renderer can draw.

    Parameters
    ----------
    space : ConceptSpace
        Two concepts, in either order: "colour" (or "color"), with values among `COLOURS`, and
        "shape".
    shapes : sequence of str
        The shapes that the renderer draws.

    Returns
    -------
    list of (str, str), length n_objects
        (colour, shape), in the order of object ids.

    Raises
    ------
    ValueError
        If the space has other concepts, or values that cannot be drawn; all of them are named.
    """
    colour = next((name for name in ("colour", "color") if name in space.names), None)
    if colour is None or set(space.names) != {colour, "shape"}:
        raise ValueError(
            "pictures show two concepts, 'colour' (or 'color') and 'shape'; got "
            + ", ".join(map(repr, space.names))
        )
    for concept, known in ((colour, COLOURS), ("shape", shapes)):
        unknown = [value for value in space.value_names(concept) if value not in known]
        if unknown:
            raise ValueError(
                f"cannot draw {concept} {', '.join(map(repr, unknown))}; expected names among "
                + ", ".join(known)
            )
    colours, forms = space.value_names(colour), space.value_names("shape")
    columns = [space.concept_index(colour), space.concept_index("shape")]
    return [(colours[c], forms[s]) for c, s in space.values(range(space.n_objects))[:, columns]]
