"""Sweeps: what is asked for, rows that survive anything, and the same rows from a cluster."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from binding_lib import read_sweep, run_sweep
from binding_lib import recorded as recorded_package
from binding_lib.cli import app
from binding_lib.encoders import MissingExtraError
from binding_lib.presets import PRESETS
from binding_lib.recorded import recorded
from binding_lib.sweeps import (
    SweepStore,
    grid_configurations,
    random_configurations,
    sweep_status,
)
from binding_lib.sweeps.analysis import correlation_table, rank_correlation
from binding_lib.sweeps.measuring import APPROXIMATORS, measure_model
from binding_lib.sweeps.plan import amount_of_work, check_configurations, run_id

TINY = {"concepts": 2, "values": 5, "coverage": 0.6, "preset": "smoke", "steps": 2}
TIMES = ["train_seconds", "fit_seconds"]


def tiny(n):
    return grid_configurations({"seed": range(n)}, **TINY)


def sorted_rows(table):
    return table.sort_values("run_id").drop(columns=TIMES).reset_index(drop=True)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished sweep of three models, one of which cannot be made."""
    folder = tmp_path_factory.mktemp("sweep") / "store"
    models = [*tiny(2), {**TINY, "seed": 0, "coverage": 0.01}]
    return folder, models, run_sweep(folder, models, workers=1, progress=False)


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 5))
def test_a_larger_sample_goes_on_where_a_smaller_one_ends(n, more, seed):
    few = random_configurations(n, "smoke", seed)
    assert random_configurations(n + more, "smoke", seed)[:n] == few


def test_drawn_models_differ_in_all_that_they_should():
    models = pd.DataFrame(random_configurations(300))
    varied = {"concepts", "values", "coverage", "width", "layers", "output", "layout", "readout"}
    varied |= {"mlp", "embedding_rank", "same_object_bias", "optimizer", "matrix_rate", "steps"}
    varied |= {"grow_from", "seed"}
    assert varied <= {c for c in models if models[c].nunique(dropna=False) > 1}
    assert models["coverage"].between(0.1, 0.9).all()
    assert models["steps"].max() <= 2400
    assert len({run_id(model) for model in random_configurations(300)}) == 300


@pytest.mark.parametrize("preset", ["smoke", "laptop"])
def test_every_drawn_model_is_one_that_can_be_trained(preset):
    from binding_lib import ConceptSpace, DualEncoder, DualEncoderConfig
    from binding_lib.optimisation import TrainingConfig

    of_model = set(DualEncoderConfig.__dataclass_fields__)
    of_run = {"concepts", "values", "coverage", "preset", "seed"}
    for model in random_configurations(60, preset):
        space = ConceptSpace.grid(model["concepts"], model["values"])
        space.split(model["coverage"], model["seed"])
        settings = {**PRESETS[preset], **{k: v for k, v in model.items() if k not in of_run}}
        DualEncoder(
            DualEncoderConfig(**{k: v for k, v in settings.items() if k in of_model}), space
        )
        TrainingConfig(**{k: v for k, v in settings.items() if k not in of_model})


def test_a_grid_holds_every_combination_once():
    models = grid_configurations({"coverage": [0.2, 0.8], "seed": range(3)}, preset="smoke")
    assert len({run_id(m) for m in models}) == len(models) == 6
    assert models[0] == {"preset": "smoke", "coverage": 0.2, "seed": 0}


def test_a_grid_takes_numbers_of_numpy():
    models = grid_configurations({"seed": np.arange(2), "coverage": np.linspace(0.2, 0.4, 2)})
    assert json.loads(json.dumps(models)) == models


def test_ids_do_not_depend_on_the_order_of_entries():
    assert run_id(TINY) == run_id(dict(reversed(TINY.items())))
    assert run_id(TINY) != run_id({**TINY, "steps": 3})


def test_more_steps_and_layers_are_more_work():
    model = {**TINY, "seed": 0}
    assert amount_of_work({**model, "steps": 4}) == 2 * amount_of_work(model)
    assert amount_of_work({**model, "layers": 4}) == 2 * amount_of_work(model)
    assert amount_of_work({"preset": "laptop"}) > amount_of_work({"preset": "smoke"})


def test_a_row_holds_what_was_asked_for_and_what_was_measured(swept):
    _, models, table = swept
    row = table[table["error"].isna()].iloc[0]
    asked = next(m for m in models if run_id(m) == row["run_id"])
    assert {name: row[name] for name in asked} == asked
    for name in APPROXIMATORS:
        assert row[f"{name}_r2"] <= 1
        assert 0 <= row[f"{name}_object"] <= 1
    assert 0 <= row["held_out_object"] <= 1
    assert row["n_parameters"] > 1000


