"""The pocket image-text pair: what training shows it, and what the shipped pairs can do."""

import hashlib
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from binding_lib import load_encoder, render_images, sample_scenes
from binding_lib.cli import app
from binding_lib.encoders.pocket import WEIGHTS
from binding_lib.pocket import (
    PocketClip,
    PocketClipConfig,
    load_pocket_clip,
    pocket_space,
    validation_and_test,
)
from binding_lib.pocket_batches import PocketBatches, differing_pairs, unnamed_colours
from binding_lib.pocket_readings import pocket_scenes, pocket_table
from binding_lib.pocket_training import (
    LOG,
    PocketRun,
    PocketTrainingConfig,
    contrastive_loss,
    train_pocket_clip,
)
from binding_lib.recorded import recorded
from binding_lib.scenes import swaps
from binding_lib.views.captions import object_phrases
from binding_lib.views.colours import COLOURS

SPACE = pocket_space()
SHIPPED = ("low", "high")
TINY = {"steps": 3, "n_scenes": 16, "evaluate_every": 3, "exam_scenes": 20, "n_concept_only": 8}


@pytest.fixture(scope="module", params=SHIPPED)
def shipped(request):
    return request.param, load_pocket_clip(WEIGHTS / request.param, device="cpu")


def batches(split, n_scenes=64, n_concept_only=24):
    return PocketBatches(split, n_scenes, 32, n_concept_only, size=32, jitter=0.5)


@pytest.mark.parametrize("coverage", [0.25, 0.8])
def test_no_unseen_object_is_ever_shown_or_named(coverage, monkeypatch):
    split = SPACE.split(coverage, seed=0)
    painted = []

    def record(self, shapes, colours, rng):
        painted.append((shapes, colours))
        return np.zeros((len(shapes), 32, 32, 3), np.uint8)

    monkeypatch.setattr(PocketBatches, "_paint", record)
    source, named = batches(split), set()
    for step in range(60):
        for captions, _ in source.draw(np.random.default_rng((0, step))).captions:
            named |= {phrase for caption in captions for phrase in caption.split(" and ")}
    objects = object_phrases(SPACE)
    unseen = {objects[i] for i in split.held_out}
    assert not named & unseen
    assert len(named & set(objects)) == len(split.train)
    # What is painted: shapes in the order of the space, named colours as they are listed.
    shapes = np.concatenate([shapes.reshape(-1) for shapes, _ in painted])
    colours = np.concatenate([colours.reshape(-1, 3) for _, colours in painted])
    names = {COLOURS[name]: i for i, name in enumerate(SPACE.value_names("colour"))}
    shown = {
        int(SPACE.ids([names[tuple(c)], s]))
        for s, c in zip(shapes.tolist(), colours.tolist(), strict=True)
        if s < 16 and tuple(c) in names
    }
    assert shown == set(split.train.tolist())


def test_validation_and_test_objects_are_apart_and_unseen():
    for coverage in (0.25, 0.8):
        split = SPACE.split(coverage, seed=0)
        validation, test = validation_and_test(split, 0)
        np.testing.assert_array_equal(np.sort([*validation, *test]), split.held_out)
        assert len(validation) == len(split.held_out) // 4


def test_which_captions_are_true_of_which_pictures():
    batch = batches(SPACE.split(0.5, seed=0)).draw(np.random.default_rng(0))
    full, partial = batch.captions
    own = full[0][:64]  # the scenes' pictures hold what their full captions say
    for captions, true in (full, partial):
        assert len(captions) == len(true) == len(batch.images) == 88
        assert np.diag(true).all()
        for i, picture in enumerate(own):
            for j, caption in enumerate(captions):
                said = [re.sub(r"\ban? ", "", phrase) for phrase in caption.split(" and ")]
                there = [re.sub(r"\ban? ", "", phrase) for phrase in picture.split(" and ")]
                expected = all(
                    phrase in there or any(phrase in objects.split() for objects in there)
                    for phrase in said
                )
                assert true[i, j] == expected, (picture, caption)
    lone = full[0][64:]
    assert all(" and " not in caption for caption in lone)
    assert lone == partial[0][64:]
    # A lone shape has no colour with a name, and a lone colour no shape.
    assert not full[1][64:, :64].any()
    assert len(set(full[0][:64])) == 64
    kinds = {len(caption.split()) for caption in partial[0][:64]}
    assert kinds == {1, 2, 3}


