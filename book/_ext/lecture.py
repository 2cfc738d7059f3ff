"""Sphinx extension: the directive `lecture`, slides of what the chapters already hold.

For each chapter that has a figure on the page of key figures: its claim, those figures with the
question that the chapter asks before each, and its take-away. Nothing is written twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from colab_page import stored_chart
from docutils import nodes
from plain_markdown import ROOT, heading, plain_markdown
from scoreboard_page import NOTEBOOKS, Page
from sphinx.application import Sphinx

KEY_FIGURES = ROOT / "book" / "key_figures.md"

FLAGS = re.MULTILINE | re.DOTALL
FIGURE = re.compile(
    r"^## ([^\n]+)\n\n```\{key-figure\} (\S+)\n:cell: ([^\n]+)\n\n(.*?)^```$", FLAGS
)
CLAIM = re.compile(r"^:::\{admonition\} The claim[^\n]*\n:class: important\n\n(.*?)^:::$", FLAGS)
QUESTION = re.compile(
    r"^:::\{admonition\} Predict before[^\n]*\n:class: hint\n\n(.*?)"
    r"```\{dropdown\} Answer\n(.*?)^```\n:::$",
    FLAGS,
)
TAKE_AWAY = re.compile(r"^## Take-away\n\n(.*?)(?=^:::|^## )", FLAGS)


def figures() -> dict[str, list[tuple[str, str, str]]]:
    """List the key figures of each chapter: heading, code of the cell, and what is said of it."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for title, chapter, code, said in FIGURE.findall(KEY_FIGURES.read_text(encoding="utf-8")):
        found.setdefault(chapter, []).append((title, code, said))
    return found


def question_before(text: str, code: str) -> tuple[str, str] | None:
    """Find the last question of a chapter before some code, with its answer."""
    asked = list(QUESTION.finditer(text, 0, text.index(code)))
    return (asked[-1][1], asked[-1][2]) if asked else None


class Lecture(Page):
    """`lecture`: a group of slides for each chapter."""

    def run(self) -> list[nodes.Node]:
        """Make the slides, in the order of the chapters."""
        self.env.note_dependency(str(KEY_FIGURES))
        return [self.group(chapter, shown) for chapter, shown in sorted(figures().items())]

    def group(self, chapter: str, shown: list[tuple[str, str, str]]) -> nodes.section:
        """Make the slides of one chapter: claim, questions and figures, take-away."""
        source = NOTEBOOKS / f"{chapter}.md"
        for file in (source, source.with_suffix(".ipynb")):
            self.env.note_dependency(str(file))
        text = source.read_text(encoding="utf-8")
        slides = [self.slide("The claim", self.plain(self.only(CLAIM, text, source)))]
        for number, (title, code, said) in enumerate(shown):
            asked = question_before(text, code)
            if asked and (not number or asked != question_before(text, shown[number - 1][1])):
                answer = nodes.container("", *self.plain(asked[1]), classes=["fragment"])
                slides.append(self.slide("Predict first", [*self.plain(asked[0]), answer]))
            name = self.env.new_serialno("lecture")
            chart = re.sub(
                r"altair-viz-[0-9a-f]{32}", f"altair-viz-{name}", stored_chart(chapter, code)
            )
            figure = nodes.raw("", f'<div class="figure">{chart}</div>', format="html")
            words = nodes.container("", *self.plain(said), classes=["said"])
            beside = nodes.container("", figure, words, classes=["beside"])
            slides.append(self.slide(title, [beside]))
        slides.append(self.slide("Take-away", self.plain(self.only(TAKE_AWAY, text, source))))
        return self.slide(heading(source), slides)

    def plain(self, markdown: str) -> list[nodes.Node]:
        """Lay out text of a chapter, whose links lead nowhere from a slide."""
        return self.lay_out(plain_markdown(markdown, NOTEBOOKS))

    def only(self, pattern: re.Pattern[str], text: str, source: Path) -> str:
        """Find the part of a chapter that has this form."""
        found = pattern.findall(text)
        if len(found) != 1:
            raise self.error(f"{source.name} has {len(found)} parts {pattern.pattern!r}, not one")
        return found[0]

    def slide(self, title: str, content: list[nodes.Node]) -> nodes.section:
        """Put content under a title; a slide, or a group of slides."""
        number = self.env.new_serialno("slide")
        return nodes.section("", nodes.title("", title), *content, ids=[f"slide-{number}"])


def drop_other_themes(app: Sphinx, exception: Exception | None) -> None:
    """Remove the style sheets that no slide loads: some of them ask other hosts for fonts."""
    if exception is None and app.builder.name == "revealjs":
        for sheet in Path(app.outdir).glob("_static/revealjs/dist/theme/*.css"):
            if sheet.stem != app.config.revealjs_style_theme:
                sheet.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive with Sphinx."""
    app.add_directive("lecture", Lecture)
    app.connect("build-finished", drop_other_themes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
