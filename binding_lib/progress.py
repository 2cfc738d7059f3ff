"""Progress bars: for people who wait, not for stored notebooks and tests."""

from __future__ import annotations

import os
from typing import Any

from tqdm.auto import tqdm


def progress_bar(*, disable: bool = False, **options: Any) -> tqdm:
    """Make a tqdm bar that the environment variable TQDM_DISABLE switches off everywhere.

    tqdm itself heeds that variable on a terminal, but not in a notebook.

    Parameters
    ----------
    disable : bool
        Show nothing, whatever the environment says.
    **options
        Passed on to tqdm.
    """
    return tqdm(disable=disable or bool(os.environ.get("TQDM_DISABLE")), **options)
