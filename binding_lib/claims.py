"""The scoreboard: what the paper claims, what was measured here, and what follows from both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from binding_lib.checks import unknown_name

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
NEEDS_WEIGHTS = "needs weights that this machine has not"
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NEEDS_WEIGHTS)


class Measured(NamedTuple):
    """Our number for a claim; the ends of its interval are NaN where none was made."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, as data.

    Attributes
    ----------
    name : str
        A short name, to ask for it.
    statement : str
    where : str
        The section of the paper's facts that publishes it, by its subject.
    published : str
        The published value, or the shape of a result.
    ours : str
        What our number is, and which model and data stand in for the published ones.
    chapter : str
        The notebook that tells of it.
    command : str
        Makes the number anew.
    measure : callable, or None
        Reads our number off the recorded tables. None: it needs weights or data that are not here.
    reproduced : (float, float)
        Between these, ends included, our number agrees with the claim.
    partly : (float, float)
        Between these it agrees in part.
    why : str
        What makes the difference, where there is one.
    """

    name: str
    statement: str
    where: str
    published: str
    ours: str
    chapter: str
    command: str
    measure: Callable[[], Measured] | None = None
    reproduced: tuple[float, float] = (math.nan, math.nan)
    partly: tuple[float, float] = (math.nan, math.nan)
    why: str = ""

    def verdict(self, measured: Measured | None) -> str:
        """Compare our number with the ranges; one of `VERDICTS`."""
        if measured is None:
            return NEEDS_WEIGHTS
        for verdict, (low, high) in ((REPRODUCED, self.reproduced), (PARTLY, self.partly)):
            if low <= measured.value <= high:
                return verdict
        return NOT_REPRODUCED


def load_claims(name: str | None = None) -> pd.DataFrame:
    """Read the scoreboard: every claim with our recorded number and the verdict.

    Parameters
    ----------
    name : str, optional
        Only this claim.

    Returns
    -------
    DataFrame
        One row a claim; columns name, statement, where, published, ours (what was measured), value,
        low, high (95 % interval, NaN where there is none), verdict, why, chapter and command.

    Raises
    ------
    ValueError
        If there is no claim of that name.
    """
    from binding_lib.paper_claims import CLAIMS

    names = [claim.name for claim in CLAIMS]
    if name is not None and name not in names:
        raise unknown_name("claim", name, names)
    return pd.DataFrame([_row(claim) for claim in CLAIMS if name in (None, claim.name)])


def _row(claim: Claim) -> dict[str, object]:
    measured = None if claim.measure is None else claim.measure()
    value, low, high = measured or Measured(math.nan)
    return {
        "name": claim.name,
        "statement": claim.statement,
        "where": claim.where,
        "published": claim.published,
        "ours": claim.ours,
        "value": value,
        "low": low,
        "high": high,
        "verdict": claim.verdict(measured),
        "why": claim.why,
        "chapter": claim.chapter,
        "command": claim.command,
    }
