"""The cache of embeddings: what it serves, what it never serves, and who may share it."""

import os
import subprocess
import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from safetensors.numpy import save_file

from binding_lib.encoders.base import ModelEncoder
from binding_lib.encoders.cache import CachedEncoder, cache_folder


class Counter(ModelEncoder):
    """Embeds a caption as its numbers of letters, an image as its mean, and counts its calls."""

    def __init__(self, fingerprint="weights of one kind", dim=3, scale=1.0):
        self.name, self.dim, self.fingerprint, self.scale = "counter", dim, fingerprint, scale
        self.calls = 0

    def _embed_text(self, captions):
        self.calls += 1
        counts = [[len(c), c.count("a"), c.count("e")][: self.dim] for c in captions]
        return self.scale * np.array(counts, dtype=np.float32)

    def _embed_images(self, images):
        self.calls += 1
        return images.mean(axis=(1, 2)).astype(np.float32)


CAPTIONS = ["a red cube", "a blue ball", "a red cube"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BINDING_LIB_CACHE", str(tmp_path / "cache"))
    return cache_folder()


def files(folder):
    return sorted(folder.iterdir())


def test_a_second_call_is_read_from_disk(folder):
    first = Counter()
    embeddings = CachedEncoder(first).encode_text(CAPTIONS)
    again = Counter()
    from_disk = CachedEncoder(again).encode_text(tuple(CAPTIONS))
    assert (first.calls, again.calls) == (1, 0)
    assert from_disk.dtype == np.float32
    np.testing.assert_array_equal(from_disk, embeddings)
    assert len(files(folder)) == 1
    from_disk[0] = 7  # the reader's own copy, not the file
    np.testing.assert_array_equal(CachedEncoder(again).encode_text(CAPTIONS), embeddings)


def test_images_are_remembered_too():
    images = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    encoder = Counter()
    cached = CachedEncoder(encoder)
    first = cached.encode_images(images)
    np.testing.assert_array_equal(cached.encode_images(np.asfortranarray(images)), first)
    assert encoder.calls == 1
    cached.encode_images(images.reshape(2, 2, 8, 3))  # the same bytes in another shape
    cached.encode_images(images + np.uint8(1))
    assert encoder.calls == 3


@pytest.mark.parametrize(
    "captions",
    [
        ["a blue ball", "a red cube", "a red cube"],
        ["a red cube", "a blue ball"],
        ["a red cubea blue ball", "a red cube"],
        ['a red cube", "a blue ball', "a red cube"],
        ["\ud800"],
    ],
)
def test_other_captions_miss(captions):
    encoder = Counter()
    cached = CachedEncoder(encoder)
    cached.encode_text(CAPTIONS)
    np.testing.assert_array_equal(cached.encode_text(captions), Counter().encode_text(captions))
    assert encoder.calls == 2


def test_other_weights_miss():
    CachedEncoder(Counter()).encode_text(CAPTIONS)
    other = Counter("weights of another kind", scale=2.0)
    embeddings = CachedEncoder(other).encode_text(CAPTIONS)
    assert other.calls == 1
    np.testing.assert_array_equal(embeddings, 2 * Counter().encode_text(CAPTIONS))


def test_an_encoder_loaded_by_name_is_cached_by_its_weights(folder, monkeypatch):
    from binding_lib import encoders
    from binding_lib.encoders.dino import DinoEncoder

    calls = []
    embed = DinoEncoder._embed_images
    monkeypatch.setattr(
        DinoEncoder, "_embed_images", lambda self, x: calls.append(len(x)) or embed(self, x)
    )
    images = np.zeros((1, 8, 8, 3), np.uint8)
    by_seed = {}
    for seed in (0, 0, 1):
        encoder = encoders.load_encoder("dino:test_vit/random", device="cpu", seed=seed)
        by_seed[seed] = encoder.encode_images(images)
    assert calls == [1, 1]
    assert not np.allclose(by_seed[0], by_seed[1])
    encoders.load_encoder("dino:test_vit/random", device="cpu", cache=False).encode_images(images)
    assert calls == [1, 1, 1]
    assert len(files(folder)) == 2


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip_the_last_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def put_a_stranger(path):
    save_file({"embeddings": np.zeros((3, 3), np.float32)}, path)


@pytest.mark.parametrize("damage", [cut, flip_the_last_bit, empty, put_a_stranger])
def test_a_damaged_file_is_computed_anew(damage, folder):
    expected = CachedEncoder(Counter()).encode_text(CAPTIONS)
    (path,) = files(folder)
    healthy = path.read_bytes()
    damage(path)
    assert path.read_bytes() != healthy
    encoder = Counter()
    np.testing.assert_array_equal(CachedEncoder(encoder).encode_text(CAPTIONS), expected)
    assert encoder.calls == 1
    assert path.read_bytes() == healthy  # and mended


def test_every_flipped_byte_is_found(folder):
    expected = CachedEncoder(Counter()).encode_text(CAPTIONS)
    (path,) = files(folder)
    healthy = path.read_bytes()
    encoder = Counter()
    for position in range(len(healthy)):
        content = bytearray(healthy)
        content[position] ^= 0x10
        path.write_bytes(content)
        np.testing.assert_array_equal(CachedEncoder(encoder).encode_text(CAPTIONS), expected)


def test_a_file_under_another_name_is_not_served(folder):
    CachedEncoder(Counter()).encode_text(CAPTIONS)
    (path,) = files(folder)
    others = ["a blue cube", "an orange tree", "a man"]
    CachedEncoder(Counter()).encode_text(others)
    (stranger,) = set(files(folder)) - {path}
    stranger.replace(path)  # right shape, sound checksum, other captions
    encoder = Counter()
    CachedEncoder(encoder).encode_text(CAPTIONS)
    assert encoder.calls == 1


@contextmanager
def a_file_for_a_folder(folder):
    folder.parent.write_text("in the way")
    yield


@contextmanager
def a_folder_for_the_file(folder):
    CachedEncoder(Counter()).encode_text(CAPTIONS)
    (path,) = files(folder)
    path.unlink()
    path.mkdir()
    yield


@contextmanager
def a_full_disk(folder):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("obstacle", [a_file_for_a_folder, a_folder_for_the_file, a_full_disk])
def test_computing_goes_on_where_nothing_can_be_written(obstacle, folder):
    encoder = Counter()
    cached = CachedEncoder(encoder)
    with obstacle(folder), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        embeddings = cached.encode_text(CAPTIONS)
        cached.encode_text(CAPTIONS)
    (warning,) = warned  # once is enough
    assert "set BINDING_LIB_CACHE to a folder that can be written" in str(warning.message)
    assert warning.filename == __file__
    assert encoder.calls == 2
    np.testing.assert_array_equal(embeddings, Counter().encode_text(CAPTIONS))


def test_wrong_inputs_are_refused_before_the_cache():
    cached = CachedEncoder(Counter())
    with pytest.raises(ValueError, match="no captions"):
        cached.encode_text([])
    with pytest.raises(ValueError, match="uint8"):
        cached.encode_images(np.zeros((2, 8, 8, 3)))
    assert not cache_folder().exists()


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_cache import CAPTIONS, CachedEncoder, Counter, cache_folder
import numpy as np
expected = Counter().encode_text(CAPTIONS * 2000)
for _ in range(25):
    encoder = Counter()
    np.testing.assert_array_equal(CachedEncoder(encoder).encode_text(CAPTIONS * 2000), expected)
    for file in cache_folder().glob("[0-9a-f]*"):
        file.unlink(missing_ok=True)
"""


@pytest.mark.slow
def test_two_processes_share_the_folder(folder):
    program = WRITER.format(tests=os.path.dirname(__file__))
    both = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(2)
    ]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    expected = Counter().encode_text(CAPTIONS)
    np.testing.assert_array_equal(CachedEncoder(Counter()).encode_text(CAPTIONS), expected)
    assert len(files(folder)) == 1  # no half-written file is left behind


def test_the_folder_is_the_users_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("BINDING_LIB_CACHE", str(tmp_path))
    assert cache_folder().parent == tmp_path
    monkeypatch.delenv("BINDING_LIB_CACHE")
    assert "binding_lib" in cache_folder().parts