def test_unnamed_colours_are_none_of_the_named_ones():
    distance = np.linalg.norm(
        unnamed_colours()[:, None].astype(float) - np.array(list(COLOURS.values())), axis=-1
    )
    assert distance.min() >= 40
    assert len(unnamed_colours()) == 4096


def test_all_differing_pairs_come_once():
    ids = SPACE.split(0.1, seed=0).train
    scenes = differing_pairs(SPACE, ids, seed=1)
    expected = {
        frozenset((a, b)) for a in ids for b in ids if (SPACE.values(a) != SPACE.values(b)).all()
    }
    assert {frozenset(row) for row in scenes.object_ids.tolist()} == expected
    assert len(scenes) == len(expected)
    assert 0.3 < (scenes.object_ids[:, 0] < scenes.object_ids[:, 1]).mean() < 0.7


def test_the_loss_leaves_other_true_captions_out():
    logits = torch.tensor([[1.0, 2.0, 0.5], [0.0, 1.0, 0.0], [3.0, 0.0, 2.0]])
    true = torch.tensor([[True, False, False], [False, True, False], [True, False, True]])
    p = logits.exp()
    rows = [p[0, 0] / p[0].sum(), p[1, 1] / p[1].sum(), p[2, 2] / (p[2, 1] + p[2, 2])]
    columns = [p[0, 0] / (p[0, 0] + p[1, 0]), p[1, 1] / p[:, 1].sum(), p[2, 2] / p[:, 2].sum()]
    expected = -(torch.stack(rows).log().mean() + torch.stack(columns).log().mean()) / 2
    torch.testing.assert_close(contrastive_loss(logits, true), expected)


def test_captions_are_sets_of_phrases():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = PocketClip(PocketClipConfig(), SPACE).eval()
    captions = [
        "a red circle and a blue square",
        "a blue square and a red circle",
        "a blue circle and a red square",
        "red",
        "a red circle, a blue square and an orange star",
    ]
    with torch.inference_mode():
        Z = model.encode_captions([*captions, captions[0]])
        alone = torch.cat([model.encode_captions([caption]) for caption in captions])
    torch.testing.assert_close(Z[:-1], alone)
    torch.testing.assert_close(Z[0], Z[1])
    torch.testing.assert_close(Z[0], Z[5], rtol=0, atol=0)
    assert (Z[0] - Z[2]).abs().max() > 1e-3
    model.text.blocks[0].same_object_bias.data.zero_()
    model.text.blocks[1].same_object_bias.data.zero_()
    with torch.inference_mode():
        bag = model.encode_captions(captions)
    torch.testing.assert_close(bag[0], bag[2])  # without the bias, words have no phrase


@pytest.mark.parametrize("caption", ["a red cube", "the red circle", ""])
def test_words_that_it_never_met_are_refused(caption):
    encoder = load_encoder("pocket-clip:random", device="cpu", cache=False)
    with pytest.raises(
        ValueError, match=r"unknown word .*'cube'|unknown word .*'the'|at least one"
    ):
        encoder.encode_text([caption])


def test_stopped_and_resumed_equals_uninterrupted(tmp_path):
    settings = {**TINY, "steps": 4, "evaluate_every": 2}
    whole = train_pocket_clip(0.5, 0, progress=False, folder=tmp_path / "whole", **settings)
    run = PocketRun(SPACE.split(0.5, 0), PocketTrainingConfig(**settings), 0)
    run.advance()
    run.advance()
    run.examine()
    run.save(tmp_path / "parts")
    parts = train_pocket_clip(0.5, 0, progress=False, folder=tmp_path / "parts", **settings)
    for name, tensor in whole.tensors().items():
        torch.testing.assert_close(parts.tensors()[name], tensor, rtol=0, atol=0)
    columns = ["step", "objects", "colour", "shape", "object", "swap", "loss"]
    pd.testing.assert_frame_equal(parts.history[columns], whole.history[columns])
    # Finished: read, not trained again; and smaller without the optimizers' memory.
    again = train_pocket_clip(0.5, 0, progress=False, folder=tmp_path / "parts", **settings)
    assert again.step == 4
    torch.testing.assert_close(again.tensors(), whole.tensors(), rtol=0, atol=0)
    with pytest.raises(ValueError, match="its training differ"):
        train_pocket_clip(0.5, 0, progress=False, folder=tmp_path / "parts", **TINY)
    with pytest.raises(ValueError, match="train_objects and seed"):
        train_pocket_clip(0.5, 1, progress=False, folder=tmp_path / "parts", **settings)


