"""The command line: tables for people, JSON for programs, one sentence for errors."""

import json

import pytest
from typer.testing import CliRunner

from binding_lib.cli import app
from binding_lib.encoders import MissingExtraError, WeightsUnavailableError, list_encoders


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
