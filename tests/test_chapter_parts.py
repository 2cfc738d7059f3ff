"""Every chapter has the same parts, and links each word of the glossary where it first uses it."""

import re

import pytest
from conftest import ROOT
from prose import blank, running_text

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.md"))

pytestmark = pytest.mark.notebook
of_each = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)

# What a chapter has, and how often at least.
PARTS = {
    r"^# ": 1,
    r"^:::\{admonition\} What you will learn\n:class: tip\n\n- ": 1,
    r"^\*\*You need\*\* .* \*\*Time\*\*: \d+ minutes to read; "
    r"the \[\]\(\.\./book/key_figures\.md\) say how long it runs": 1,
    r"^:::\{admonition\} The claim": 1,
    r"^:::\{admonition\} Predict before you run\n:class: hint\n\n(?:(?!^:::$).*\n)+"
    r"```\{dropdown\} Answer\n": 2,
    r"^## Published and ours": 1,
    r"^print\(agrees_with_recorded\(": 1,
    r"^```\{quiz\} quizzes/\d\d\.json": 1,
    r"^`{3,}\{exercise\} .+\n:label: ": 3,
    r"^`{3,}\{solution\} .+\n:class: dropdown": 3,
    r"^## Take-away\n\n- ": 1,
    r"^:::\{admonition\} Where this could be wrong\n:class: warning": 1,
    r"^## Further reading\n\n(?:.*\n)*.*\{cite:t\}": 1,
}


@of_each
@pytest.mark.parametrize(("part", "least"), PARTS.items())
def test_every_chapter_has_every_part(chapter, part, least):
    text = chapter.read_text(encoding="utf-8")
    assert len(re.findall(part, text, re.MULTILINE)) >= least


@of_each
def test_every_exercise_has_its_folded_solution(chapter):
    text = chapter.read_text(encoding="utf-8")
    exercises = re.findall(r"^`{3,}\{exercise\} .+\n:label: (\S+)", text, re.MULTILINE)
    solutions = re.findall(r"^`{3,}\{solution\} (\S+)\n:class: dropdown", text, re.MULTILINE)
    assert solutions == exercises


@of_each
def test_its_claims_are_those_of_the_scoreboard(chapter):
    cell = f'Markdown(scoreboard_markdown(load_claims(chapter="{chapter.stem}")))'
    assert chapter.read_text(encoding="utf-8").count(cell) == 1


# --- Words of the glossary -----------------------------------------------------------------------


def glossary_terms():
    """List the words, longest first: "object" is also a part of "held-out object"."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{glossary\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    terms = [term for block in blocks for term in re.findall(r"^(\S.*)$", block, re.MULTILINE)]
    return sorted(terms, key=len, reverse=True)


def unlinked(text, terms):
    """Find the first uses that are no links: (term, start, end), in the order of the terms."""
    text = running_text(text)
    found = []
    for term in terms:
        link = re.search(rf"\{{term\}}`(?:[^`<]*<)?{re.escape(term)}>?`", text)
        words = rf"{re.escape(term)}(?:es|s)?"
        uses = rf"(?<![\w-]){words}(?![\w-])"
        plain = re.sub(r"(?<=\{term\})`[^`]*`", blank, text)
        use = re.search(uses, plain, re.IGNORECASE)
        if use and not (link and link.start() < use.start()):
            found.append((term, use.start(), use.end()))
        # A part of this word is no use of a shorter one.
        text = re.sub(rf"(?<!`)(?<!<){uses}", blank, text, flags=re.IGNORECASE)
    return found


def test_first_uses_are_found():
    text = (
        "# Swap\n\nA held-out object, an {term}`object`, $swap$ and `swap`.\n\n*Swaps* and a swap."
    )
    found = unlinked(text, ["held-out object", "object", "swap"])
    assert [(term, text[a:b]) for term, a, b in found] == [
        ("held-out object", "held-out object"),
        ("swap", "Swaps"),
    ]


@of_each
def test_words_of_the_glossary_are_links_where_they_first_stand(chapter):
    text = chapter.read_text(encoding="utf-8")
    assert [text[a - 30 : b] for _, a, b in unlinked(text, glossary_terms())] == []
