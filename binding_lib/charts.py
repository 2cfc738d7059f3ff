"""What a reader sees: Altair charts whose sliders work without Python.

All charts share one look (`binding_lib.chart_style`). Each fills the width that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from binding_lib.chart_style import GREY, colour, equal_step, finish, shape

_NUMBERS = ("value", "low", "high")
# Pixels for each row.
_BAR_ROW = 46
_MARK_ROW = 34


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
    most = int(curve["n_train"].max())
    return _moving_bars(
        curve,
        over="n_train",
        by="estimator",
        start=most,
        label="training scenes ",
        title="How many scenes does an estimate need?",
        description="Bar chart, one bar for each estimator of object embeddings. A slider sets "
        f"the number of training scenes, {{menu}}. At {most} scenes: ",
        count="n_scenes",
    )


def strength_chart(table: pd.DataFrame, by: str, title: str) -> alt.LayerChart:
    """Bars that move with the strength of an edit; a menu chooses the reading.

    Parameters
    ----------
    table : DataFrame
        As `binding_lib.surgery.edit_table` returns it, at strengths with equal steps between them,
        1 among them; one row for each strength, reading and value of `by`.
    by : str
        The column that has a bar for each of its values, such as "estimator" or "encoder".
    title : str

    Returns
    -------
    altair.LayerChart
        Faint ticks stay where the bars are at the other strengths.

    Raises
    ------
    ValueError
        If the steps of the strength are not equal, or `by` has more values than there are colours.
    """
    return _moving_bars(
        table,
        over="strength",
        by=by,
        start=1.0,
        label="strength k ",
        title=title,
        description=f"Bar chart, one bar for each {by}. {title}. A slider sets the strength k of "
        "the edit, {menu}. At k = 1: ",
        count="n_edits",
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
        .encode(x="low:Q", x2="high:Q", y=rows, yOffset=offset, color=colour(by, groups))
    )
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=value,
        y=rows,
        yOffset=offset,
        color=colour(by, groups),
        shape=shape(by, groups),
        tooltip=["reading", by, *(alt.Tooltip(c, format=".3f") for c in _NUMBERS)],
    )
    return _finish(
        [spread, marks],
        [],
        title=title,
        description=f"Dot plot. {title}. " + _in_words(table, by),
        height=max(_MARK_ROW, 16 * len(groups)) * len(order),
    )


def _moving_bars(
    table: pd.DataFrame,
    over: str,
    by: str,
    start: float,
    label: str,
    title: str,
    description: str,
    count: str,
) -> alt.LayerChart:
    """Bars at one value of the column `over`, which a slider sets, and ticks at all of them."""
    stops = sorted(table[over].unique().tolist())
    step = equal_step(stops, over)
    readings = list(table["reading"].unique())
    groups = list(table[by].unique())
    slider = alt.param(
        name=over,
        value=start,
        bind=alt.binding_range(min=stops[0], max=stops[-1], step=step, name=label),
    )
    menu = alt.param(
        name="reading",
        value=readings[0],
        bind=alt.binding_select(options=readings, name="reading "),
    )
    rows = alt.Y(f"{by}:N", sort=groups, title=None)
    value = alt.X("value:Q", title="value (higher is better)", scale=alt.Scale(domainMax=1))
    needed = table[[over, by, "reading", *_NUMBERS, count]]
    chosen = alt.Chart(needed.round(4)).transform_filter("datum.reading == reading")
    # A slider's steps add up to numbers that are not quite those of the table.
    now = chosen.transform_filter(f"abs(datum.{over} - {over}) < 1e-6")
    trail = chosen.mark_tick(color=GREY, thickness=2, size=8, yOffset=12).encode(x=value, y=rows)
    bars = now.mark_bar(height=14).encode(
        x=value,
        y=rows,
        color=colour(by, groups),
        tooltip=[by, over, "reading", alt.Tooltip("value", format=".3f"), count],
    )
    spread = now.mark_rule(color=GREY, strokeWidth=2).encode(x="low:Q", x2="high:Q", y=rows)
    number = now.mark_text(align="right", dy=-13, color=GREY, fontSize=12).encode(
        x=value, y=rows, text=alt.Text("value:Q", format=".2f")
    )
    return _finish(
        [trail, bars, spread, number],
        [slider, menu],
        title=title,
        description=description.format(menu=f"a menu chooses {' or '.join(readings)}")
        + _in_words(table[table[over] == start], by),
        height=_BAR_ROW * len(groups),
    )


def _in_words(table: pd.DataFrame, by: str) -> str:
    """The chart's numbers as a sentence, for readers who hear it."""
    rows = table.itertuples()
    return "; ".join(f"{r.reading}, {getattr(r, by)}: {r.value:.3f}" for r in rows) + "."


def _finish(
    layers: Sequence[alt.Chart],
    params: Sequence[alt.Parameter],
    title: str,
    description: str,
    height: int,
) -> alt.LayerChart:
    """Lay the layers over each other, as wide as the page."""
    chart = alt.LayerChart(layer=list(layers)).add_params(*params)
    return finish(chart.properties(width="container", height=height), title, description)
