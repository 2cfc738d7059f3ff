"""Charts of sweeps: one dot a model, and which configurations the dots of a region have."""

from __future__ import annotations

import altair as alt
import pandas as pd

from binding_lib.chart_style import COLOURS, GREY, colour, finish, shape
from binding_lib.sweeps.description import SETTINGS, described_models

_SIDE = 230  # pixels: with the settings' names beside it a chart of this width fits a phone


def sweep_chart(
    table: pd.DataFrame, fit: str = "global_r2", fit_title: str = "R² of the global product"
) -> alt.VConcatChart:
    """Unseen objects recognised over how well an approximator fits, with the models' settings.

    Parameters
    ----------
    table : DataFrame
        As for `binding_lib.sweeps.description.described_models`.
    fit : str
        The column of the horizontal axis.
    fit_title : str

    Returns
    -------
    altair.VConcatChart
        Above, a dot a model; a slider leaves out models by what they recognise, and dragging over
        dots selects them. Below, for every setting, how many models there are (grey) and how many
        of them are selected (blue).
    """
    models = described_models(table)
    models = models[[*SETTINGS, fit, "held_out_object"]].round(3)
    models["unseen"] = models.pop("held_out_object")
    coverages = ["to 0.35", "to 0.6", "above 0.6"]
    least = alt.param(
        name="least", value=0, bind=alt.binding_range(min=0, max=1, step=0.05, name="at least ")
    )
    most = alt.param(
        name="most", value=1, bind=alt.binding_range(min=0, max=1, step=0.05, name="at most ")
    )
    brush = alt.selection_interval(name="brush")
    inside = "datum.unseen >= least && datum.unseen <= most"
    value = alt.Y("unseen:Q", title="unseen objects recognised", scale=alt.Scale(domain=[0, 1]))
    dots = (
        alt.Chart(models)
        .transform_filter(inside)
        .mark_point(filled=True, size=36)
        .encode(
            x=alt.X(f"{fit}:Q", title=fit_title, scale=alt.Scale(zero=False)),
            y=value,
            color=colour("coverage", coverages),
            shape=shape("coverage", coverages),
            opacity=alt.condition(brush, alt.value(0.8), alt.value(0.15)),
            tooltip=[*SETTINGS, fit, "unseen"],
        )
        .add_params(brush)
        .properties(width=_SIDE, height=_SIDE)
    )
    folded = (
        alt.Chart(models)
        .transform_fold(list(SETTINGS), as_=["setting", "choice"])
        .transform_calculate(name="datum.setting + ': ' + datum.choice")
    )
    # In the order of SETTINGS and, inside of one, of its choices.
    order = [f"{s}: {c}" for s in SETTINGS for c in sorted(models[s].unique(), key=_choice_order)]
    name = alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labelLimit=200))
    number = alt.X("count():Q", title="models")
    bars = alt.LayerChart(
        layer=[
            folded.mark_bar(color=GREY, opacity=0.35).encode(x=number, y=name),
            folded.transform_filter(inside)
            .transform_filter(brush)
            .mark_bar(color=COLOURS[0], height=7)
            .encode(x=number, y=name, tooltip=["name:N", "count():Q"]),
        ]
    ).properties(width=_SIDE, height=alt.Step(13))
    return finish(
        alt.vconcat(dots, bars).add_params(least, most),
        f"{len(models)} models: do those that bind multiply?",
        f"Scatter plot of {len(models)} models: unseen objects recognised over {fit_title}. "
        "Below, bars count the models with each setting, all of them and those selected. Sliders "
        "select models by the share of unseen objects that they recognise; dragging over the dots "
        "selects a region.",
        subtitle="Drag over dots, or move the sliders, to see their settings below",
    )


def _choice_order(choice: str) -> tuple[float, str]:
    """Sort numbers by size, ranges by their ends, and words by the alphabet."""
    first = choice.removeprefix("to ").removeprefix("above ")
    try:
        return float(first) + (0.01 if choice.startswith("above") else 0), choice
    except ValueError:
        return float("inf"), choice
