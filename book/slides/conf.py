"""The slides of one lecture, built by `make slides` apart from the book."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))

project = "How embedding models bind concepts"
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs", "vega_scripts", "lecture"]
myst_enable_extensions = ["dollarmath"]
mathjax_path = "vendor/mathjax/es5/tex-mml-chtml.js"

revealjs_static_path = ["../_static"]
revealjs_css_files = ["slides.css"]
revealjs_js_files = ["slides.js"]
revealjs_style_theme = "white"
revealjs_script_conf = {
    "width": 1280,
    "height": 720,
    "hash": True,
    "slideNumber": True,
    "transition": "none",
}