def test_a_model_that_cannot_be_made_is_a_row_with_its_error(swept):
    _, _, table = swept
    failed = table[table["error"].notna()]
    assert len(table) == 3
    assert len(failed) == 1
    assert "coverage" in failed["error"].item()
    assert failed["held_out_object"].isna().all()


def test_what_is_there_is_not_made_again(swept, monkeypatch):
    folder, models, table = swept
    monkeypatch.setattr("binding_lib.sweeps.running.measure_model", None)
    again = run_sweep(folder, models, workers=1, progress=False)
    pd.testing.assert_frame_equal(again, table)


def test_only_failures_that_may_pass_are_tried_again(tmp_path, monkeypatch):
    row = {"run_id": run_id(tiny(1)[0]), **tiny(1)[0]}
    for error, made_again in (("OSError: disk full", True), ("ValueError: coverage", False)):
        store = SweepStore(tmp_path / error[:5])
        store.add({**row, "error": error})
        now = {**row, "error": None}
        monkeypatch.setattr("binding_lib.sweeps.running.measure_model", lambda _, now=now: now)
        table = run_sweep(store.folder, tiny(1), workers=1, progress=False)
        assert (table["error"].item() != error) == made_again


@pytest.mark.parametrize(
    ("models", "error", "said"),
    [
        ("500", TypeError, "expected dicts.*got '5'"),
        ([500], TypeError, "expected dicts.*got 500"),
        ([], ValueError, "at least one"),
        ([{"concepts": 2, "values": 8, "coverage": 0.5, "seed": 0}], ValueError, "lacks preset"),
    ],
)
def test_configurations_that_are_none_leave_no_trace(models, error, said, tmp_path):
    with pytest.raises(error, match=said):
        run_sweep(tmp_path / "store", models)
    assert not (tmp_path / "store").exists()


def test_a_damaged_row_is_noticed_before_anything_is_trained(tmp_path, monkeypatch):
    SweepStore(tmp_path).add({"run_id": "a" * 16, "error": None})
    (tmp_path / "rows" / f"{'a' * 16}.json").write_text("")
    monkeypatch.setattr("binding_lib.sweeps.running.measure_model", None)
    with pytest.raises(ValueError, match="is damaged"):
        run_sweep(tmp_path, tiny(1), progress=False)


def test_rows_of_short_trainings_say_so(monkeypatch):
    whole = {**tiny(1)[0], "preset": "laptop", "steps": 2400}
    assert check_configurations([whole]) == [whole]
    monkeypatch.setenv("BINDING_LIB_PRESET", "smoke")
    (short,) = check_configurations([whole])
    assert short == {**whole, "steps": 300}
    assert run_id(short) != run_id(whole)


def test_a_sweep_hands_out_the_rows_that_it_was_asked_for_only(swept):
    folder, models, _ = swept
    one = run_sweep(folder, models[:1], workers=1, progress=False)
    assert one["run_id"].tolist() == [run_id(models[0])]


def test_status_counts_what_is_missing(swept, tmp_path):
    folder, models, _ = swept
    assert sweep_status(folder) == {"asked": 3, "finished": 2, "failed": 1, "missing": 0}
    store = SweepStore(tmp_path)
    store.ask_for(models)
    assert sweep_status(tmp_path)["missing"] == 3
    assert read_sweep(tmp_path).empty


def test_a_model_being_made_elsewhere_is_left_alone(tmp_path):
    store, name = SweepStore(tmp_path), run_id(TINY)
    lock = store.claim(name)
    assert SweepStore(tmp_path).claim(name) is None
    lock.release()
    again = SweepStore(tmp_path).claim(name)
    assert again is not None
    again.release()


def test_leftovers_of_a_killed_writer_are_no_rows(swept):
    folder, _, table = swept
    leftover = folder / "rows" / ".writing-1234.json"
    leftover.write_text('{"run_id": "torn')
    assert len(read_sweep(folder)) == len(table)
    leftover.unlink()


def test_damaged_rows_are_all_named(tmp_path):
    (tmp_path / "rows").mkdir()
    for name, content in {"a": "{", "b": "[1]", "c": '{"run_id": "c", "error": null}'}.items():
        (tmp_path / "rows" / f"{name}.json").write_text(content)
    with pytest.raises(ValueError, match=r"a\.json.*b\.json") as error:
        read_sweep(tmp_path)
    assert "c.json" not in str(error.value)


