"""Charts: valid, light, described in words, and telling their groups apart."""

import itertools
import json

import altair as alt
import numpy as np
import pandas as pd
import pytest

from binding_lib.chart_style import COLOURS, SHAPES
from binding_lib.charts import readings_chart, scene_count_chart, strength_chart

ESTIMATORS = ["avg", "avg+pos", "single-obj", "least-squares"]


def table(readings=("R²", "retrieval", "probe: object", "probe: attribute", "probe: noun")):
    rows = [
        {"level": "object", "estimator": e, "reading": r, "value": 0.9 - 0.13456 * i - 0.02 * j}
        for i, e in enumerate(ESTIMATORS)
        for j, r in enumerate(readings)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(low=frame["value"] - 0.05, high=frame["value"] + 0.05, n_scenes=1200)


def curve(counts=range(1_800, 10_801, 1_800)):
    """As large as the chapter's."""
    return pd.concat(
        [
            table(["R²", "retrieval"]).assign(
                n_train=n, value=lambda t, n=n: t["value"] * n / 10_800
            )
            for n in counts
        ],
        ignore_index=True,
    )


def strengths(ks=tuple(k / 10 for k in range(21))):
    """As large as the chapter's."""
    readings = ("retrieval", "probe: object", "probe: attribute", "probe: noun")
    rows = table(readings).rename(columns={"n_scenes": "n_edits"})
    parts = [rows.assign(strength=k, value=rows["value"] * (1 - abs(1 - k))) for k in ks]
    return pd.concat(parts, ignore_index=True)


CHARTS = {
    "curve": lambda: scene_count_chart(curve()),
    "strength": lambda: strength_chart(strengths(), by="estimator", title="Edits"),
    "estimators": lambda: readings_chart(table(), by="estimator", title="Four estimators"),
    "published": lambda: readings_chart(
        table().assign(low=np.nan, high=np.nan), by="estimator", title="Published"
    ),
}


def rows_of(spec):
    """A chart's one data set."""
    (rows,) = spec["datasets"].values()
    return rows


@pytest.fixture(params=CHARTS)
def spec(request):
    return CHARTS[request.param]().to_dict()


def test_the_look_that_all_share(spec):
    assert alt.Chart.from_dict(spec).to_dict()  # valid by the schema of Vega-Lite
    assert spec["config"]["background"] == "transparent"
    assert spec["width"] == "container"
    assert spec["usermeta"]["embedOptions"] == {"renderer": "svg", "actions": False}
    assert len(json.dumps(spec)) < 60_000
    assert "http" not in json.dumps({k: v for k, v in spec.items() if k != "$schema"})


def test_only_the_data_that_is_drawn(spec):
    (rows,) = spec["datasets"].values()
    encoded = json.dumps(spec["layer"])
    for column in rows[0]:
        assert f'"{column}"' in encoded or f"datum.{column}" in encoded, column
    assert all(v == round(v, 4) for row in rows for v in row.values() if isinstance(v, float))


def test_colours_and_shapes_are_distinct(spec):
    for layer in spec["layer"]:
        for channel in ("color", "shape"):
            if "scale" in layer["encoding"].get(channel, {}):
                scale = layer["encoding"][channel]["scale"]["range"]
                assert len(scale) == len(set(scale)) == len(ESTIMATORS)
                assert layer["encoding"][channel]["scale"]["domain"] == ESTIMATORS


def test_colour_and_shape_share_one_legend():
    """Vega-Lite merges two legends only if they and their scales' domains are equal."""
    marks = CHARTS["estimators"]().to_dict()["layer"][-1]["encoding"]
    assert marks["color"]["legend"] == marks["shape"]["legend"]
    assert marks["color"]["scale"]["domain"] == marks["shape"]["scale"]["domain"]
    assert "sort" not in marks["color"] | marks["shape"]


def test_the_palette_can_be_told_apart_by_colour_blind_readers():
    """In sRGB and as a protanope or deuteranope sees it (matrices of Machado et al., 2009)."""
    protan = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    deutan = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for sight in (np.eye(3), np.array(protan), np.array(deutan)):
        seen = np.clip(linear @ sight.T, 0, 1) ** (1 / 2.2)
        for one, other in itertools.combinations(seen, 2):
            assert np.abs(one - other).max() > 0.1
    assert len(set(SHAPES)) == len(SHAPES) == len(COLOURS)


def test_the_numbers_in_words():
    words = readings_chart(table(), by="estimator", title="Four estimators").to_dict()[
        "description"
    ]
    assert words.startswith("Dot plot. Four estimators. ")
    for row in table().itertuples():
        assert f"{row.reading}, {row.estimator}: {row.value:.3f}" in words
    words = scene_count_chart(curve()).to_dict()["description"]
    assert "A slider sets the number of training scenes, a menu chooses R² or retrieval" in words
    for row in curve([10_800]).itertuples():
        assert f"{row.reading}, {row.estimator}: {row.value:.3f}" in words


def test_the_slider_and_the_menu():
    spec = scene_count_chart(curve()).to_dict()
    params = {p["name"]: p for p in spec["params"]}
    slider, menu = params["n_train"], params["reading"]
    assert slider["value"] == 10_800
    bind = {k: slider["bind"][k] for k in ("input", "min", "max", "step")}
    assert bind == {"input": "range", "min": 1_800, "max": 10_800, "step": 1_800}
    assert menu["value"] == "R²"
    assert menu["bind"]["input"] == "select"
    assert menu["bind"]["options"] == ["R²", "retrieval"]
    stops = set(range(1_800, 10_801, 1_800))
    assert {row["n_train"] for row in rows_of(spec)} == stops
    bars = [layer for layer in spec["layer"] if layer["mark"]["type"] == "bar"]
    assert {t["filter"] for t in bars[0]["transform"]} == {
        "datum.reading == reading",
        "abs(datum.n_train - n_train) < 1e-6",
    }


def test_the_strength_is_a_slider_that_stops_at_every_row():
    spec = strength_chart(strengths(), by="estimator", title="Edits of captions").to_dict()
    (slider,) = (p for p in spec["params"] if p["name"] == "strength")
    assert slider["value"] == 1
    stops = np.arange(slider["bind"]["min"], slider["bind"]["max"] + 0.01, slider["bind"]["step"])
    in_rows = sorted({row["strength"] for row in rows_of(spec)})
    np.testing.assert_allclose(stops, in_rows, atol=1e-9)
    words = spec["description"]
    assert words.startswith("Bar chart, one bar for each estimator. Edits of captions. A slider")
    for row in strengths([1.0]).itertuples():
        assert f"{row.reading}, {row.estimator}: {row.value:.3f}" in words
    by_encoder = strengths().query("estimator == 'avg'").assign(encoder="one")
    spec = strength_chart(by_encoder, by="encoder", title="Edits of pictures").to_dict()
    assert {row["encoder"] for row in rows_of(spec)} == {"one"}
    with pytest.raises(ValueError, match="strength must take two or more values at equal steps"):
        strength_chart(strengths([0.0, 0.5, 1.0, 2.0]), by="estimator", title="Uneven")


def test_worse_than_the_mean_stays_inside_the_frame():
    low = curve().assign(value=lambda t: t["value"] - 1)
    spec = scene_count_chart(low).to_dict()
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in spec["layer"]]
    assert all("domain" not in scale and "domainMin" not in scale for scale in scales)


@pytest.mark.parametrize("counts", [[100], [100, 200, 400]])
def test_unequal_steps_are_refused(counts):
    with pytest.raises(ValueError, match="two or more values at equal steps, got 100"):
        scene_count_chart(curve(counts))


def test_too_many_groups_are_refused():
    many = pd.concat([table().assign(run=f"run {i}") for i in range(7)])
    with pytest.raises(ValueError, match="6 colours can be told apart; got 7 values of 'run'"):
        readings_chart(many, by="run", title="Seven")


def test_published_values_have_no_interval():
    rows = rows_of(CHARTS["published"]().to_dict())
    assert all(row["low"] is None and row["high"] is None for row in rows)
    assert all(isinstance(row["value"], float) for row in rows)


def test_the_callers_table_stays_the_callers():
    mine, before = table(), table()
    readings_chart(mine, by="estimator", title="Mine")
    assert mine.equals(before)
