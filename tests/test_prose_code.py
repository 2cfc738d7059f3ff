"""What the prose tells people to type: it runs, and the names in it exist."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from typer.main import get_command

from binding_lib.cli import app

PROSE = [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md"))]
TEXT = {page.name: page.read_text(encoding="utf-8") for page in PROSE}


def blocks(language, page):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT[page], re.DOTALL | re.MULTILINE)


PYTHON = [(page, code) for page in TEXT for code in blocks("python", page)]
COMMANDS = [
    (page, command)
    for page in TEXT
    for code in blocks("console", page)
    for command in re.findall(r"^(?:\$ )?([^#\n]+)", code, re.MULTILINE)
]
# Commands between backticks, in running text and in tables.
QUOTED = [(page, one) for page in TEXT for one in re.findall(r"`(binding-lib[^`]*)`", TEXT[page])]


def run(command, folder):
    environment = os.environ | {
        "BINDING_LIB_CACHE": str(folder / "cache"),
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "TQDM_DISABLE": "1",
    }
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_every_block_is_of_a_kind_that_is_tested():
    kinds = {(page, kind) for page in TEXT for kind in re.findall(r"^```(\w+)$", TEXT[page], re.M)}
    assert {kind for _, kind in kinds} == {"python", "console"}
    assert {page for page, _ in PYTHON} == {"README.md", "clusters.md"}
    # The one that cannot run here says so.
    (slurm,) = re.findall(r"^```\{code-block\} python\n(.*?)^```\n\n(.*?)$", TEXT["clusters.md"],
                          re.DOTALL | re.MULTILINE)  # fmt: skip
    assert "SLURMCluster" in slurm[0]
    assert not [page for page in TEXT if page != "clusters.md" and "{code-block}" in TEXT[page]]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "code"), PYTHON, ids=[page for page, _ in PYTHON])
def test_python_of_the_prose_runs(page, code, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(code, encoding="utf-8")
    done = run([sys.executable, str(script)], tmp_path)
    assert "Traceback" not in done.stderr
    if page == "clusters.md":
        address, head, *rows = done.stdout.splitlines()
        assert address.startswith("tcp://127.0.0.1:")
        assert head.split() == ["coverage", "held_out_concept", "held_out_object"]
        assert len(rows) == 4


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted({c for _, c in COMMANDS if c.startswith("binding-lib")}))
def test_commands_of_the_prose_run(command, tmp_path):
    done = run(["bash", "-c", command], tmp_path)
    assert done.stdout.strip()


def options(command):
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize(("page", "quoted"), QUOTED)
def test_quoted_commands_and_options_exist(page, quoted):
    words = quoted.split()[1:]
    if not words or words == ["--help"]:
        return
    command = get_command(app).commands[words[0]]
    unknown = {word for word in words if word.startswith("--")} - options(command)
    assert unknown == set(), page


def test_targets_and_extras_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {name for text in TEXT.values() for name in re.findall(r"(?:`|^)make ([a-z-]+)", text)}
    named |= {command.split()[1] for _, command in COMMANDS if command.startswith("make ")}
    assert {"book", "test", "colab", "assignments", "grade-demo"} <= named <= targets
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pattern = r"(?:binding_lib|\.)\[([a-z,]+)\]"
    extras = [one for text in TEXT.values() for one in re.findall(pattern, text)]
    assert extras
    for one in extras:
        assert set(one.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.slow
def test_a_class_is_set_up_and_graded_by_the_teachers_page(tmp_path):
    course = tmp_path / "course"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("binding_lib", "book/_ext", "notebooks/assignments"):
        shutil.copytree(ROOT / name, course / name, ignore=ignore)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, course / name)
        # Older than the environment, which `make` would otherwise install anew, from this copy.
        os.utime(course / name, (0, 0))
    (course / ".venv").symlink_to(ROOT / ".venv")
    _, hand_out, grade = (
        [command for page, command in COMMANDS if page == "teaching.md" and command in block]
        for block in blocks("console", "teaching.md")
    )
    hand_out.insert(0, "make assignments")
    assert hand_out[-1] == "nbgrader generate_assignment 01_decomposition"
    script = "set -e\n" + "\n".join([*(f"{one} 1>&2" for one in hand_out), "pwd"])
    folder = Path(run_in(course, script, tmp_path).stdout.strip())
    released = folder / "release" / "01_decomposition" / "01_decomposition.ipynb"
    assert "not done yet" in released.read_text(encoding="utf-8")
    for student, source in (("ada", folder / "source"), ("bob", folder / "release")):
        handed_in = folder / "submitted" / student / "01_decomposition"
        shutil.copytree(source / "01_decomposition", handed_in)
    run_in(folder, "set -e\n" + "\n".join(grade), tmp_path)
    marks = (folder / "marks.csv").read_text(encoding="utf-8")
    assert re.search(r"^01_decomposition,.*,ada,.*,10\.0,10\.0$", marks, re.MULTILINE), marks
    assert re.search(r"^01_decomposition,.*,bob,.*,0\.0,10\.0$", marks, re.MULTILINE), marks


def run_in(folder, script, home):
    return run(["bash", "-c", f"cd {folder}\n{script}"], home)
