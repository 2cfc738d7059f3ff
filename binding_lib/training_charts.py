"""Charts of training: how a model learns to bind, and how much of the object space it needs."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from binding_lib.chart_style import COLOURS, GREY, colour, equal_step, finish, shape
from binding_lib.coverage import coverage_means, coverage_thresholds

PUBLISHED_THRESHOLD = (0.3, 0.4)
"""Where unseen objects begin to be recognised among 125,000, as published."""

_SIDE = 300  # pixels: with its axis a chart of this width fits a phone
_FROM_ORANGE_TO_BLUE = (COLOURS[1], COLOURS[0])


def history_curves(
    history: pd.DataFrame,
    metrics: Sequence[str] = ("concept", "object", "swap"),
    suffix: str = "",
) -> pd.DataFrame:
    """Arrange what a model recognised of held-out objects as lines for `history_chart`.

    Parameters
    ----------
    history : DataFrame
        As `binding_lib.trained.TrainedDualEncoder` keeps it.
    metrics : sequence of str
        Of "concept", "object" and "swap".
    suffix : str
        Follows the metric in the name of each line, to tell models apart.
    """
    held_out = history[history["objects"] == "held_out"]
    curves = held_out.melt(["step"], list(metrics), "curve", "value")
    return curves.assign(curve=curves["curve"] + suffix)


def history_chart(curves: pd.DataFrame, title: str) -> alt.LayerChart:
    """Lines over training steps.

    Parameters
    ----------
    curves : DataFrame
        Columns step, curve (the name of the line) and value (a rate from 0 to 1).
    title : str

    Raises
    ------
    ValueError
        If there are more lines than colours to tell them apart.
    """
    names = list(curves["curve"].unique())
    # A line each: models may have trained for different numbers of steps.
    last = curves.sort_values("step").groupby("curve", sort=False).last().loc[names].reset_index()
    step = alt.X("step:Q", title="training step", scale=alt.Scale(nice=False))
    value = alt.Y("value:Q", title="recognised", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(curves[["step", "curve", "value"]].round(3)).encode(
        x=step, y=value, color=colour("curve", names)
    )
    marks = base.mark_point(filled=True, size=40, opacity=1).encode(
        shape=shape("curve", names), tooltip=["curve", "step", "value"]
    )
    in_words = "; ".join(f"{r.curve}: {r.value:.2f} at step {r.step}" for r in last.itertuples())
    chart = alt.LayerChart(layer=[base.mark_line(strokeWidth=2), marks]).properties(
        width="container", height=240
    )
    return finish(
        chart,
        title,
        f"Line chart over training steps. {title}. At the end: {in_words}.",
    )


def coverage_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Held-out object recognition over coverage, a line for each object space and way of training.

    Parameters
    ----------
    table : DataFrame
        As for `binding_lib.coverage.coverage_means`.

    Returns
    -------
    altair.LayerChart
        Lines join the means over seeds, bars span the single models, dashes fall from
        where a line crosses one half, and a band shows where the published transition lies.
    """
    means = coverage_means(table)
    thresholds = coverage_thresholds(table)
    for one in (means, thresholds):
        one["space"] = [
            f"|O| = {r.n_objects:,} (C = {r.concepts}, V = {r.values})"
            + ("" if r.training == "recipe" else f", {r.training}")
            for r in one.itertuples()
        ]
    spaces = list(thresholds["space"])
    coverage = alt.X("coverage:Q", title="coverage", scale=alt.Scale(domain=[0, 1]))
    value = alt.Y("mean:Q", title="unseen objects recognised", scale=alt.Scale(domain=[0, 1]))
    low, high = PUBLISHED_THRESHOLD
    label = f"published, |O| = 125,000, {low:.0%} to {high:.0%}"
    band = alt.Chart(pd.DataFrame([{"low": low, "high": high}]))
    shade = band.mark_rect(color=GREY, opacity=0.2).encode(x=alt.X("low:Q"), x2="high:Q")
    needed = means[["space", "coverage", "mean", "low", "high", "seeds"]].round(3)
    base = alt.Chart(needed).encode(x=coverage, color=colour("space", spaces))
    lines = base.mark_line(strokeWidth=2).encode(y=value)
    spread = (
        base.transform_filter("datum.seeds > 1")
        .mark_rule(strokeWidth=2)
        .encode(y="low:Q", y2="high:Q")
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=value,
        shape=shape("space", spaces),
        tooltip=["space", "coverage", "mean", "low", "high", "seeds"],
    )
    crossed = thresholds.dropna(subset="threshold")
    half = (
        alt.Chart(crossed[["space", "threshold"]].round(3))
        .mark_rule(strokeDash=[4, 3], strokeWidth=2)
        .encode(
            x="threshold:Q",
            y=alt.datum(0.5),
            y2=alt.datum(0),
            color=colour("space", spaces),
            tooltip=["space", "threshold"],
        )
    )
    in_words = "; ".join(
        f"{r.space} reaches one half at coverage {r.threshold:.2f}" for r in crossed.itertuples()
    )
    chart = alt.LayerChart(layer=[shade, lines, spread, points, half]).properties(
        width="container", height=280
    )
    return finish(
        chart,
        "Unseen objects recognised, by coverage",
        f"Line chart, a line for each object space. {in_words}. Grey band: {label}.",
        subtitle=f"Grey band: {label}",
    )