def test_a_copied_row_is_none(tmp_path):
    SweepStore(tmp_path).add({"run_id": "a", "error": None})
    shutil.copy(tmp_path / "rows" / "a.json", tmp_path / "rows" / "a (copy).json")
    with pytest.raises(ValueError, match="no row of this name"):
        read_sweep(tmp_path)


def test_what_run_sweep_refuses(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"unknown backend 'das'.*Did you mean 'dask'"):
        run_sweep(tmp_path, tiny(1), backend="das")
    with pytest.raises(ValueError, match="address"):
        run_sweep(tmp_path, tiny(1), backend="dask")
    with pytest.raises(ValueError, match="address"):
        run_sweep(tmp_path, tiny(1), address="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="models must be an integer of at least 1, got 0"):
        run_sweep(tmp_path, 0)
    with pytest.raises(ValueError, match=r"number of workers, or -1 .* got 0"):
        run_sweep(tmp_path, tiny(1), workers=0)
    with pytest.raises(ValueError, match="preset"):
        run_sweep(tmp_path, 1, "tiny")
    with pytest.raises(FileNotFoundError, match="no sweep"):
        read_sweep(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="cluster"):
        run_sweep(tmp_path, tiny(1), backend="dask", address="tcp://127.0.0.1:1")
    assert not list(tmp_path.iterdir())


def test_an_interrupted_training_is_no_row(monkeypatch):
    from binding_lib.training_run import TrainingRun

    advance = TrainingRun.advance

    def interrupt(run):
        advance(run)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(TrainingRun, "advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            measure_model({**TINY, "seed": 0})
    finally:
        signal.signal(signal.SIGINT, before)


def sweep_command(folder, n):
    """A sweep in a process group of its own, which can be killed as a whole."""
    code = (
        "from binding_lib import run_sweep\n"
        "from binding_lib.sweeps import grid_configurations\n"
        f"models = grid_configurations({{'seed': range({n})}}, **{TINY!r})\n"
        f"run_sweep({str(folder)!r}, models, workers=2, progress=False)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


@pytest.mark.slow
def test_killed_at_any_moment_a_sweep_goes_on_and_makes_each_row_once(tmp_path):
    rng = np.random.default_rng()  # another moment each time the test runs
    for _ in range(3):
        process = sweep_command(tmp_path, 6)
        time.sleep(rng.uniform(6, 14))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = {f.name: f.read_text() for f in (tmp_path / "rows").glob("[!.]*.json")}
    assert sweep_command(tmp_path, 6).wait(300) == 0
    table = read_sweep(tmp_path)
    assert sorted(table["run_id"]) == sorted(run_id(model) for model in tiny(6))
    assert table["error"].isna().all()
    for name, content in before.items():
        assert (tmp_path / "rows" / name).read_text() == content


@pytest.mark.slow
def test_two_sweeps_share_a_store_and_the_work(tmp_path):
    processes = [sweep_command(tmp_path, 6) for _ in range(2)]
    assert [process.wait(300) for process in processes] == [0, 0]
    assert sorted(read_sweep(tmp_path)["run_id"]) == sorted(run_id(model) for model in tiny(6))


@pytest.mark.slow
def test_a_dask_cluster_makes_the_same_rows(tmp_path, swept):
    from distributed import LocalCluster

    _, models, here = swept
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp://"
    ) as cluster:
        there = run_sweep(
            tmp_path, models, backend="dask", address=cluster.scheduler_address, progress=False
        )
    pd.testing.assert_frame_equal(sorted_rows(there), sorted_rows(here))


def test_a_sweep_from_a_shell(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "binding_lib.sweeps.running.random_configurations", lambda n, preset, seed: tiny(n)
    )
    store, file = tmp_path / "store", tmp_path / "rows.json"
    shell = ["sweep", "--models", "1", "--preset", "smoke", "--workers", "1"]
    shell += ["--store", str(store), "--json", str(file)]
    runner = CliRunner()
    result = runner.invoke(app, shell)
    assert result.exit_code == 0, result.output
    assert "0 of them failed" in result.output
    assert json.loads(file.read_text())["models"][0]["run_id"] == run_id(tiny(1)[0])
    result = runner.invoke(app, ["sweep-status", str(store)])
    assert result.exit_code == 0
    assert "finished" in result.output
    assert runner.invoke(app, ["sweep-status", str(tmp_path / "none")]).exit_code == 2


@given(st.integers(0, 1000))
def test_the_correlation_of_one_group_is_spearmans(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=30).round(1), "y": rng.normal(size=30).round(1)})
    found = rank_correlation(table, "x", "y")
    expected = scipy.stats.spearmanr(table["x"], table["y"]).statistic
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high


