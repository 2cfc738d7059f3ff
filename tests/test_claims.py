"""The scoreboard: every claim has our number or a reason, and verdicts follow from numbers."""

import importlib
import json
import math
import re
import shlex
from dataclasses import replace
from functools import partial

import pandas as pd
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
from binding_lib.encoders.pocket import WEIGHTS
from binding_lib.recorded import RECORD_VARIABLE, recorded
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
    near = rank_correlation(models, "global_r2", "held_out_object", ["tenth", "n_objects"])
    controls = {
        f"control of {part}s, {data}": [
            value("03_surgery", run=run, what="removed nothing", reading="probe: object"),
            value("03_surgery", run=run, what=f"removed {part}, permuted", reading=concept),
        ]
        for data, run, concept in (
            ("text", "MiniLM", "probe: noun"),
            ("pictures", "pocket-clip:high", "probe: colour"),
        )
        for part in ("concept", "object")
    }
    expected = {
        **controls,
        "scene is a sum, R² by position": [
            value("02_scenes_decompose", run="minilm 2", reading="R²", **sums)
        ],
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
        "models that bind multiply, R²": [alike.value, near.value],
    }
    for claim in read_claims().values():
        said = [float(n) for n in re.findall(r"\d\.\d+", claim.why)]
        said += [float(n) for n in re.findall(r"untrained: (\d\.\d+)", claim.ours)]
        said = [n for n in said if n != 0.82 or claim.name != "random weights, probing"]
        wanted = expected.get(claim.name, [])
        assert sorted(said) == pytest.approx(sorted(wanted), abs=0.006), claim.name


SCRIPT = """
import os, sys
{first}
import pandas as pd
from binding_lib.recorded import record
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
    assert len(list(folder.glob("tables-*/mine.csv"))) == 1
    with pytest.raises(ValueError, match="recorded table 'mine'"):
        recorded("mine")


def test_a_rerun_that_fails_says_so_and_does_not_serve_an_older_number(tmp_path):
    rerun_claim(claim_by_script(tmp_path, 0.75), tmp_path / "parts")
    broken = claim_by_script(tmp_path, 0.75, first="sys.exit(3)")
    with pytest.raises(ChildProcessError, match=r"status 3.*run it again"):
        rerun_claim(broken, tmp_path / "parts")
    silent = claim_by_script(tmp_path, 0.75, first="sys.exit(0)")
    with pytest.raises(ValueError, match=r"claim 'mine' cannot be read off .* table 'mine'"):
        rerun_claim(silent, tmp_path / "parts")


def test_a_rerun_deletes_nothing_of_its_folder_and_is_no_smoke_run(tmp_path, monkeypatch):
    own = tmp_path / "tables" / "mine.csv"
    own.parent.mkdir()
    own.write_text("mine")
    monkeypatch.setenv("BINDING_LIB_PRESET", "smoke")
    full = claim_by_script(tmp_path, 0.75, first="assert 'BINDING_LIB_PRESET' not in os.environ")
    assert rerun_claim(full, tmp_path).value == 0.75
    assert own.read_text() == "mine"


@pytest.fixture
def script(monkeypatch):
    """Import a script of the folder benchmarks."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


def test_rows_of_a_smoke_run_or_a_stopped_training_do_not_pass_for_others(
    tmp_path, monkeypatch, script
):
    coverage = script("record_coverage")
    monkeypatch.setenv(RECORD_VARIABLE, str(tmp_path / "tables"))
    trained = []

    def train_one(run, steps):
        trained.append(steps)
        return {**run, "steps": steps, "held_out_object": steps / 2400}

    for planned, done in ((300, 300), (2400, 100), (2400, 2400), (2400, 2400)):
        monkeypatch.setenv("BINDING_LIB_PRESET", "smoke" if planned == 300 else "laptop")
        assert coverage.planned_steps() == planned
        monkeypatch.setattr(coverage, "train_one", partial(train_one, steps=done))
        coverage.main(tmp_path, "1/1", "2-20-recipe-0.8-10")
    assert trained == [300, 100, 2400]  # and the last was there already
    assert recorded("coverage", tmp_path / "tables")["held_out_object"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("record_coverage", {"part": "1/1", "only": "2-20-recipe-0.8-10"}),
        ("record_complexity", {"encoder": "minilm"}),
        ("record_complexity", {"approximator": "global"}),
        ("record_pocket", {"only": "low"}),
        ("record_pocket", {"shipped": True}),
    ],
)
def test_a_part_of_a_table_does_not_replace_the_whole(
    tmp_path, monkeypatch, script, name, arguments
):
    module = script(name)
    monkeypatch.delenv(RECORD_VARIABLE, raising=False)
    monkeypatch.setattr(module, "record", None)
    with pytest.raises(SystemExit, match="whole one: expected BINDING_LIB_RECORD to name a folder"):
        module.main(tmp_path / "parts", **arguments)


