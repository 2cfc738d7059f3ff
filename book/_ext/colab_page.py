"""Sphinx extension: notebooks for Colab with the book, and the directive `key-figure`.

The book serves the notebook of each chapter under _static/colab/, and each chapter links to its
own. `key-figure` shows a chart of a chapter's stored output, with the ways to make it oneself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import nbformat
from colab import NOTEBOOKS, write_all
from docutils import nodes
from docutils.parsers.rst import directives
from plain_markdown import heading
from scoreboard_page import Page
from sphinx.application import Sphinx

from binding_lib.claims import FILE
from binding_lib.recorded import recorded

SERVED = "_static/colab"
COLAB = "https://colab.research.google.com"


def link(chapter: str) -> str:
    """Write the HTML link to a chapter's notebook, for a page one folder below the root."""
    return f'<a href="../{SERVED}/{chapter}.ipynb" download>notebook for Colab</a>'


def add_link(app: Sphinx, document: nodes.document) -> None:
    """Say below a chapter's title where its notebook for Colab is."""
    page = Path(app.env.doc2path(app.env.docname))
    if page.parent != NOTEBOOKS:
        return
    said = (
        f'<p class="colab">To run this chapter without installing anything, download its '
        f"{link(page.stem)} and open it by <em>File → Upload notebook</em> in "
        f'<a href="{COLAB}">Google Colab</a>. It brings the library along.</p>'
    )
    title = next(document.findall(nodes.title))
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", said, format="html"))


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks into the built book."""
    if exception is None and app.builder.format == "html":
        write_all(Path(app.outdir) / SERVED)


def stored_chart(chapter: str, code: str) -> str:
    """Read the HTML of the chart that a cell of an executed chapter shows.

    Parameters
    ----------
    chapter : str
        As in "01_binding_problem".
    code : str
        What stands in the code of that cell and of no other.
    """
    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    found = [cell for cell in notebook.cells if cell.cell_type == "code" and code in cell.source]
    if len(found) != 1:
        raise ValueError(f"{len(found)} cells of {chapter} hold {code!r}, expected one")
    shown = [output.get("data", {}).get("text/html", "") for output in found[0].outputs]
    charts = [html for html in shown if "altair-viz-" in html]
    if len(charts) != 1:
        raise ValueError(f"the cell {code!r} of {chapter} shows {len(charts)} charts, expected one")
    return charts[0]


def minutes(chapter: str) -> str:
    """Say how long a chapter takes, as far as it was measured."""
    table = recorded("execution").set_index("chapter")
    if chapter not in table.index:
        return "not measured"
    row = table.loc[chapter]
    return f"{row.seconds / 60:.1f} minutes ({row.cores} cores, {row.processor})"


class KeyFigure(Page):
    """`key-figure`: a chapter's name, `cell` with code that only the wanted cell holds; text."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"cell": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Lay out the text, the chart, and how to make it."""
        chapter, code = self.arguments[0], self.options["cell"]
        for file in (NOTEBOOKS / f"{chapter}.ipynb", FILE.parent / "execution.csv"):
            self.env.note_dependency(str(file))
        try:
            chart = stored_chart(chapter, code)
        except ValueError as error:
            raise self.error(str(error)) from error
        # The page may show charts of several chapters, which number theirs alike.
        number = self.env.new_serialno("key-figure")
        chart = re.sub(r"altair-viz-[0-9a-f]{32}", f"altair-viz-key-{number}", chart)
        title = heading(NOTEBOOKS / f"{chapter}.md")
        made = self.lay_out("\n".join(self.content))
        made.append(nodes.raw("", chart, format="html"))
        rows = [
            f"Make it yourself: {link(chapter)}",
            f"Chapter: [{title}](../notebooks/{chapter}.ipynb)",
            f"The whole chapter on a CPU: {minutes(chapter)}; on a T4: not measured",
        ]
        return made + self.lay_out("\n".join(f"- {row}" for row in rows))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and what is done to chapters with Sphinx."""
    app.add_directive("key-figure", KeyFigure)
    app.connect("doctree-read", add_link)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
