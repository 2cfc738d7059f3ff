"""Pictures that lie on disk with their labels: published sets and folders of one's own.

Three layouts are read, told apart by their label file and its columns:

- ``labels.csv`` with ``filename`` and, for each object i and concept, ``object<i>_<concept>``: the
  paper's CLEVR and CLEVR-2D, and one's own pictures. Columns ``object<i>_<concept>_idx``, if there
  are any, give the order of the values; otherwise it is alphabetical.
- ``labels.csv`` with ``filename``, ``character_name``, ``character_texture``, ``character2_name``,
  ``character2_texture``: the paper's PUG:SPARE.
- ``PUG_SPARE.csv`` with the same columns and ``world_name``: PUG:SPARE as it was first published.

Pictures lie beside the label file, in a subfolder "images", or in one named like their world.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from binding_lib.checks import check_count, unknown_name
from binding_lib.concepts import ConceptSpace
from binding_lib.progress import in_threads
from binding_lib.scenes import SceneSet
from binding_lib.views.labels import (
    Faults,
    Rows,
    Slots,
    need_columns,
    object_slots,
    read_rows,
    value_order,
)

LABELS, SPARE_LABELS = "labels.csv", "PUG_SPARE.csv"

# PUG:SPARE's columns of each slot; the noun comes last, as captions want it.
_SPARE: Slots = [
    {"texture": "character_texture", "animal": "character_name"},
    {"texture": "character2_texture", "animal": "character2_name"},
]
_POSITIONS = ("character_pos", "character2_pos")

# By these indices the paper's CLEVR and CLEVR-2D are known; the shapes' names are at fault.
_COLOURS = ["blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow"]
_WRITTEN = ["cube", "sphere", "cylinder"]
_SHOWN = ["cube", "cylinder", "sphere"]
_SHOWN_2D = ["square", "triangle", "circle"]

Order = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Release:
    """Pictures on disk and the scenes that they show.

    Attributes
    ----------
    scenes : SceneSet
        Slots in the order of the label file's columns: the left object, then the right one.
    image_paths : tuple of Path, length N
        The picture of each scene.
    notes : tuple of str
        What was corrected while reading, or may have to be.
    """

    scenes: SceneSet
    image_paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def images(
        self, rows: int | slice | Sequence[int] | np.ndarray = slice(None), size: int | None = None
    ) -> UInt8[np.ndarray, "n H W 3"]:
        """Open pictures; what is transparent in them becomes white.

        Parameters
        ----------
        rows : row, slice, list of rows or boolean mask
            Which scenes; all by default.
        size : int, optional
            Scale them to size × size pixels. Without it they must all have one size.

        Raises
        ------
        ValueError
            If the pictures differ in size and none is asked for, or no row is chosen.
        """
        if size is not None:
            check_count("size", size)
        chosen = np.atleast_1d(np.arange(len(self.image_paths))[rows])
        if not len(chosen):
            raise ValueError("got no rows; expected at least one picture to open")
        jobs = [(self.image_paths[row], size) for row in chosen]
        pictures = list(in_threads(_open, jobs, "opening pictures"))
        sizes = {picture.shape[:2] for picture in pictures}
        if len(sizes) > 1:
            raise ValueError(
                f"the pictures have {len(sizes)} sizes, the smallest {min(sizes)} and the largest "
                f"{max(sizes)}; expected one, or the size that they shall be scaled to"
            )
        return np.stack(pictures)

    def __repr__(self) -> str:
        return f"Release({self.scenes!r})"


def load_release(
    folder: str | os.PathLike[str],
    world: str | None = None,
    rename: Mapping[str, Mapping[str, str]] | None = None,
) -> Release:
    """Read a folder of pictures and their labels; the pictures are opened later.

    Parameters
    ----------
    folder : path
        In one of the three layouts (see above).
    world : str, optional
        Read only the rows with this ``world_name`` (PUG:SPARE).
    rename : mapping, optional
        New names for values of concepts, given all at once: ``{"shape": {"sphere": "cylinder",
        "cylinder": "sphere"}}``. By default a known fault of the paper's release is corrected (see
        below) and everything else left as it is; ``{}`` leaves everything.

    Returns
    -------
    Release

    Raises
    ------
    FileNotFoundError
        If there is no label file.
    ValueError
        If anything is wrong with the labels or the pictures. One error tells all of it, with rows:
        missing columns, empty cells, indices that are no numbers, names and indices that contradict
        each other, positions other than left and right, pictures that are missing, unreadable,
        outside the folder or listed twice.

    Notes
    -----
    The paper's label files of CLEVR and CLEVR-2D call shape 1 "sphere" and shape 2 "cylinder". The
    pictures of those indices show a cylinder and a sphere (CLEVR), a triangle and a circle
    (CLEVR-2D, where shape 0 is a square). Labels alone cannot show a fault, so names are corrected
    only where everything else fits that release: index columns, its eight colours and its three
    shapes under its indices, and each of the 576 ordered pairs of objects. It is taken for CLEVR-2D
    if the folder's name has "2d" in it. A warning, kept in `Release.notes`, says what was done;
    labels that fit but for missing pairs are left alone, and the warning says how to correct them.
    """
    folder = Path(folder)
    files = [folder / name for name in (LABELS, SPARE_LABELS)]
    file = next((path for path in files if path.is_file()), None)
    if file is None:
        raise FileNotFoundError(f"found no {LABELS} (nor {SPARE_LABELS}) in {folder}")
    faults = Faults(folder)
    columns, rows = read_rows(file, faults)
    if any(column.startswith("character") for column in columns):
        slots, indexed = _SPARE, False
        need_columns(columns, [column for slot in slots for column in slot.values()], faults)
    else:
        slots, indexed = object_slots(columns, faults)
    need_columns(columns, ["filename"] + ["world_name"] * (world is not None), faults)
    if world is not None:
        worlds = sorted({row.get("world_name", world) for row in rows.values()})
        if rows and world not in worlds:
            raise unknown_name(f"world in {file}", world, worlds)
        rows = {n: row for n, row in rows.items() if row.get("world_name") == world}
    order = value_order(rows, slots, indexed, faults)
    right_first = _right_first(rows, faults)
    paths = _find_pictures(folder, rows, faults)
    faults.check()

    place = {concept: {name: i for i, name in enumerate(order[concept])} for concept in order}
    values = np.array(
        [[[place[c][row[slot[c]]] for c in slot] for slot in slots] for row in rows.values()]
    )  # (N, m, C)
    values[right_first] = values[right_first, ::-1]
    written = ConceptSpace({concept: list(names) for concept, names in order.items()})
    ids = written.ids(values)
    note = ""
    if rename is None:
        rename, note = _correction(folder, order, ids) if indexed else ({}, "")
    if note:
        warnings.warn(note, stacklevel=2)
    space = _renamed(written, rename)
    return Release(SceneSet(space, ids), tuple(paths), (note,) if note else ())


def _right_first(rows: Rows, faults: Faults) -> list[bool]:
    """In which rows the second object stands on the left; where nothing is said, it does not."""
    result = []
    for number, row in rows.items():
        first, second = (row.get(column, "").lower() for column in _POSITIONS)
        if (first, second) not in (("", ""), ("left", "right"), ("right", "left")):
            detail = f"got {first!r} and {second!r}"
            faults.add("positions must be left and right, or empty", number, detail)
        result.append(first == "right")
    return result


def _find_pictures(folder: Path, rows: Rows, faults: Faults) -> list[Path]:
    """The picture of each row; notes those that are missing, unreadable, outside, listed twice."""
    found: dict[Path, int] = {}
    for number, row in rows.items():
        name = row.get("filename")
        if name is None:  # the column is missing, which is known already
            continue
        if not name:
            faults.add("empty cells", number, "filename")
            continue
        parts = ("", "images", *([world] if (world := row.get("world_name")) else []))
        if any(_leaves(part) for part in (name, *parts)):
            faults.add("pictures must lie in the folder", number, name)
            continue
        places = (folder / part / name for part in parts)
        path = next((place for place in places if os.path.isfile(place)), None)
        if path is None:
            faults.add("missing pictures", number, name)
        elif path in found:
            labels = [{**rows[n], "filename": ""} for n in (number, found[path])]
            alike = "the same" if labels[0] == labels[1] else "other"
            detail = f"{name}, as in row {found[path]} with {alike} labels"
            faults.add("pictures are listed twice", number, detail)
        else:
            found[path] = number
    checked = in_threads(_reason_unreadable, [(path,) for path in found], "checking pictures")
    for (path, number), reason in zip(found.items(), checked, strict=True):
        if reason:
            faults.add("unreadable pictures", number, f"{path.name}: {reason}")
    return list(found)


def _leaves(name: str) -> bool:
    """Whether a path leads out of the folder that it starts in."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def _correction(
    folder: Path, order: Order, ids: np.ndarray
) -> tuple[Mapping[str, Mapping[str, str]], str]:
    """The new names that the paper's release needs, if this is it, and what to say about them."""
    colours = {name: i for i, name in enumerate(_COLOURS)}
    shapes = {name: i for i, name in enumerate(_WRITTEN)}
    if set(order) != {"color", "shape"} or not (
        order["color"].items() <= colours.items() and order["shape"].items() <= shapes.items()
    ):
        return {}, ""
    shown = _SHOWN_2D if "2d" in folder.resolve().name.lower() else _SHOWN
    rename = {"shape": dict(zip(_WRITTEN, shown, strict=True))}
    what = ", ".join(f"{i} {_WRITTEN[i]!r} -> {shown[i]!r}" for i in range(len(shown)))
    n_objects = len(colours) * len(shapes)
    complete = ids.shape[1] == 2 and len(np.unique(ids, axis=0)) == n_objects**2
    if complete:
        return rename, (
            f"corrected the shapes' names in {folder.name}, which the paper's label files confuse: "
            f"{what} (rename={{}} keeps the written names)"
        )
    if order["shape"].keys() & {"sphere", "cylinder"}:
        return {}, (
            f"kept the shapes' names in {folder.name} as written; if the pictures are from the "
            f"paper's release, its label files confuse them ({what}): rename={rename!r}"
        )
    return {}, ""


