"""The colours that both renderers know by name."""

from __future__ import annotations

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
