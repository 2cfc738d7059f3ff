"""The chapters: each .md with its executed .ipynb. nbval compares their outputs cell by cell."""

import nbformat
import pytest
from chapters import same_cells
from conftest import ROOT

CHAPTERS = sorted({path.with_suffix("") for path in (ROOT / "notebooks").glob("[0-9]*.*")})
LARGEST = 300_000

pytestmark = [
    pytest.mark.notebook,
    pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.name),
]


@pytest.fixture
def notebook(chapter):
    return nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)


def test_source_and_executed_notebook_hold_the_same_cells(chapter):
    assert same_cells(chapter.with_suffix(".md"), chapter.with_suffix(".ipynb")), (
        f"{chapter.name}.ipynb does not hold the cells of {chapter.name}.md: run `make book`"
    )


def test_a_changed_cell_is_noticed(chapter, tmp_path):
    changed = tmp_path / "changed.md"
    text = chapter.with_suffix(".md").read_text(encoding="utf-8")
    changed.write_text(text + "\nOne more paragraph.\n", encoding="utf-8")
    assert not same_cells(changed, chapter.with_suffix(".ipynb"))


def test_notebook_is_small(chapter):
    size = chapter.with_suffix(".ipynb").stat().st_size
    assert size <= LARGEST, f"{size} bytes: fewer rows in the charts, fewer printed lines"


def test_cells_ran_from_top_to_bottom(notebook):
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_no_output_is_an_error(notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.source
            assert "Traceback (most recent call last)" not in str(output), cell.source


def test_no_output_is_a_log(notebook):
    """Libraries colour what they log, errors of their own among it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert "\x1b[" not in output.get("text", ""), cell.source
