"""The training loop: progress, exams, checkpoints, and an end at the first Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from binding_lib.checkpoints import has_checkpoint
from binding_lib.optimisation import OptimisationConfig
from binding_lib.progress import progress_bar


class Resumable(Protocol):
    """All that one training carries from step to step."""

    step: int

    @property
    def training(self) -> OptimisationConfig:
        """The settings."""
        ...

    def advance(self) -> None:
        """Take one step."""
        ...

    def examine(self) -> dict[str, str]:
        """Add rows to the history; return what a progress bar should show of them."""
        ...

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a checkpoint with all that `resume` needs."""
        ...

    def resume(self, folder: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint; ValueError if it belongs to another run."""
        ...


def run_to_end(
    run: Resumable, folder: str | os.PathLike[str] | None = None, progress: bool = True
) -> None:
    """Train to the last step, or to the first interrupt (Ctrl-C, stopping a notebook's cell).

    Parameters
    ----------
    run : Resumable
    folder : path, optional
        Keep a checkpoint there, once a minute and at the end, and go on from one that is there.
    progress : bool
        Show a progress bar with live metrics.
    """
    if folder is not None and has_checkpoint(folder):
        run.resume(folder)
    training = run.training
    saved = time.monotonic()
    with (
        _interrupts() as interrupted,
        progress_bar(
            total=training.steps,
            initial=run.step,
            desc="training",
            unit="step",
            disable=not progress,
        ) as bar,
    ):
        while run.step < training.steps:
            run.advance()
            bar.update()
            last = run.step == training.steps or interrupted.is_set()
            if last or run.step % training.evaluate_every == 0:
                bar.set_postfix(run.examine())
            if folder is not None and (last or time.monotonic() - saved > 60):
                run.save(folder)
                saved = time.monotonic()
            if last:
                break


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no step is cut in half; a second one raises."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread is told of signals
        return

    def stop(number: int, frame: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
