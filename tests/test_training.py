"""Training: what batches hold, what exams ask, and that a run can be stopped, kept and repeated."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from binding_lib.batches import BatchSampler, grid_sides
from binding_lib.checkpoints import write_checkpoint
from binding_lib.cli import app
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.encoders import load_encoder
from binding_lib.exams import Exam
from binding_lib.optimisation import TrainingConfig, make_optimizers, use_bf16
from binding_lib.presets import PRESETS, choose_preset
from binding_lib.recognition import recognised, swap_accuracy
from binding_lib.scenes import SceneSet, sample_scenes, swaps
from binding_lib.trained import load_dual_encoder
from binding_lib.training import train, train_dual_encoder
from binding_lib.training_run import TrainingRun

SPACE = ConceptSpace.grid(2, 6)
TINY = {
    "grow_from": None,
    "width": 16,
    "layers": 1,
    "heads": 2,
    "mlp_width": 16,
    "output": 8,
    "n_scenes": 16,
    "steps": 12,
    "evaluate_every": 4,
    "exam_scenes": 50,
    "precision": "fp32",
}


def tiny(space=SPACE, coverage=0.7, **overrides):
    return train_dual_encoder(
        space, coverage, progress=False, device="cpu", **{**TINY, **overrides}
    )


def weights(trained) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trained.model.parameters()])


# Batches ---------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(3, 7), min_size=2, max_size=3),
    coverage=st.floats(0.6, 0.9),
    m=st.integers(1, 3),
    n_queries=st.integers(16, 60),
    seed=st.integers(0, 10**6),
)
def test_batches_hold_training_objects_and_right_labels(sizes, coverage, m, n_queries, seed):
    space = ConceptSpace({f"c{k}": [f"v{i}" for i in range(v)] for k, v in enumerate(sizes)})
    split = space.split(coverage, seed)
    sampler = BatchSampler(split, 20, n_queries, m, single_share=0.25)
    batch = sampler.draw(torch.Generator().manual_seed(seed))
    queries = space.ids(batch.objects.numpy())
    assert np.isin(queries, split.train).all()
    assert len(np.unique(queries)) == len(queries)
    starts = np.cumsum((0, *sizes[:-1]))
    row = 0
    for part in batch.scenes:
        scenes = SceneSet(space, space.ids(part.numpy()))
        assert np.isin(scenes.object_ids, split.train).all()
        for ids, values, distractors in zip(
            scenes.object_ids, scenes.values, swaps(scenes), strict=True
        ):
            assert len(set(ids)) == len(ids)
            expected = np.isin(queries, ids) / len(ids)
            np.testing.assert_allclose(batch.object_targets[row], expected)
            named = np.isin(batch.concepts.numpy(), values + starts)
            np.testing.assert_allclose(batch.concept_targets[row], named / named.sum())
            # Every swap that training may see is asked about, and is wrong.
            allowed = np.intersect1d(distractors, split.train)
            assert np.isin(allowed, queries).all()
            assert (batch.object_targets[row].numpy()[np.isin(queries, allowed)] == 0).all()
            row += 1
    assert row == 20
    n_single = 0 if m == 1 else 5
    assert [len(part) for part in batch.scenes] == ([20 - n_single, n_single] if n_single else [20])


def test_sub_grids_hold_about_as_many_objects_as_asked():
    split = ConceptSpace.grid(3, 50).split(0.2, 0)
    generator = torch.Generator().manual_seed(0)
    sampler = BatchSampler(split, 8, n_queries=256)
    counts = [len(sampler.draw(generator).objects) for _ in range(20)]
    assert 230 < np.mean(counts) < 330
    everything = BatchSampler(split, 8, n_queries=len(split.train)).draw(generator)
    assert len(everything.objects) == len(split.train)


def test_a_sub_grid_with_too_few_training_objects_says_what_to_change():
    split = ObjectSplit(SPACE, np.arange(6) * 7, np.array([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="only 1 training objects among 1 x 1 values"):
        BatchSampler(split, 8, 50).draw(torch.Generator().manual_seed(0), in_play=1)


def test_grid_sides_make_up_for_small_concepts():
    assert grid_sides([20, 20], 100) == [10, 10]
    assert grid_sides([3, 20], 45) == [3, 15]
    assert grid_sides([50, 2, 50], 200) == [10, 2, 10]
    assert grid_sides([4, 4], 100) == [4, 4]


def test_the_fewest_values_that_make_some_training_objects():
    split = ConceptSpace.grid(2, 9).split(0.2, 3)
    sampler = BatchSampler(split, 8, 50)
    for n in (2, 5, len(split.train), 1000):
        fewest = sampler.fewest_values(n)
        made = [
            (split.space.values(split.train) < v).all(axis=1).sum() for v in (fewest, fewest - 1)
        ]
        assert made[0] >= min(n, len(split.train)) > made[1]


def test_a_vocabulary_cannot_start_too_small_for_its_coverage():
    space = ConceptSpace.grid(2, 9)
    trained = train_dual_encoder(
        space, 0.2, "smoke", 0, grow_from=1, steps=2, evaluate_every=2, progress=False
    )
    assert trained.step == 2


def test_a_growing_vocabulary_uses_the_first_values_only():
    split = ConceptSpace({"a": [f"a{i}" for i in range(9)], "b": list("uvw")}).split(0.8, 0)
    batch = BatchSampler(split, 64, 50).draw(torch.Generator().manual_seed(0), in_play=4)
    assert batch.objects.amax(dim=0).tolist() == [3, 2]
    assert batch.concepts.tolist() == [0, 1, 2, 3, 9, 10, 11]
    assert batch.concept_targets.shape == (64, 7)
    training = TrainingConfig(steps=100, grow_from=4, grow_until=0.5)
    assert [training.values_in_play(step, 9) for step in (0, 25, 49, 50, 99)] == [4, 6, 9, 9, 9]


def test_scenes_are_drawn_evenly_with_every_order():
    split = ObjectSplit(SPACE, np.array([0, 7, 14]), np.array([1, 2]))
    batch = BatchSampler(split, 6000, 50).draw(torch.Generator().manual_seed(0))
    _, counts = np.unique(SPACE.ids(batch.scenes[0].numpy()), axis=0, return_counts=True)
    assert len(counts) == 6
    assert (np.abs(counts - 1000) < 150).all()


# Exams -----------------------------------------------------------------------------------------


class SumOfObjects(DualEncoder):
    """Random vectors for objects and their sums for scenes: right now and then."""

    def objects(self, values):
        ids = torch.tensor(self.space.ids(values.numpy()))
        table = torch.randn(self.space.n_objects, 5, generator=torch.Generator().manual_seed(0))
        return table[ids]

    def scenes(self, values):
        return self.objects(values).sum(dim=1)

    def concepts(self, values):
        everything = torch.tensor(self.space.values(np.arange(self.space.n_objects)))
        starts = torch.tensor([0, *self.space.sizes[:-1]]).cumsum(0)
        holds = (everything + starts)[None] == values[:, None, None]
        return holds.any(dim=2).float() @ self.objects(everything)


@pytest.mark.parametrize("max_candidates", [10_000, 9])
def test_exams_agree_with_the_definitions(max_candidates):
    space = ConceptSpace({"a": list("uvwxyz"), "b": list("klm"), "c": list("pq")})
    model = SumOfObjects(DualEncoderConfig(output=5), space)
    exam = Exam(space, np.arange(18), 300, 2, max_candidates)
    scenes = exam.scenes
    assert scenes.object_ids.max() < 18
    scores = model.encode_scenes(scenes) @ model.encode_queries(exam.candidates).T
    present = scenes.present()[:, exam.candidates]
    by_value = model.encode_scenes(scenes) @ model.encode_concepts().T
    concepts = [
        recognised(part, scenes.present(name))
        for name, part in zip(space.names, np.split(by_value, [6, 9], axis=1), strict=True)
    ]
    whole = model.encode_scenes(scenes) @ model.encode_queries(np.arange(36)).T
    grades = exam.grade(model)
    assert grades["object"] == pytest.approx(recognised(scores, present).mean())
    assert grades["concept"] == pytest.approx(np.all(concepts, axis=0).mean())
    assert grades["swap"] == pytest.approx(swap_accuracy(whole, scenes))
    assert all(0 < grade < 1 for grade in grades.values())


def test_a_sample_of_candidates_holds_every_object_and_swap():
    space = ConceptSpace.grid(2, 40)
    exam = Exam(space, np.arange(100), 20, 2, max_candidates=30)
    assert 30 < len(exam.candidates) < 200
    assert np.isin(exam.scenes.object_ids, exam.candidates).all()
    assert np.isin(swaps(exam.scenes), [*exam.candidates, -1]).all()


# Training --------------------------------------------------------------------------------------


def test_a_tiny_model_overfits_its_training_objects():
    trained = tiny(ConceptSpace.grid(2, 3), 0.5, steps=200, n_scenes=32, evaluate_every=200)
    seen = trained.split.train
    scenes = sample_scenes(trained.space, 200, ids=seen, seed=1)
    scores = trained.encode_scenes(scenes) @ trained.encode_objects(seen).T
    assert recognised(scores, scenes.present()[:, seen]).mean() > 0.9


@pytest.mark.parametrize(("asked", "taken"), [(2, 2), (9, 3)])
def test_a_smoke_run_shortens_trainings_that_ask_for_more(monkeypatch, asked, taken):
    monkeypatch.setenv("BINDING_LIB_PRESET", "smoke")
    monkeypatch.setitem(PRESETS, "smoke", {"steps": 3})
    settings = {"steps": asked, "grow_from": None, "progress": False}
    trained = train_dual_encoder(ConceptSpace.grid(2, 8), 0.8, "laptop", **settings)
    assert trained.step == trained.training["steps"] == taken
    monkeypatch.delenv("BINDING_LIB_PRESET")
    trained = train_dual_encoder(ConceptSpace.grid(2, 8), 0.8, "laptop", **settings)
    assert trained.step == asked


@pytest.mark.slow
def test_smoke_training_binds_objects_it_never_saw():
    trained = train_dual_encoder(ConceptSpace.grid(2, 8), 0.8, "smoke", progress=False)
    rows = trained.history.groupby("objects").last()
    # A bag of concepts ranks two present and two swapped objects by chance: right once in six.
    assert rows.loc["held_out", "swap"] > 2 / 6
    assert rows.loc["seen", "swap"] > 0.8
    scenes = sample_scenes(trained.space, 500, ids=trained.split.held_out, seed=5)
    scores = trained.encode_scenes(scenes) @ trained.encode_objects(np.arange(64)).T
    assert swap_accuracy(scores, scenes) > 2 / 6


@pytest.mark.parametrize(
    "changes",
    [
        {"layout": "marked", "single_share": 0.5, "symmetric": True},
        {"layout": "objects", "mlp": "gelu", "readout": "mean"},
        {"optimizer": "adamw", "matrix_rate": 5e-3},
        {"same_object_bias": 3.0, "embedding_rank": None, "positions": "none"},
        {"n_objects": 3, "precision": "bf16", "grow_from": 5},
    ],
)
def test_every_setting_trains(changes):
    trained = tiny(**{"steps": 60, "evaluate_every": 30, "n_scenes": 32, **changes})
    loss = trained.history.groupby("step")["loss"].first()
    assert loss.loc[60] < loss.loc[30]
    assert trained.finished
    assert list(trained.history["objects"].unique()) == ["seen", "validation", "held_out"]
    assert trained.history[["concept", "object", "swap"]].stack().between(0, 1).all()


def test_the_symmetric_loss_asks_both_ways():
    split = SPACE.split(0.7, 0)
    run = TrainingRun(
        DualEncoderConfig(), split, TrainingConfig(symmetric=True), 0, torch.device("cpu")
    )
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])
    targets = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    rows = -(targets * logits.log_softmax(1)).sum(1).mean()
    by_query = logits.log_softmax(0)
    # The first query has two scenes (shares 1/3 and 2/3), the second has one, the third none.
    columns = -(by_query[0, 0] / 3 + by_query[1, 0] * 2 / 3 + by_query[0, 1]) / 2
    assert run._contrast(logits, targets).item() == pytest.approx(((rows + columns) / 2).item())


def test_learning_rate_rises_holds_and_falls():
    training = TrainingConfig(steps=100, warmup=0.1, hold=0.5)
    factors = [training.rate_factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[10:50] == [1.0] * 40
    assert factors[75] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(0.02)
    assert TrainingConfig(steps=10, warmup=0, hold=1).rate_factor(9) == 1.0


def test_muon_takes_the_layers_matrices_and_each_parameter_has_one_optimizer():
    model = DualEncoder(DualEncoderConfig(), SPACE)
    muon, adamw = make_optimizers(model, TrainingConfig())
    (matrices,) = (group["params"] for group in muon.param_groups)
    assert {tuple(p.shape) for p in matrices} == {(48, 48), (96, 48), (256, 48), (48, 128)}
    given_out = [p for o in (muon, adamw) for g in o.param_groups for p in g["params"]]
    assert {id(p) for p in given_out} == {id(p) for p in model.parameters()}
    assert len(given_out) == len(list(model.parameters()))
    (only,) = make_optimizers(model, TrainingConfig(optimizer="adamw"))
    assert sum(len(g["params"]) for g in only.param_groups) == len(given_out)


def test_same_seed_same_model_other_seed_another():
    first, again, other = tiny(), tiny(), tiny(seed=1)
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))
    columns = ["step", "objects", "concept", "object", "swap", "loss"]
    assert first.history[columns].equals(again.history[columns])


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    tiny(steps=1)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, monkeypatch, optimizer):
    advance = TrainingRun.advance

    def interrupted_advance(run):
        if run.step == 5:
            os.kill(os.getpid(), signal.SIGINT)
        advance(run)

    whole = tiny(optimizer=optimizer)
    before = signal.getsignal(signal.SIGINT)  # in the background a shell has it ignored
    monkeypatch.setattr(TrainingRun, "advance", interrupted_advance)
    stopped = tiny(optimizer=optimizer, folder=tmp_path)
    monkeypatch.undo()
    assert stopped.step == 6
    assert not stopped.finished
    assert not torch.equal(weights(stopped), weights(whole))
    assert load_dual_encoder(tmp_path).step == 6
    resumed = tiny(optimizer=optimizer, folder=tmp_path)
    assert torch.equal(weights(resumed), weights(whole))
    rates = ["step", "objects", "concept", "object", "swap", "loss"]
    kept = resumed.history[resumed.history["step"] != 6].reset_index(drop=True)
    assert kept[rates].equals(whole.history[rates])
    # A finished run is not trained further.
    assert torch.equal(weights(tiny(optimizer=optimizer, folder=tmp_path)), weights(whole))
    assert signal.getsignal(signal.SIGINT) is before


# Leakage ---------------------------------------------------------------------------------------


def test_no_held_out_object_is_ever_trained_on(monkeypatch):
    batches = []
    draw = BatchSampler.draw

    def recording_draw(*args):
        batches.append(draw(*args))
        return batches[-1]

    monkeypatch.setattr(BatchSampler, "draw", recording_draw)
    trained = tiny(single_share=0.3)
    shown = [SPACE.ids(part.numpy()).ravel() for batch in batches for part in batch.scenes]
    asked = [SPACE.ids(batch.objects.numpy()) for batch in batches]
    assert len(batches) == 12
    assert np.isin(np.concatenate(shown + asked), trained.split.train).all()


def test_validation_and_report_share_no_object():
    split = SPACE.split(0.7, 0)
    run = TrainingRun(DualEncoderConfig(), split, TrainingConfig(), 0, torch.device("cpu"))
    pools = {name: set(exam.scenes.object_ids.ravel()) for name, exam in run.exams.items()}
    assert pools["seen"] == set(split.train)
    assert not pools["validation"] & pools["held_out"]
    assert pools["validation"] | pools["held_out"] == set(split.held_out)
    assert len(pools["validation"]) < len(pools["held_out"])


# Checkpoints -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    trained = tiny()
    trained.save(folder)
    return folder, trained


@pytest.fixture
def copied(saved, tmp_path):
    for file in saved[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_saved_model_comes_back(saved):
    folder, trained = saved
    loaded = load_dual_encoder(folder, device="cpu")
    scenes = sample_scenes(SPACE, 20, seed=1)
    assert np.array_equal(loaded.encode_scenes(scenes), trained.encode_scenes(scenes))
    assert np.array_equal(loaded.encode_objects([3, 4]), trained.encode_objects([3, 4]))
    assert np.array_equal(loaded.encode_concepts(), trained.encode_concepts())
    assert np.array_equal(loaded.split.train, trained.split.train)
    assert np.array_equal(loaded.split.held_out, trained.split.held_out)
    assert loaded.history.equals(trained.history)
    assert (loaded.training, loaded.seed) == (trained.training, trained.seed)
    assert len(list(folder.iterdir())) == 2


def test_saving_again_replaces_the_checkpoint(copied):
    tiny(seed=1).save(copied)
    assert load_dual_encoder(copied).seed == 1
    assert len(list(copied.iterdir())) == 2


def test_a_training_that_diverges_is_an_error_and_keeps_what_was_there(tmp_path):
    rates = dict.fromkeys(("rate", "matrix_rate", "embedding_rate"), 1e9)
    with pytest.raises(ValueError, match=r"diverged: at step \d+ the loss is (nan|inf)"):
        train_dual_encoder(SPACE, 0.6, "smoke", steps=20, folder=tmp_path, progress=False, **rates)
    assert not (tmp_path / "config.json").exists()


def test_a_checkpoint_is_an_encoder_of_captions(saved):
    folder, trained = saved
    encoder = load_encoder(f"dual:{folder}", device="cpu", cache=False)
    scenes = sample_scenes(SPACE, 15, seed=2)
    lone = sample_scenes(SPACE, 4, n_objects=1, seed=3)
    captions = lone.captions() + scenes.captions()
    expected = np.concatenate([trained.encode_scenes(lone), trained.encode_scenes(scenes)])
    np.testing.assert_allclose(encoder.encode_text(captions), expected, atol=1e-6)
    assert encoder.dim == expected.shape[1]
    with pytest.raises(ValueError, match=r"unknown object 'an a0 b9'.*Did you mean 'an a0 b"):
        encoder.encode_text(["an a0 b9"])


def test_damage_is_noticed(copied):
    (tensors,) = copied.glob("*.safetensors")
    sound = tensors.read_bytes()
    flipped = bytearray(sound)
    flipped[-5] ^= 1
    for damaged in (bytes(flipped), sound[:-100], b""):
        tensors.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is damaged: tensors-.* is cut or altered"):
            load_dual_encoder(copied)
    tensors.unlink()
    with pytest.raises(ValueError, match="is damaged"):
        load_dual_encoder(copied)
    (copied / "config.json").write_text('{"tensors": ')
    with pytest.raises(ValueError, match="is damaged"):
        load_dual_encoder(copied)


def test_a_config_that_does_not_fit_its_weights_is_refused(copied):
    config = json.loads((copied / "config.json").read_text())
    config["model"]["width"] = 32
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="is not one of a dual encoder"):
        load_dual_encoder(copied)


def test_no_checkpoint_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint in"):
        load_dual_encoder(tmp_path)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"space": ConceptSpace.grid(2, 7)}, "space"),
        ({"width": 32}, "model"),
        ({"steps": 13}, "training"),
        ({"seed": 1}, "seed"),
        ({"coverage": 0.8}, "split"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path, change, part):
    tiny(folder=tmp_path, steps=2)
    with pytest.raises(ValueError, match=f"checkpoint of another run: its .*{part}.* differ"):
        tiny(**{"folder": tmp_path, "steps": 2, **change})


def test_a_saved_model_cannot_be_trained_on(copied):
    with pytest.raises(ValueError, match="without the state of its optimizers"):
        tiny(folder=copied)


def test_settings_of_numpy_are_kept_as_plain_numbers(tmp_path):
    settings = {"steps": np.int64(2), "rate": np.float32(0.01), "symmetric": np.bool_(False)}
    trained = tiny(folder=tmp_path, seed=np.int64(3), **settings)
    kept = load_dual_encoder(tmp_path)
    assert (kept.training, kept.seed) == (trained.training, 3)
    assert tiny(folder=tmp_path, seed=3, **{**settings, "steps": 2}).step == 2


@pytest.fixture
def no_step(monkeypatch):
    def advance(run):
        raise AssertionError("trained before the folder was looked at")

    monkeypatch.setattr(TrainingRun, "advance", advance)


def test_a_folder_that_cannot_be_one_is_refused_before_training(tmp_path, no_step):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="expected a folder to train into, got the file"):
        tiny(folder=tmp_path / "file")


def test_settings_that_cannot_be_kept_are_refused_before_training(tmp_path, no_step):
    config, split = DualEncoderConfig(), SPACE.split(0.7, 0)
    object.__setattr__(config, "position_std", np.float32(0.1))  # past the checks of the class
    with pytest.raises(ValueError, match="a checkpoint cannot hold these settings"):
        train(config, split, TrainingConfig(), folder=tmp_path, progress=False)


def test_two_trainings_never_share_a_folder(tmp_path, monkeypatch):
    advance = TrainingRun.advance

    def second(run):
        monkeypatch.setattr(TrainingRun, "advance", advance)
        with pytest.raises(BlockingIOError, match="another training is using the folder"):
            tiny(folder=tmp_path)
        advance(run)

    monkeypatch.setattr(TrainingRun, "advance", second)
    assert tiny(folder=tmp_path).finished
    assert tiny(folder=tmp_path).finished  # the folder is free again


def test_a_checkpoint_replaced_while_it_is_read_is_read_anew(copied, monkeypatch):
    (old,) = copied.glob("*.safetensors")
    other = tiny(seed=1)
    read_bytes = Path.read_bytes

    def replaced_first(path):
        monkeypatch.setattr(Path, "read_bytes", read_bytes)
        other.save(copied)
        assert not old.exists()
        return path.read_bytes()

    monkeypatch.setattr(Path, "read_bytes", replaced_first)
    assert load_dual_encoder(copied).seed == 1


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one_alone(copied):
    before = {file.name: file.read_bytes() for file in copied.iterdir()}
    with pytest.raises(ValueError, match="cannot hold these settings"):
        write_checkpoint(copied, {"x": torch.ones(2)}, {"rate": float("nan")})
    assert {file.name: file.read_bytes() for file in copied.iterdir()} == before


def test_a_training_before_its_first_exam_can_be_looked_at_and_goes_on(tmp_path):
    run = TrainingRun(
        DualEncoderConfig(), SPACE.split(0.7, 0), TrainingConfig(steps=3), 0, torch.device("cpu")
    )
    run.advance()
    run.save(tmp_path)
    loaded = load_dual_encoder(tmp_path)
    assert (loaded.step, loaded.finished, len(loaded.history)) == (1, False, 0)
    assert "step=1, no exam yet" in repr(loaded)
    loaded.save(tmp_path / "again")
    assert load_dual_encoder(tmp_path / "again").step == 1
    done = train(
        DualEncoderConfig(), SPACE.split(0.7, 0), run.training, folder=tmp_path, progress=False
    )
    assert done.finished


# Choices and errors ----------------------------------------------------------------------------


def test_presets_name_known_settings():
    known = {f.name for c in (DualEncoderConfig, TrainingConfig) for f in dataclasses.fields(c)}
    for settings_of in PRESETS.values():
        assert set(settings_of) <= known


def test_preset_is_chosen_by_argument_then_variable_then_device(monkeypatch):
    monkeypatch.delenv("BINDING_LIB_PRESET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_preset("auto") == "laptop"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_preset("auto") == "gpu"
    monkeypatch.setenv("BINDING_LIB_PRESET", "smoke")
    assert choose_preset("auto") == "smoke"
    assert choose_preset("paper") == "paper"
    monkeypatch.setenv("BINDING_LIB_PRESET", "smok")
    with pytest.raises(ValueError, match="Did you mean 'smoke'"):
        choose_preset("auto")


def test_the_paper_preset_has_the_published_size_and_no_help():
    model = DualEncoder(
        DualEncoderConfig(
            **{
                k: v
                for k, v in PRESETS["paper"].items()
                if k in {f.name for f in dataclasses.fields(DualEncoderConfig)}
            }
        ),
        ConceptSpace.grid(3, 50),
    )
    assert model.dim == 512
    for encoder in (model.scene_encoder, model.query_encoder):
        assert 18e6 < sum(p.numel() for p in encoder.parameters()) < 22e6
    assert not [name for name, _ in model.named_parameters() if "same_object" in name]


def test_precision_follows_the_processor(monkeypatch):
    cpu = torch.device("cpu")
    assert use_bf16("bf16", cpu)
    assert not use_bf16("fp32", cpu)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    assert use_bf16("auto", cpu)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    assert not use_bf16("auto", cpu)


@pytest.mark.parametrize(
    ("space", "coverage", "message"),
    [
        (ConceptSpace.grid(2, 1), 0.5, "at least two concepts of at least two values"),
        (ConceptSpace({"a": list("uvw"), "b": ["x"]}), 0.5, "at least two concepts"),
        (ConceptSpace.grid(1, 20), 0.5, "at least two concepts"),
        (SPACE, 0.1, "leaves 4 objects for training; expected 6 or more"),
        (SPACE, 0.95, "holds out 2 objects; expected at least 4"),
        (SPACE, 1.0, "holds out 0 objects"),
        (SPACE, 1.5, "coverage must be a number in"),
    ],
)
def test_spaces_that_cannot_be_trained_or_measured(space, coverage, message):
    with pytest.raises(ValueError, match=message):
        tiny(space, coverage)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": 1}, "unknown setting 'weight'"),
        ({"optimizer": "sgd"}, "unknown optimizer 'sgd'"),
        ({"precision": "fp16"}, "unknown precision"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"single_share": 2.0}, "single_share must be a finite number, from 0 to 1, got 2.0"),
        ({"single_share": "abc"}, "single_share must be a finite number"),
        ({"grow_until": "abc"}, "grow_until must be a finite number, from 0 to 1"),
        ({"concept_weight": float("nan")}, "concept_weight must be a finite number"),
        ({"symmetric": "False"}, "symmetric must be True or False, got 'False'"),
        ({"seed": 2**63}, "seed must be an integer of at most"),
        ({"space": ConceptSpace.grid(10, 20)}, "choose fewer concepts or values"),
        ({"preset": "laptops"}, "Did you mean 'laptop'"),
    ],
)
def test_settings_errors(change, message):
    with pytest.raises(ValueError, match=message):
        tiny(**change)


def test_too_few_objects_for_a_scene():
    split = ObjectSplit(SPACE, np.arange(6) * 7, np.arange(5) * 7 + 1)
    with pytest.raises(ValueError, match="expected 7 or more"):
        train(DualEncoderConfig(n_objects=7), split, TrainingConfig())
    with pytest.raises(ValueError, match="scenes of 7 need at least as many"):
        BatchSampler(split, n_objects=7)


def test_the_command_line_trains_and_goes_on(tmp_path):
    sets = [
        part for name, value in TINY.items() for part in ("--set", f"{name}={json.dumps(value)}")
    ]
    arguments = ["train", "--values", "6", "--coverage", "0.7", "--out", str(tmp_path / "run")]
    arguments += ["--preset", "smoke", "--json", str(tmp_path / "all.json"), *sets]
    for _ in range(2):  # the second call finds a finished run
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert "12 of 12 steps" in result.stdout
    written = json.loads((tmp_path / "all.json").read_text())
    assert written["history"] == load_dual_encoder(tmp_path / "run").record()["history"]
    refused = CliRunner().invoke(app, [*arguments, "--set", "steps"])
    assert refused.exit_code == 2
    assert "expected --set NAME=VALUE, got 'steps'" in refused.stderr


@pytest.mark.parametrize(
    ("command", "mistake", "message"),
    [
        ("train", "seed=3", "expected the option --seed"),
        ("train", "preset=smoke", "expected the option --preset"),
        ("train-pocket", "seed=3", "expected the option --seed"),
        ("train-pocket", "folder=x", "expected the option --out"),
        ("train", "width=abc", "width must be an integer of at least 1, got 'abc'"),
        ("train", "concept_weight=NaN", "concept_weight must be a finite number"),
        ("train", "symmetric=no", "symmetric must be True or False, got 'no'"),
        ("train", "layers=true", "layers must be an integer of at least 1, got True"),
    ],
)
def test_mistakes_in_settings_are_one_sentence(tmp_path, command, mistake, message):
    arguments = [command, "--out", str(tmp_path / "run"), "--set", mistake]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_training_that_was_stopped_ends_with_its_own_status(tmp_path, monkeypatch):
    advance = TrainingRun.advance

    def interrupted_advance(run):
        if run.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        advance(run)

    monkeypatch.setattr(TrainingRun, "advance", interrupted_advance)
    options = ["--preset", "smoke", "--values", "8", "--set", "steps=9", "--set", "exam_scenes=20"]
    result = CliRunner().invoke(app, ["train", "--out", str(tmp_path), *options])
    assert result.exit_code == 130
    assert "3 of 9 steps" in result.output


def test_pythons_words_for_truth_and_nothing_are_read(tmp_path):
    words = {**TINY, "symmetric": False, "embedding_rank": None, "same_object_bias": None}
    sets = [part for name, value in words.items() for part in ("--set", f"{name}={value}")]
    arguments = ["train", "--values", "6", "--coverage", "0.7", "--out", str(tmp_path), *sets]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    config = load_dual_encoder(tmp_path)
    assert config.training["symmetric"] is False
    assert config.model.config.embedding_rank is None


def test_a_space_too_large_to_split_is_one_sentence(tmp_path):
    arguments = ["train", "--concepts", "10", "--values", "20", "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "choose fewer concepts or values" in refused.stderr
