"""Checkpoints: a folder with one file of numbers (safetensors) and one of words (JSON).

`config.json` names the file of numbers and holds its SHA-256. It is written last and replaced as a
whole, so a stop at any moment leaves either the old checkpoint or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
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
    words = as_json({"tensors": target.name, "sha256": digest, **config})
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    with atomic_path(Path(folder) / CONFIG) as temporary:
        temporary.write_text(words)
    for old in Path(folder).glob("tensors-*.safetensors"):
        if old != target:
            old.unlink(missing_ok=True)


def as_json(config: Mapping[str, Any]) -> str:
    """Write the words of a checkpoint; ValueError if something in them is not fit for JSON."""
    try:
        return json.dumps(config, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ValueError(f"a checkpoint cannot hold these settings: {error}") from error


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
        config, content = _read_files(Path(folder))
        digest = config["sha256"]
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


def _read_files(folder: Path) -> tuple[dict[str, Any], bytes]:
    before = None
    while True:
        config = json.loads((folder / CONFIG).read_text())
        try:
            return config, (folder / config["tensors"]).read_bytes()
        except FileNotFoundError:
            if config == before:
                raise
            before = config  # a writer may have replaced both files since: read anew


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Select the tensors whose names start with `prefix`, under the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def history_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, type]) -> pd.DataFrame:
    """Return the history of a training as a table; without an exam it has columns and no rows."""
    return pd.DataFrame(rows, columns=list(columns)).astype(dict(columns))


def history_rows(history: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return a history fit for JSON, which has no NaN: null stands for it."""
    return history.astype(object).where(history.notna(), None).to_dict("records")