def coverage_grid(cells: pd.DataFrame) -> alt.VConcatChart:
    """Every object of a space as a cell, over the accuracy curve; a slider sets the coverage.

    Parameters
    ----------
    cells : DataFrame
        Columns coverage, object (the id in a space of two concepts with as many values each),
        seen (1 if the object was seen in training) and accuracy, one row for each coverage and
        object, coverages at equal steps; as the recorded table "coverage_objects".

    Returns
    -------
    altair.VConcatChart
        Squares are objects seen in training, circles held-out ones.
    """
    by_coverage = cells.sort_values(["object", "coverage"]).groupby("object")
    coverages = sorted(cells["coverage"].unique())
    side = round(len(by_coverage) ** 0.5)
    if side**2 != len(by_coverage) or any(by_coverage.size() != len(coverages)):
        raise ValueError(
            f"expected the cells of a square grid at each of {len(coverages)} coverages, got "
            f"{len(cells)} rows of {len(by_coverage)} objects"
        )
    step = equal_step(coverages, "coverage")
    slider = alt.param(
        name="coverage",
        value=coverages[len(coverages) // 4],  # where cells differ most
        bind=alt.binding_range(min=coverages[0], max=coverages[-1], step=step, name="coverage "),
    )
    # A row an object, with one number for each coverage: a fifth of the text of one row each.
    percent = cells.assign(percent=(100 * cells["accuracy"]).round().astype(int))
    rows = [
        {
            "first": number // side + 1,
            "second": number % side + 1,
            "percent": one["percent"].tolist(),
            "seen": one["seen"].tolist(),
        }
        for number, (_, one) in enumerate(percent.sort_values("coverage").groupby("object"))
    ]
    kinds = ["seen in training", "held out"]
    place = f"round((coverage - {coverages[0]}) / {step})"
    bare = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    grid = (
        alt.Chart(alt.InlineData(values=rows))
        .transform_calculate(
            accuracy=f"datum.percent[{place}] / 100",
            kind=f"datum.seen[{place}] ? '{kinds[0]}' : '{kinds[1]}'",
        )
        .mark_point(filled=True, opacity=1, size=(_SIDE / side - 2) ** 2)
        .encode(
            x=alt.X("second:O", title="value of the second concept", axis=bare),
            y=alt.Y("first:O", title="value of the first concept", axis=bare),
            color=alt.Color(
                "accuracy:Q",
                scale=alt.Scale(domain=[0, 1], range=_FROM_ORANGE_TO_BLUE, interpolate="lab"),
                legend=alt.Legend(
                    title="recognised", orient="bottom", gradientLength=120, tickCount=2
                ),
            ),
            shape=alt.Shape(
                "kind:N",
                scale=alt.Scale(domain=kinds, range=["square", "circle"]),
                legend=alt.Legend(
                    title=None, orient="bottom", direction="vertical", symbolFillColor=GREY
                ),
            ),
            tooltip=["first:O", "second:O", "kind:N", alt.Tooltip("accuracy:Q", format=".2f")],
        )
        .properties(width=_SIDE, height=_SIDE)
    )
    means = cells.groupby(["coverage", "seen"])["accuracy"].mean().round(3).reset_index()
    means["kind"] = [kinds[0] if seen else kinds[1] for seen in means["seen"]]
    base = alt.Chart(means[["coverage", "kind", "accuracy"]]).encode(
        x=alt.X("coverage:Q", scale=alt.Scale(domain=[0, 1])),
        tooltip=["kind:N", "coverage:Q", "accuracy:Q"],
    )
    here = base.transform_filter("abs(datum.coverage - coverage) < 1e-6")
    mean = alt.Y("accuracy:Q", title="mean of the cells", scale=alt.Scale(domain=[0, 1]))
    dash = alt.StrokeDash(
        "kind:N", scale=alt.Scale(domain=kinds, range=[[4, 4], [1, 0]]), legend=None
    )
    form = alt.Shape(
        "kind:N", scale=alt.Scale(domain=kinds, range=["square", "circle"]), legend=None
    )
    lines = base.mark_line(color=GREY, strokeWidth=2).encode(y=mean, strokeDash=dash)
    points = base.mark_point(filled=True, color=GREY, size=50, opacity=1).encode(y=mean, shape=form)
    rule = here.mark_rule(color=COLOURS[4], strokeWidth=2)
    now = here.mark_point(filled=True, color=COLOURS[4], size=110, opacity=1).encode(
        y=mean, shape=form
    )
    curve = alt.LayerChart(layer=[lines, points, rule, now]).properties(width=_SIDE, height=150)
    in_words = "; ".join(
        f"coverage {r.coverage:.1f}, {r.kind}: {r.accuracy:.2f}" for r in means.itertuples()
    )
    return finish(
        alt.vconcat(grid, curve)
        .resolve_scale(color="independent", shape="independent")
        .add_params(slider),
        f"{side**2} objects: who is recognised?",
        f"Grid of {side} by {side} objects, squares seen in training and circles held out, "
        f"coloured by how often each is recognised, over a curve of their means. A slider sets "
        f"the coverage. {in_words}.",
    )
