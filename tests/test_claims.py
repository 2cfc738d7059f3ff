"""The scoreboard: every claim has our number or a reason, and verdicts follow from numbers."""

import math
import re
import shlex
from dataclasses import replace

import pytest
from conftest import ROOT

from binding_lib import load_claims, reruns
from binding_lib.claim_readings import Measured
from binding_lib.claims import (
    NEEDS_WEIGHTS,
    NOT_PUBLISHED,
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    Claim,
    find_claim,
    read_claims,
)
from binding_lib.recorded import recorded
from binding_lib.reruns import rerun_claim
from binding_lib.scoreboard import SIGNS, number_text, scoreboard_chart, scoreboard_markdown
from binding_lib.sweeps.analysis import rank_correlation
from binding_lib.sweeps.description import described_models

NOTEBOOKS = ROOT / "notebooks"


def test_every_claim_is_measured_or_says_why_not():
    table = load_claims()
    assert len(table) == len(read_claims()) >= 25
    assert table["name"].is_unique
    for row in table.itertuples():
        assert (row.verdict == NOT_PUBLISHED) == (row.published == "")
        if row.verdict == NEEDS_WEIGHTS:
            assert math.isnan(row.value)
        else:
            assert math.isfinite(row.value)
            assert math.isnan(row.low) or row.low <= row.value <= row.high
        if row.verdict != REPRODUCED:
            assert len(row.why) > 20, row.name
        assert row.ours
        assert (NOTEBOOKS / f"{row.chapter}.md").exists()


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.9, REPRODUCED), (1.0, REPRODUCED), (0.89, PARTLY), (0.5, PARTLY), (0.49, NOT_REPRODUCED)],
)
def test_verdicts_follow_from_the_ranges(value, verdict):
    claim = Claim("x", "", "", "high", "", "", reproduced=(0.9, 1), partly=(0.5, 0.9))
    assert claim.verdict(Measured(value)) == verdict
    assert claim.verdict(None) == NEEDS_WEIGHTS
    assert replace(claim, published="").verdict(Measured(value)) == NOT_PUBLISHED


def test_partly_is_wider_than_reproduced():
    for claim in read_claims().values():
        if claim.measure and claim.published:
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
    edited = {"what": "edit, avg", "reading": "probe: object"}
    pairs = ("pocket-clip:low", "pocket-clip:high")
    sums = {"level": "object", "estimator": "avg"}
    few = {"run": "random 2", "estimator": "avg"}
    flat = {"run": "clip:ViT-B-32/random, 24 objects", "estimator": "avg", "reading": "R²"}
    models = described_models(recorded("sweep"))
    alike = rank_correlation(models, "global_r2", "held_out_object", ["tenth", "width"])
    expected = {
        "random weights, R²": [counts[random & (counts["estimator"] == "avg")]["value"].min()],
        "random weights, retrieval": [
            value("02_scenes_decompose", run="random 2", reading="retrieval", **sums),
            value("02_scene_counts", n_train=1000, reading="retrieval from 4,000", **few),
        ],
        "three objects": [value("02_scenes_decompose", run="minilm 3", reading="R²", **sums)],
        "pictures are sums, ours": [value("02_pictures", **flat)],
        "edits of pictures": [
            value("03_surgery", what="edit, avg", reading="retrieval", **surgery),
            *(value("03_surgery", run=f"{pair}, 24 objects", **edited) for pair in pairs),
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
        "models that bind multiply, R²": [alike.value],
    }
    for claim in read_claims().values():
        said = [float(n) for n in re.findall(r"\d\.\d+", claim.why)]
        said += [float(n) for n in re.findall(r"untrained: (\d\.\d+)", claim.ours)]
        said = [n for n in said if n != 0.82 or claim.name != "random weights, probing"]
        wanted = expected.get(claim.name, [])
        assert sorted(said) == pytest.approx(sorted(wanted), abs=0.006), claim.name


SCRIPT = """
import sys, pandas as pd
from binding_lib.recorded import record
{first}
record("mine", pd.DataFrame({{"what": ["a", "b"], "value": [0.25, {value}]}}))
"""


def claim_by_script(tmp_path, value, first=""):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(first=first, value=value))
    return Claim(
        "mine", "", "", "", "", "", {"by": "cell", "table": "mine", "row": {"what": "b"}},
        reproduced=(0.5, 1), partly=(0, 0.5), rerun=f"python {script} FOLDER",
    )  # fmt: skip


