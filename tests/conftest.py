"""What the tests of the book and of the chapters share."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

# A slow or busy machine is no fault of the library's.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "_build" / "html"
# The theme's own templates lie among the static files, and slides are no pages to read.
PAGES = sorted(page for page in BOOK.rglob("*.html") if not {"_static", "slides"} & set(page.parts))

# The build's own steps are tested with the code that takes them.
sys.path.insert(0, str(ROOT / "book" / "_ext"))


def unavailable(reason: str) -> NoReturn:
    """Skip a test whose means are missing on a reader's machine; fail it on CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the built book."""
    if not (BOOK / "index.html").exists():
        unavailable("The book is not built: run `make book`.")
    return BOOK