def test_a_training_before_its_first_exam_can_be_looked_at_and_goes_on(tmp_path):
    split, training = SPACE.split(0.5, 0), PocketTrainingConfig(**TINY)
    run = PocketRun(split, training, 0)
    run.advance()
    run.save(tmp_path)
    loaded = load_pocket_clip(tmp_path)
    assert (loaded.step, len(loaded.history)) == (1, 0)
    again = PocketRun(split, training, 0)
    again.resume(tmp_path)
    assert (again.step, again.seconds) == (1, run.seconds)
    assert train_pocket_clip(0.5, 0, progress=False, folder=tmp_path, **TINY).step == 3
    loaded.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="without the state of its optimizers"):
        again.resume(tmp_path / "saved")


def test_settings_of_numpy_are_kept_as_plain_numbers(tmp_path):
    settings = {**TINY, "steps": np.int64(2), "n_objects": np.int32(32)}
    trained = train_pocket_clip(0.5, np.int64(0), progress=False, folder=tmp_path, **settings)
    loaded = load_pocket_clip(tmp_path)
    assert (loaded.training, loaded.seed, loaded.step) == (trained.training, 0, 2)


def test_a_saved_pair_loads_as_it_was(tmp_path):
    trained = train_pocket_clip(0.5, 0, progress=False, folder=tmp_path, **TINY)
    loaded = load_pocket_clip(tmp_path, device="cpu")
    assert loaded.record() == trained.record()
    torch.testing.assert_close(loaded.tensors(), trained.tensors(), rtol=0, atol=0)
    np.testing.assert_array_equal(loaded.test, trained.test)
    assert set(pd.read_csv(tmp_path / LOG)["objects"]) == {"seen", "validation", "test"}
    (tmp_path / "config.json").write_text(json.dumps({"tensors": "x"}))
    with pytest.raises(ValueError, match="damaged"):
        load_pocket_clip(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        {"history": []},
        {"seed": "a"},
        {"seed": -1},
        {"training": 3},
        {"sha256": None},
        {"tensors": "empty", "sha256": hashlib.sha256(b"").hexdigest()},
    ],
)
def test_checkpoints_that_do_not_fit_together(tmp_path, part):
    shutil.copytree(WEIGHTS / "low", tmp_path / "low")
    (tmp_path / "low" / "empty").touch()
    file = tmp_path / "low" / "config.json"
    config = json.loads(file.read_text()) | part
    file.write_text(
        json.dumps({name: value for name, value in config.items() if value is not None})
    )
    with pytest.raises(ValueError, match=r"damaged|not one of a pocket pair"):
        load_pocket_clip(tmp_path / "low")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"coverage": 1.0}, "no scene of two validation objects"),
        ({"stepz": 3}, "steps"),
        ({"n_concept_only": -1}, "n_concept_only"),
        ({"n_objects": 1}, "n_objects"),
        ({"steps": "abc"}, "steps must be an integer of at least 1, got 'abc'"),
        ({"steps": 1e3}, "steps must be an integer"),
        ({"steps": True}, "steps must be an integer of at least 1, got True"),
        ({"seed": 2**63}, "seed must be an integer of at most"),
        ({"rate": -1}, "rate must be a finite number, at least 0, got -1"),
        ({"matrix_rate": float("nan")}, "matrix_rate must be a finite number"),
        ({"warmup": 2}, "warmup must be a finite number, from 0 to 1"),
    ],
)
def test_settings_out_of_range_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        train_pocket_clip(**{"coverage": 0.5, **options}, progress=False)


def test_seconds_of_training_leave_chance_behind():
    rates = {"matrix_rate": 0.02, "rate": 6e-3, "embedding_rate": 1e-2}
    settings = {"steps": 40, "n_scenes": 64, "n_concept_only": 32, "exam_scenes": 100, **rates}
    trained = train_pocket_clip(0.8, 0, progress=False, **settings, evaluate_every=40)
    seen = trained.history.set_index("objects").loc["seen"]
    assert seen["colour"] > 0.1  # strict, of two colours in sixteen: chance is 1/120


