"""The steps of CONTRIBUTING.md, followed word for word in a copy of the course."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

# What the steps need. The chapters stay behind, so that only the new one is executed.
COPIED = ["binding_lib", "book", "tests", "pyproject.toml", "_toc.yml"]


def steps(title):
    """List a section's blocks: the line before each, its language and its content."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found, section, before = [], "", ""
    for part in re.split(r"^((`{3,})\w+\n.*?^\2)$\n", text, flags=re.DOTALL | re.MULTILINE):
        fenced = re.fullmatch(r"(`{3,})(\w+)\n(.*)\1", part, re.DOTALL)
        if fenced and section == title:
            found.append((before, fenced[2], fenced[3]))
        elif not fenced and part.strip("`"):
            before = part.rstrip().rpartition("\n")[2]
            section = ([section, *re.findall(r"^## (.+)$", part, re.MULTILINE)])[-1]
    return found


def apply(content, file):
    """Change a file as the lines of a diff say, which must fit one place in it."""
    lines = content.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"the lines to change are not once in {file.name}"
    file.write_text(text.replace(old, new), encoding="utf-8")


def follow(title, folder):
    """Write, change and run what a section says; every command has to succeed."""
    done = []
    for before, language, content in steps(title):
        if language == "console":
            for command in re.findall(r"^\$ (.+)$", content, re.MULTILINE):
                environment = os.environ | {
                    "PYTHONPATH": str(folder),
                    "BINDING_LIB_CACHE": str(folder / "cache"),
                    "JUPYTER_PREFER_ENV_PATH": "1",
                    "OMP_NUM_THREADS": "1",
                }
                run = subprocess.run(
                    command, shell=True, cwd=folder, env=environment, text=True,
                    capture_output=True, check=False,
                )  # fmt: skip
                assert run.returncode == 0, f"$ {command}\n{run.stdout}{run.stderr}"
                done.append(run.stdout)
        else:
            path = folder / re.findall(r"`([^`]+)`", before)[-1]
            if language == "diff":
                apply(content, path)
            else:
                assert not path.exists(), f"{path.name} exists already"
                path.write_text(content, encoding="utf-8")
    return done


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "course"
    ignore = shutil.ignore_patterns("__pycache__", "vendor")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    (folder / "notebooks").mkdir()
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


@pytest.mark.slow
@pytest.mark.notebook
def test_a_chapter_can_be_added_by_the_steps(copy):
    executed, tested = follow("A chapter", copy)
    assert "90_letters.md: executing" in executed
    assert re.search(r"\d passed", tested)
    notebook = nbformat.read(copy / "notebooks" / "90_letters.ipynb", as_version=4)
    (output,) = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    lines = output.text.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("| True") for line in lines)
    assert "notebooks/90_letters" in (copy / "_toc.yml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_encoder_can_be_added_by_the_steps(copy):
    tested, listed, _ = follow("An encoder", copy)
    assert "1 passed" in tested
    assert re.search(r"^letters +yes +no +no ", listed, re.MULTILINE)


@pytest.mark.slow
def test_a_claim_can_be_added_by_the_steps(copy):
    for name in ("notebooks", "benchmarks"):
        shutil.copytree(ROOT / name, copy / name, dirs_exist_ok=True)
    listed, tested = follow("A claim", copy)
    assert re.search(r"^edits by slot, DINO +0\.\d\d \[.*\] +partly ", listed, re.MULTILINE)
    assert "3 passed" in tested


def test_a_step_that_no_longer_fits_is_noticed(tmp_path):
    file = tmp_path / "file"
    file.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="not once"):
        apply(" three\n+four\n", file)
    apply(" one\n+four\n", file)
    assert file.read_text(encoding="utf-8") == "one\nfour\ntwo\n"


def test_every_file_that_is_named_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    letters = {
        "notebooks/90_letters.md",
        "binding_lib/encoders/letters.py",
        "tests/test_letters.py",
    }
    new = letters | {"notebooks/NN_name.md"}
    named = set(re.findall(r"`([\w./]+/[\w./]*)`", prose)) - new
    assert len(named) >= 6
    assert [name for name in sorted(named) if not Path(ROOT, name).exists()] == []
