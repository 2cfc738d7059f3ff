"""Write chapters as notebooks for Google Colab: python book/_ext/colab.py FOLDER.

Each notebook is complete in itself. Its first cell, collapsed, holds the library as a wheel and
installs it (see colab_setup.py); its text is plain Markdown; its outputs are for the reader to
make. The environment variable BINDING_LIB_PRESET chooses the preset there as anywhere else.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
from plain_markdown import BIBLIOGRAPHY, ROOT, cited, plain_markdown
from pybtex import PybtexEngine

from binding_lib.files import atomic_path

NOTEBOOKS = ROOT / "notebooks"
SETUP = Path(__file__).with_name("colab_setup.py")
# What shows in a chapter's code that it needs an extra of the library.
NEEDS = {
    "minilm": r'"minilm"',
    "dino": r'"dino:',
    "shaded": r'"shaded"',
    "trees": r"\bTreeApproximator\b",
}
# Editors are slow with very long lines, and JSON with very many.
LINE = 1000


def build_wheel(folder: Path) -> Path:
    """Build the library's wheel, without a network and outside of the course's folder."""
    with TemporaryDirectory() as copy:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "binding_lib", Path(copy, "binding_lib"), ignore=ignored)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
             "--wheel-dir", str(folder), copy],
            check=True,
            # Files of one date: equal sources give equal wheels.
            env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
        )  # fmt: skip
    (wheel,) = folder.glob("binding_lib-*.whl")
    return wheel


def first_cell(wheel: Path, extras: list[str]) -> Any:
    """Make the cell that sets up what a chapter needs."""
    data = wheel.read_bytes()
    content = base64.b64encode(data).decode()
    lines = "\n".join(content[i : i + LINE] for i in range(0, len(content), LINE))
    source = (
        "#@title Set-up: run this cell first. It takes about a minute.\n"
        f"{SETUP.read_text(encoding='utf-8')}\n\n"
        f'set_up("{wheel.name}", {extras}, """\n{lines}\n""", "{hashlib.sha256(data).hexdigest()}")'
    )
    metadata = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return nbformat.v4.new_code_cell(source, metadata=metadata)


def sources_cell(keys: list[str]) -> Any:
    """Make the list of the sources that a chapter cites."""
    listed = PybtexEngine().format_from_file(
        str(BIBLIOGRAPHY), style="plain", citations=keys, output_backend="markdown"
    )
    entries = re.sub(r"^\[\d+\] ?", "- ", listed, flags=re.MULTILINE)
    return nbformat.v4.new_markdown_cell(f"## Sources\n\n{entries.strip()}")


def colab_notebook(source: Path, wheel: Path) -> Any:
    """Make the notebook of a chapter.

    Parameters
    ----------
    source : Path
        The chapter's .md file.
    wheel : Path
        The library's.
    """
    chapter = jupytext.read(source)
    code = "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "code")
    text = "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")
    cells = [first_cell(wheel, [extra for extra, sign in NEEDS.items() if re.search(sign, code)])]
    for cell in chapter.cells:
        if cell.cell_type == "code":
            cells.append(nbformat.v4.new_code_cell(cell.source))
        else:
            plain = plain_markdown(cell.source, source.parent)
            cells.append(nbformat.v4.new_markdown_cell(plain))
    if keys := cited(text):
        cells.append(sources_cell(keys))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
        "colab": {"provenance": [], "toc_visible": True},
    }
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(notebook)
    return notebook


def write_all(folder: Path) -> list[Path]:
    """Write the notebook of every chapter into a folder; return the files."""
    written = []
    with TemporaryDirectory() as temporary:
        wheel = build_wheel(Path(temporary))
        for source in sorted(NOTEBOOKS.glob("[0-9]*.md")):
            target = folder / f"{source.stem}.ipynb"
            with atomic_path(target) as file:
                nbformat.write(colab_notebook(source, wheel), file)
            written.append(target)
    for old in set(folder.glob("*.ipynb")) - set(written):
        old.unlink()
    return written


def main() -> None:
    """Write the notebooks, one line each."""
    parser = argparse.ArgumentParser(description="Write the chapters as notebooks for Colab.")
    parser.add_argument("folder", type=Path)
    for file in write_all(parser.parse_args().folder):
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
