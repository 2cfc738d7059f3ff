"""The assignments: what students get, and what a class of made-up students gets for its work."""

import ast
import os
import re

import jupytext
import nbformat
import pytest
from assignments import (
    SOLUTION,
    UNTOUCHED,
    Course,
    cells_by_id,
    grade_class,
    made_up_answers,
    marks_table,
    read_source,
    sources,
)
from conftest import BOOK, PAGES, ROOT

SOURCES = sources()
WRONG = [answer for answer in made_up_answers() if answer.loses]
RIGHT = {answer.student: answer.assignment for answer in made_up_answers() if not answer.loses}
POINTS = 10
MARKS = re.compile(r"BEGIN|END (?:SOLUTION|HIDDEN TESTS)|HIDDEN TESTS")

of_each = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
of_each_mistake = pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.student)


def nbgrader_of(cell):
    return cell.metadata.get("nbgrader", {})


def checks(notebook):
    """The cells that give points, by their grade_id."""
    return {
        name: cell
        for name, cell in cells_by_id(notebook).items()
        if nbgrader_of(cell)["grade"] and not nbgrader_of(cell)["solution"]
    }


def error_of(cell):
    """What a cell's error said, or nothing."""
    return "".join(out.evalue for out in cell.get("outputs", []) if out.output_type == "error")


# --- The sources ---------------------------------------------------------------------------------


def test_there_are_four():
    assert [source.stem for source in SOURCES] == [
        "01_decomposition",
        "02_surgery",
        "03_coverage",
        "04_products",
    ]


@of_each
def test_the_text_keeps_all_metadata(source):
    notebook = jupytext.read(source)
    again = jupytext.reads(jupytext.writes(notebook, "md:myst"), "md:myst")
    assert [dict(cell.metadata) for cell in again.cells] == [
        dict(cell.metadata) for cell in notebook.cells
    ]
    assert len(cells_by_id(notebook)) >= 7


@of_each
def test_every_task_has_an_answer_a_check_and_a_folded_hint(source):
    cells = read_source(source).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for said in ("You will learn", "You need", "Time", f"**Points**: {POINTS}", "Expected picture"):
        assert said in text
    tasks = [int(points) for points in re.findall(r"^## \d\. .*\((\d) points\)$", text, re.M)]
    graded = [nbgrader_of(cell).get("points", 0) for cell in cells]
    assert sum(tasks) == sum(graded) == POINTS
    assert text.count("<summary>Hint</summary>") == len(tasks)
    for name, cell in checks(read_source(source)).items():
        answer = cells_by_id(read_source(source))[name.removeprefix("check_")]
        assert nbgrader_of(answer)["solution"]
        assert "### BEGIN SOLUTION" in answer.source
        visible, hidden = cell.source.split("### BEGIN HIDDEN TESTS")
        assert "assert" in visible
        assert "assert" in hidden


@of_each
def test_every_check_says_what_is_wrong(source):
    for cell in checks(read_source(source)).values():
        asserts = [
            node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Assert)
        ]
        silent = [ast.unparse(node) for node in asserts if node.msg is None]
        assert silent == []


def test_each_assignment_has_mistakes_that_are_seen_at_once_and_some_that_are_not():
    for source in SOURCES:
        shown = cells_by_id(read_source(source))
        mine = [answer for answer in WRONG if answer.assignment == source.stem]
        parts = [shown[answer.loses].source.split("### BEGIN HIDDEN TESTS") for answer in mine]
        at_once = [bare(answer.says) in bare(p[0]) for answer, p in zip(mine, parts, strict=True)]
        assert 0 < sum(at_once) < len(mine), source.stem


def bare(text):
    """Words alone: a message in the source is broken into lines."""
    return " ".join(re.findall(r"\w+", text))


# --- What students get ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    environment = dict(os.environ)  # what nbgrader's configuration sets is for its kernels
    yield Course(tmp_path_factory.mktemp("class") / "handed_out")
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture(scope="module")
def classes(course):
    """Each assignment's marks and graded notebooks; it takes a minute or two."""
    return {source.stem: grade_class(course, source) for source in SOURCES}


