"""The built book as files: links, anchors, other hosts, and what the build is pinned to."""

import json
import pkgutil
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import BOOK, PAGES, ROOT
from jupyter_book.config import get_final_config
from sphinx.cmd.build import build_main as sphinx_build

import binding_lib

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(BOOK)))


@cache
def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> set[str]:
    marked = parsed(page).find_all(lambda tag: tag.has_attr("id") or tag.has_attr("name"))
    return {tag.get("id") or tag.get("name") for tag in marked}


def test_the_book_is_built(book):
    assert len(PAGES) >= 8
    assert (book / "book" / "welcome.html") in PAGES


def is_dead(page: Path, address: str) -> bool:
    url = urlsplit(address)
    if url.scheme or url.netloc:
        return False
    start = BOOK if url.path.startswith("/") else page.parent  # 404.html begins at the root
    target = (start / unquote(url.path).lstrip("/")).resolve() if url.path else page
    if url.fragment and target.suffix == ".html" and target.exists():
        return unquote(url.fragment) not in anchors(target)
    return not target.exists()


@each_page
def test_internal_links_and_anchors_resolve(page):
    tags = parsed(page).find_all(["a", "img", "link", "script", "source"])
    addresses = [tag.get("href") or tag.get("src") or "" for tag in tags]
    assert [address for address in addresses if is_dead(page, address)] == []


@each_page
def test_no_page_names_a_place_on_this_machine(page):
    assert str(ROOT) not in page.read_text(encoding="utf-8")


@each_page
def test_no_tag_loads_from_another_host(page):
    loading = parsed(page).find_all(["script", "link", "img", "iframe", "source", "video", "audio"])
    addresses = [tag.get("src") or tag.get("href") or "" for tag in loading]
    assert [address for address in addresses if urlsplit(address).netloc] == []


@each_page
def test_every_image_has_a_text_alternative(page):
    assert [tag for tag in parsed(page).find_all("img") if not tag.get("alt")] == []


@each_page
def test_every_table_is_laid_out(page):
    raw = [tag.get_text() for tag in parsed(page).find_all("p") if tag.get_text().startswith("| ")]
    assert raw == []


def test_every_chapter_lays_its_claims_out(book):
    for page in (book / "notebooks").glob("0*.html"):
        heads = [[th.get_text() for th in row("th")] for row in parsed(page).find_all("thead")]
        assert ["claim", "published", "here", "verdict"] in heads, page.name


def test_no_style_sheet_loads_from_another_host(book):
    pattern = re.compile(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//[^)'"\s]+""")
    found = {
        str(sheet.relative_to(book)): pattern.findall(sheet.read_text(encoding="utf-8"))
        for sheet in book.rglob("*.css")
    }
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_every_public_module_is_described():
    pages = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "book/api").glob("*.md"))
    described = set(re.findall(r"automodule:: (\S+)", pages))
    modules = {
        module.name
        for module in pkgutil.walk_packages(binding_lib.__path__, "binding_lib.")
        if "._" not in module.name and not module.ispkg
    }
    assert modules - described == set()


def test_npm_packages_are_locked_by_hash_and_without_addresses():
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    installed = {name: package for name, package in packages.items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in installed.values())
    assert not any("resolved" in package for package in installed.values())


@pytest.mark.slow
def test_a_repository_that_is_named_gives_launch_buttons(tmp_path):
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    for name in ("repository_url", "repository_branch", "launch_buttons"):
        text = text.replace(f"# {name}: ", f"{name}: ")
    text = text.replace("ADDRESS", "https://github.com/someone/course")
    config, _ = get_final_config(
        user_yaml=yaml.safe_load(text), cli_config={"latex_individualpages": False}, validate=False
    )
    theme = config["html_theme_options"]
    (tmp_path / "conf.py").write_text(
        "extensions = ['myst_nb', 'sphinx_book_theme']\n"
        f"html_theme = 'sphinx_book_theme'\nhtml_theme_options = {theme!r}\n"
        "nb_execution_mode = 'off'\n",
        encoding="utf-8",
    )
    (tmp_path / "index.md").write_text("# Course\n\n```{toctree}\nchapter\n```\n", encoding="utf-8")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Chapter")])
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    assert sphinx_build(["-q", "-b", "html", str(tmp_path), str(tmp_path / "html")]) == 0
    links = [a.get("href") for a in parsed(tmp_path / "html" / "chapter.html").find_all("a")]
    opened = "https://colab.research.google.com/github/someone/course/blob/main/chapter.ipynb"
    assert opened in links