def test_a_rerun_reads_what_its_command_records(tmp_path):
    folder = tmp_path / "parts"
    assert rerun_claim(claim_by_script(tmp_path, 0.75), folder) == Measured(
        0.75, pytest.approx(math.nan, nan_ok=True), pytest.approx(math.nan, nan_ok=True)
    )
    # The command was told the folder, and its table did not go into the package.
    assert (folder / "tables" / "mine.csv").exists()
    with pytest.raises(ValueError, match="recorded table 'mine'"):
        recorded("mine")


def test_a_rerun_that_fails_says_so_and_does_not_serve_an_older_number(tmp_path):
    rerun_claim(claim_by_script(tmp_path, 0.75), tmp_path / "parts")
    broken = claim_by_script(tmp_path, 0.75, first="sys.exit(3)")
    with pytest.raises(ChildProcessError, match=r"status 3.*run it again"):
        rerun_claim(broken, tmp_path / "parts")
    assert list((tmp_path / "parts" / "tables").iterdir()) == []


def test_what_cannot_be_rerun(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"needs weights.*CLIP"):
        rerun_claim(find_claim("pictures are sums, CLIP"))
    monkeypatch.setattr(reruns, "COURSE", tmp_path)
    with pytest.raises(FileNotFoundError, match="without the course"):
        rerun_claim(find_claim("three objects"))


def test_commands_name_scripts_and_chapters_that_exist():
    for claim in read_claims().values():
        assert bool(claim.rerun) == bool(claim.measure), claim.name
        if claim.rerun:
            assert claim.minutes > 0
            file = shlex.split(claim.rerun)[1]
            file = shlex.split(claim.rerun)[2] if file == "execute" else file
            assert (ROOT / file).exists(), claim.name


@pytest.mark.slow
def test_a_claim_of_the_scoreboard_measured_anew(tmp_path):
    claim = find_claim("concepts across modalities")
    assert rerun_claim(claim, tmp_path).value == pytest.approx(claim.number().value, abs=0.05)


def test_damaged_lists_are_refused(tmp_path):
    file = tmp_path / "claims.toml"
    file.write_text('[[claim]]\nname = "x"\n')
    with pytest.raises(ValueError, match=r"claim 'x' in claims.toml.*statement"):
        read_claims(file)
    keys = ("name", "statement", "where", "published", "ours", "chapter")
    entry = "[[claim]]\n" + "".join(f'{key} = "x"\n' for key in keys)
    file.write_text(entry + entry)
    with pytest.raises(ValueError, match="two claims"):
        read_claims(file)
    file.write_text(entry + 'measure = { by = "guess" }\n')
    with pytest.raises(ValueError, match="measured by 'guess', expected one of"):
        read_claims(file)


def test_claims_of_a_chapter():
    assert set(load_claims(chapter="06_products")["chapter"]) == {"06_products"}
    with pytest.raises(ValueError, match="Did you mean '06_products'"):
        load_claims(chapter="06_product")


def test_the_table_holds_every_claim_once():
    claims = load_claims()
    lines = scoreboard_markdown(claims, rerun=True).splitlines()
    assert len(lines) == len(claims) + 2
    assert {line.count(" | ") for line in lines} == {4}
    for line, claim in zip(lines[2:], claims.itertuples(), strict=True):
        assert claim.statement.strip() in line
        assert SIGNS[claim.verdict] in line
        assert (f'--rerun "{claim.name}"' in line) == bool(claim.rerun)
    assert "0.57 [0.53, 0.61]" in lines[2]
    assert number_text(math.nan) == "none"


def test_the_chart_shows_measured_claims():
    claims = load_claims()
    measured = claims[claims["value"].notna() & (claims["published"] != "")]
    spec = scoreboard_chart(claims).to_dict()
    (data,) = spec["datasets"].values()
    assert [row["name"] for row in data] == measured["name"].tolist()
    assert all(row["start"] <= row["end"] for row in data)