def test_a_correlation_that_only_the_groups_produce_is_not_seen_within_them():
    rng = np.random.default_rng(0)
    group = rng.integers(5, size=500)
    table = pd.DataFrame(
        {"group": group, "x": group + rng.normal(size=500), "y": group + rng.normal(size=500)}
    )
    assert rank_correlation(table, "x", "y").low > 0.5
    value, low, high = rank_correlation(table, "x", "y", ["group"])
    assert abs(value) < 0.1
    assert low < 0 < high


@pytest.mark.parametrize(("n_groups", "size"), [(1, 80), (30, 14), (60, 5)])
def test_interval_of_a_correlation_holds_as_often_as_it_says(n_groups, size):
    rng = np.random.default_rng(0)
    # What Spearman's is on average in groups of this size, of normal variables that correlate by
    # 0.6 (Moran 1948).
    true = 6 / np.pi / (size + 1) * (np.arcsin(0.6) + (size - 2) * np.arcsin(0.6 / 2))
    group = np.repeat(np.arange(n_groups), size)
    below, above = 0, 0
    for _ in range(200):
        a, b = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=len(group)).T
        table = pd.DataFrame({"a": a, "b": b, "group": group})
        _, low, high = rank_correlation(table, "a", "b", ["group"])
        below, above = below + (high < true), above + (low > true)
    assert below + above <= 20
    assert max(below, above) <= 14  # on neither side more often than on both


def test_the_interval_of_a_perfect_correlation_is_a_point():
    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 4, 6, 8], "z": [9.0, 5, 3, 1]})
    assert rank_correlation(table, "x", "y") == pytest.approx((1, 1, 1))
    assert rank_correlation(table, "x", "z") == pytest.approx((-1, -1, -1))


def test_a_correlation_that_one_model_makes_has_a_wide_interval():
    table = pd.DataFrame({"x": [1.0, 1, 1, 2], "y": [1.0, 1, 1, 2]})
    found = rank_correlation(table, "x", "y")
    assert found.value == pytest.approx(1)
    assert found.low < 0


def test_what_rank_correlation_refuses():
    table = pd.DataFrame({"x": [1.0, 2, 3], "y": [1.0, 1, 1], "g": [1, 2, 3]})
    with pytest.raises(ValueError, match="lacks 'z'"):
        rank_correlation(table, "x", "z")
    with pytest.raises(ValueError, match="same in all models"):
        rank_correlation(table, "x", "y")
    with pytest.raises(ValueError, match="at least 3 models to compare, got 0"):
        rank_correlation(table, "x", "y", ["g"])
    for confidence in (-0.5, 0, 1, np.nan):
        with pytest.raises(ValueError, match=f"between 0 and 1, got {confidence}"):
            rank_correlation(table, "x", "x", confidence=confidence)


def test_correlation_table_has_a_row_for_each_column_and_grouping():
    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 4, 6, 8], "g": [1, 1, 2, 2]})
    result = correlation_table(table, ["x"], "y", {"all": [], "same g": ["g"]})
    assert result["compared"].tolist() == ["all", "same g"]
    assert result["correlation"].tolist() == pytest.approx([1, 1])


@pytest.mark.slow
def test_rows_of_the_recorded_sweep_can_be_remade():
    table = recorded("sweep")
    drawn = {run_id(one): one for one in random_configurations(len(table))}
    assert list(drawn) == table["run_id"].tolist()
    cheap = table[[amount_of_work(drawn[name]) < 1.5e5 for name in table["run_id"]]]
    for row in cheap.sample(3, random_state=0).to_dict("records"):
        now = measure_model(drawn[row["run_id"]])
        assert now["error"] is None
        rates = [name for name in now if name.endswith(("_concept", "_object", "_swap", "_r2"))]
        assert len(rates) == 6 + 3 * len(APPROXIMATORS)
        for name in rates:
            # Below zero, where a product went astray on unseen objects, R² has no measure.
            assert max(0, now[name]) == pytest.approx(max(0, row[name]), abs=0.06), name


def test_the_recorded_sweep_is_what_the_chapter_says():
    table = recorded("sweep")
    made = recorded("sweep_made").iloc[0]
    assert made["models"] == len(table) >= 500
    assert table["run_id"].is_unique
    for setting in (
        "width", "layers", "output", "optimizer", "rate", "coverage", "values", "concepts",
        "layout", "readout", "mlp", "seed",
    ):  # fmt: skip
        assert table[setting].nunique() > 1, setting
    file = Path(recorded_package.__file__).parent / "sweep.csv.gz"
    assert file.stat().st_size < 1_000_000