@pytest.fixture(scope="module")
def marks(classes):
    return {name: table.set_index(["student", "check"]) for name, (table, _) in classes.items()}


@pytest.mark.slow
@of_each
def test_the_release_holds_no_solution_and_no_hidden_test(source, course, classes):
    released = course.releases / source.stem / f"{source.stem}.ipynb"
    assert [path.name for path in released.parent.iterdir()] == [released.name]
    assert not MARKS.search(released.read_text(encoding="utf-8"))
    notebook, known = nbformat.read(released, as_version=4), cells_by_id(read_source(source))
    for name, cell in cells_by_id(notebook).items():
        full = known[name].source
        secret = re.findall(
            r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)\s*### END", full, re.DOTALL
        )
        shown = full
        for part in secret:
            shown = shown.replace(part, "")
        lines = {line.strip() for part in secret for line in part.splitlines()}
        assert not [line for line in lines if line not in shown and line in cell.source]
        assert len(secret) == 1, name
    assert all(not cell.get("outputs") for cell in notebook.cells)
    assert all(not nbgrader_of(cell)["solution"] for cell in checks(notebook).values())


@pytest.mark.slow
@of_each
def test_the_release_gets_nothing_and_fails_only_in_its_checks(source, classes, marks):
    assert marks[source.stem].loc[UNTOUCHED, "points"].sum() == 0
    notebook = classes[source.stem][1][UNTOUCHED]
    failed = {nbgrader_of(cell).get("grade_id") for cell in notebook.cells if error_of(cell)}
    assert failed == set(checks(notebook))
    assert {error_of(cell) for cell in checks(notebook).values()} == {"not done yet"}


# --- What they get for it ------------------------------------------------------------------------


@pytest.mark.slow
@of_each
def test_the_solution_gets_full_marks_and_draws_its_charts(source, classes, marks):
    table = marks[source.stem].loc[SOLUTION]
    assert table["points"].sum() == table["of"].sum() == POINTS
    notebook = classes[source.stem][1][SOLUTION]
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"]
    drawn = sum("vegaEmbed" in output.get("data", {}).get("text/html", "") for output in outputs)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert drawn == text.count("**Expected picture.**")


@pytest.mark.slow
@pytest.mark.parametrize("student", RIGHT)
def test_a_right_answer_that_is_not_the_solution_costs_nothing(student, marks):
    table = marks[RIGHT[student]].loc[student]
    assert table["points"].sum() == POINTS, table


def test_each_assignment_has_right_answers_that_are_not_the_solution():
    assert sorted(RIGHT.values()) == [source.stem for source in SOURCES]


@pytest.mark.slow
@of_each_mistake
def test_a_mistake_costs_its_own_points_and_is_explained(answer, classes, marks):
    table = marks[answer.assignment].loc[answer.student]
    lost = table[table["points"] < table["of"]]
    assert list(lost.index) == [answer.loses]
    assert lost["points"].sum() == 0
    said = error_of(cells_by_id(classes[answer.assignment][1][answer.student])[answer.loses])
    assert answer.says in said


@pytest.mark.slow
def test_the_table_of_marks_has_a_line_for_each_submission(classes):
    table = marks_table(classes["01_decomposition"][0]).splitlines()
    mine = {one.student for one in made_up_answers() if one.assignment == "01_decomposition"}
    assert len(table) == 1 + 2 + len(mine)
    assert re.search(r"solution +10 of 10", table[1])
    assert re.search(r"untouched release +0 of 10 +everything", table[2])


# --- The book ------------------------------------------------------------------------------------


def test_no_page_of_the_book_shows_a_solution(book):
    built = [*PAGES, *(BOOK / "_sources").rglob("*"), BOOK / "searchindex.js"]
    texts = {path: path.read_text(encoding="utf-8") for path in built if path.is_file()}
    secret = "".join(re.findall(r"def swap_colours\(Z, scenes, U\)", SOURCES[1].read_text("utf-8")))
    assert secret
    assert [path for path, text in texts.items() if secret in text] == []


def test_the_teachers_page_names_every_assignment():
    page = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    for source in SOURCES:
        assert source.stem in page
