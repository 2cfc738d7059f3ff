"""What a reader sees: Altair charts whose sliders work without Python.

All charts share one look: a transparent ground and mid-grey text that can be read on white and on
black, colours that colour-blind readers can tell apart (Okabe & Ito), a shape beside each colour,
and a description which serves as alternative text. Each fills the width that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

# Okabe & Ito's colours without black and yellow, which vanish on dark and on light ground.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")

_NUMBERS = ("value", "low", "high")
_GREY = "#767676"
_BAR_HEIGHT = 34  # pixels for each row of a chart of rows


def scene_count_chart(curve: pd.DataFrame) -> alt.LayerChart:
    """Bars that move with the number of training scenes; a menu chooses the reading.

    Parameters
    ----------
    curve : DataFrame
        As `binding_lib.readings.scene_count_curve` returns it, at two or more values of n_train
        with equal steps between them.

    Returns
    -------
    altair.LayerChart
        Faint ticks stay where the bars were at the other numbers of scenes.

    Raises
    ------
    ValueError
        If the steps of n_train are not equal: the slider would stop where there is no bar.
    """
    counts = sorted(curve["n_train"].unique())
    if len(set(np.diff(counts))) != 1:
        raise ValueError(
            "n_train must take two or more values at equal steps, got "
            + ", ".join(map(str, counts))
        )
    readings = list(curve["reading"].unique())
    estimators = list(curve["estimator"].unique())
    count = alt.param(
        name="n_train",
        value=int(counts[-1]),
        bind=alt.binding_range(
            min=int(counts[0]),
            max=int(counts[-1]),
            step=int(counts[1] - counts[0]),
            name="training scenes ",
        ),
    )
    reading = alt.param(
        name="reading",
        value=readings[0],
        bind=alt.binding_select(options=readings, name="reading "),
    )
    rows = alt.Y("estimator:N", sort=estimators, title=None)
    value = alt.X("value:Q", title="value (higher is better)", scale=alt.Scale(domainMax=1))
    tooltip = ["estimator", "n_train", "reading", alt.Tooltip("value", format=".3f"), "n_scenes"]
    needed = curve[["n_train", "estimator", "reading", *_NUMBERS, "n_scenes"]]
    chosen = alt.Chart(needed.round(4)).transform_filter("datum.reading == reading")
    now = chosen.transform_filter("datum.n_train == n_train")
    trail = chosen.mark_tick(color=_GREY, opacity=0.5, thickness=2, size=18).encode(x=value, y=rows)
    bars = now.mark_bar(height=14).encode(
        x=value,
        y=rows,
        color=_colour("estimator", estimators),
        tooltip=tooltip,
    )
    spread = now.mark_rule(color=_GREY, strokeWidth=2).encode(x="low:Q", x2="high:Q", y=rows)
    number = now.mark_text(align="left", dx=6, dy=-12, color=_GREY, fontSize=12).encode(
        x=value, y=rows, text=alt.Text("value:Q", format=".2f")
    )
    return _finish(
        [trail, bars, spread, number],
        [count, reading],
        title="How many scenes does an estimate need?",
        description=(
            "Bar chart, one bar for each estimator of object embeddings. A slider sets the number "
            f"of training scenes, a menu chooses {' or '.join(readings)}. At {counts[-1]} scenes: "
            + _in_words(curve[curve["n_train"] == counts[-1]], "estimator")
        ),
        height=_BAR_HEIGHT * len(estimators),
    )


def readings_chart(table: pd.DataFrame, by: str, title: str) -> alt.LayerChart:
    """A row for each reading, a mark for each value of `by`, with intervals where there are any.

    Parameters
    ----------
    table : DataFrame
        Columns reading, value, low, high (NaN where a value is published without an interval), and
        the column `by`.
    by : str
        The column that gives colour and shape, such as "estimator" or "source".
    title : str

    Raises
    ------
    ValueError
        If `by` has more values than there are colours to tell apart.
    """
    order = list(table["reading"].unique())
    groups = list(table[by].unique())
    base = alt.Chart(table[["reading", by, *_NUMBERS]].round(4))
    rows = alt.Y("reading:N", sort=order, title=None)
    offset = alt.YOffset(f"{by}:N", sort=groups)
    value = alt.X("value:Q", title="value (higher is better)", scale=alt.Scale(domainMax=1))
    spread = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x="low:Q", x2="high:Q", y=rows, yOffset=offset, color=_colour(by, groups))
    )
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=value,
        y=rows,
        yOffset=offset,
        color=_colour(by, groups),
        shape=alt.Shape(
            f"{by}:N",
            scale=alt.Scale(domain=groups, range=SHAPES[: len(groups)]),
            legend=_legend(),
        ),
        tooltip=["reading", by, *(alt.Tooltip(c, format=".3f") for c in _NUMBERS)],
    )
    return _finish(
        [spread, marks],
        [],
        title=title,
        description=f"Dot plot. {title}. " + _in_words(table, by),
        height=max(_BAR_HEIGHT, 16 * len(groups)) * len(order),
    )


def _colour(column: str, groups: Sequence[str]) -> alt.Color:
    if len(groups) > len(COLOURS):
        raise ValueError(
            f"{len(COLOURS)} colours can be told apart; got {len(groups)} values of {column!r}"
        )
    return alt.Color(
        f"{column}:N",
        scale=alt.Scale(domain=list(groups), range=COLOURS[: len(groups)]),
        legend=_legend(),
    )


def _legend() -> alt.Legend:
    """One legend for colour and shape: Vega-Lite merges equal ones of scales with equal domains."""
    return alt.Legend(title=None, orient="bottom", columns=2, labelLimit=280)


def _in_words(table: pd.DataFrame, by: str) -> str:
    """The chart's numbers as a sentence, for readers who hear it."""
    rows = table.itertuples()
    return "; ".join(f"{r.reading}, {getattr(r, by)}: {r.value:.2f}" for r in rows) + "."


def _finish(
    layers: Sequence[alt.Chart],
    params: Sequence[alt.Parameter],
    title: str,
    description: str,
    height: int,
) -> alt.LayerChart:
    """Give a chart the course's look, its alternative text, and the width of the page."""
    return (
        alt.LayerChart(layer=list(layers))
        .add_params(*params)
        .properties(
            title=title,
            description=description,
            width="container",
            height=height,
            # SVG text is sharp, can be read out, and takes the page's colours.
            usermeta={"embedOptions": {"renderer": "svg", "actions": False}},
        )
        # A font that Vega can measure: it cannot resolve "inherit", and would cut labels off.
        .configure(background="transparent", font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_GREY,
            titleColor=_GREY,
            labelFontSize=12,
            titleFontSize=12,
            gridColor=_GREY,
            gridOpacity=0.25,
            domainColor=_GREY,
            tickColor=_GREY,
            labelLimit=150,
        )
        .configure_legend(labelColor=_GREY, labelFontSize=12)
        .configure_title(color=_GREY, fontSize=14, anchor="start")
    )
