"""Progress bars: for people who wait, not for stored notebooks and tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from tqdm.auto import tqdm

Result = TypeVar("Result")


def progress_bar(*, disable: bool = False, **options: Any) -> tqdm:
    """Make a tqdm bar that the environment variable TQDM_DISABLE switches off everywhere.

    tqdm itself heeds that variable on a terminal, but not in a notebook.

    Parameters
    ----------
    disable : bool
        Show nothing, whatever the environment says.
    **options
        Passed on to tqdm.
    """
    return tqdm(disable=disable or bool(os.environ.get("TQDM_DISABLE")), **options)


def in_threads(
    function: Callable[..., Result], jobs: Sequence[tuple[Any, ...]], desc: str
) -> Iterator[Result]:
    """Call a function on each tuple of arguments, one thread a core; results come in order.

    Parameters
    ----------
    function : callable
        One that lets go of Python's lock for most of its time.
    jobs : sequence of tuple
    desc : str
        What is done, for a progress bar that appears after two seconds.
    """
    results = Parallel(n_jobs=-1, backend="threading", return_as="generator")(
        delayed(function)(*job) for job in jobs
    )
    yield from progress_bar(iterable=results, total=len(jobs), desc=desc, delay=2, leave=False)
