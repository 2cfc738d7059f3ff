"""The assignments: nbgrader's release versions, and a class of made-up students to grade.

    python book/_ext/assignments.py release FOLDER
    python book/_ext/assignments.py grade-demo FOLDER

The sources are notebooks/assignments/NN_name.md. FOLDER receives the release versions and nothing
else, as NN_name/NN_name.ipynb; it may be handed out as it is. nbgrader's own files (sources as
notebooks, submissions, the grade book) go to a folder beside it, which is made anew each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pandas as pd
from nbgrader.apps import NbGraderAPI
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

ASSIGNMENTS = Path(__file__).resolve().parents[2] / "notebooks" / "assignments"
CONFIG = ASSIGNMENTS / "nbgrader_config.py"
MADE_UP_ANSWERS = ASSIGNMENTS / "made_up_answers.toml"

SOLUTION, UNTOUCHED = "solution", "untouched release"


@dataclass(frozen=True)
class MadeUpAnswer:
    """An answer, put in place of the solution in one cell of an assignment.

    Attributes
    ----------
    assignment : str
    student : str
        Who gives the answer, named after what is special about it.
    cell : str
        The grade_id of the cell that is replaced.
    code : str
    loses : str
        The grade_id of the one check that must notice; empty where the answer is right.
    says : str
        What its message must say.
    """

    assignment: str
    student: str
    cell: str
    code: str
    loses: str = ""
    says: str = ""


def sources() -> list[Path]:
    """List the assignments' sources."""
    return sorted(ASSIGNMENTS.glob("[0-9]*.md"))


def read_source(source: Path) -> Any:
    """Read an assignment, with its solutions and all of its tests."""
    notebook = jupytext.read(source)
    del notebook.metadata["jupytext"]  # of no use outside of this folder
    return notebook


def made_up_answers() -> list[MadeUpAnswer]:
    """Read typical mistakes, and right answers that are not those of the solution."""
    answers = tomllib.loads(MADE_UP_ANSWERS.read_text(encoding="utf-8"))["answer"]
    return [MadeUpAnswer(**answer) for answer in answers]


def cells_by_id(notebook: Any) -> dict[str, Any]:
    """Find the cells that nbgrader knows, by their grade_id."""
    known = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    return {cell.metadata["nbgrader"]["grade_id"]: cell for cell in known}


class Course:
    """A folder of nbgrader's, made anew.

    Parameters
    ----------
    releases : Path
        Where the release versions go.

    Attributes
    ----------
    root : Path
        Where everything else goes, beside `releases`.
    """

    def __init__(self, releases: Path) -> None:
        self.releases = releases.resolve()
        self.root = self.releases.with_name(f"{releases.name}-nbgrader")
        shutil.rmtree(self.root, ignore_errors=True)
        for source in sources():
            shutil.rmtree(self.releases / source.stem, ignore_errors=True)
        # nbgrader runs alembic by its bare name; in a virtual environment it lies beside Python.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        config = Config(PyFileConfigLoader(str(CONFIG)).load_config())
        config.CourseDirectory.root = str(self.root)
        config.CourseDirectory.release_directory = f"../{self.releases.name}"
        config.NbGraderAPI.log_level = "WARN"
        # Kernels warn, once each, of a connection that never leaves this machine.
        config.Execute.extra_arguments = [
            "--HistoryManager.hist_file=:memory:",
            "--log-level=ERROR",
        ]
        self.api = NbGraderAPI(config=config)

    def release(self, source: Path) -> Path:
        """Have nbgrader write the version for students; return the file."""
        self._write("source", ".", source.stem, read_source(source))
        self._done(self.api.generate_assignment(source.stem))
        return self.releases / source.stem / f"{source.stem}.ipynb"

    def submit(self, student: str, assignment: str, notebook: Any) -> None:
        """Hand in a notebook."""
        self._write("submitted", student, assignment, notebook)

    def autograde(self, student: str, assignment: str) -> Any:
        """Have nbgrader grade what a student handed in; return the graded notebook."""
        with warnings.catch_warnings():
            # nbgrader's own, about the order in which it fills its grade book.
            warnings.simplefilter("ignore", SAWarning)
            self._done(self.api.autograde(assignment, student))
        graded = self.root / "autograded" / student / assignment / f"{assignment}.ipynb"
        return nbformat.read(graded, as_version=4)

    def marks(self, student: str, assignment: str) -> pd.DataFrame:
        """Read a student's marks from the grade book.

        Returns
        -------
        DataFrame
            Columns assignment, student, check (its grade_id), points and of; one row a check.
        """
        with self.api.gradebook as book:
            notebook = book.find_submission_notebook(assignment, assignment, student)
            rows = [
                {"check": grade.name, "points": grade.score, "of": grade.max_score}
                for grade in notebook.grades
            ]
        marks = pd.DataFrame(rows)
        marks.insert(0, "student", student)
        marks.insert(0, "assignment", assignment)
        return marks

    def _write(self, step: str, student: str, assignment: str, notebook: Any) -> None:
        file = self.root / step / student / assignment / f"{assignment}.ipynb"
        file.parent.mkdir(parents=True)
        nbformat.write(notebook, file)

    def _done(self, result: dict[str, Any]) -> None:
        if not result["success"]:
            raise RuntimeError(f"nbgrader failed: {result.get('log', '')}{result.get('error', '')}")


def submissions(source: Path, release: Path) -> dict[str, Any]:
    """Make what the students of the demo hand in, by student."""
    handed_in = {
        SOLUTION: read_source(source),
        UNTOUCHED: nbformat.read(release, as_version=4),
    }
    for answer in made_up_answers():
        if answer.assignment == source.stem:
            # A student may have several answers.
            notebook = handed_in.setdefault(answer.student, read_source(source))
            cells_by_id(notebook)[answer.cell].source = answer.code.strip()
    return handed_in


def grade_class(course: Course, source: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Release one assignment and grade the whole class.

    Returns
    -------
    marks : DataFrame
        As `Course.marks` gives them.
    graded : dict
        The graded notebooks, by student.
    """
    handed_in = submissions(source, course.release(source))
    graded, marks = {}, []
    for student, notebook in handed_in.items():
        course.submit(student, source.stem, notebook)
        graded[student] = course.autograde(student, source.stem)
        marks.append(course.marks(student, source.stem))
    return pd.concat(marks, ignore_index=True), graded


def marks_table(marks: pd.DataFrame) -> str:
    """Sum up marks: one line for each submission, and where it lost points."""
    lines = []
    for (assignment, student), one in marks.groupby(["assignment", "student"], sort=False):
        lost = one[one["points"] < one["of"]]
        where = "everything" if len(lost) == (one["of"] > 0).sum() else ", ".join(lost["check"])
        total = f"{one['points'].sum():g} of {one['of'].sum():g}"
        lines.append({"assignment": assignment, "student": student, "points": total, "lost": where})
    return pd.DataFrame(lines).to_string(index=False, justify="left")


def main() -> None:
    """Release the assignments, or release and grade them."""
    parser = argparse.ArgumentParser(description="Release the assignments, or grade a demo class.")
    parser.add_argument("what", choices=["release", "grade-demo"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    course, marks = Course(arguments.folder), []
    for source in sources():
        if arguments.what == "release":
            print(os.path.relpath(course.release(source)))
        else:
            print(f"{source.stem}: grading", flush=True)
            marks.append(grade_class(course, source)[0])
    if marks:
        print(marks_table(pd.concat(marks)))


if __name__ == "__main__":
    main()
