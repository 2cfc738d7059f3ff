"""Charts of sweeps: one dot a model, and which configurations the dots of a region have."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from binding_lib.chart_style import COLOURS, GREY, colour, finish, shape
from binding_lib.sweeps.description import SETTINGS, described_models

_SIDE = 230  # pixels: with the settings' names beside it a chart of this width fits a phone
_UNIT = alt.Scale(domain=[0, 1])
# R² has no least value: a product that went astray would squeeze all others to one side.
_AT_LEAST_ZERO = "max(0, datum[fit])"


FITS = {
    "objects in the product": "global_object",
    "objects in the sum": "additive_object",
    "objects in a network": "mlp-64_object",
    "R² of the product": "global_r2",
    "R² of the sum": "additive_r2",
}
"""What the horizontal axis of `sweep_chart` can show, and the columns that hold it.

The product is the global one, the network has 64 units.
"""


def sweep_chart(table: pd.DataFrame, marked: pd.DataFrame | None = None) -> alt.VConcatChart:
    """Unseen objects recognised over how well an approximator fits, with the models' settings.

    Parameters
    ----------
    table : DataFrame
        As for `binding_lib.sweeps.description.described_models`.
    marked : DataFrame, optional
        Other encoders, shown by name: columns name, held_out_object and those of `FITS`, NaN where
        a fit was not made.

    Returns
    -------
    altair.VConcatChart
        Above, a dot a model; a menu chooses the fit, two sliders leave out models by what they
        recognise, and dragging over dots selects them. Below, for every setting, how many models
        there are (grey) and how many of them are selected (blue).
    """
    models = described_models(table)
    models = _short(models[[*SETTINGS, "held_out_object", *FITS.values()]])
    coverages = ["to 0.35", "to 0.6", "above 0.6"]
    menu = alt.param(
        name="fit",
        value="f0",
        bind=alt.binding_select(
            options=[f"f{i}" for i in range(len(FITS))], labels=list(FITS), name="fit "
        ),
    )
    least = alt.param(
        name="least",
        value=0,
        bind=alt.binding_range(min=0, max=1, step=0.05, name="recognises at least "),
    )
    most = alt.param(
        name="most",
        value=1,
        bind=alt.binding_range(min=0, max=1, step=0.05, name="recognises at most "),
    )
    brush = alt.selection_interval(name="brush")
    inside = "datum.unseen >= least && datum.unseen <= most"
    at: dict[str, Any] = {
        "x": alt.X("x:Q", title="the chosen fit, on unseen objects", scale=_UNIT),
        "y": alt.Y("unseen:Q", title="unseen objects recognised", scale=_UNIT),
    }
    layers = [
        alt.Chart(models)
        .transform_filter(inside)
        .transform_calculate(x=_AT_LEAST_ZERO)
        .mark_point(filled=True, size=36)
        .encode(
            **at,
            color=colour("coverage", coverages, "coverage"),
            shape=shape("coverage", coverages, "coverage"),
            opacity=alt.condition(brush, alt.value(0.8), alt.value(0.15)),
            tooltip=[*SETTINGS, alt.Tooltip("x:Q", title="fit"), "unseen"],
        )
        .add_params(brush)
    ]
    if marked is not None:
        marked = marked.sort_values("held_out_object")[["name", "held_out_object", *FITS.values()]]
        # Neighbours in height have their names on different sides of the mark.
        others = alt.Chart(_short(marked).assign(above=[i % 2 for i in range(len(marked))]))
        others = others.transform_calculate(x=_AT_LEAST_ZERO)
        others = others.transform_filter("isValid(datum[fit])").encode(**at)
        layers += [
            others.mark_point(shape="cross", filled=True, size=110, color=GREY, opacity=1).encode(
                tooltip=["name", alt.Tooltip("x:Q", title="fit"), "unseen"]
            ),
            *(
                others.transform_filter(f"datum.above == {above}")
                .mark_text(align="left", dx=8, dy=dy, color=GREY, fontSize=11)
                .encode(text="name:N")
                for above, dy in ((0, 8), (1, -8))
            ),
        ]
    dots = alt.LayerChart(layer=layers).properties(width=_SIDE, height=_SIDE)
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
            folded.transform_calculate(x=_AT_LEAST_ZERO)
            .transform_filter(inside)
            .transform_filter(brush)
            .mark_bar(color=COLOURS[0], height=7)
            .encode(x=number, y=name, tooltip=["name:N", "count():Q"]),
        ]
    ).properties(width=_SIDE, height=alt.Step(13))
    return finish(
        alt.vconcat(dots, bars).add_params(menu, least, most),
        f"{len(models)} models: do those that bind multiply?",
        f"Scatter plot of {len(models)} models: unseen objects recognised over how well an "
        f"approximator fits, which a menu chooses: {', '.join(FITS)}. Below, bars count the models "
        "with each setting, all of them and those selected. Sliders select models by the share of "
        "unseen objects that they recognise; dragging over the dots selects a region.",
        subtitle="Drag over dots, or move the sliders, to see their settings below",
    )


def _short(models: pd.DataFrame) -> pd.DataFrame:
    """Give numbers three digits and short names, for small notebooks."""
    names = {column: f"f{i}" for i, column in enumerate(FITS.values())}
    return models.rename(columns={**names, "held_out_object": "unseen"}).round(3)


def _choice_order(choice: str) -> tuple[float, str]:
    """Sort numbers by size, ranges by their ends, and words by the alphabet."""
    first = choice.removeprefix("to ").removeprefix("above ")
    try:
        return float(first) + (0.01 if choice.startswith("above") else 0), choice
    except ValueError:
        return float("inf"), choice
