"""The scoreboard for people: claims as a Markdown table, and as a chart."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from binding_lib.chart_style import COLOURS, GREY, finish
from binding_lib.claims import (
    NEEDS_WEIGHTS,
    NOT_PUBLISHED,
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    read_claims,
)

# A sign for each verdict, so that it is not told by a colour alone.
SIGNS = {REPRODUCED: "●", PARTLY: "◐", NOT_REPRODUCED: "○", NEEDS_WEIGHTS: "□", NOT_PUBLISHED: "+"}


def number_text(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Write a number with its interval, if it has one: "0.57 [0.53, 0.61]"; "none" for NaN."""
    if math.isnan(value):
        return "none"
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def scoreboard_markdown(claims: pd.DataFrame, rerun: bool = False) -> str:
    """Lay claims out as a Markdown table.

    Parameters
    ----------
    claims : DataFrame
        Rows of `binding_lib.claims.load_claims`.
    rerun : bool
        With the command that measures a claim anew, and about how many minutes it takes.

    Returns
    -------
    str
        One row a claim: what it says, what is published, ours with its 95 % interval, the verdict
        and why it is no other.
    """
    head = ["claim", "published", "here", "verdict", *(["measured anew by"] if rerun else [])]
    lines = [_line(head), _line(["---"] * len(head))]
    for claim in claims.to_dict("records"):
        number = number_text(claim["value"], claim["low"], claim["high"])
        cells = [
            claim["statement"],
            f"{claim['published'] or 'nothing'} ({claim['where']})",
            f"**{number}**: {claim['ours']}",
            f"{SIGNS[claim['verdict']]} {claim['verdict']}. {claim['why']}",
        ]
        if rerun and claim["rerun"]:
            command = f'`binding-lib scoreboard --rerun "{claim["name"]}"`'
            cells.append(f"{command}, {claim['minutes']:g} min")
        elif rerun:
            cells.append("")
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in cells) + " |"


def scoreboard_chart(claims: pd.DataFrame) -> alt.LayerChart:
    """Show each measured claim: our number, its interval, and where it would be reproduced.

    Parameters
    ----------
    claims : DataFrame
        Rows of `binding_lib.claims.load_claims`, in the order from top to bottom.
    """
    by_name = read_claims()
    verdicts = [REPRODUCED, PARTLY, NOT_REPRODUCED]
    shown = claims[claims["verdict"].isin(verdicts)]
    shown = shown[["name", "published", "ours", "value", "low", "high", "verdict"]].assign(
        start=[by_name[name].reproduced[0] for name in shown["name"]],
        end=[by_name[name].reproduced[1] for name in shown["name"]],
    )
    rows = alt.Y("name:N", sort=list(shown["name"]), title=None, axis=alt.Axis(labelLimit=0))
    at = alt.Scale(domain=[0, 1])
    base = alt.Chart(shown.round(3)).encode(y=rows)
    of_verdict = {
        "color": alt.Color("verdict:N", scale=alt.Scale(domain=verdicts, range=COLOURS[:3])),
        "shape": alt.Shape(
            "verdict:N", scale=alt.Scale(domain=verdicts, range=["circle", "diamond", "cross"])
        ),
    }
    for channel in of_verdict.values():
        channel.legend = alt.Legend(title=None, orient="bottom", columns=1)
    layers = [
        base.mark_bar(color=GREY, opacity=0.3, height=12).encode(
            x=alt.X("start:Q", title="our number", scale=at), x2="end:Q"
        ),
        base.mark_rule(color=GREY, strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("value:Q", scale=at),
            tooltip=["name", "published", "ours", "value", "low", "high", "verdict"],
            **of_verdict,
        ),
    ]
    return finish(
        alt.LayerChart(layer=layers).properties(width=170, height=alt.Step(19)),
        "Where it would be reproduced (bars), and ours (marks)",
        f"{len(shown)} claims with our number, its 95 % interval where one was made, and the range "
        "in which the claim counts as reproduced. The table below holds the same numbers.",
    )
