"""The training loop: progress, exams, checkpoints, and an end at the first Ctrl-C."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout
from torch import Tensor

from binding_lib.checkpoints import as_json, has_checkpoint
from binding_lib.optimisation import OptimisationConfig
from binding_lib.progress import progress_bar

LOCK = "training.lock"


class Recorded(Protocol):
    """A model with all that is known about its training."""

    def record(self) -> dict[str, Any]:
        """The words of a checkpoint."""
        ...


class Resumable(Protocol):
    """All that one training carries from step to step."""

    step: int
    loss: Tensor  # of the last step

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

    def result(self) -> Recorded:
        """Hand out the model as it is."""
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
        Only one training at a time can use a folder.
    progress : bool
        Show a progress bar with live metrics.

    Raises
    ------
    ValueError
        If the loss is no number any more, or the folder holds another run's checkpoint.
    BlockingIOError
        If another training is using the folder.
    """
    with nullcontext() if folder is None else _taken(folder):
        # What cannot be kept is found before the first step, not after the last.
        if folder is not None and has_checkpoint(folder):
            run.resume(folder)
        elif folder is not None:
            as_json(run.result().record())
        _steps(run, folder, progress)


def _steps(run: Resumable, folder: str | os.PathLike[str] | None, progress: bool) -> None:
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
            exam = last or run.step % training.evaluate_every == 0
            keep = last or time.monotonic() - saved > 60
            if exam or keep:
                _check_loss(run)
            if exam:
                bar.set_postfix(run.examine())
            if keep:
                saved = time.monotonic()
                if folder is not None:
                    run.save(folder)
            if last:
                break


def _check_loss(run: Resumable) -> None:
    if not math.isfinite(run.loss.item()):
        raise ValueError(
            f"training has diverged: at step {run.step} the loss is {run.loss.item()}. Take "
            "smaller rates; a checkpoint that was kept before is still there"
        )


@contextmanager
def _taken(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Make a folder and keep other trainings out of it."""
    where = os.fspath(folder)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileExistsError(
            f"expected a folder to train into, got the file {where!r}; choose another name"
        ) from error
    lock = FileLock(Path(folder) / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise BlockingIOError(
            f"another training is using the folder {where!r}; wait for its end or choose another"
        ) from error
    try:
        yield
    finally:
        lock.release()


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