def _renamed(space: ConceptSpace, rename: Mapping[str, Mapping[str, str]]) -> ConceptSpace:
    names = space.to_dict()
    for concept, new in rename.items():
        for old in new:
            space.value_index(concept, old)  # an error if there is none
        names[concept] = [new.get(name, name) for name in space.value_names(concept)]
    return ConceptSpace(names)


def _open(path: Path, size: int | None) -> UInt8[np.ndarray, "H W 3"]:
    with Image.open(path) as image:
        picture = ImageOps.exif_transpose(image)  # as a camera was held
        if picture.has_transparency_data:
            page = Image.new("RGBA", picture.size, "white")
            picture = Image.alpha_composite(page, picture.convert("RGBA"))
        picture = picture.convert("RGB")
        if size is not None:
            picture = picture.resize((size, size), Image.Resampling.BICUBIC)
        return np.asarray(picture)


def _reason_unreadable(path: Path) -> str:
    """Why a picture cannot be read; nothing if it can."""
    try:
        with Image.open(path) as image:
            if image.mode[0] in "IF":  # as RGB nearly all of it would be white, or black
                return f"its numbers are of kind {image.mode}; expected 8 bits for each colour"
            if image.format == "PNG":
                image.verify()  # its checksums, without decoding it
            else:
                image.draft("RGB", (8, 8))  # of a JPEG, no more than needed
                image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return str(error).replace(str(path), path.name)
    return ""
