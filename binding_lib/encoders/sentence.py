"""Text through sentence-transformers: a model by name or from a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import hf_hub_download
from jaxtyping import Float

from binding_lib.encoders.base import ModelEncoder, cut_short, in_batches
from binding_lib.encoders.weights import fetch, fingerprint, quiet, require, resolve_device

_BATCH_SIZE = 128


class SentenceEncoder(ModelEncoder):
    """A sentence-transformers model, without the normalisation that may stand at its end.

    Parameters
    ----------
    name : str
        What the encoder shall be called.
    source : str
        A folder that holds a model, or else a name to download.
    device : str
    """

    def __init__(self, name: str, source: str, device: str = "auto") -> None:
        library = require("sentence_transformers", "minilm")
        place = str(resolve_device(device))

        if Path(source).is_dir():
            # Without modules.json the library would make up a pooling of its own.
            if not Path(source, "modules.json").is_file():
                raise ValueError(
                    f"the folder {source!r} holds no sentence-transformers model (no modules.json)"
                )
            with _no_loading_bar():
                model = library.SentenceTransformer(source, device=place, local_files_only=True)
        else:

            def download() -> Any:
                hf_hub_download(source, "modules.json")  # as above
                return library.SentenceTransformer(source, device=place)

            model = fetch(name, download)
        # The length of an embedding is part of what the chapters look at. Normalize holds no
        # weights, and who wants cosines can divide.
        while type(model[-1]).__name__ == "Normalize":
            del model[-1]
        self.name = name
        self._model = model.float().eval()
        self.dim = len(model.encode("a", show_progress_bar=False))
        self.fingerprint = fingerprint(
            model,
            str(model),
            model.max_seq_length,
            sorted(model.tokenizer.get_vocab().items()),
            str(getattr(model.tokenizer, "backend_tokenizer", type(model.tokenizer))),
            library.__version__,
        )

    def _embed_text(self, captions: list[str]) -> Float[np.ndarray, "N d"]:
        lengths = [len(ids) for ids in self._model.tokenizer(captions)["input_ids"]]
        for caption, length in zip(captions, lengths, strict=True):
            if length > self._model.max_seq_length:
                raise cut_short(caption, self._model.max_seq_length)
        return in_batches(
            lambda rows: self._model.encode(
                [captions[row] for row in rows],
                batch_size=_BATCH_SIZE,
                show_progress_bar=False,
                convert_to_tensor=True,
            ),
            len(captions),
            self.dim,
            batch_size=_BATCH_SIZE,
            what=f"captions by {self.name}",
            lengths=lengths,
        )


@contextmanager
def _no_loading_bar() -> Iterator[None]:
    """Hide the bar that transformers draws while it reads a file from disk."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with quiet():
            yield
    finally:
        if shown:
            logging.enable_progress_bar()
