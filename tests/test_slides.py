"""The slides of a lecture: what the chapters hold, and no word more."""

import lecture
import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import BOOK, ROOT, unavailable
from plain_markdown import heading

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.md"))

pytestmark = pytest.mark.notebook


@pytest.fixture(scope="module")
def groups():
    """The slides of each chapter, after the first, which holds the title."""
    deck = BOOK / "slides" / "index.html"
    if not deck.exists():
        unavailable("The slides are not built: run `make book`.")
    soup = BeautifulSoup(deck.read_text(encoding="utf-8"), "html.parser")
    return soup.select(".slides > section")[1:]


def test_every_chapter_has_its_figures_on_slides():
    shown = lecture.figures()
    assert sorted(shown) == [chapter.stem for chapter in CHAPTERS]
    page = (ROOT / "book" / "key_figures.md").read_text(encoding="utf-8")
    assert sum(map(len, shown.values())) == page.count("```{key-figure}")


def test_the_question_is_the_last_before_the_figure():
    boxes = [
        ":::{admonition} Predict before you run\n:class: hint\n\n"
        f"Is it {n}?\n\n```{{dropdown}} Answer\nIt is {n}.\n```\n:::\n\nchart({n})\n\n"
        for n in (1, 2)
    ]
    text = "chart(0)\n\n" + "".join(boxes)
    assert lecture.question_before(text, "chart(0)") is None
    assert lecture.question_before(text, "chart(1)") == ("Is it 1?\n\n", "It is 1.\n")
    assert lecture.question_before(text, "chart(2)") == ("Is it 2?\n\n", "It is 2.\n")


def test_groups_are_the_chapters_in_order(groups):
    assert [group.h2.text for group in groups] == [
        heading(chapter).replace("'", "\u2019") for chapter in CHAPTERS
    ]
    for group in groups:
        titles = [title.text for title in group.select("h3")]
        assert titles[0] == "The claim"
        assert titles[-1] == "Take-away"
        assert "Predict first" in titles


def test_charts_are_those_of_the_chapters(groups):
    for chapter, group in zip(CHAPTERS, groups, strict=True):
        notebook = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        stored = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
        charts = [script.string for script in group.select(".figure script")]
        assert charts
        for chart in charts:
            assert chart[chart.index('"datasets"') :] in stored


def test_an_answer_is_shown_after_its_question(groups):
    for group in groups:
        asked = [title.parent for title in group.select("h3") if title.text == "Predict first"]
        assert asked
        for slide in asked:
            (answer,) = slide.select(".fragment")
            assert answer.text.strip()
            assert slide.p not in answer.find_all("p")
