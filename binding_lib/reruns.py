"""Measuring a claim anew: run its command, and read our number off the tables that it makes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from binding_lib.claim_readings import Measured
from binding_lib.claims import NEEDS_WEIGHTS, Claim
from binding_lib.encoders.cache import cache_folder
from binding_lib.presets import VARIABLE as PRESET_VARIABLE
from binding_lib.recorded import RECORD_VARIABLE, recorded

COURSE = Path(__file__).parents[1]


def rerun_claim(claim: Claim, folder: str | os.PathLike[str] | None = None) -> Measured:
    """Run a claim's command, and return the number that its tables give now.

    Nothing in the course is changed: the tables are made in the folder. Claims are measured at
    their recorded size, whatever ``BINDING_LIB_PRESET`` says.

    Parameters
    ----------
    claim : Claim
    folder : path, optional
        For finished parts, so that what was stopped goes on, and for the tables, which go into a
        new folder inside it each time. By default one in the user's cache folder.

    Raises
    ------
    ValueError
        If the claim has no command, or the tables that it makes lack the number.
    FileNotFoundError
        If the library was installed without the course, whose notebooks and scripts are needed.
    ChildProcessError
        If the command fails.
    """
    if not claim.rerun:
        reason = "has no command that measures it anew" if claim.measure else NEEDS_WEIGHTS
        raise ValueError(f"claim {claim.name!r} {reason}: {claim.why}")
    if not (COURSE / "benchmarks").is_dir() or not (COURSE / "notebooks").is_dir():
        raise FileNotFoundError(
            f"{COURSE} holds the library without the course, whose notebooks/ and benchmarks/ a "
            "claim is measured with; install from a copy of the course: pip install -e ."
        )
    if folder is None:
        folder = cache_folder().parent / "reruns" / re.sub(r"\W+", "-", claim.name)
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    tables = tempfile.mkdtemp(prefix="tables-", dir=folder)  # empty: no earlier number is in it
    words = [str(folder) if word == "FOLDER" else word for word in shlex.split(claim.rerun)]
    beside = Path(sys.executable).parent / words[0]  # of this environment, active or not
    if beside.exists():
        words[0] = str(beside)
    environment = os.environ | {RECORD_VARIABLE: tables}
    environment.pop(PRESET_VARIABLE, None)
    ended = subprocess.run(words, cwd=COURSE, env=environment)
    if ended.returncode != 0:
        raise ChildProcessError(
            f"the command of claim {claim.name!r} ended with status {ended.returncode}: "
            f"{claim.rerun}. What it finished is kept in {str(folder)!r}; run it again to go on"
        )
    measured = claim.number(partial(recorded, folder=tables))
    assert measured is not None  # it has a command
    return measured
