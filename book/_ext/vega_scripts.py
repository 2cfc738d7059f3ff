"""Sphinx extension: pages with Altair charts load Vega from the book itself.

Altair's charts fetch Vega from another host unless the page says that it already holds the same
versions. Only pages that show a chart load the scripts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LOCK = Path(__file__).resolve().parents[2] / "package-lock.json"
# What the installed Altair asks for: full versions or leading parts of them.
ASKED = {
    "vega": altair.VEGA_VERSION,
    "vega-lite": altair.VEGALITE_VERSION,
    "vega-embed": altair.VEGAEMBED_VERSION,
}


def check_versions(app: Sphinx) -> None:
    """Stop the build when package-lock.json holds another Vega than Altair asks for."""
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    for name, asked in ASKED.items():
        locked = packages[f"node_modules/{name}"]["version"]
        if not f"{locked}.".startswith(f"{asked}."):
            raise ExtensionError(
                f"Altair {altair.__version__} asks for {name} {asked}, but package-lock.json "
                f"holds {locked}: change package.json and run `make lock`"
            )


def add_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add the scripts to a page that shows a chart."""
    if "altair-viz-" not in context.get("body", ""):
        return
    loaded = {f"{name.replace('-', '')}_version": version for name, version in ASKED.items()}
    for name in ASKED:
        app.add_js_file(f"vendor/{name}/build/{name}.min.js")
    if app.builder.name == "html":  # slides have a size of their own
        app.add_js_file("charts.js", defer="defer")
    # The name under which Altair's own script looks up what the page already holds.
    app.add_js_file(None, body=f"var VEGA_DEBUG = {json.dumps(loaded)};")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", check_versions)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
