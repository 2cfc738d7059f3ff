"""What the scripts that record a table share: a part of it must not replace the whole."""

from __future__ import annotations

import os

from binding_lib.recorded import RECORD_VARIABLE


def refuse_part(option: str) -> None:
    """End the script with one sentence, unless `RECORD_VARIABLE` names a folder for its tables."""
    if not os.environ.get(RECORD_VARIABLE):
        raise SystemExit(
            f"{option} makes a part of a table, which must not replace the package's whole one: "
            f"expected {RECORD_VARIABLE} to name a folder for it, as in {RECORD_VARIABLE}=FOLDER "
            "python ..., got none"
        )
