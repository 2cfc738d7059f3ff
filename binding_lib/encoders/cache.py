"""Embeddings on disk, so that nothing is encoded twice."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from platformdirs import user_cache_dir
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from binding_lib.encoders.base import Encoder, check_captions, check_images
from binding_lib.files import atomic_path


def cache_folder() -> Path:
    """Return the cache's folder: in ``$BINDING_LIB_CACHE``, or else the user's cache folder."""
    return Path(os.environ.get("BINDING_LIB_CACHE") or user_cache_dir("binding_lib")) / "embeddings"


class CachedEncoder:
    """An encoder that remembers, on disk, what it has encoded.

    One file holds the embeddings of one call. It is named by a hash of the encoder's fingerprint
    and of all inputs, and carries a checksum: a file that is cut short, altered or foreign is
    recomputed, never served. Several processes may share the folder.

    Parameters
    ----------
    encoder : Encoder

    Attributes
    ----------
    name, dim, fingerprint
        Those of `encoder`.
    encoder : Encoder
        The encoder without a cache.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.name = encoder.name
        self.dim = encoder.dim
        self.fingerprint = encoder.fingerprint
        self._warned = False

    def encode_text(self, captions: Sequence[str]) -> Float[np.ndarray, "N d"]:
        """Embed N captions, from disk where they were embedded before: see `Encoder`."""
        texts = check_captions(captions)
        key = self._key("text", json.dumps(texts).encode())
        return self._remember(key, len(texts), lambda: self.encoder.encode_text(texts))

    def encode_images(self, images: ArrayLike) -> Float[np.ndarray, "N d"]:
        """Embed N images, from disk where they were embedded before: see `Encoder`."""
        array = np.ascontiguousarray(check_images(images))
        key = self._key(f"images {array.shape}", array.data)
        return self._remember(key, len(array), lambda: self.encoder.encode_images(array))

    def __repr__(self) -> str:
        return f"CachedEncoder({self.encoder!r})"

    def _key(self, kind: str, content: bytes | memoryview) -> str:
        digest = hashlib.sha256(f"{self.fingerprint} {kind} ".encode())
        digest.update(content)
        return digest.hexdigest()

    def _remember(self, key: str, n: int, encode: Callable[[], np.ndarray]) -> np.ndarray:
        path = cache_folder() / f"{key}.safetensors"
        known = _read(path, key, (n, self.dim))
        if known is not None:
            return known
        embeddings = encode()
        try:
            _write(path, key, embeddings)
        except (OSError, SafetensorError) as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"embeddings cannot be kept in {path.parent} ({error}), so "
                    "they are computed each time; set BINDING_LIB_CACHE to a folder that can be "
                    "written",
                    stacklevel=3,
                )
        return embeddings


def _checksum(key: str, embeddings: np.ndarray) -> str:
    """Hash the content and the name that it is kept under."""
    digest = hashlib.sha256(f"{key} {embeddings.dtype} {embeddings.shape} ".encode())
    digest.update(np.ascontiguousarray(embeddings).data)
    return digest.hexdigest()


def _read(path: Path, key: str, shape: tuple[int, int]) -> np.ndarray | None:
    """Read the embeddings in a file; None if it is not there or not to be trusted."""
    try:
        with safe_open(path, framework="np") as file:
            embeddings = file.get_tensor("embeddings")
            checksum = (file.metadata() or {}).get("checksum")
    except Exception:  # missing, unreadable, cut short, or something else altogether
        return None
    trusted = embeddings.shape == shape and checksum == _checksum(key, embeddings)
    return embeddings if trusted else None


def _write(path: Path, key: str, embeddings: np.ndarray) -> None:
    with atomic_path(path) as temporary:
        metadata = {"checksum": _checksum(key, embeddings)}
        save_file({"embeddings": np.ascontiguousarray(embeddings)}, temporary, metadata=metadata)
