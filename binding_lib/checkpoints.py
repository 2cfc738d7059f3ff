"""Checkpoints: a folder with one file of numbers (safetensors) and one of words (JSON).

`config.json` names the file of numbers and holds its SHA-256. It is written last and replaced as a
whole, so a stop at any moment leaves either the old checkpoint or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from binding_lib.files import atomic_path

CONFIG = "config.json"


def write_checkpoint(
    folder: str | os.PathLike[str], tensors: Mapping[str, Tensor], config: Mapping[str, Any]
) -> None:
    """Write a checkpoint, in place of the one that the folder may hold."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    target = Path(folder) / f"tensors-{digest[:12]}.safetensors"
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    entry = {"tensors": target.name, "sha256": digest}
    with atomic_path(Path(folder) / CONFIG) as temporary:
        temporary.write_text(json.dumps({**entry, **config}, indent=1, allow_nan=False) + "\n")
    for old in Path(folder).glob("tensors-*.safetensors"):
        if old != target:
            old.unlink(missing_ok=True)


def has_checkpoint(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder holds a checkpoint, sound or not."""
    return os.path.isfile(Path(folder) / CONFIG)


def read_checkpoint(folder: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_checkpoint` wrote.

    Raises
    ------
    FileNotFoundError
        If the folder holds no checkpoint.
    ValueError
        If a file is missing, cut or altered.
    """
    where = os.fspath(folder)
    if not has_checkpoint(folder):
        raise FileNotFoundError(f"no checkpoint in {where!r}: expected a file {CONFIG} there")
    try:
        config = json.loads((Path(folder) / CONFIG).read_text())
        content, digest = (Path(folder) / config["tensors"]).read_bytes(), config["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the checkpoint in {where!r} is damaged: {error}") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(
            f"the checkpoint in {where!r} is damaged: {config['tensors']} is cut or altered "
            f"(its SHA-256 is not the one in {CONFIG})"
        )
    try:
        return load(content), config
    except SafetensorError as error:
        raise ValueError(f"the checkpoint in {where!r} is damaged: {error}") from error


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Select the tensors whose names start with `prefix`, under the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
