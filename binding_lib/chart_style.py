"""The look that all charts share, and the checks that keep it.

A transparent ground and mid-grey text that can be read on white and on black, colours that
colour-blind readers can tell apart (Okabe & Ito), a shape beside each colour, and a description
which serves as alternative text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import altair as alt
import numpy as np

# Okabe & Ito's colours without black and yellow, which vanish on dark and on light ground.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")
GREY = "#767676"

Chart = TypeVar("Chart", alt.LayerChart, alt.VConcatChart)


def colour(column: str, groups: Sequence[str], title: str | None = None) -> alt.Color:
    """Give each group a colour; ValueError if there are more groups than colours."""
    if len(groups) > len(COLOURS):
        raise ValueError(
            f"{len(COLOURS)} colours can be told apart; got {len(groups)} values of {column!r}"
        )
    return alt.Color(
        f"{column}:N",
        scale=alt.Scale(domain=list(groups), range=COLOURS[: len(groups)]),
        legend=legend(groups, title),
    )


def shape(column: str, groups: Sequence[str], title: str | None = None) -> alt.Shape:
    """Give each group the shape that goes with its colour."""
    return alt.Shape(
        f"{column}:N",
        scale=alt.Scale(domain=list(groups), range=SHAPES[: len(groups)]),
        legend=legend(groups, title),
    )


def legend(groups: Sequence[str], title: str | None = None) -> alt.Legend:
    """One legend for colour and shape: Vega-Lite merges equal ones of scales with equal domains."""
    # Two long names do not fit beside each other on a phone.
    columns = 2 if max(map(len, groups)) <= 16 else 1
    return alt.Legend(title=title, orient="bottom", columns=columns, labelLimit=280)


def equal_step(values: Sequence[float], name: str) -> float:
    """Return the step between sorted values, for a slider that must stop at each of them.

    Raises
    ------
    ValueError
        If there are fewer than two values or the steps differ: the slider would stop where there
        is nothing to show.
    """
    steps = {round(float(step), 9) for step in np.diff(values)}
    if len(steps) != 1:
        raise ValueError(
            f"{name} must take two or more values at equal steps, got "
            + ", ".join(map(str, values))
        )
    return steps.pop()


def finish(chart: Chart, title: str, description: str, subtitle: str = "") -> Chart:
    """Give a chart the course's look, its titles and its alternative text."""
    return (
        chart.properties(
            title=alt.Title(title, subtitle=subtitle) if subtitle else title,
            description=description,
            # SVG text is sharp, can be read out, and takes the page's colours.
            usermeta={"embedOptions": {"renderer": "svg", "actions": False}},
        )
        # A font that Vega can measure: it cannot resolve "inherit", and would cut labels off.
        .configure(background="transparent", font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=GREY,
            titleColor=GREY,
            labelFontSize=12,
            titleFontSize=12,
            gridColor=GREY,
            gridOpacity=0.25,
            domainColor=GREY,
            tickColor=GREY,
            labelLimit=150,
        )
        .configure_legend(labelColor=GREY, labelFontSize=12, titleColor=GREY, titleFontSize=12)
        .configure_title(
            color=GREY, fontSize=14, anchor="start", subtitleColor=GREY, subtitleFontSize=12
        )
    )
