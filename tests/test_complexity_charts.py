"""The charts of complexity: what they show, and the look that they share with the others."""

import json

import numpy as np
import pandas as pd
import pytest
from chart_specs import assert_shared_look, parts

from binding_lib.chart_style import COLOURS, SHAPES
from binding_lib.complexity import COLUMNS, REAL
from binding_lib.complexity_charts import READINGS, coverage_slider, rates, size_chart
from binding_lib.recorded import recorded

COVERAGES = [0.1, 0.3, 0.5, 0.7, 0.9]
SIZES = {REAL: np.nan, "mlp-64": 3e4, "additive": 1e4, "xgboost": 1e6}


def curve(coverages=COVERAGES, best=0.8):
    """Rates that grow with coverage and with an approximator's size."""
    rows = []
    for coverage in coverages:
        for i, (name, size) in enumerate(SIZES.items()):
            row = dict.fromkeys(COLUMNS, 1.0)
            row |= {"approximator": name, "coverage": coverage, "n_parameters": size}
            for short, full, value in (
                ("concept", "concept_recognition", 0.9),
                ("object", "object_recognition", best * coverage + i / 100),
                ("swap", "swap_accuracy", best * coverage / 2),
            ):
                row |= {full: value, f"{short}_low": value - 0.05, f"{short}_high": value + 0.05}
            rows.append(row)
    return pd.DataFrame(rows)


def by_encoder():
    one, two = curve([0.5], best=0.1), curve([0.5], best=1.5)
    return pd.concat([one.assign(encoder="one"), two.assign(encoder="two")])


CHARTS = {
    "slider": lambda: coverage_slider(curve(), "One encoder"),
    "size": lambda: size_chart(by_encoder(), "Two encoders"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_the_look_that_all_share(name):
    spec = CHARTS[name]().to_dict()
    assert_shared_look(spec)
    assert spec["width"] == "container"
    assert len(json.dumps(spec)) < 60_000
    assert "http" not in json.dumps({k: v for k, v in spec.items() if k != "$schema"})


@pytest.mark.parametrize("name", CHARTS)
def test_groups_differ_by_colour_and_by_shape_in_one_legend(name):
    spec = CHARTS[name]().to_dict()
    (marks,) = (p["encoding"] for p in parts(spec) if "shape" in p.get("encoding", {}))
    assert marks["color"]["legend"] == marks["shape"]["legend"]
    n = len(marks["color"]["scale"]["domain"])
    assert marks["shape"]["scale"]["domain"] == marks["color"]["scale"]["domain"]
    assert marks["color"]["scale"]["range"] == list(COLOURS[:n])
    assert marks["shape"]["scale"]["range"] == list(SHAPES[:n])


def test_rates_have_a_row_each():
    mine = curve()
    found = rates(mine)
    assert len(found) == 3 * len(mine)
    assert list(found["reading"].unique()) == list(READINGS.values())
    swaps = found[found["reading"] == "swaps"].reset_index()
    assert swaps["value"].tolist() == mine["swap_accuracy"].tolist()
    assert swaps["low"].tolist() == mine["swap_low"].tolist()
    assert swaps["high"].tolist() == mine["swap_high"].tolist()


def test_the_slider_stops_at_each_coverage_and_chooses_the_marks():
    spec = CHARTS["slider"]().to_dict()
    (slider,) = spec["params"]
    assert slider["value"] == 0.5
    bind = {k: slider["bind"][k] for k in ("input", "min", "max", "step")}
    assert bind == {"input": "range", "min": 0.1, "max": 0.9, "step": 0.2}
    trail, spread, marks = spec["layer"]
    assert "transform" not in trail
    for layer in (spread, marks):
        assert "datum.coverage - coverage" in layer["transform"][0]["filter"]


def test_rows_run_from_the_real_embeddings_to_the_largest_approximator():
    shuffled = curve().sample(frac=1, random_state=0)
    spec = coverage_slider(shuffled, "One").to_dict()
    (domain,) = {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in spec["layer"]}
    assert domain == (REAL, "additive", "mlp-64", "xgboost")
    words = "At coverage 0.5: real embeddings: concepts 0.90, objects 0.40; additive"
    assert words in spec["description"]


def test_an_approximator_may_be_missing_at_a_coverage():
    mine = curve()
    mine = mine[(mine["approximator"] != "xgboost") | (mine["coverage"] == 0.9)]
    spec = coverage_slider(mine, "One").to_dict()
    assert "xgboost" in spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert "xgboost" not in spec["description"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pd.concat([curve(), curve([0.1])]), "got real embeddings at 0.1 again"),
        (curve([0.1, 0.2, 0.5]), "equal steps, got 0.1, 0.2, 0.5"),
    ],
)
def test_curves_that_no_slider_can_show(bad, message):
    with pytest.raises(ValueError, match=message):
        coverage_slider(bad, "Bad")


def test_sizes_leave_the_real_embeddings_out_and_name_the_best():
    spec = CHARTS["size"]().to_dict()
    (rows,) = spec["datasets"].values()
    assert {row["approximator"] for row in rows} == set(SIZES) - {REAL}
    assert "one: at best 0.08 by xgboost with 1,000,000 parameters" in spec["description"]


def test_the_recorded_table_can_be_drawn():
    table = recorded("complexity").query("split == 'random' and seed == 0")
    for encoder in ("minilm", "dual:binding"):
        spec = coverage_slider(table.query("encoder == @encoder"), encoder).to_dict()
        assert len(json.dumps(spec)) < 60_000
    sizes = size_chart(table.query("coverage == 0.9"), "All encoders").to_dict()
    assert "minilm: at best" in sizes["description"]
