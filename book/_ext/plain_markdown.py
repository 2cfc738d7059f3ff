"""MyST Markdown as plain Markdown, for readers that know no directives, such as Colab.

Boxes become quotations, folded answers become <details>, quizzes are written out, citations become
names and years, and links to other pages become their titles. Whatever is not known here is an
error, so that no raw directive reaches a reader.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import vl_convert
from markdown_it import MarkdownIt
from pybtex.database import Entry, parse_file
from quizzes import as_markdown, read_quiz

ROOT = Path(__file__).resolve().parents[2]
BIBLIOGRAPHY = ROOT / "book" / "references.bib"

OPENING = re.compile(r"^(?P<fence>`{3,}|:{3,})(?:\{(?P<name>[\w:-]+)\})?(?P<argument>.*)$")
OPTION = re.compile(r"^:([\w-]+):\s*(.*)$")
TARGET = re.compile(r"^\([\w-]+\)=$")
ROLE = re.compile(r"\{(?P<name>[\w:]+)\}`(?P<content>[^`]+)`")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<address>[^)\s]+)\)")
LABEL = re.compile(r"^(?:`{3,}|:{3,})\{[\w:-]+\}\s*(.+)\n:label:\s*(\S+)$", re.MULTILINE)


@dataclass
class Directive:
    """A directive as it stands in the text."""

    argument: str
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)


def heading(page: Path) -> str:
    """Read the title of a page or of a chapter's source."""
    return re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)[1]


def cited(text: str) -> list[str]:
    """List the sources that a text cites, each once, in the order of their first place."""
    keys = [
        key.strip()
        for role in ROLE.finditer(text)
        if role["name"].startswith("cite:")
        for key in role["content"].split(",")
    ]
    return list(dict.fromkeys(keys))


@cache
def _bibliography() -> dict[str, Entry]:
    return dict(parse_file(str(BIBLIOGRAPHY)).entries)


def _names_and_year(key: str) -> tuple[str, str]:
    entry = _bibliography()[key.strip()]
    names = [" ".join([*p.prelast_names, *p.last_names]) for p in entry.persons["author"]]
    shown = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return re.sub(r"[{}]", "", shown), entry.fields["year"]


@cache
def _titles_of_labels() -> dict[str, str]:
    chapters = (ROOT / "notebooks").glob("*.md")
    texts = (chapter.read_text(encoding="utf-8") for chapter in chapters)
    return {label: title for text in texts for title, label in LABEL.findall(text)}


def _role(found: re.Match[str]) -> str:
    name, content = found["name"], found["content"]
    if name.startswith("cite:"):
        sources = [_names_and_year(key) for key in content.split(",")]
        if name == "cite:t":
            return ", ".join(f"{names} ({year})" for names, year in sources)
        return "(" + "; ".join(f"{names}, {year}" for names, year in sources) + ")"
    if name == "prf:ref":
        return f"“{_titles_of_labels()[content]}”"
    if name in {"term", "ref"}:
        return content.partition("<")[0].strip()
    raise ValueError(f"no plain Markdown for the role {found[0]!r}")


def _link(found: re.Match[str], folder: Path) -> str:
    address = found["address"]
    if re.match(r"[a-z]+:", address):
        return found[0]
    if found["text"] or address.startswith("#"):
        return found["text"]
    return f"*{heading((folder / address).with_suffix('.md'))}*"


def _inline(line: str, folder: Path) -> str:
    return LINK.sub(lambda found: _link(found, folder), ROLE.sub(_role, line))


def _quoted(title: str, body: list[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in (title, "", *body)]


def _folded(title: str, body: list[str]) -> list[str]:
    summary = MarkdownIt().renderInline(title)
    return ["<details>", f"<summary>{summary}</summary>", "", *body, "", "</details>"]


def _admonition(one: Directive, folder: Path) -> list[str]:
    return _quoted(f"**{_inline(one.argument, folder)}**", _lines(one.body, folder))


def _dropdown(one: Directive, folder: Path) -> list[str]:
    return _folded(_inline(one.argument, folder), _lines(one.body, folder))


def _exercise(one: Directive, folder: Path) -> list[str]:
    return _quoted(f"**Exercise: {_inline(one.argument, folder)}**", _lines(one.body, folder))


def _solution(one: Directive, folder: Path) -> list[str]:
    title = f"Solution: {_titles_of_labels()[one.argument]}"
    return _folded(_inline(title, folder), _lines(one.body, folder))


def _definition(one: Directive, folder: Path) -> list[str]:
    return _quoted(f"**Definition: {_inline(one.argument, folder)}**", _lines(one.body, folder))


def _theorem(one: Directive, folder: Path) -> list[str]:
    return _quoted(f"**Theorem: {_inline(one.argument, folder)}**", _lines(one.body, folder))


def _proof(one: Directive, folder: Path) -> list[str]:
    return _quoted("*Proof.*", _lines(one.body, folder))


def _quiz(one: Directive, folder: Path) -> list[str]:
    return _lines(as_markdown(read_quiz(folder / one.argument)).splitlines(), folder)


def _figure(one: Directive, folder: Path) -> list[str]:
    """Write the picture into the text, as pixels: there is no file beside, and Colab drops SVG."""
    drawing = (folder / one.argument).read_text(encoding="utf-8")
    content = base64.b64encode(vl_convert.svg_to_png(drawing, scale=2)).decode()
    address = f"data:image/png;base64,{content}"
    return [f"![{one.options['alt']}]({address})", "", *_lines(one.body, folder)]


PLAIN: dict[str, Callable[[Directive, Path], list[str]]] = {
    "admonition": _admonition,
    "dropdown": _dropdown,
    "exercise": _exercise,
    "figure": _figure,
    "prf:definition": _definition,
    "prf:proof": _proof,
    "prf:theorem": _theorem,
    "quiz": _quiz,
    "solution": _solution,
}


def _parsed(argument: str, body: list[str]) -> Directive:
    one = Directive(argument.strip())
    rest = list(body)
    while rest and (option := OPTION.match(rest[0])):
        one.options[option[1]] = option[2]
        rest.pop(0)
    one.body = "\n".join(rest).strip("\n").splitlines()
    return one


def _lines(lines: list[str], folder: Path) -> list[str]:
    made, rest = [], list(lines)
    while rest:
        line = rest.pop(0)
        opening = OPENING.match(line)
        if opening is None:
            if not TARGET.match(line):
                made.append(_inline(line, folder))
            continue
        fence, body = opening["fence"], []
        while rest and not re.fullmatch(rf"{fence}{fence[0]}*\s*", rest[0]):
            body.append(rest.pop(0))
        if not rest:
            raise ValueError(f"{line!r} is never closed")
        closing = rest.pop(0)
        if opening["name"] is None:  # code to read
            made += [line, *body, closing]
        elif opening["name"] in PLAIN:
            made += PLAIN[opening["name"]](_parsed(opening["argument"], body), folder)
        else:
            raise ValueError(f"no plain Markdown for the directive {opening['name']!r}")
    return made


def plain_markdown(text: str, folder: Path) -> str:
    """Write MyST Markdown as plain Markdown.

    Parameters
    ----------
    text : str
    folder : Path
        Of the page, where its links and files are looked up.

    Raises
    ------
    ValueError
        For a directive or a role that has no plain form here.
    """
    return "\n".join(_lines(text.splitlines(), folder))