def test_a_table_is_written_once_all_its_rows_are_there(tmp_path, monkeypatch, script):
    coverage = script("record_coverage")
    monkeypatch.setenv(RECORD_VARIABLE, str(tmp_path))
    monkeypatch.setattr(coverage, "train_one", lambda run: {**run, "steps": 2400})
    monkeypatch.delenv("BINDING_LIB_PRESET", raising=False)
    coverage.main(tmp_path, "1/2", "2-32-*")
    assert not (tmp_path / "coverage.csv").exists()
    coverage.main(tmp_path, "2/2", "2-32-*")
    rows = [json.loads(file.read_text()) for file in tmp_path.glob("2-32-*.json")]
    assert len(recorded("coverage", tmp_path)) == len(rows) == 15


def test_what_cannot_be_rerun(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"needs weights.*CLIP"):
        rerun_claim(find_claim("pictures are sums, CLIP"))
    with pytest.raises(ValueError, match="'three objects' has no command"):
        rerun_claim(replace(find_claim("three objects"), rerun=""))
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
    pairs = sorted(WEIGHTS.rglob("*"))
    before = {file: file.read_bytes() for file in pairs if file.is_file()}
    assert rerun_claim(claim, tmp_path).value == pytest.approx(claim.number().value, abs=0.05)
    assert sorted(WEIGHTS.rglob("*")) == pairs
    assert {file: file.read_bytes() for file in before} == before  # the course is as it was


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
    for text in ("", 'claim = "x"\n'):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"expected \[\[claim\]\] entries in .*claims.toml"):
            read_claims(file)
    for line in ('measure = "cell"', "rerun = 5"):
        file.write_text(f"{entry}{line}\n")
        with pytest.raises(ValueError, match=f"claim 'x' has {re.escape(line[:7])}.*expected"):
            read_claims(file)


@pytest.mark.parametrize("key", ["reproduced", "partly"])
@pytest.mark.parametrize("ends", ["", "[1, 0.9]", "[0.9]", "[0.8, 0.9, 1]", '"ab"', '["a", "b"]'])
def test_a_measured_claim_needs_ranges(tmp_path, key, ends):
    file = tmp_path / "claims.toml"
    keys = ("name", "statement", "where", "published", "ours", "chapter")
    entry = dict.fromkeys(keys, '"x"') | {"measure": '{ by = "cell" }'}
    entry |= {"reproduced": "[0.9, 1]", "partly": "[0.5, 0.9]"}

    def write():
        lines = (f"{name} = {value}\n" for name, value in entry.items() if value)
        file.write_text("[[claim]]\n" + "".join(lines))

    write()
    assert read_claims(file)["x"].verdict(Measured(0.95)) == REPRODUCED
    entry[key] = ends
    write()
    with pytest.raises(ValueError, match=rf"claim 'x' is measured.* {key} = .*two numbers"):
        read_claims(file)


def models(**accuracies):
    """A table of models of 10, 20 and 32 values, by their recognition at rising coverages."""
    rows = [
        {
            "concepts": 2,
            "values": int(values[1:]),
            "training": "recipe",
            "held_out_object": accuracy,
        }
        | {"coverage": 0.1 + 0.1 * step, "seed": 0}
        for values, curve in accuracies.items()
        for step, accuracy in enumerate(curve)
    ]
    return lambda table: pd.DataFrame(rows)


def test_thresholds_that_fall_and_those_that_are_not_there():
    claim = find_claim("larger spaces need a smaller share")
    late, early = [0, 0.4, 1], [0, 1, 1]
    assert claim.number(models(v10=late, v20=early, v32=early)).value == 0.5
    for curve in ([0.9, 1, 1], [0, 0, 0.1]):  # bound from the first coverage on, or never
        with pytest.raises(ValueError, match=r"share' .* 'coverage': .*32 values each.*got none"):
            claim.number(models(v10=late, v20=early, v32=curve))
    with pytest.raises(ValueError, match=r"share' .* 'coverage': .*20 values each.*got none"):
        claim.number(models(v10=late, v32=early))


def test_edits_by_lone_objects_are_compared_with_those_by_averages():
    claim = find_claim("edits by lone objects")
    table = recorded("03_surgery").query("run == 'MiniLM' and reading == 'probe: object'")
    by = table.set_index("what")["value"]
    assert claim.number().value == pytest.approx(by["edit, avg"] - by["edit, single-obj"])
    better = table.assign(value=[0.9 if "single" in what else 0.8 for what in table["what"]])
    assert claim.verdict(claim.number(lambda name: better)) == NOT_REPRODUCED


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
