"""Charts of complexity: what approximators get right, by coverage and by their size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from binding_lib.chart_style import GREY, colour, equal_step, finish, shape
from binding_lib.complexity import REAL

READINGS = {"concept": "concepts", "object": "objects", "swap": "swaps"}
"""What charts call the rates of `binding_lib.complexity.complexity_curve`."""

_ROW = 46  # pixels for each approximator
_COLUMNS = ["approximator", "coverage", "reading", "value", "low", "high"]


def rates(curve: pd.DataFrame) -> pd.DataFrame:
    """Give each rate a row of its own: the columns reading, value, low and high.

    Parameters
    ----------
    curve : DataFrame
        As of `binding_lib.complexity.complexity_curve`.
    """
    names = {"concept": "concept_recognition", "object": "object_recognition"}
    names |= {"swap": "swap_accuracy"}
    parts = [
        curve.assign(
            reading=READINGS[short],
            value=curve[name],
            low=curve[f"{short}_low"],
            high=curve[f"{short}_high"],
        )
        for short, name in names.items()
    ]
    return pd.concat(parts, ignore_index=True)


def coverage_slider(curve: pd.DataFrame, title: str) -> alt.LayerChart:
    """Rates of each approximator on scenes of unseen objects; a slider sets the coverage.

    Parameters
    ----------
    curve : DataFrame
        As of `binding_lib.complexity.complexity_curve` for one encoder, coverages at equal steps.
        An approximator that was not fitted at some coverage leaves its row empty there.
    title : str

    Returns
    -------
    altair.LayerChart
        Faint ticks stay where the marks are at the other coverages.

    Raises
    ------
    ValueError
        If an approximator stands twice at a coverage, or the steps between coverages differ.
    """
    keys = ["approximator", "coverage"]
    if (twice := curve.duplicated(keys)).any():
        name, coverage = curve.loc[twice, keys].iloc[0]
        raise ValueError(
            f"expected one row an approximator and coverage, got {name} at {coverage:g} again"
        )
    coverages = sorted(curve["coverage"].unique())
    step = equal_step(coverages, "coverage")
    middle = coverages[len(coverages) // 2]
    slider = alt.param(
        name="coverage",
        value=middle,
        bind=alt.binding_range(min=coverages[0], max=coverages[-1], step=step, name="coverage "),
    )
    order = _by_size(curve)
    shown = list(READINGS.values())
    rows = alt.Y("approximator:N", sort=order, title=None, scale=alt.Scale(domain=order))
    offset = alt.YOffset("reading:N", sort=shown)
    value = alt.X("value:Q", title="unseen objects: recognised", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(rates(curve)[_COLUMNS].round(3)).encode(y=rows, yOffset=offset)
    now = base.transform_filter("abs(datum.coverage - coverage) < 1e-6")
    trail = base.mark_tick(color=GREY, opacity=0.5, thickness=1, size=8).encode(x=value)
    spread = now.mark_rule(strokeWidth=2).encode(
        x="low:Q", x2="high:Q", color=colour("reading", shown)
    )
    marks = now.mark_point(filled=True, size=80, opacity=1).encode(
        x=value,
        color=colour("reading", shown),
        shape=shape("reading", shown),
        tooltip=["approximator", "coverage", "reading", "value", "low", "high"],
    )
    here = curve[curve["coverage"] == middle].set_index("approximator")
    in_words = "; ".join(
        f"{name}: concepts {here.loc[name, 'concept_recognition']:.2f}, "
        f"objects {here.loc[name, 'object_recognition']:.2f}"
        for name in order
        if name in here.index
    )
    chart = (
        alt.LayerChart(layer=[trail, spread, marks])
        .add_params(slider)
        .properties(width="container", height=_ROW * len(order))
    )
    return finish(
        chart,
        title,
        "Chart with a row for each approximator and a mark each for concepts, objects and swaps "
        f"recognised in scenes of unseen objects. A slider sets the coverage. {title}. "
        f"At coverage {middle:g}: {in_words}.",
    )


def size_chart(table: pd.DataFrame, title: str) -> alt.LayerChart:
    """Objects recognised by the number of parameters; a line joins each encoder's networks.

    Parameters
    ----------
    table : DataFrame
        As of `binding_lib.complexity.complexity_curve`, with a column encoder more; one row for
        each encoder and approximator.
    title : str
    """
    fitted = table[table["approximator"] != REAL]
    fitted = fitted.sort_values("n_parameters")
    encoders = list(table["encoder"].unique())
    needed = ["encoder", "approximator", "n_parameters", "object_recognition"]
    needed += ["object_low", "object_high"]
    base = alt.Chart(fitted[needed].round(3)).encode(
        x=alt.X(
            "n_parameters:Q",
            title="parameters of the approximator",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~s", values=[10**e for e in range(3, 9)]),
        ),
        color=colour("encoder", encoders),
    )
    value = alt.Y(
        "object_recognition:Q", title="unseen objects recognised", scale=alt.Scale(domain=[0, 1])
    )
    networks = base.transform_filter("indexof(datum.approximator, 'mlp-') == 0")
    lines = networks.mark_line(strokeWidth=2).encode(y=value)
    spread = base.mark_rule(strokeWidth=2).encode(y="object_low:Q", y2="object_high:Q")
    marks = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=value,
        shape=shape("encoder", encoders),
        tooltip=["encoder", "approximator", "n_parameters", "object_recognition"],
    )
    best = fitted.loc[fitted.groupby("encoder", sort=False)["object_recognition"].idxmax()]
    in_words = "; ".join(
        f"{r.encoder}: at best {r.object_recognition:.2f} by {r.approximator} with "
        f"{r.n_parameters:,.0f} parameters"
        for r in best.itertuples()
    )
    chart = alt.LayerChart(layer=[lines, spread, marks]).properties(width="container", height=260)
    return finish(
        chart,
        title,
        "Scatter chart of objects recognised over the number of parameters of each approximator, "
        f"a colour for each encoder. {title}. {in_words}.",
        subtitle="Lines join networks of one hidden layer",
    )


def _by_size(curve: pd.DataFrame) -> list[str]:
    """The approximators' names, the smallest first, the real embeddings before all."""
    sizes = curve.groupby("approximator")["n_parameters"].median().fillna(0)
    return list(sizes.sort_values(kind="stable").index)
