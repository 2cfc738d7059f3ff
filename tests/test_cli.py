"""The command line: tables for people, JSON for programs, one sentence for errors."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from binding_lib import load_claims
from binding_lib.claim_readings import Measured
from binding_lib.claims import VERDICTS
from binding_lib.cli import app
from binding_lib.encoders import MissingExtraError, WeightsUnavailableError, list_encoders
from binding_lib.encoders.base import ModelEncoder
from binding_lib.readings import decompose_captions


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_encoders_prints_a_table():
    result = run("encoders")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["name", "text", "images", "network", "description"]
    for name in list_encoders()["name"]:
        assert any(line.startswith(f"{name} ") for line in lines), name
    (minilm,) = [line for line in lines if line.startswith("minilm")]
    assert minilm.split()[1:4] == ["yes", "no", "no"]


def test_encoders_json_holds_all_that_is_printed(tmp_path):
    file = tmp_path / "new" / "encoders.json"
    result = run("encoders", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert json.loads(file.read_text()) == {"encoders": list_encoders().to_dict("records")}
    assert [path.name for path in file.parent.iterdir()] == ["encoders.json"]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("unknown encoder 'x'"),
        WeightsUnavailableError("x", "no network"),
        MissingExtraError("install something"),
    ],
)
def test_errors_are_one_sentence(error, monkeypatch):
    def fail():
        raise error

    monkeypatch.setattr("binding_lib.cli.list_encoders", fail)
    result = run("encoders")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"binding-lib: {error}\n"


def test_json_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("encoders", "--json", str(tmp_path / "file" / "encoders.json"))
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr
    assert result.stderr.count("\n") == 1


def test_faults_of_our_own_keep_their_traceback(monkeypatch):
    monkeypatch.setattr("binding_lib.cli.list_encoders", lambda: 1 / 0)
    assert isinstance(run("encoders").exception, ZeroDivisionError)


def test_help_without_a_command():
    result = run()
    assert "encoders" in result.output
    assert run("no-such-command").exit_code == 2


# --- decompose


class WordEncoder(ModelEncoder):
    """Each word has a random vector, a little different at each place in the caption."""

    name, dim, fingerprint = "words", 8, "words"

    def _embed_text(self, captions):
        def vector(place, word):
            seed = list(word.encode())
            own = np.random.default_rng(seed).normal(size=8)
            return own + 0.3 * np.random.default_rng([place, *seed]).normal(size=8)

        known = {}
        for key in {pair for caption in captions for pair in enumerate(caption.split())}:
            known[key] = vector(*key)
        rows = [sum(known[pair] for pair in enumerate(c.split())) for c in captions]
        return np.array(rows, dtype=np.float32)


class BlindEncoder(ModelEncoder):
    name, dim, fingerprint = "blind", 8, "blind"


@pytest.fixture
def words(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "binding_lib.cli.load_encoder", lambda name: asked.append(name) or WordEncoder()
    )
    return asked


def numbers_in(output):
    return re.findall(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w.])", output)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_decompose_json_holds_every_printed_number(words, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    file = tmp_path / "numbers.json"
    result = run("decompose", "--encoder", "words", "--scenes", "1500", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert words == ["words"]
    content = json.loads(file.read_text())
    assert [content[k] for k in ("encoder", "seed", "objects")] == ["words", 0, 2]
    assert (content["n_train"], content["n_test"]) == (1350, 150)
    assert len(content["real"]) == 3
    assert len(content["reconstructed"]) == 2 * 4 * 5
    expected = decompose_captions(WordEncoder(), 1500)
    assert content["real"] == expected.real.to_dict("records")
    assert content["reconstructed"] == expected.reconstructed.to_dict("records")
    # Word for word what is printed, in order, whatever the width of the terminal.
    written = [content["n_train"], content["n_test"]]
    for row in content["real"] + content["reconstructed"]:
        written += [row[k] for k in ("value", "low", "high", "n_scenes")]
    shown = [f"{n:.3f}" if isinstance(n, float) else str(n) for n in written]
    assert numbers_in(result.stdout) == shown
    assert "words: 1350 scenes to fit, 150 to test" in result.stdout


def test_decompose_options_reach_the_library(words, tmp_path):
    file = tmp_path / "numbers.json"
    options = ["--scenes", "1200", "--objects", "3", "--no-probes", "--seed", "4"]
    result = run("decompose", *options, "--json", str(file))
    assert result.exit_code == 0, result.output
    assert words == ["minilm"]
    content = json.loads(file.read_text())
    expected = decompose_captions(WordEncoder(), 1200, 3, probes=False, seed=4)
    assert content["reconstructed"] == expected.reconstructed.to_dict("records")
    assert content["real"] == []
    assert (content["objects"], content["seed"]) == (3, 4)
    assert "real embeddings" not in result.output


def test_decompose_writes_nothing_unless_asked(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("decompose", "--scenes", "1000", "--no-probes").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_decompose_with_too_few_scenes_says_so(words, tmp_path):
    file = tmp_path / "numbers.json"
    result = run("decompose", "--scenes", "100", "--no-probes", "--json", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("binding-lib: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not file.exists()


def test_decompose_with_an_encoder_of_images(monkeypatch):
    monkeypatch.setattr("binding_lib.cli.load_encoder", lambda name: BlindEncoder())
    result = run("decompose", "--encoder", "blind", "--scenes", "100")
    assert result.exit_code == 2
    assert result.stderr.startswith("binding-lib: 'blind' encodes images only; encoders of text: ")
    assert result.stderr.count("\n") == 1


def test_decompose_names_the_nearest_encoder():
    result = run("decompose", "--encoder", "miniml")
    assert result.exit_code == 2
    assert result.stderr.startswith("binding-lib: unknown encoder 'miniml'; expected one of ")
    assert result.stderr.endswith("Did you mean 'minilm'?\n")


@pytest.mark.parametrize("wrong", [("--scenes", "99"), ("--objects", "0"), ("--seed", "-1")])
def test_decompose_checks_its_options(words, wrong):
    result = run("decompose", *wrong)
    assert result.exit_code == 2
    assert wrong[0] in result.stderr
    assert words == []


@pytest.mark.slow
def test_decompose_minilm(tmp_path):
    file = tmp_path / "numbers.json"
    result = run("decompose", "--encoder", "minilm", "--scenes", "1500", "--json", str(file))
    assert result.exit_code == 0, result.output
    content = json.loads(file.read_text())
    values = {
        (r["level"], r["estimator"], r["reading"]): r["value"] for r in content["reconstructed"]
    }
    assert values["concept", "least-squares", "R²"] == pytest.approx(0.91, abs=0.03)
    assert values["object", "avg", "retrieval"] > 0.9
    assert values["concept", "avg", "probe: attribute"] > 0.9


def test_scoreboard_lists_every_claim(tmp_path):
    file = tmp_path / "claims.json"
    result = run("scoreboard", "--json", str(file))
    assert result.exit_code == 0, result.output
    claims = json.loads(file.read_text())["claims"]
    assert [claim["name"] for claim in claims] == load_claims()["name"].tolist()
    assert {claim["verdict"] for claim in claims} <= set(VERDICTS)


def test_scoreboard_measures_a_claim_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("binding_lib.reruns.rerun_claim", lambda claim, folder: Measured(0.111))
    file = tmp_path / "claim.json"
    result = run("scoreboard", "--rerun", "concepts across modalities", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert "$ BINDING_LIB_RECORD=FOLDER python benchmarks/record_pocket.py" in result.output
    assert "0.11" in result.output
    assert json.loads(file.read_text())["now"] == {"value": 0.111, "verdict": "not reproduced"}


def test_scoreboard_refuses_in_one_sentence():
    result = run("scoreboard", "--rerun", "three object")
    assert result.exit_code == 2
    assert "Did you mean 'three objects'" in result.stderr
    result = run("scoreboard", "--rerun", "pictures are sums, CLIP")
    assert result.exit_code == 2
    assert "needs weights" in result.stderr
    assert "$" not in result.output  # there is no command
