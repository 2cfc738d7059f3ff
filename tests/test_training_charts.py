"""Coverage thresholds, the charts of training, and the widget that trains on demand."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from chart_specs import assert_shared_look, parts
from hypothesis import given
from hypothesis import strategies as st

from binding_lib import explorers
from binding_lib.chart_style import COLOURS, SHAPES
from binding_lib.concepts import ConceptSpace
from binding_lib.coverage import coverage_means, coverage_thresholds, first_crossing
from binding_lib.recorded import recorded
from binding_lib.training import train_dual_encoder
from binding_lib.training_charts import (
    PUBLISHED_THRESHOLD,
    coverage_chart,
    coverage_grid,
    history_chart,
    history_curves,
)

COVERAGES = [round(0.1 * i, 1) for i in range(1, 10)]


def table(spaces=((2, 10, 0.6), (2, 20, 0.4)), seeds=2, training="recipe"):
    """Models that fail below a coverage, bind above it, and differ a little by their seed."""
    return pd.DataFrame(
        [
            {
                "concepts": concepts,
                "values": values,
                "training": training,
                "coverage": coverage,
                "seed": seed,
                "held_out_object": float(coverage > threshold - 1e-9) * 0.8 + 0.1 * seed,
            }
            for concepts, values, threshold in spaces
            for coverage in COVERAGES
            for seed in range(seeds)
        ]
    )


def cells(side=20, coverages=COVERAGES):
    rng = np.random.default_rng(0)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "coverage": coverage,
                    "object": np.arange(side**2),
                    "seen": (rng.permutation(side**2) < coverage * side**2).astype(int),
                    "accuracy": rng.random(side**2).round(3),
                }
            )
            for coverage in coverages
        ]
    )


def history(steps=(50, 100), start=0.1):
    return pd.DataFrame(
        [
            {
                "step": step,
                "objects": objects,
                "concept": start + i / 10,
                "object": start,
                "swap": start / 2 if objects == "held_out" else 1.0,
            }
            for i, step in enumerate(steps)
            for objects in ("seen", "validation", "held_out")
        ]
    )


# Thresholds ------------------------------------------------------------------------------------


@given(
    slope=st.floats(0.1, 10),
    middle=st.floats(0.15, 0.85),
    level=st.floats(0.1, 0.9),
)
def test_the_crossing_of_a_straight_line_is_exact(slope, middle, level):
    xs = [0.1, 0.25, 0.5, 0.7, 0.9]
    found = first_crossing(xs, [level + slope * (x - middle) for x in xs], level)
    assert found == pytest.approx(middle, abs=1e-6)


@pytest.mark.parametrize(
    ("ys", "expected"),
    [
        ([0.0, 0.2, 0.4], math.nan),  # never
        ([0.6, 0.7, 0.8], math.nan),  # above it from the start
        ([0.0, 0.5, 0.4], 0.2),  # reached at a point
        ([0.0, 1.0, 0.0], 0.15),  # the way down does not count
        ([0.6, 0.0, 1.0], 0.25),
    ],
)
def test_crossings(ys, expected):
    assert first_crossing([0.1, 0.2, 0.3], ys) == pytest.approx(expected, nan_ok=True)


def test_crossings_need_ascending_points():
    with pytest.raises(ValueError, match="ascending"):
        first_crossing([0.2, 0.1], [0.0, 1.0])
    with pytest.raises(ValueError, match="as many"):
        first_crossing([0.1, 0.2], [0.0])


def test_thresholds_are_those_of_the_mean_over_seeds():
    mine = table()
    means = coverage_means(mine)
    assert len(means) == 2 * len(COVERAGES)
    assert set(means["seeds"]) == {2}
    assert list(means["n_objects"].unique()) == [100, 400]
    one = means.query("n_objects == 400 and coverage == 0.8").iloc[0]
    assert (one["low"], one["mean"], one["high"]) == pytest.approx((0.8, 0.85, 0.9))
    # Between 0.5 and 0.6 the mean rises from 0.05 to 0.85; between 0.3 and 0.4 likewise.
    found = coverage_thresholds(mine).set_index("n_objects")["threshold"]
    share = (0.5 - 0.05) / 0.8
    assert found.to_dict() == pytest.approx({100: 0.5 + 0.1 * share, 400: 0.3 + 0.1 * share})
    shuffled = mine.sample(frac=1, random_state=0)
    assert coverage_thresholds(shuffled).equals(coverage_thresholds(mine))


def test_spaces_of_equal_size_are_kept_apart():
    found = coverage_thresholds(table([(2, 8, 0.6), (3, 4, 0.3)]))
    assert list(found["n_objects"]) == [64, 64]
    assert found["threshold"].nunique() == 2


def test_other_ways_of_training_are_kept_apart():
    both = pd.concat([table([(2, 20, 0.6)]), table([(2, 20, 0.3)], training="slower")])
    found = coverage_thresholds(both)
    assert list(found["training"]) == ["recipe", "slower"]
    assert found["threshold"].iloc[0] > found["threshold"].iloc[1] + 0.2
    (marks, *_) = (
        p["encoding"]
        for p in parts(coverage_chart(both).to_dict())
        if "shape" in p.get("encoding", {})
    )
    assert marks["color"]["scale"]["domain"] == [
        "|O| = 400 (C = 2, V = 20)",
        "|O| = 400 (C = 2, V = 20), slower",
    ]


# Charts ----------------------------------------------------------------------------------------

CHARTS = {
    "history": lambda: history_chart(history_curves(history()), "One model"),
    "coverage": lambda: coverage_chart(table()),
    "grid": lambda: coverage_grid(cells()),
}


@pytest.mark.parametrize("name", CHARTS)
def test_the_look_that_all_share(name):
    spec = CHARTS[name]().to_dict()
    assert_shared_look(spec)
    assert len(json.dumps(spec)) < 60_000
    assert "http" not in json.dumps({k: v for k, v in spec.items() if k != "$schema"})


@pytest.mark.parametrize("name", ["history", "coverage"])
def test_lines_differ_by_colour_and_by_shape_in_one_legend(name):
    spec = CHARTS[name]().to_dict()
    assert spec["width"] == "container"
    (marks,) = (p["encoding"] for p in parts(spec) if "shape" in p.get("encoding", {}))
    assert marks["color"]["legend"] == marks["shape"]["legend"]
    assert marks["color"]["scale"]["domain"] == marks["shape"]["scale"]["domain"]
    n = len(marks["color"]["scale"]["domain"])
    assert marks["color"]["scale"]["range"] == list(COLOURS[:n])
    assert marks["shape"]["scale"]["range"] == list(SHAPES[:n])


def test_history_curves_are_those_of_held_out_objects():
    curves = history_curves(history(), ["concept", "swap"], ", mine")
    assert list(curves["curve"].unique()) == ["concept, mine", "swap, mine"]
    assert curves.query("curve == 'swap, mine'")["value"].tolist() == [0.05, 0.05]
    assert curves.query("curve == 'concept, mine'")["value"].tolist() == pytest.approx([0.1, 0.2])
    words = history_chart(curves, "Mine").to_dict()["description"]
    assert "At the end: concept, mine: 0.20 at step 100; swap, mine: 0.05 at step 100." in words


def test_too_many_lines_are_refused():
    many = pd.concat([history_curves(history(), suffix=str(i)) for i in range(3)])
    with pytest.raises(ValueError, match="6 colours can be told apart; got 9 values"):
        history_chart(many, "Nine")


def test_the_thresholds_and_the_published_band_are_drawn():
    spec = coverage_chart(table()).to_dict()
    data = list(spec["datasets"].values())
    assert [dict(zip(("low", "high"), PUBLISHED_THRESHOLD, strict=True))] in data
    (drawn,) = (d for d in data if "threshold" in d[0])
    assert [row["threshold"] for row in drawn] == [
        round(t, 3) for t in coverage_thresholds(table())["threshold"]
    ]
    assert "|O| = 400 (C = 2, V = 20) reaches one half at coverage 0.36" in spec["description"]
    assert spec["title"]["subtitle"] == "Grey band: published, |O| = 125,000, 30% to 40%"
    assert spec["title"]["subtitle"] in spec["description"]


def test_a_space_that_never_binds_has_no_threshold():
    spec = coverage_chart(table([(2, 10, 2.0), (2, 20, 0.4)])).to_dict()
    (drawn,) = (d for d in spec["datasets"].values() if "threshold" in d[0])
    assert len(drawn) == 1
    assert "|O| = 100 (C = 2, V = 10) reaches" not in spec["description"]


def test_the_grid_is_a_narrow_pair_of_charts_under_one_slider():
    spec = coverage_grid(cells()).to_dict()
    assert [chart["width"] for chart in spec["vconcat"]] == [300, 300]
    (slider,) = spec["params"]
    assert slider["name"] == "coverage"
    assert slider["value"] == 0.3
    bind = {k: slider["bind"][k] for k in ("input", "min", "max", "step")}
    assert bind == {"input": "range", "min": 0.1, "max": 0.9, "step": 0.1}
    assert sum("coverage" in str(p.get("calculate")) for p in parts(spec)) == 2
    assert sum("coverage" in str(p.get("filter")) for p in parts(spec)) == 2


def test_each_cell_holds_its_own_numbers():
    mine = cells(side=4)
    spec = coverage_grid(mine.sample(frac=1, random_state=1)).to_dict()
    (rows,) = (d for d in spec["datasets"].values() if "percent" in d[0])
    assert [(r["first"], r["second"]) for r in rows] == list(
        itertools.product(range(1, 5), repeat=2)
    )
    for i, row in enumerate(rows):
        one = mine[mine["object"] == i].sort_values("coverage")
        assert row["seen"] == one["seen"].tolist()
        assert np.abs(np.array(row["percent"]) / 100 - one["accuracy"]).max() <= 0.0050001


def test_seen_and_unseen_differ_without_colour():
    grid = coverage_grid(cells()).to_dict()["vconcat"][0]
    assert grid["encoding"]["shape"]["scale"] == {
        "domain": ["seen in training", "held out"],
        "range": ["square", "circle"],
    }
    assert grid["encoding"]["shape"]["field"] != grid["encoding"]["color"]["field"]


def test_the_means_under_the_grid():
    mine = cells(side=4)
    spec = coverage_grid(mine).to_dict()
    (means,) = (d for d in spec["datasets"].values() if "percent" not in d[0])
    assert len(means) == 2 * len(COVERAGES)
    seen = mine.query("coverage == 0.3 and seen == 1")["accuracy"].mean()
    assert {"coverage": 0.3, "kind": "seen in training", "accuracy": round(seen, 3)} in means


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (cells(side=4).query("object != 3"), "a square grid"),
        (cells(side=4).iloc[1:], "a square grid"),
        (cells(side=4, coverages=[0.1, 0.2, 0.4]), "equal steps, got 0.1, 0.2, 0.4"),
        (cells(side=4, coverages=[0.1]), "two or more values at equal steps"),
    ],
)
def test_cells_that_make_no_grid_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        coverage_grid(bad)


# What ships ------------------------------------------------------------------------------------


def test_the_recorded_tables_can_be_drawn():
    grid = json.dumps(coverage_grid(recorded("coverage_objects")).to_dict())
    assert len(grid) < 60_000
    curves = coverage_chart(recorded("coverage")).to_dict()
    known = coverage_thresholds(recorded("coverage"))["threshold"].notna().sum()
    assert curves["description"].count("reaches one half") == known >= 2


def test_the_recorded_tables_agree_about_what_was_seen():
    """The share of seen cells is the coverage; the smaller the coverage, the fewer are seen."""
    shares = recorded("coverage_objects").groupby("coverage")["seen"].mean()
    assert shares.tolist() == pytest.approx(shares.index.tolist(), abs=0.005)


def test_recorded_models_fail_where_least_was_seen():
    means = coverage_means(recorded("coverage"))
    for _, one in means.query("training == 'recipe'").groupby(["concepts", "values"]):
        assert one["mean"].max() > one["mean"].iloc[0] + 0.3


# The widget ------------------------------------------------------------------------------------

TINY = {"width": 16, "heads": 2, "layers": 1, "mlp_width": 16, "output": 8, "steps": 4}


@pytest.fixture
def explorer():
    return explorers.training_explorer(
        ConceptSpace.grid(2, 6), **TINY, n_scenes=16, evaluate_every=2, exam_scenes=20
    )


@pytest.fixture
def watched(monkeypatch):
    """The models that the widget trains and the charts that it shows."""
    models, charts = [], []

    def train(*arguments, **settings):
        models.append(train_dual_encoder(*arguments, progress=False, **settings))
        return models[-1]

    monkeypatch.setattr(explorers, "train_dual_encoder", train)
    monkeypatch.setattr(explorers, "display", charts.append)
    return models, charts


def test_nothing_is_trained_before_the_button_is_pressed(explorer, watched):
    coverage, growing, *_ = explorer.children
    coverage.value, growing.value = 0.7, False
    assert watched == ([], [])


def test_the_button_trains_what_the_slider_and_the_box_say(explorer, watched):
    coverage, growing, button, _ = explorer.children
    button.click()
    coverage.value, growing.value = 0.75, False
    button.click()
    models, charts = watched
    assert [m.split.coverage for m in models] == [0.5, 0.75]
    assert [m.training["grow_from"] for m in models] == [2, None]
    titles = [chart.to_dict()["title"] for chart in charts]
    assert titles[0] == "Coverage 0.50, growing vocabulary"
    assert titles[1] == "Coverage 0.75, all values at once"
    last = models[1].history.query("objects == 'held_out'").iloc[-1]
    assert f"concept: {last['concept']:.2f}" in charts[1].to_dict()["description"]
    assert not button.disabled


def test_a_coverage_that_is_too_small_is_explained(explorer, watched, capsys):
    coverage, _, button, _ = explorer.children
    coverage.value = 0.1
    button.click()
    assert "coverage 0.111 leaves 4 objects for training" in capsys.readouterr().out
    assert watched == ([], [])
    assert not button.disabled
