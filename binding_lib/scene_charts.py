"""A scene to choose, its picture, and the captions that an image-text pair puts nearest to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import altair as alt
import pandas as pd

from binding_lib.chart_style import GREY, colour, finish
from binding_lib.cross_modal import CAPTION_KINDS, OWN, SWAPPED
from binding_lib.scenes import SceneSet
from binding_lib.views.images import data_url, render_images

_SIDE = 300  # pixels: with its margins a chart of this width fits a phone
_PICTURE = 160
_ROW = 34  # pixels for each caption and its bar
_MARKS = {OWN: "✓ ", SWAPPED: "⇄ "}


def caption_chart(table: pd.DataFrame, title: str) -> alt.LayerChart:
    """Draw the captions of one picture as bars, the nearest first.

    Parameters
    ----------
    table : DataFrame
        As of `binding_lib.cross_modal.nearest_captions` for one scene.
    title : str
    """
    rows = table.assign(place=range(1, len(table) + 1))
    needed = rows[["place", "rank", "caption", "cosine", "kind"]].round(3)
    chart = _bars(alt.Chart(needed), len(table), float(table["cosine"].min()))
    return finish(chart, title, f"Bar chart of captions by cosine. {title}. {_in_words(table)}")


def scene_chart(
    tables: Mapping[str, pd.DataFrame],
    scenes: SceneSet,
    seen: Mapping[str, Collection[int]],
    n_captions: int,
) -> alt.VConcatChart:
    """Two menus choose the objects of a scene, a third the pair that looks at it.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        What `binding_lib.cross_modal.nearest_captions` says of `scenes`, for each image-text pair.
    scenes : SceneSet
        Scenes of two objects; the first is the one shown at first. A choice of objects that is not
        among them gets a picture and the remark that it has no swap.
    seen : mapping of str to collection of int
        The objects that each pair saw in training.
    n_captions : int
        How many captions compete.

    Returns
    -------
    altair.VConcatChart
        The picture, drawn in the pixels that the encoder sees; what training saw of it; and the
        nearest captions, with the right one and its swap wherever they stand.
    """
    space, ids = scenes.space, scenes.object_ids
    names = dict(zip(ids.ravel().tolist(), space.object_names(ids.ravel()), strict=True))
    menus = {
        "left_object": ("left object ", names[ids[0, 0]], [names[i] for i in sorted(names)]),
        "right_object": ("right object ", names[ids[0, 1]], [names[i] for i in sorted(names)]),
        "pair": ("encoders ", next(iter(tables)), list(tables)),
    }
    params = [
        alt.param(name=name, value=value, bind=alt.binding_select(options=options, name=label))
        for name, (label, value, options) in menus.items()
    ]
    rows = [
        {
            "pair": pair,
            "left": names[left],
            "right": names[right],
            "note": _remark(left in seen[pair], right in seen[pair]),
            **{column: one[column].tolist() for column in ("rank", "caption", "kind")},
            "cosine": one["cosine"].round(3).tolist(),
        }
        for pair, table in tables.items()
        for (left, right), (_, one) in zip(ids.tolist(), table.groupby("scene"), strict=True)
    ]
    here = "datum.pair == pair && datum.left == left_object && datum.right == right_object"
    chosen = alt.Chart(alt.InlineData(values=rows)).transform_filter(here)
    alike = " || ".join(
        f"split(left_object, ' ')[{part}] == split(right_object, ' ')[{part}]" for part in (0, 1)
    )
    no_swap = alt.InlineData(values=[{"note": "These share a value: there is no swap."}])
    remarks = [_note(chosen), _note(alt.Chart(no_swap).transform_filter(alike))]
    notes = alt.LayerChart(layer=remarks).properties(width=_SIDE, height=16)
    longest = max(table.groupby("scene").size().max() for table in tables.values())
    lowest = min(table["cosine"].min() for table in tables.values())
    flat = chosen.transform_flatten(["rank", "caption", "cosine", "kind"]).transform_window(
        place="row_number()", sort=[alt.SortField("rank")]
    )
    bars = _bars(flat, int(longest), float(lowest))
    first = {pair: table[table["scene"] == 0] for pair, table in tables.items()}
    in_words = " ".join(f"By {pair}: {_in_words(one)}" for pair, one in first.items())
    return finish(
        alt.vconcat(_picture(scenes), notes, bars, spacing=6).add_params(*params),
        f"Which of {n_captions:,} captions is nearest?",
        "A picture of two objects, chosen by two menus, over a bar chart of the captions that an "
        "image-text pair puts nearest to it; a third menu chooses the pair. At first, "
        f"{scenes[0].captions()[0]}. {in_words}",
    )


def _note(chart: alt.Chart) -> alt.Chart:
    """Write the column note."""
    written = chart.mark_text(align="left", color=GREY, fontSize=12)
    return written.encode(text="note:N", x=alt.value(0), y=alt.value(8))


def _picture(scenes: SceneSet) -> alt.LayerChart:
    """Both halves of the picture: the object chosen for the left slot and that for the right."""
    ids = sorted(set(scenes.object_ids.ravel().tolist()))
    drawn = render_images(SceneSet(scenes.space, [[i, i] for i in ids]), size=32)
    names = scenes.space.object_names(ids)
    halves = []
    sides: tuple[Literal["left", "right"], ...] = ("left", "right")
    for slot, side in enumerate(sides):
        rows = [
            {"object": name, "url": data_url(picture[:, 16 * slot : 16 * slot + 16])}
            for name, picture in zip(names, drawn, strict=True)
        ]
        halves.append(
            alt.Chart(alt.InlineData(values=rows))
            .transform_filter(f"datum.object == {side}_object")
            .mark_image(width=_PICTURE // 2, height=_PICTURE, smooth=False, align=side)
            .encode(
                x=alt.value(_PICTURE * slot),
                y=alt.value(_PICTURE // 2),
                url="url:N",
                description="object:N",
            )
        )
    return alt.LayerChart(layer=halves).properties(width=_PICTURE, height=_PICTURE)


def _bars(chart: alt.Chart, n: int, lowest: float) -> alt.LayerChart:
    """Bars for rows with the columns place, rank, caption, cosine and kind, captions above them."""
    base = chart.transform_calculate(
        label=f"({_MARKS}[datum.kind] || '') + datum.rank + '. ' + datum.caption"
    )
    places = alt.Y("place:O", axis=None, scale=alt.Scale(domain=list(range(1, n + 1))))
    domain = alt.Scale(domain=[min(0.0, lowest), 1])
    ticks = alt.Axis(tickCount=5, labelFlush=False)
    bars = base.mark_bar(height=9, yOffset=9).encode(
        x=alt.X("cosine:Q", title="cosine with the picture", scale=domain, axis=ticks),
        y=places,
        color=colour("kind", CAPTION_KINDS),
        tooltip=["rank:Q", "caption:N", "cosine:Q", "kind:N"],
    )
    labels = base.mark_text(align="left", dy=-5, color=GREY, fontSize=12, limit=_SIDE).encode(
        x=alt.value(0), y=places, text="label:N"
    )
    return alt.LayerChart(layer=[bars, labels]).properties(width=_SIDE, height=_ROW * n)


def _remark(left: bool, right: bool) -> str:
    both = {
        (True, True): "both objects",
        (True, False): "the left object only",
        (False, True): "the right object only",
        (False, False): "neither object",
    }
    return f"Training saw {both[left, right]}."


def _in_words(table: pd.DataFrame) -> str:
    """Where the right caption and its swap stand, as a sentence."""
    rank = table.set_index("kind")["rank"]
    return f"The right caption is number {rank[OWN]}, its swap number {rank[SWAPPED]}."
