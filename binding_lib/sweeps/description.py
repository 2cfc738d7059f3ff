"""Configurations of drawn models in words: for charts, and to compare like with like."""

from __future__ import annotations

import numpy as np
import pandas as pd

from binding_lib.complexity import REAL

SETTINGS = (
    "objects",
    "coverage",
    "layout",
    "readout",
    "MLP",
    "layers",
    "width",
    "output",
    "grouping",
    "vocabulary",
    "optimizer",
    "steps",
)
"""What `described_models` says of a model, in words."""

# What the chapters call them; "dual:" goes without saying where all other dots are dual encoders.
_ENCODERS = {"minilm": "MiniLM", "clip:ViT-B-32/random": "random CLIP"}


def described_models(table: pd.DataFrame) -> pd.DataFrame:
    """Put the configurations of a sweep into words, for people to compare.

    Parameters
    ----------
    table : DataFrame
        As `binding_lib.sweeps.store.read_sweep` gives it, of drawn models
        (`binding_lib.sweeps.plan.random_configurations`); failed models are left out.

    Returns
    -------
    DataFrame
        The columns of `SETTINGS`, as text; ``tenth``, the coverage without its second digit, since
        models of equal coverage are few; ``n_objects``, the size of the space; and those of numbers
        that were measured.
    """
    made = table[table["error"].isna()].reset_index(drop=True)
    n_objects = made["values"] ** made["concepts"]
    words = {
        "objects": pd.cut(n_objects, [0, 150, 300, 10**9], labels=["to 150", "to 300", "more"]),
        "coverage": pd.cut(
            made["coverage"], [0, 0.35, 0.6, 1], labels=["to 0.35", "to 0.6", "above 0.6"]
        ),
        "layout": made["layout"],
        "readout": made["readout"],
        "MLP": made["mlp"],
        "layers": made["layers"],
        "width": made["width"],
        "output": made["output"],
        "grouping": made["same_object_bias"].isna().map({True: "not handed", False: "handed"}),
        "vocabulary": made["grow_from"].isna().map({True: "all at once", False: "growing"}),
        "optimizer": made["optimizer"],
        "steps": made["steps"],
    }
    measured = [c for c in map(str, made) if c.endswith(("_r2", "_object", "_swap", "_concept"))]
    described = pd.DataFrame(words).astype(str).join(made[["run_id", *measured]])
    tenth = np.floor(made["coverage"].round(2) * 10) / 10
    return described.assign(tenth=tenth, n_objects=n_objects)


def recorded_encoders(curve: pd.DataFrame, coverage: float = 0.9) -> pd.DataFrame:
    """Lay out what was fitted to whole encoders like the rows of a sweep, to be compared with them.

    Parameters
    ----------
    curve : DataFrame
        The recorded table "complexity". Trained dual encoders are taken at the split of their own
        training, the others at random splits, where probes read them.
    coverage : float
        Of these others.

    Returns
    -------
    DataFrame
        One row an encoder; columns name (as the chapters call it), held_out_object (what is
        recognised in the encoder's own embeddings of scenes of unseen objects), and NAME_r2 and
        NAME_object of each approximator.
    """
    own = curve["encoder"].isin(curve.loc[curve["split"] == "own", "encoder"])
    at = (curve["split"] == "own") | (~own & (curve["coverage"] == coverage))
    rows = curve[at & (curve["seed"] == 0)].pivot(index="encoder", columns="approximator")
    found = pd.DataFrame({"held_out_object": rows["object_recognition"][REAL]})
    for name in rows["r2"].columns.drop(REAL, errors="ignore"):
        found[f"{name}_r2"] = rows["r2"][name]
        found[f"{name}_object"] = rows["object_recognition"][name]
    found.index = [_ENCODERS.get(name, name.removeprefix("dual:")) for name in found.index]
    return found.rename_axis("name").reset_index()
