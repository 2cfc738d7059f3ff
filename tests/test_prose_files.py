"""The files around the book: how to cite, what changed, symbols, and what students do not get."""

import re
import tomllib

import pytest
import yaml
from conftest import BOOK, PAGES, ROOT
from prose import words

import binding_lib

SYMBOL = re.compile(r"\\(?:mathcal|mathbb|tilde) ?\{?[A-Za-z]\}?|\\[a-zA-Z]+|[A-Za-z]")
# How formulas are set, and the functions and relations that every reader knows.
COMMANDS = {
    r"\approx",
    r"\in",
    r"\cdot",
    r"\cdots",
    r"\dots",
    r"\sum",
    r"\prod",
    r"\min",
    r"\log",
    r"\cos",
    r"e",
    r"\frac",
    r"\tfrac",
    r"\underbrace",
    r"\displaystyle",
    r"\qquad",
    r"\lvert",
    r"\rvert",
    r"\lVert",
    r"\rVert",
}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def formulas(markdown):
    """List what stands between dollar signs, outside code; words inside formulas are left out."""
    prose = re.sub(
        r"^```(?:\{code-cell\}|\w+).*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE
    )
    found = re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", prose, re.DOTALL)
    return [re.sub(r"\\text\{[^}]*\}", "", block or inline) for block, inline in found]


def symbols(markdown):
    return {symbol for one in formulas(markdown) for symbol in SYMBOL.findall(one)} - COMMANDS


def test_symbols_are_found_in_formulas_alone():
    markdown = (
        "A $z \\approx \\mu$ and\n```python\ncost = '$p$'\n```\n$$\\tilde z = u_\\text{red}$$"
    )
    assert symbols(markdown) == {"z", "\\mu", "\\tilde z", "u"}


@pytest.mark.notebook
def test_every_symbol_of_the_chapters_stands_in_the_notation():
    explained = symbols("\n".join(re.findall(r"^\|([^|]*)\|", text_of("book/notation.md"), re.M)))
    for chapter in sorted((ROOT / "notebooks").glob("[0-9]*.md")):
        used = symbols(chapter.read_text(encoding="utf-8"))
        assert used - explained == set(), chapter.name


def test_each_symbol_is_explained_once():
    before = text_of("book/notation.md").partition("## Letters with a second meaning")[0]
    first = re.findall(r"^\| (\$[^|]*) \|", before, re.M)
    one_by_one = [symbol for cell in first for symbol in cell.split(", ")]
    assert len(one_by_one) > 25
    assert len(set(one_by_one)) == len(one_by_one)


def test_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    config = yaml.safe_load(text_of("_config.yml"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == project["version"]
    assert citation["title"].startswith(config["title"])
    assert [author["name"] for author in citation["authors"]] == [config["author"]]
    (paper,) = citation["references"]
    entry = re.search(r"@\w+\{uselis2026bind,.*?^\}", text_of("book/references.bib"), re.S | re.M)[
        0
    ]
    assert paper["title"] in entry
    assert str(paper["year"]) in entry
    assert paper["identifiers"][0]["value"].removeprefix("arXiv:") in entry
    assert all(author["family-names"] in entry for author in paper["authors"])


def test_changes_name_this_version_and_names_that_exist():
    changes = text_of("CHANGELOG.md")
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert re.search(rf"^## {re.escape(version)}\b", changes, re.M)
    names = re.findall(r"`([A-Za-z]\w+)`", changes.partition("### The library")[2])
    assert len(names) > 10
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "binding_lib").rglob("*.py")
    )
    missing = [name for name in names if not re.search(rf"\b(?:def|class) {name}\b", source)]
    assert missing == []
    assert {name for name in names if name in binding_lib.__all__} >= {"load_encoder", "edit"}


def test_answers_for_instructors_are_in_no_built_page(book):
    answers = text_of("book/answers_for_instructors.md")
    sentence = re.search(r"Make a bank of swaps, and ask again", answers)[0]
    assert "answers_for_instructors" not in text_of("_toc.yml")
    assert not (BOOK / "book" / "answers_for_instructors.html").exists()
    assert len(PAGES) > 0
    built = [*PAGES, *(BOOK / "_sources").rglob("*"), BOOK / "searchindex.js"]
    shown = [path for path in built if path.is_file() and sentence in path.read_text("utf-8")]
    assert shown == []


def test_every_question_for_students_has_an_answer_for_instructors():
    table = text_of("book/teaching.md").partition("## What students tend to believe")[2]
    questions = re.findall(r"^\| [^|]+ \| \"([^|]+)\" \|$", table, re.M)
    answers = re.findall(r"^\*\*(.+?)\*\*", text_of("book/answers_for_instructors.md"), re.M)
    assert len(questions) == len(answers) >= 10


# --- One word for one thing -----------------------------------------------------------------------

# What is not to be written, in prose: another spelling, or a second name for a thing.
PREFERRED = {
    r"optimiz\w*": "optimise",
    r"(?:generali|normali|organi|recogni|initiali|memori|summari|visuali|reali)z\w*": "-ise",
    r"analyz\w*": "analyse",
    r"colors?": "colour",
    r"gray": "grey",
    r"behaviors?": "behaviour",
    r"centers?|centered": "centre",
    r"modeling|labeled": "modelling, labelled",
    r"datasets?": "data set",
    r"bag[- ]of[- ]objects|bag-of-concepts": "bag of concepts",
    r"held ?out objects?": "held-out object",
    r"(?:training|seen|object) coverage": "coverage",
    r"swap(?:ped)? (?:captions?|scene) test": "swap test",
    r"cross modal": "across modalities",
    r"per object products?": "per-object products",
    r"product neurons?|multiplicative units?": "product units",
    r"linear classifiers? probes?|probe classifiers?": "probe",
    r"e\.g\.|i\.e\.|etc\.": "such as, that is, and so on",
}


def unwanted(markdown):
    text = words(markdown)
    return [
        f"{match[0]!r} instead of {better!r}"
        for wanted_not, better in PREFERRED.items()
        for match in re.finditer(rf"(?<![\w-])(?:{wanted_not})(?![\w-])", text, re.IGNORECASE)
    ]


def test_other_spellings_are_noticed_in_prose_alone():
    assert unwanted("The Optimizer and `optimizer`, [a](color.md), $gray$ and grey") == [
        "'Optimizer' instead of 'optimise'"
    ]


def test_prose_has_one_spelling_and_one_name_for_a_thing():
    files = [
        file for part in ("*.md", "book/*.md", "notebooks/**/*.md") for file in ROOT.glob(part)
    ]
    assert len(files) > 20
    found = {file.name: unwanted(file.read_text(encoding="utf-8")) for file in files}
    assert {name: some for name, some in found.items() if some} == {}
