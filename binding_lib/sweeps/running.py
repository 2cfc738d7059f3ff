"""Running a sweep: on all cores of this machine, or on a Dask cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

import pandas as pd
from filelock import FileLock
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from binding_lib.checks import check_choice
from binding_lib.encoders.weights import require
from binding_lib.progress import progress_bar
from binding_lib.sweeps.measuring import measure_model
from binding_lib.sweeps.plan import (
    Configuration,
    amount_of_work,
    check_configurations,
    random_configurations,
    run_id,
)
from binding_lib.sweeps.store import SweepStore

BACKENDS = ("local", "dask")


def run_sweep(
    folder: str | os.PathLike[str],
    models: int | Sequence[Configuration] = 500,
    preset: str = "laptop",
    seed: int = 0,
    *,
    workers: int = -1,
    backend: str = "local",
    address: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Train and measure many models; stopped at any moment and started again, only the missing.

    Missing are also those that failed for want of something, such as memory or space on a disk.

    Parameters
    ----------
    folder : path
        The store. Several sweeps may share one, at the same time too.
    models : int or sequence of dict
        How many to draw (`random_configurations`), or the configurations themselves.
    preset : str
        Of which drawn models are variations.
    seed : int
        Of the drawing.
    workers : int
        Models at a time, each on a core of its own; -1 for all cores. A Dask cluster has as many as
        it has.
    backend : str
        "local", or "dask" for the workers of a cluster, which need this library but no folder in
        common.
    address : str, optional
        Of Dask's scheduler, such as "tcp://127.0.0.1:8786".
    progress : bool
        Show a bar with the time left, estimated by how much each model has to compute.

    Returns
    -------
    DataFrame
        The rows of these models: see `read_sweep`. One that cannot be made has an ``error``.

    Raises
    ------
    TypeError
        If a configuration is no dict.
    ValueError
        If the backend is unknown, or "dask" comes without an address or "local" with one; if there
        are no models or no workers, a configuration lacks an entry, or a row in the store is
        damaged.
    OSError
        If there is no scheduler at the address.
    MissingExtraError
        If the backend is "dask" and Dask is not installed.
    ChildProcessError
        If a process was killed from outside, as happens where memory runs out.
    """
    if not isinstance(models, Sequence):
        models = random_configurations(models, preset, seed)
    by_id = {run_id(model): model for model in check_configurations(models)}
    if not isinstance(workers, int) or (workers < 1 and workers != -1):
        raise ValueError(f"expected a number of workers, or -1 for one a core, got {workers!r}")
    store = SweepStore(folder)
    for name in store.failed_for_want():
        store.remove(name)
    with _backend(backend, address), warnings.catch_warnings():
        # A worker whose memory has grown is replaced, which is as it should be.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        store.ask_for(by_id.values())
        done = [name for name in by_id if store.has(name)]
        with progress_bar(
            initial=sum(amount_of_work(by_id[name]) for name in done),
            total=sum(map(amount_of_work, by_id.values())),
            desc="sweep",
            smoothing=0,  # all models so far count alike
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}",
            disable=not progress,
        ) as bar:
            _make({name: by_id[name] for name in by_id if name not in done}, store, workers, bar)
    table = store.table()
    return table[table["run_id"].isin(list(by_id))].reset_index(drop=True)


def _make(
    missing: dict[str, Configuration], store: SweepStore, workers: int, bar: tqdm[Any]
) -> None:
    """Make rows until none is missing; those that another sweep makes are waited for."""
    parallel = Parallel(
        n_jobs=workers,
        # A row is written as soon as its model is measured.
        return_as="generator_unordered",
        batch_size=1,
    )
    locks: dict[str, FileLock] = {}

    def finish(name: str) -> None:
        bar.update(amount_of_work(missing.pop(name)))

    try:
        while missing:
            for row in parallel(_claimed(missing, store, locks)):
                store.add(row)
                locks.pop(row["run_id"]).release()
                finish(row["run_id"])
            for name in [name for name in missing if store.has(name)]:
                finish(name)
            if missing:
                time.sleep(1)
    except BrokenExecutor as error:
        raise ChildProcessError(
            "a process of the sweep was killed, perhaps for want of memory; what is finished is "
            f"kept in {str(store.folder)!r}. Start it again, with fewer workers if need be"
        ) from error
    finally:
        for lock in locks.values():
            lock.release()


def _claimed(
    missing: Mapping[str, Configuration], store: SweepStore, locks: dict[str, FileLock]
) -> Iterator[Any]:
    """Claim models just before they are handed out, and leave those that others have claimed."""
    for name, configuration in list(missing.items()):
        lock = store.claim(name)
        if lock is None:
            continue
        if store.has(name):  # made elsewhere in the meantime
            lock.release()
            continue
        locks[name] = lock
        yield delayed(measure_model)(configuration)


@contextmanager
def _backend(backend: str, address: str | None) -> Iterator[None]:
    """Send joblib's work to processes of this machine, or to a cluster."""
    check_choice("backend", backend, BACKENDS)
    if (backend == "dask") != (address is not None):
        raise ValueError(
            f"the address of a scheduler belongs to the backend 'dask', got backend {backend!r} "
            f"and address {address!r}"
        )
    if backend == "local":
        yield
        return
    distributed = require("distributed", "cluster")
    with (
        distributed.Client(address, set_as_default=False) as client,
        parallel_config("dask", client=client),
    ):
        yield
