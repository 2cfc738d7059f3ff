"""Sphinx extension: the directive `quiz` lays out a file of questions, such as quizzes/01.json.

Each answer is a drop-down of the page's own that says whether it is right, and why. So a quiz needs
no script, works by keyboard, follows the page's colours and is read out like the text around it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def read_quiz(file: Path) -> list[dict[str, Any]]:
    """Read the questions of a file: each a text and its answers.

    An answer has the keys ``answer``, ``correct`` and ``feedback``; texts are MyST Markdown.
    """
    return json.loads(file.read_text(encoding="utf-8"))


def as_markdown(questions: list[dict[str, Any]]) -> str:
    """Write questions as MyST Markdown, with one drop-down an answer."""
    lines = []
    for number, question in enumerate(questions, start=1):
        lines += [f"**{number}.** {question['question']}", ""]
        for answer in question["answers"]:
            verdict = "**Right.**" if answer["correct"] else "**Not quite.**"
            lines += [
                f"```{{dropdown}} {answer['answer']}",
                ":class-container: quiz-answer",
                f"{verdict} {answer['feedback']}",
                "```",
                "",
            ]
    return "\n".join(lines)


class Quiz(SphinxDirective):
    """`quiz`, with the path of a file of questions, relative to the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Lay out the questions."""
        relative, file = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        lines = as_markdown(read_quiz(Path(file))).splitlines()
        quiz = nodes.container(classes=["quiz"])
        self.state.nested_parse(StringList(lines, relative), self.content_offset, quiz)
        return [quiz]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive with Sphinx."""
    app.add_directive("quiz", Quiz)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