def test_the_command_trains_and_reports(tmp_path):
    sets = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]
    file = tmp_path / "result.json"
    arguments = ["train-pocket", "--coverage", "0.5", "--out", str(tmp_path / "out"), *sets]
    result = CliRunner().invoke(app, [*arguments, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "3 of 3 steps" in result.output
    content = json.loads(file.read_text())
    assert content["coverage"] == 0.5
    assert content["history"][-1]["step"] == 3
    assert load_pocket_clip(tmp_path / "out").step == 3


def test_scenes_for_the_table_keep_kinds_apart():
    trained = train_pocket_clip(0.5, 0, progress=False, **TINY)
    scenes = pocket_scenes(trained, n_test=100, n_train=2000)
    seen, unseen, strict = scenes.test.values()
    assert np.isin(seen.object_ids, trained.split.train).all()
    assert np.isin(unseen.object_ids, trained.test).all()
    assert np.isin(strict.object_ids, trained.test).all()
    assert not np.isin(swaps(strict), trained.split.train).any()
    tested = {frozenset(row) for part in scenes.test.values() for row in part.object_ids.tolist()}
    assert not tested & {frozenset(row) for row in scenes.probe_train.object_ids.tolist()}
    assert len(scenes.probe_train) == 2000
    assert len(np.unique(scenes.probe_train.object_ids)) == SPACE.n_objects


# The shipped pairs.


def test_shipped_pairs_are_small_and_say_what_they_are(shipped):
    name, trained = shipped
    assert sum(file.stat().st_size for file in (WEIGHTS / name).iterdir()) < 1.5e6
    assert trained.split.coverage == pytest.approx({"low": 0.25, "high": 0.8}[name], abs=0.01)
    assert trained.model.space == SPACE
    assert trained.step == trained.training["steps"]
    config = json.loads((WEIGHTS / name / "config.json").read_text())
    assert "not CLIP" in config["what"]
    log = pd.read_csv(WEIGHTS / name / LOG)
    pd.testing.assert_frame_equal(log, trained.history, rtol=1e-6)


def test_shipped_pairs_are_encoders_of_both_modalities(shipped):
    encoder = load_encoder(f"pocket-clip:{shipped[0]}", device="cpu", cache=False)
    scenes = sample_scenes(SPACE, 5, seed=0)
    Z = encoder.encode_text(scenes.captions())
    X = encoder.encode_images(render_images(scenes))
    assert Z.shape == X.shape == (5, encoder.dim)
    assert Z.dtype == X.dtype == np.float32
    assert len({encoder.fingerprint, load_encoder("pocket-clip:random").fingerprint}) == 2
    with pytest.raises(ValueError, match="Did you mean 'low'"):
        load_encoder("pocket-clip:lo")


def test_a_pair_of_ones_own_is_an_encoder_by_its_folder(tmp_path):
    trained = train_pocket_clip(0.5, 0, progress=False, folder=tmp_path / "mine", **TINY)
    encoder = load_encoder(f"pocket-clip:{tmp_path / 'mine'}", device="cpu", cache=False)
    captions = sample_scenes(SPACE, 3, seed=0).captions()
    np.testing.assert_allclose(
        encoder.encode_text(captions),
        trained.model.eval().encode_captions(captions).detach().numpy(),
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="a checkpoint's folder"):
        load_encoder(f"pocket-clip:{tmp_path / 'none'}")


@pytest.mark.slow
def test_shipped_pairs_do_what_is_recorded(shipped):
    name, trained = shipped
    then = recorded("pocket")
    then = then[(then["coverage"] == name) & (then["seed"] == 0)]
    keys = ["weights", "modality", "objects", "reading"]
    both = pocket_table(trained).merge(then, on=keys, suffixes=("", "_then"), validate="1:1")
    assert len(both) == len(then)
    np.testing.assert_allclose(both["value"], both["value_then"], atol=0.03)


def test_recorded_pairs_show_the_tension():
    table = recorded("pocket").query("weights == 'trained'")
    mean = table.groupby(["coverage", "modality", "objects", "reading"])["value"].mean()
    low, high = mean["low"], mean["high"]
    swap = "swap, picture to caption"
    for reading in ("colour", "shape"):
        assert low["across", "unseen", reading] > 0.7
    assert abs(low["across", "unseen, swaps too", swap] - 0.5) < 0.1
    assert low["across", "unseen", "object"] < 0.1
    assert low["within", "unseen", "object"] > 0.4
    assert high["across", "unseen", swap] > 0.9
    assert high["across", "unseen", "object"] > 0.5
