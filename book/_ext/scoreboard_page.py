"""Sphinx extension: the directives `scoreboard` and `course-status` write tables from records.

`scoreboard` lays out the claims of a chapter, or all of them with a chart, from the library's own
`load_claims`; `course-status` says how long each chapter took, where, and with which versions.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from plain_markdown import ROOT, heading
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from binding_lib.claims import FILE, VERDICTS, load_claims
from binding_lib.recorded import recorded
from binding_lib.scoreboard import SIGNS, scoreboard_chart, scoreboard_markdown

NOTEBOOKS = ROOT / "notebooks"
PACKAGES = ("numpy", "scikit-learn", "torch", "altair", "open_clip_torch", "sentence-transformers")


class Page(SphinxDirective):
    """A directive that writes MyST Markdown."""

    def lay_out(self, markdown: str) -> list[nodes.Node]:
        """Parse Markdown as if it stood in the page."""
        box = nodes.container()
        lines = StringList(markdown.splitlines(), str(FILE))
        self.state.nested_parse(lines, self.content_offset, box)
        return list(box.children)


class Scoreboard(Page):
    """`scoreboard`: the counts of verdicts, a chart, and a table for each chapter."""

    def run(self) -> list[nodes.Node]:
        """Lay out all claims."""
        for file in FILE.parent.glob("*.csv*"):
            self.env.note_dependency(str(file))
        self.env.note_dependency(str(FILE))
        claims = load_claims()
        counts = claims["verdict"].value_counts()
        said = [f"{SIGNS[v]} {counts[v]} {v}" for v in VERDICTS if v in counts]
        made = self.lay_out(f"**{len(claims)} claims**: {', '.join(said)}.")
        chart = scoreboard_chart(claims)._repr_mimebundle_()["text/html"]
        chart = re.sub(r"altair-viz-[0-9a-f]{32}", "altair-viz-scoreboard", chart)
        made.append(nodes.raw("", chart, format="html"))
        for chapter, group in claims.groupby("chapter", sort=False):
            title = heading(NOTEBOOKS / f"{chapter}.md")
            made += self.lay_out(
                f"**[{title}](../notebooks/{chapter}.ipynb)**\n\n"
                + scoreboard_markdown(group, rerun=True)
            )
        return made


class Status(Page):
    """`course-status`: execution time of each chapter, versions, machine."""

    def run(self) -> list[nodes.Node]:
        """Lay out the record of the chapters' last execution."""
        table = recorded("execution").sort_values("chapter")
        self.env.note_dependency(str(FILE.parent / "execution.csv"))
        lines = ["| chapter | seconds | on | cores | Python | torch |", "|---|---|---|---|---|---|"]
        lines += [
            f"| [{heading(NOTEBOOKS / f'{row.chapter}.md')}](../notebooks/{row.chapter}.ipynb) "
            f"| {row.seconds:.0f} | {row.date} | {row.cores} ({row.processor}) "
            f"| {row.python} | {row.torch} |"
            for row in table.itertuples()
        ]
        made = recorded("sweep_made").iloc[0]
        lines += [
            "",
            f"The sweep of [chapter 7](../notebooks/07_five_hundred_models.ipynb): {made.models} "
            f"models, {made.model_hours:.1f} hours of one core, {made.date}, torch {made.torch}, "
            f"numpy {made.numpy}, by `{made.command}`.",
            "",
            "This book was built with "
            + ", ".join(f"{name} {version(name)}" for name in PACKAGES)
            + f", binding_lib {version('binding_lib')}. All versions that were tested stand in "
            "`constraints.txt`.",
        ]
        return self.lay_out("\n".join(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives with Sphinx."""
    app.add_directive("scoreboard", Scoreboard)
    app.add_directive("course-status", Status)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
