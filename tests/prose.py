"""The words of a page: Markdown without its code and formulas, and its running text alone."""

import re

FLAGS = re.MULTILINE | re.DOTALL
CODE = [r"\A---\n.*?^---$", r"^(`{3,})(?:\{code-cell\}|\w).*?^\1$"]
FORMULAS = [r"\$\$.*?\$\$", r"\$[^$\n]+\$", r"(?:\{[\w:]+\})?`[^`\n]*`"]
# Headings, tables and the lines of directives.
NOT_RUNNING = [
    r"^:::\{admonition\} What you will learn.*?^:::$",
    r"^(?:#|\||`{3,}|:{3,}|:\w[\w-]*:)[^\n]*$",
]
LINKS = [r"\[[^\]\n]*\]\([^)\n]*\)"]


def blank(match):
    """Take text out without moving what follows; links to the glossary stay."""
    return match[0] if match[0].startswith("{term}") else re.sub(r"[^\n]", "\0", match[0])


def _without(patterns, markdown):
    for pattern in patterns:
        markdown = re.sub(pattern, blank, markdown, flags=FLAGS)
    return markdown


def words(markdown):
    """Blank out code and formulas; every character keeps its place."""
    return _without([*CODE, *FORMULAS, r"\]\([^)\n]*\)"], markdown)


def running_text(markdown):
    """Blank out headings, tables and links as well."""
    return _without([*CODE, *NOT_RUNNING, *FORMULAS, *LINKS], markdown)
