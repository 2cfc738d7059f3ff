"""Embeddings that others computed, read from disk without running anything that a file says.

A pickle is a program. Here its instructions can do one thing only: fill stand-ins that know how to
become a numpy array of numbers. Nothing that the file names is imported, not even from numpy.
"""

from __future__ import annotations

import math
import os
import pickle
import pickletools
import re
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError

from binding_lib.checks import check_embeddings, unknown_name

SUFFIXES = (".npy", ".npz", ".safetensors", ".pkl", ".pickle")

_VALUES = 5_000_000  # in a pickle; counted wherever they are met, for one may be held many times


def load_embeddings(
    path: str | os.PathLike[str], key: str | None = None
) -> Float[np.ndarray, "N d"]:
    """Read embeddings from a file.

    Parameters
    ----------
    path : path
        A file of numpy (.npy, .npz), of safetensors, or a pickle (.pkl, .pickle) of numpy arrays
        and plain values, which may lie in dictionaries, lists and tuples.
    key : str, optional
        Which array, where the file holds several: its name; in a pickle the way to it, such as
        "clip/image" or "0".

    Returns
    -------
    ndarray, shape (N, d)
        float32 stays float32, everything else becomes float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is another one, the file cannot be read, asks for anything but arrays of
        numbers, holds several arrays and no key is given (they are listed), or if the array is not
        what `binding_lib.checks.check_embeddings` expects.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise unknown_name("suffix of a file of embeddings", path.suffix, SUFFIXES)
    try:
        arrays = _READERS[path.suffix](path)
    except FileNotFoundError:
        raise
    except _REFUSALS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"cannot read embeddings from {path}: {reason}") from error
    others = [name for name, member in arrays.items() if not isinstance(member, np.ndarray)]
    if others and (key is None or key in others):
        raise ValueError(
            f"{path} holds {key or others[0]!r}, which is no array; expected arrays only, or the "
            "key of one"
        )
    if key is None and len(arrays) != 1:
        held = ", ".join(f"{name!r} of shape {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"{path} holds {len(arrays)} arrays ({held}); expected one, or a key that chooses"
        )
    if key is not None and key not in arrays:
        raise unknown_name(f"array in {path}", key, arrays)
    return check_embeddings(arrays[key] if key is not None else next(iter(arrays.values())))


def _read_npy(path: Path) -> dict[str, np.ndarray]:
    return {"": np.load(path, allow_pickle=False)}


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    import torch
    from safetensors.torch import load_file

    tensors = load_file(path)
    # numpy knows no bfloat16.
    return {
        name: (t.float() if t.dtype == torch.bfloat16 else t).numpy() for name, t in tensors.items()
    }


def _read_pickle(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        _check_places(file, path.stat().st_size)
        return dict(_Walk().arrays_in(_ArrayUnpickler(file).load()))


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".pkl": _read_pickle,
    ".pickle": _read_pickle,
}

# What readers raise for files that are broken, hostile or something else. A pickle's instructions
# may fail in any of the ways in which Python code may.
_REFUSALS = (
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    EOFError,
    MemoryError,
    OverflowError,
    RecursionError,
    pickle.UnpicklingError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    SafetensorError,
)


def _check_places(file: BinaryIO, size: int) -> None:
    """Refuse a pickle that keeps a value in a place beyond its own length, and rewind the file.

    Python makes room for all the places up to the one that is named: five bytes would fill the
    memory.
    """
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > size:
            raise pickle.UnpicklingError(f"it keeps a value in place {argument} of its memory")
    file.seek(0)


class _Walk:
    """A walk through nested containers, which may hold one container many times."""

    def __init__(self) -> None:
        self.left = _VALUES

    def arrays_in(self, value: Any, way: str = "") -> Iterator[tuple[str, np.ndarray]]:
        """The arrays, each with the way to it; plain values are passed over."""
        self.left -= 1
        if self.left < 0:
            raise pickle.UnpicklingError(f"it holds more than {_VALUES:,} values")
        if isinstance(value, _ArrayState):
            yield way, value.array()
        elif isinstance(value, (dict, list, tuple)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for name, inner in items:
                yield from self.arrays_in(inner, f"{way}/{name}" if way else str(name))
        elif not isinstance(value, (str, bytes, int, float, bool, type(None))):
            raise pickle.UnpicklingError(
                f"it holds a {type(value).__name__}; expected numpy arrays and plain values only"
            )


class _DtypeState:
    """Stands in for numpy.dtype: a kind and size such as "f4", and a byte order."""

    def __init__(self, code: str, *_: Any) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype:
        if not isinstance(self.code, str) or not re.fullmatch(r"[fiub]\d{1,2}", self.code):
            raise pickle.UnpicklingError(
                f"it holds an array of type {self.code!r}; expected numbers (an array of objects "
                "may hold anything)"
            )
        if self.order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError(f"it holds an array of byte order {self.order!r}")
        return np.dtype(f"{self.order}{self.code}")


class _ArrayState:
    """Stands in for numpy.ndarray: what is needed to make one of numbers, and nothing else."""

    def __init__(self, shape: Any, dtype: Any, data: Any, order: Any = "C") -> None:
        self.shape, self.type, self.data, self.order = shape, dtype, data, order

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.type, fortran, self.data = state
        self.order = "F" if fortran else "C"

    def array(self) -> np.ndarray:
        shape, data = self.shape, self.data
        sound = isinstance(self.type, _DtypeState) and isinstance(shape, tuple)
        if not sound or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise pickle.UnpicklingError("it holds something that is no numpy array of numbers")
        dtype = self.type.dtype()
        if not isinstance(data, (bytes, bytearray)) or len(data) != (
            math.prod(shape) * dtype.itemsize
        ):
            raise pickle.UnpicklingError(
                f"it holds an array whose data do not fit its shape {shape}"
            )
        # A copy, because bytes cannot be written to.
        array = np.frombuffer(data, dtype).copy()
        return array.reshape(shape, order="F" if self.order == "F" else "C")


def _reconstruct(kind: Any, *_: Any) -> _ArrayState:
    """Stands in for what numpy's pickles of protocol 4 and below call; a state follows."""
    if kind is not _ArrayState:
        raise pickle.UnpicklingError("it holds something that is no numpy array")
    return _ArrayState((), None, None)


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> _ArrayState:
    """Stands in for what numpy's pickles of protocol 5 call."""
    return _ArrayState(shape, dtype, data, order)


def _encode(text: str, encoding: str) -> bytes:
    """Stands in for codecs.encode, by which pickles of protocol 2 and below write bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks to encode by {encoding!r}; expected 'latin1'")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayState,
    ("numpy", "dtype"): _DtypeState,
    ("_codecs", "encode"): _encode,
    # The private module was renamed in numpy 2.
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class _ArrayUnpickler(pickle.Unpickler):
    """Admits numpy arrays of numbers and plain values; everything else is refused by name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}; a pickle may hold numpy arrays and plain values only"
            )
        stand_in = _STAND_INS[module, name]
        # A pickle may write to a function that it has got: each gets one of its own. Classes with
        # a __setstate__ cannot be written to.
        return stand_in if isinstance(stand_in, type) else lambda *args: stand_in(*args)
