"""How complex is a binding function? What approximators of it get right on unseen objects."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from joblib import Parallel, delayed

from binding_lib.approximators import Approximator
from binding_lib.checks import check_count, check_embeddings
from binding_lib.concepts import OBJECT, ConceptSpace, ObjectSplit
from binding_lib.files import atomic_path
from binding_lib.progress import progress_bar
from binding_lib.readouts import Readout
from binding_lib.recognition import bootstrap_interval, r2_interval, recognised, swaps_beaten
from binding_lib.scenes import SceneSet

REAL = "real embeddings"
"""What tables call the embeddings themselves, where others name an approximator."""

COLUMNS = [
    "approximator",
    "coverage",
    "seed",
    "concept_recognition",
    "object_recognition",
    "swap_accuracy",
    "r2",
    "n_parameters",
    "seconds",
    "concept_low",
    "concept_high",
    "object_low",
    "object_high",
    "swap_low",
    "swap_high",
    "r2_low",
    "r2_high",
    "r2_train",
    "n_train",
    "n_test",
    "dim",
]


class _Fit(NamedTuple):
    """One row to be made: an approximator, or None for the real embeddings, and a split."""

    approximator: Approximator | None
    coverage: float
    split: ObjectSplit
    seed: int


def complexity_curve(
    scenes: SceneSet,
    embeddings: Float[np.ndarray, "N d"],
    approximators: Sequence[Approximator],
    coverages: Sequence[float | ObjectSplit],
    probes: Sequence[Readout],
    seeds: Sequence[int] = (0,),
    *,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    progress: bool = True,
) -> pd.DataFrame:
    """Fit approximators on scenes of some objects and read them on scenes of all the others.

    Parameters
    ----------
    scenes : SceneSet
        N scenes; `binding_lib.curve_data.curve_scenes` draws some that suffice for given splits.
    embeddings : ndarray, shape (N, d)
    approximators : sequence of Approximator
        Each is copied before it is fitted.
    coverages : sequence of float or ObjectSplit
        The shares of the object space that approximators may see, or splits: with a trained
        model's own, "held-out" are the objects that the model itself never saw.
    probes : sequence of Readout
        Trained beforehand on real embeddings (`LinearProbe`), or a dual encoder's own queries
        (`query_readouts`): one for "object" and one for each concept.
    seeds : sequence of int
        Of the splits by share: ``space.split(coverage, seed)``. Approximators keep their own. A
        split is drawn already, so with one there must be one seed.
    folder : path, optional
        Keep finished rows there, and read back those that are there already.
    n_jobs : int
        Fits at a time, in processes of their own; -1 for one a processor, 1 for this process.
    progress : bool
        Show a progress bar if it takes more than two seconds.

    Returns
    -------
    DataFrame
        One row a fit, with the columns

        - approximator (its name), coverage, seed;
        - concept_recognition, object_recognition: the share of test scenes in which all values of
          all concepts, or all objects, are strictly recognised (`recognised`) in the predicted
          embedding; swap_accuracy: in which its objects beat the swapped ones (NaN if no scene has
          a swap);
        - r2 on test scenes; n_parameters; seconds of processor time that the fit took (time on the
          clock would depend on how many fits run at once);
        - concept_low, concept_high, and likewise object, swap and r2: 95 % bootstrap intervals over
          test scenes;
        - r2_train, n_train, n_test (scenes) and dim (d), which `description_length` needs.

    Raises
    ------
    ValueError
        If the embeddings do not match the scenes, a read-out is missing, a split leaves fewer than
        two scenes to fit or to test, training scenes lack a concept value, or a split comes with
        several seeds, which would make the same rows again.
    """
    for one in approximators:
        if not isinstance(one, Approximator):
            raise ValueError(
                f"approximators must be such as MLPApproximator(64), got {one!r} "
                "(make_approximator makes one by its name)"
            )
    fits = _fits(scenes.space, approximators, coverages, seeds)
    return _curve(scenes, embeddings, fits, probes, folder, n_jobs, progress)


def real_curve(
    scenes: SceneSet,
    embeddings: Float[np.ndarray, "N d"],
    coverages: Sequence[float | ObjectSplit],
    probes: Sequence[Readout],
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Read the real embeddings of the same test scenes: the most that an approximator could reach.

    Returns
    -------
    DataFrame
        As of `complexity_curve`, with the approximator "real embeddings", an R² of 1, no seconds
        and no number of parameters (NaN).
    """
    return _curve(scenes, embeddings, _fits(scenes.space, [None], coverages, seeds), probes)


