"""Recorded tables: what ships, and the comparison with numbers made now."""

import numpy as np
import pandas as pd
import pytest

from binding_lib import recorded as module
from binding_lib.recorded import RECORD_VARIABLE, agrees_with_recorded, record, recorded

NOW = pd.DataFrame(
    {
        "run": ["two", "two", "three"],
        "n_train": [100, 200, 100],
        "value": [0.123456, 0.5, -0.25],
        "low": [0.1, 0.4, -0.3],
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, with NOW recorded as "mine"."""
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    monkeypatch.setenv(RECORD_VARIABLE, str(tmp_path))
    assert agrees_with_recorded("mine", NOW) == "3 values are recorded in mine.csv."
    monkeypatch.delenv(RECORD_VARIABLE)
    return tmp_path


def test_the_published_table():
    table = recorded("published_level_one")
    assert list(table) == ["data", "model", "reading", "value"]
    assert len(table) == 5 * 4
    assert not table.duplicated(["data", "model", "reading"]).any()
    wide = table.pivot(index=["data", "model"], columns="reading", values="value")
    assert wide.loc[("text, 20 x 20", "CLIP ViT-B/32"), "R² (avg+pos)"] == 0.92
    assert wide.loc[("PUG:SPARE", "DINOv2"), "retrieval"] == 0.86


def test_the_published_edits_and_removals():
    edits = recorded("published_edits")
    assert len(edits) == 2 * (3 + 3 + 2 + 2)  # single objects for CLEVR and CLEVR-2D alone
    by = edits.set_index(["data", "model", "reading", "estimator"])["value"]
    assert by.index.is_unique
    assert by["CLEVR", "CLIP", "probing", "single-obj"] == 0.86
    assert by["PUG:SPARE", "DINO", "retrieval", "avg+pos"] == 0.76
    removals = recorded("published_removals")
    keys = ["data", "removed", "permuted", "reading"]
    by = removals.set_index(keys)["value"]
    assert by.index.is_unique
    assert len(by) == 5 * 4
    assert by["text", "concept", False, "object"] == 0.99
    assert by["image", "object", True, "concept"] == 0.86


def test_unknown_names():
    with pytest.raises(ValueError, match=r"recorded table 'pockets'.*Did you mean 'pocket'"):
        recorded("pockets")


def test_recording_keeps_keys_and_values(folder):
    expected = NOW.round(4)
    pd.testing.assert_frame_equal(recorded("mine"), expected, check_dtype=False)
    assert [file.name for file in folder.iterdir()] == ["mine.csv"]


def test_recording_replaces(folder, monkeypatch):
    monkeypatch.setenv(RECORD_VARIABLE, str(folder))
    agrees_with_recorded("mine", NOW[:1])
    assert len(recorded("mine")) == 1


def test_tables_of_another_folder_and_none_of_the_package_beside_them(tmp_path, monkeypatch):
    monkeypatch.setenv(RECORD_VARIABLE, str(tmp_path))
    assert record("large", NOW, compressed=True) == tmp_path / "large.csv.gz"
    pd.testing.assert_frame_equal(recorded("large", tmp_path), NOW)
    once = (tmp_path / "large.csv.gz").read_bytes()
    record("large", NOW, compressed=True)
    assert (tmp_path / "large.csv.gz").read_bytes() == once
    assert len(recorded("pocket")) > 0  # reading is from the package unless a folder is named
    with pytest.raises(ValueError, match="recorded table 'pocket'"):
        recorded("pocket", tmp_path)


def test_agreement_within_a_tolerance_and_in_any_order(folder):
    shifted = NOW.assign(value=NOW["value"] + 0.02)[::-1]
    said = "All 3 values agree with the recorded table within 0.03."
    assert agrees_with_recorded("mine", shifted) == said
    with pytest.raises(ValueError, match=r"3 of 3 values differ.* by more than 0.01"):
        agrees_with_recorded("mine", shifted, tolerance=0.01)


def test_a_smoke_run_compares_nothing_and_says_so(folder, monkeypatch):
    monkeypatch.setenv("BINDING_LIB_PRESET", "smoke")
    assert "compared with nothing" in agrees_with_recorded("mine", NOW.assign(value=-1.0))
    monkeypatch.setenv("BINDING_LIB_PRESET", "laptop")
    with pytest.raises(ValueError, match="3 of 3 values differ"):
        agrees_with_recorded("mine", NOW.assign(value=-1.0))


def test_rows_that_differ_are_named(folder):
    with pytest.raises(ValueError, match="1 of 3 values differ") as error:
        agrees_with_recorded("mine", NOW.assign(value=[0.123456, 0.6, -0.25]))
    last = str(error.value).splitlines()[-1].split()
    assert last == ["two", "200", "0.6", "0.5"]


def test_rows_that_are_missing_or_new_are_named(folder):
    with pytest.raises(ValueError, match="1 of 3 values differ") as error:
        agrees_with_recorded("mine", NOW[:2])
    assert str(error.value).splitlines()[-1].split() == ["three", "100", "NaN", "-0.25"]
    new = pd.concat([NOW, pd.DataFrame([{"run": "four", "n_train": 100, "value": 0.5}])])
    with pytest.raises(ValueError, match="1 of 4 values differ") as error:
        agrees_with_recorded("mine", new)
    assert str(error.value).splitlines()[-1].split() == ["four", "100", "0.5", "NaN"]


def test_a_value_that_is_no_number_differs(folder):
    with pytest.raises(ValueError, match="1 of 3 values differ"):
        agrees_with_recorded("mine", NOW.assign(value=[np.nan, 0.5, -0.25]))


def test_keys_that_look_like_numbers(folder, monkeypatch):
    text = NOW.assign(n_train=["100", "200", "100"])
    assert agrees_with_recorded("mine", text).startswith("All 3")


def test_rows_that_stand_twice_are_refused(folder):
    with pytest.raises(ValueError, match=r"expected one value a row(.|\n)*two +100"):
        agrees_with_recorded("mine", pd.concat([NOW, NOW[:1]]))


@pytest.mark.parametrize("change", ["fewer", "more"])
def test_other_columns_are_refused(folder, change):
    table = NOW[:2].drop(columns="run") if change == "fewer" else NOW.assign(level="object")
    with pytest.raises(ValueError, match=r"expected the columns \['run', 'n_train', 'value'\]"):
        agrees_with_recorded("mine", table)


def test_an_unknown_table_to_compare_with(folder):
    with pytest.raises(ValueError, match=r"unknown recorded table 'mime'.*Did you mean 'mine'"):
        agrees_with_recorded("mime", NOW)
