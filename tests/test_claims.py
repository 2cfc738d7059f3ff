"""The scoreboard: every claim has our number or a reason, and verdicts follow from numbers."""

import math
import re
from pathlib import Path

import pytest

from binding_lib import load_claims
from binding_lib.claims import NEEDS_WEIGHTS, NOT_REPRODUCED, PARTLY, REPRODUCED, Claim, Measured
from binding_lib.paper_claims import CLAIMS
from binding_lib.recorded import recorded

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def test_every_claim_is_measured_or_says_why_not():
    table = load_claims()
    assert len(table) == len(CLAIMS) >= 20
    assert table["name"].is_unique
    for row in table.itertuples():
        if row.verdict == NEEDS_WEIGHTS:
            assert math.isnan(row.value)
        else:
            assert math.isfinite(row.value)
            assert math.isnan(row.low) or row.low <= row.value <= row.high
        if row.verdict != REPRODUCED:
            assert len(row.why) > 20, row.name
        assert row.published
        assert row.ours
        assert (NOTEBOOKS / f"{row.chapter}.md").exists()


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.9, REPRODUCED), (1.0, REPRODUCED), (0.89, PARTLY), (0.5, PARTLY), (0.49, NOT_REPRODUCED)],
)
def test_verdicts_follow_from_the_ranges(value, verdict):
    claim = Claim("x", "", "", "", "", "", "", reproduced=(0.9, 1), partly=(0.5, 0.9))
    assert claim.verdict(Measured(value)) == verdict
    assert claim.verdict(None) == NEEDS_WEIGHTS


def test_partly_is_wider_than_reproduced():
    for claim in CLAIMS:
        if claim.measure is not None:
            assert claim.reproduced[0] <= claim.reproduced[1]
            assert claim.partly[0] <= claim.partly[1]
            assert claim.reproduced != claim.partly


def test_a_claim_can_be_asked_for_by_name():
    assert load_claims("three objects")["name"].tolist() == ["three objects"]
    with pytest.raises(ValueError, match="Did you mean 'three objects'"):
        load_claims("three object")


def value(table, **keys):
    rows = recorded(table)
    for key, wanted in keys.items():
        rows = rows[rows[key] == wanted]
    return rows["value"].item()


def test_numbers_in_the_reasons_are_those_recorded():
    fits = recorded("complexity").query(
        "encoder == 'dual:binding' and split == 'own' and seed == 0"
    )
    r2 = fits.set_index("approximator")["r2"]
    large = recorded("coverage_large").query("coverage == 0.1")["held_out_object"]
    growing = recorded("paper_settings").query("run == 'growing' and objects == 'held_out'")
    counts = recorded("02_scene_counts")
    random = counts["run"].str.startswith("random") & (counts["reading"] == "R²")
    untrained = {"weights": "untrained", "modality": "within", "reading": "object"}
    pair = {"coverage": "low", "seed": 0, "objects": "unseen, swaps too"}
    surgery = {"run": "pocket-clip:high"}
    sums = {"level": "object", "estimator": "avg"}
    flat = {"run": "clip:ViT-B-32/random, 24 objects", "estimator": "avg", "reading": "R²"}
    expected = {
        "random weights, R²": [counts[random & (counts["estimator"] == "avg")]["value"].min()],
        "three objects": [value("02_scenes_decompose", run="minilm 3", reading="R²", **sums)],
        "pictures are sums, ours": [value("02_pictures", **flat)],
        "edits of pictures": [
            value("03_surgery", what="edit, avg", reading="retrieval", **surgery)
        ],
        "removal of concepts, text": [
            value("03_surgery", run="MiniLM", what="removed nothing", reading="probe: object")
        ],
        "removal of concepts, pictures": [
            value("03_surgery", what="removed concept", reading="probe: swap", **surgery)
        ],
        "the jump at 125,000 objects": [large.mean(), 0.1],
        "no help is needed": [growing["object"].iloc[-1]],
        "global product, model that binds": [r2["additive"], r2["mlp-64"]],
        "objects within pictures": [value("pocket", **pair, **untrained)],
    }
    for claim in CLAIMS:
        said = [float(n) for n in re.findall(r"\d\.\d+", claim.why)]
        said += [float(n) for n in re.findall(r"untrained: (\d\.\d+)", claim.ours)]
        said = [n for n in said if n != 0.82 or claim.name != "random weights, probing"]
        wanted = expected.get(claim.name, [])
        assert sorted(said) == pytest.approx(sorted(wanted), abs=0.006), claim.name