def as_split(space: ConceptSpace, coverage: float | ObjectSplit, seed: int) -> ObjectSplit:
    """Make the split that a share and a seed stand for; a split stands for itself.

    Raises
    ------
    ValueError
        If a share is none, or a split is of another space.
    """
    if not isinstance(coverage, ObjectSplit):
        return space.split(coverage, seed)
    if coverage.space != space:
        raise ValueError(f"scenes of {space!r}, got a split of {coverage.space!r}")
    return coverage


def _fits(
    space: ConceptSpace,
    approximators: Sequence[Approximator | None],
    coverages: Sequence[float | ObjectSplit],
    seeds: Sequence[int],
) -> list[_Fit]:
    fits = []
    seeds = [check_count("seed", seed, least=0) for seed in seeds]
    for coverage in coverages:
        if isinstance(coverage, ObjectSplit) and len(seeds) > 1:
            raise ValueError(f"a split is drawn already: expected one seed with it, got {seeds}")
        share = coverage.coverage if isinstance(coverage, ObjectSplit) else float(coverage)
        for seed in seeds:
            split = as_split(space, coverage, seed)
            fits += [_Fit(a, share, split, seed) for a in approximators]
    return fits


def _curve(
    scenes: SceneSet,
    embeddings: Float[np.ndarray, "N d"],
    fits: Sequence[_Fit],
    probes: Sequence[Readout],
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Make one row a fit, or read it back."""
    Z = check_embeddings(embeddings, len(scenes))
    readouts = {probe.target: probe for probe in probes}
    missing = [repr(t) for t in (OBJECT, *scenes.space.names) if t not in readouts]
    if missing:
        raise ValueError(
            f"probes must read 'object' and every concept, got none for {', '.join(missing)}"
        )
    for fit in fits:  # before hours of work, not after
        _rows_of_split(scenes, fit)
    files: list[Path | None] = [None] * len(fits)
    if folder is not None:
        data = _digest(scenes, Z, readouts)
        files = [Path(folder) / f"{_key(data, fit)}.json" for fit in fits]
    with progress_bar(
        total=len(fits), desc="approximators", unit="fit", delay=2, disable=not progress
    ) as bar:
        rows: dict[int, dict[str, Any]] = {}
        for i, file in enumerate(files):
            kept = None if file is None else _kept_row(file)
            if kept is not None:
                rows[i] = kept
                bar.update()
        todo = [i for i in range(len(fits)) if i not in rows]
        workers = Parallel(n_jobs=n_jobs if len(todo) > 1 else 1, return_as="generator_unordered")
        jobs = (delayed(_make)(i, scenes, Z, fits[i], readouts, files[i]) for i in todo)
        for i, row in workers(jobs):
            rows[i] = row
            bar.update()
    return pd.DataFrame([rows[i] for i in range(len(fits))], columns=COLUMNS)


def _kept_row(file: Path) -> dict[str, Any] | None:
    """Read a row; one that is damaged counts as missing, and is made again."""
    try:
        row = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return row if isinstance(row, dict) and row.keys() >= set(COLUMNS) else None


def _rows_of_split(scenes: SceneSet, fit: _Fit) -> tuple[np.ndarray, np.ndarray]:
    """Which scenes to fit on (training objects only), and which to test on (held-out only)."""
    held_out = np.zeros(scenes.space.n_objects, dtype=bool)
    held_out[fit.split.held_out] = True
    is_held_out = held_out[scenes.object_ids]  # (N, m)
    train = np.flatnonzero(~is_held_out.any(axis=1))
    test = np.flatnonzero(is_held_out.all(axis=1))
    if len(train) < 2 or len(test) < 2:
        raise ValueError(
            f"coverage {fit.coverage:g}, seed {fit.seed}: {len(train)} of {len(scenes)} scenes "
            f"hold training objects only and {len(test)} held-out objects only; expected at least "
            "2 of each (curve_scenes draws enough)"
        )
    return train, test


def _make(
    number: int,
    scenes: SceneSet,
    Z: Float[np.ndarray, "N d"],
    fit: _Fit,
    readouts: Mapping[str, Readout],
    file: Path | None,
) -> tuple[int, dict[str, Any]]:
    """Fit and read one approximator; keep the row; return it with its number."""
    train, test = _rows_of_split(scenes, fit)
    result: dict[str, Any] = {"coverage": fit.coverage, "seed": fit.seed}
    result |= {"n_train": len(train), "n_test": len(test), "dim": Z.shape[1]}
    if fit.approximator is None:
        result |= {"approximator": REAL, "n_parameters": np.nan, "seconds": np.nan, "r2_train": 1.0}
        predicted = Z[test]
    else:
        started = time.process_time()
        fitted = copy.deepcopy(fit.approximator).fit(scenes[train], Z[train])
        result["seconds"] = time.process_time() - started
        result |= {"approximator": fitted.name, "n_parameters": fitted.n_parameters_}
        result["r2_train"] = fitted.score(scenes[train], Z[train])
        predicted = fitted.predict(scenes[test])
    result |= _read(scenes[test], Z[test], predicted, readouts)
    if file is not None:
        with atomic_path(file) as temporary:
            temporary.write_text(json.dumps(result))
    return number, result


def _read(
    scenes: SceneSet, real: np.ndarray, predicted: np.ndarray, readouts: Mapping[str, Readout]
) -> dict[str, float]:
    """The rates and R², each with its interval."""
    objects = readouts[OBJECT].scores(predicted)
    concepts = [
        recognised(readouts[name].scores(predicted), scenes.present(name))
        for name in scenes.space.names
    ]
    beaten, _ = swaps_beaten(objects, scenes)
    estimates = {
        ("concept", "concept_recognition"): bootstrap_interval(np.all(concepts, axis=0)),
        ("object", "object_recognition"): bootstrap_interval(
            recognised(objects, scenes.present(OBJECT))
        ),
        ("swap", "swap_accuracy"): bootstrap_interval(beaten) if len(beaten) else (np.nan,) * 3,
        ("r2", "r2"): r2_interval(real, predicted),
    }
    result: dict[str, float] = {}
    for (short, name), (value, low, high) in estimates.items():
        result |= {name: value, f"{short}_low": low, f"{short}_high": high}
    return result


def _digest(scenes: SceneSet, Z: np.ndarray, readouts: Mapping[str, Readout]) -> str:
    """Hash all that rows depend on, except the fit: another encoder's are never mixed in."""
    digest = hashlib.sha256(json.dumps([scenes.space.to_dict(), Z.shape]).encode())
    digest.update(scenes.object_ids.tobytes())
    digest.update(np.ascontiguousarray(Z).data)
    for target in sorted(readouts):  # known by what they say of a few embeddings
        scores = readouts[target].scores(Z[:4])
        digest.update(f"{target} {scores.dtype} {scores.shape}".encode())
        digest.update(np.ascontiguousarray(scores).data)
    return digest.hexdigest()


def _key(data: str, fit: _Fit) -> str:
    settings = None if fit.approximator is None else fit.approximator.settings
    sides = [fit.split.train.tolist(), fit.split.held_out.tolist()]
    content = json.dumps([data, settings, fit.coverage, sides, fit.seed])
    return hashlib.sha256(content.encode()).hexdigest()[:32]
