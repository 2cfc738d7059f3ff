"""The chart of a sweep: a dot a model, and bars that say which settings the selected have."""

import numpy as np
import pandas as pd
import pytest
from chart_specs import assert_shared_look, parts

from binding_lib.recorded import recorded
from binding_lib.sweep_charts import FITS, sweep_chart
from binding_lib.sweeps import random_configurations
from binding_lib.sweeps.description import SETTINGS, described_models


@pytest.fixture(scope="module")
def table():
    models = pd.DataFrame(random_configurations(60))
    rng = np.random.default_rng(0)
    models["run_id"] = [f"{i:016x}" for i in range(60)]
    models["error"] = [None] * 59 + ["ValueError: no"]
    for column in (*FITS.values(), "held_out_object"):
        models[column] = rng.random(60)
    return models


def test_models_are_described_by_what_was_drawn(table):
    described = described_models(table)
    assert len(described) == 59
    first, words = table.iloc[0], described.iloc[0]
    assert words["grouping"] == ("not handed" if pd.isna(first["same_object_bias"]) else "handed")
    assert words["vocabulary"] == ("all at once" if pd.isna(first["grow_from"]) else "growing")
    n = first["values"] ** first["concepts"]
    assert words["objects"] == ("to 150" if n <= 150 else "to 300" if n <= 300 else "more")
    assert words["global_r2"] == first["global_r2"]
    for setting in SETTINGS:
        assert 2 <= described[setting].nunique() <= 4


def test_every_model_is_a_dot_and_every_choice_a_bar(table):
    spec = sweep_chart(table).to_dict()
    assert_shared_look(spec)
    [data] = spec["datasets"].values()
    assert len(data) == 59
    described = described_models(table)
    names = {f"{s}: {choice}" for s in SETTINGS for choice in described[s].unique()}
    orders = [part["sort"] for part in parts(spec) if isinstance(part.get("sort"), list)]
    assert orders
    assert all(set(order) == names for order in orders)
    # Numbers go up, not by their spelling.
    assert orders[0].index("output: 16") < orders[0].index("output: 128")
    assert orders[0].index("coverage: to 0.6") < orders[0].index("coverage: above 0.6")


def test_sliders_and_brush_reach_dots_and_bars(table):
    spec = sweep_chart(table).to_dict()
    sliders = {p["name"] for p in parts(spec) if p.get("bind", {}) and "name" in p}
    assert sliders == {"fit", "least", "most"}
    filters = [str(part["filter"]) for part in parts(spec) if "filter" in part]
    assert sum("least" in f for f in filters) == 2
    assert sum("brush" in f for f in filters) == 1


def test_other_encoders_are_marked_by_name(table):
    marked = pd.DataFrame({"name": ["one", "other"], "held_out_object": [0.1, 0.9]})
    for column in FITS.values():
        marked[column] = [0.5, np.nan]
    spec = sweep_chart(table, marked).to_dict()
    assert_shared_look(spec)
    named = [data for data in spec["datasets"].values() if "name" in data[0]]
    assert [row["name"] for row in named[0]] == ["one", "other"]
    texts = [part for part in parts(spec) if part.get("mark", {}) and "text" in str(part["mark"])]
    assert texts
    menu = next(p for p in parts(spec) if p.get("name") == "fit")
    assert menu["bind"]["labels"] == list(FITS)


def test_fits_are_columns_of_a_sweep():
    assert set(FITS.values()) <= set(recorded("sweep"))
