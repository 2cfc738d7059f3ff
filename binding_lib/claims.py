"""The scoreboard: what the paper claims, what was measured here, and what follows from both."""

from __future__ import annotations

import math
import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from binding_lib.checks import unknown_name
from binding_lib.claim_readings import READINGS, Measured, Reader
from binding_lib.recorded import recorded

# The claims, in the order of the chapters; its keys are the attributes of `Claim`.
FILE = Path(__file__).parent / "recorded" / "claims.toml"

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
NEEDS_WEIGHTS = "needs weights that this machine has not"
NOT_PUBLISHED = "ours alone, not in the paper"
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NEEDS_WEIGHTS, NOT_PUBLISHED)


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, as data.

    Attributes
    ----------
    name : str
        A short name, to ask for it.
    statement : str
    where : str
        The part of the paper that publishes it, by its subject.
    published : str
        The published value, or the shape of a result. Empty: a question that the paper leaves
        open and the course asks as well.
    ours : str
        What our number is, and which model and data stand in for the published ones.
    chapter : str
        The notebook that tells of it.
    measure : dict
        How our number is read off the recorded tables: ``by`` names one of
        `binding_lib.claim_readings.READINGS`, the other entries are its arguments. Empty: it needs
        weights or data that are not here.
    reproduced : (float, float)
        Between these, ends included, our number agrees with the claim.
    partly : (float, float)
        Between these it agrees in part.
    rerun : str
        A command that records the tables anew, run where the course lies, with the environment
        variable ``BINDING_LIB_RECORD`` naming a folder for them. FOLDER stands for a folder of
        one's own, in which a command that was stopped finds what it had.
    minutes : float
        About as long it takes on two cores.
    why : str
        What makes the difference, where there is one.
    """

    name: str
    statement: str
    where: str
    published: str
    ours: str
    chapter: str
    measure: dict[str, Any] = field(default_factory=dict)
    reproduced: tuple[float, float] = (math.nan, math.nan)
    partly: tuple[float, float] = (math.nan, math.nan)
    rerun: str = ""
    minutes: float = math.nan
    why: str = ""

    def number(self, read: Reader = recorded) -> Measured | None:
        """Read our number off recorded tables; None if nothing here measures it.

        Raises
        ------
        ValueError
            If the tables lack it; the claim and the table are named.
        """
        if not self.measure:
            return None
        arguments = dict(self.measure)
        asked: list[str] = []

        def noted(table: str) -> pd.DataFrame:
            asked.append(table)
            return read(table)

        try:
            return READINGS[arguments.pop("by")](noted, **arguments)
        except (ValueError, LookupError) as error:
            reason = error if isinstance(error, ValueError) else repr(error)
            raise ValueError(
                f"claim {self.name!r} cannot be read off the recorded table {asked[-1]!r}: {reason}"
            ) from error

    def verdict(self, measured: Measured | None) -> str:
        """Compare our number with the ranges; one of `VERDICTS`."""
        if not self.published:
            return NOT_PUBLISHED
        if measured is None:
            return NEEDS_WEIGHTS
        for verdict, (low, high) in ((REPRODUCED, self.reproduced), (PARTLY, self.partly)):
            if low <= measured.value <= high:
                return verdict
        return NOT_REPRODUCED


def read_claims(file: str | os.PathLike[str] | None = None) -> dict[str, Claim]:
    """Read the claims of a file, by their names.

    Parameters
    ----------
    file : path, optional
        By default the course's own, ``recorded/claims.toml``.

    Raises
    ------
    ValueError
        If the file holds no claims, an entry lacks a key or has one that is unknown, a value is of
        another kind than `Claim` says, or two claims have one name.
    """
    file = Path(file or FILE)
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("claim")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"expected [[claim]] entries in {file}, got none")
    claims: dict[str, Claim] = {}
    for entry in entries:
        try:
            claim = Claim(**entry)
        except TypeError as error:
            raise ValueError(f"claim {entry.get('name')!r} in {file.name}: {error}") from None
        _check_claim(claim)
        if claim.name in claims:
            raise ValueError(f"two claims have the name {claim.name!r}")
        claims[claim.name] = claim
    return claims


def _check_claim(claim: Claim) -> None:
    for key in [each.name for each in fields(Claim) if each.type == "str"]:
        if not isinstance(got := getattr(claim, key), str):
            raise ValueError(f"claim {claim.name!r} has {key} = {got!r}; expected text")
    if not isinstance(claim.measure, dict):
        raise ValueError(f"claim {claim.name!r} has measure = {claim.measure!r}; expected a table")
    if not claim.measure:
        return
    if claim.measure.get("by") not in READINGS:
        raise ValueError(
            f"claim {claim.name!r} is measured by {claim.measure.get('by')!r}, "
            f"expected one of {list(READINGS)}"
        )
    for key in ("reproduced", "partly") if claim.published else ():
        ends = getattr(claim, key)
        pair = isinstance(ends, (list, tuple)) and len(ends) == 2
        if not (pair and all(isinstance(end, (int, float)) for end in ends) and ends[0] <= ends[1]):
            raise ValueError(
                f"claim {claim.name!r} is measured and published, and has {key} = {ends!r}; "
                "expected two numbers, the lower one first, such as [0.9, 1]"
            )


def find_claim(name: str) -> Claim:
    """Find a claim by its name.

    Raises
    ------
    ValueError
        If there is none of that name; the nearest name is given.
    """
    claims = read_claims()
    if name not in claims:
        raise unknown_name("claim", name, list(claims))
    return claims[name]


def load_claims(name: str | None = None, chapter: str | None = None) -> pd.DataFrame:
    """Read the scoreboard: every claim with our recorded number and the verdict.

    Parameters
    ----------
    name : str, optional
        Only this claim.
    chapter : str, optional
        Only those of this chapter, such as "06_products".

    Returns
    -------
    DataFrame
        One row a claim; columns name, statement, where, published, ours (what was measured), value,
        low, high (95 % interval, NaN where there is none), verdict, why, chapter, rerun (a command)
        and minutes (that it takes).

    Raises
    ------
    ValueError
        If there is no claim of that name, or none of that chapter.
    """
    chosen = list(read_claims().values()) if name is None else [find_claim(name)]
    if chapter is not None:
        chapters = list(dict.fromkeys(claim.chapter for claim in chosen))
        if chapter not in chapters:
            raise unknown_name("chapter", chapter, chapters)
        chosen = [claim for claim in chosen if claim.chapter == chapter]
    return pd.DataFrame([_row(claim) for claim in chosen])


def _row(claim: Claim) -> dict[str, object]:
    measured = claim.number()
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
        "rerun": claim.rerun,
        "minutes": claim.minutes,
    }
