"""Embeddings from files: every format gives the same array, and no file gets to run anything."""

import builtins
import contextlib
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from binding_lib.embedding_files import _STAND_INS, load_embeddings

Z = np.random.default_rng(0).normal(size=(5, 3))


def pickled(path, value, protocol=None):
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def numpy_file(path, value):
    np.save(path, value, allow_pickle=True)
    return path


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", "i4", "u1"])
def test_every_format_gives_the_array(tmp_path, dtype):
    array = (10 * Z).astype(dtype)
    np.save(tmp_path / "z.npy", array)
    np.savez(tmp_path / "z.npz", array)
    pickled(tmp_path / "z.pkl", array)
    files = ["z.npy", "z.npz", "z.pkl"]
    if dtype != ">f4":
        save_file({"z": array}, tmp_path / "z.safetensors")
        files.append("z.safetensors")
    for file in files:
        loaded = load_embeddings(tmp_path / file)
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == (np.float32 if dtype == "f4" else np.float64)
        loaded += 1  # it can be worked with


def test_bfloat16_of_safetensors(tmp_path):
    save_tensors({"z": torch.from_numpy(Z).bfloat16()}, tmp_path / "z.safetensors")
    np.testing.assert_allclose(load_embeddings(tmp_path / "z.safetensors"), Z, rtol=0.01)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda z: z[::2, ::-1]]
)
def test_every_protocol_of_pickle(tmp_path, protocol, layout):
    path = pickled(tmp_path / "z.pkl", layout(Z), protocol)
    np.testing.assert_array_equal(load_embeddings(path), layout(Z))


@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
def test_pickles_of_numpy_1_and_2(tmp_path, core):
    """Their private module has two names."""
    path = tmp_path / "z.pkl"
    for protocol in range(4):  # which end names by a line break, not by their length
        path.write_bytes(pickle.dumps(Z, protocol).replace(b"numpy._core", core))
        np.testing.assert_array_equal(load_embeddings(path), Z)
    # Protocol 5 calls another function.
    head, tail = (
        core + b".numeric\n_frombuffer\n(C\x78",
        b"cnumpy\ndtype\n(S'f8'\ntR(I5\nI3\ntS'C'\ntR.",
    )
    path.write_bytes(b"c" + head + Z.tobytes() + tail)
    np.testing.assert_array_equal(load_embeddings(path), Z)


def test_arrays_are_chosen_by_key(tmp_path):
    nested = pickled(
        tmp_path / "z.pkl", {"model": "ViT", "n": 5, "clip": {"image": Z, "text": [2 * Z, 3 * Z]}}
    )
    np.testing.assert_array_equal(load_embeddings(nested, "clip/image"), Z)
    np.testing.assert_array_equal(load_embeddings(nested, "clip/text/1"), 3 * Z)
    with pytest.raises(ValueError, match=r"3 arrays \('clip/image' of shape \(5, 3\), .* a key"):
        load_embeddings(nested)
    with pytest.raises(ValueError, match="Did you mean 'clip/image'"):
        load_embeddings(nested, "clip/img")
    np.savez(tmp_path / "z.npz", a=Z, b=2 * Z)
    np.testing.assert_array_equal(load_embeddings(tmp_path / "z.npz", key="b"), 2 * Z)


def test_an_archive_with_a_member_that_is_no_array(tmp_path):
    path = tmp_path / "z.npz"
    np.savez(path, z=Z)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "made by us")
    np.testing.assert_array_equal(load_embeddings(path, "z"), Z)
    for key in (None, "README.txt"):
        with pytest.raises(ValueError, match=r"z.npz holds 'README.txt', which is no array"):
            load_embeddings(path, key)


def test_a_pickle_without_arrays(tmp_path):
    with pytest.raises(ValueError, match="holds 0 arrays"):
        load_embeddings(pickled(tmp_path / "z.pkl", {"a": 1}))


class Calls:
    """Pickled, it calls something when it is loaded."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


class Own:
    pass


class Loose(np.ndarray):
    """A class of our own that is an array, too."""


MARK = "BINDING_LIB_PICKLE_RAN"
STATEMENT = f"__import__('os').environ.__setitem__('{MARK}', '1')"
OBJECTS = np.array([Own(), {}], dtype=object)
HOSTILE = {
    "system": Calls(os.system, "true"),
    "eval": Calls(builtins.eval, STATEMENT),
    "exec": Calls(builtins.exec, STATEMENT),
    "getattr": Calls(builtins.getattr, Z, "tofile"),
    "nested": {"z": Z, "more": [{"deep": (Calls(builtins.eval, STATEMENT),)}]},
    "as a key": {Calls(builtins.eval, STATEMENT): Z},
    "numpy.load": Calls(np.load, "other.npy", None, True),
    "numpy.save": Calls(np.save, "other.npy", Z),
    "fromfile": Calls(np.fromfile, "/etc/hostname"),
    "objects": OBJECTS,
    "objects in objects": np.array([Calls(builtins.eval, STATEMENT), 0], dtype=object),
    "records": np.zeros(3, dtype=[("a", "f4"), ("b", "O")]),
    "text": np.array(["a", "b"]),
    "times": np.zeros(2, dtype="M8[s]"),
    "own class": Own(),
    "own array": Z.view(Loose),
    "tensor": torch.zeros(2, 2),
    "set": {1, 2},
    "complex": 1j,
}


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_not_an_array_is_refused(tmp_path, kind, protocol):
    path = pickled(tmp_path / "z.pkl", HOSTILE[kind], protocol)
    with pytest.raises(ValueError, match=r"cannot read embeddings from .*z\.pkl: it "):
        load_embeddings(path)
    assert MARK not in os.environ
    assert os.listdir(tmp_path) == ["z.pkl"]


def test_the_hostile_files_would_do_harm(tmp_path, monkeypatch):
    """Otherwise the test above would show nothing."""
    monkeypatch.delenv(MARK, raising=False)
    pickle.loads(pickle.dumps(HOSTILE["nested"]))
    assert os.environ.pop(MARK) == "1"


@pytest.mark.parametrize(
    "program",
    [
        b"cnumpy\nndarray\n(I9\ntR.",  # a call that a true array would take
        b"cnumpy\ndtype\n(S'O'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\n(I0\ntS'b'\ntR.",
        b"cnumpy.core.numeric\n_frombuffer\n(S'abcd'\ncnumpy\ndtype\n(S'f4,O'\ntR(I1\ntS'C'\ntR.",
        b"cnumpy.core.numeric\n_frombuffer\n(S'ab'\ncnumpy\ndtype\n(S'f4'\ntR(I1\ntS'C'\ntR.",
        b"c_codecs\nencode\n(S'abc'\nS'zlib'\ntR.",
        b"cnumpy\nndarray.tofile\n.",
        b"cnumpy.core\nmultiarray\n.",
        b"(lp0\ng0\na.",  # a list that holds itself
        b"Pname\n.",  # a persistent id
        b"\x80\x04\x82\x01.",  # a code of the extension registry
        b"\x80\x04\x8d" + b"\xff" * 8 + b"x.",  # a text longer than memory
        b"\x80\x04\x95" + b"\xff" * 8 + b"N.",  # a frame longer than memory
        b"\x80\x02Nr\x00\x00\x00\x80.",  # a value kept in place 2 ** 31
        b"\x80\x02]q\x00" + 40 * b"]q\x01(h\x00h\x00e\x85q\x00" + b".",  # 2 ** 40 values
        b"",
        b"no pickle at all",
    ],
)
def test_written_by_hand(tmp_path, program):
    (tmp_path / "z.pkl").write_bytes(program)
    with pytest.raises(ValueError, match=r"cannot read embeddings from|holds 0 arrays"):
        load_embeddings(tmp_path / "z.pkl")


def test_a_pickle_cannot_change_what_reads_the_next(tmp_path):
    defaults = b"X\x0c\x00\x00\x00__defaults__X\x04\x00\x00\x00evil\x85"
    for stand_in in (b"_codecs\nencode", b"numpy.core.multiarray\n_reconstruct"):
        path = tmp_path / "z.pkl"
        path.write_bytes(b"\x80\x02c" + stand_in + b"\nN}" + defaults + b"s\x86b.")
        with pytest.raises(ValueError, match="it holds a function"):
            load_embeddings(path)
    assert not any(getattr(s, "__defaults__", None) for s in _STAND_INS.values())


@pytest.mark.parametrize("shape", ["(-5, 1)", f"({2**70}, 1)", "("])
def test_numpy_files_with_impossible_headers(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}".encode() + b"}" * (
        shape != "("
    )
    size = len(header).to_bytes(2, "little")
    (tmp_path / "z.npy").write_bytes(b"\x93NUMPY\x01\x00" + size + header)
    with pytest.raises(ValueError, match="cannot read embeddings from"):
        load_embeddings(tmp_path / "z.npy")


@given(st.data())
def test_damaged_pickles_never_do_anything_else(tmp_path_factory, data):
    program = bytearray(pickle.dumps({"z": Z[:2, :2]}, data.draw(st.integers(0, 5))))
    for _ in range(data.draw(st.integers(1, 3))):
        program[data.draw(st.integers(0, len(program) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "z.pkl"
    path.write_bytes(program)
    with contextlib.suppress(ValueError):
        assert load_embeddings(path).dtype in (np.float32, np.float64)


def test_numpy_files_of_objects_are_refused(tmp_path):
    for path in (tmp_path / "z.npy", tmp_path / "z.npz"):
        (np.save if path.suffix == ".npy" else np.savez)(path, HOSTILE["objects in objects"])
        with pytest.raises(ValueError, match=r"cannot read embeddings from .*allow_pickle"):
            load_embeddings(path)
    # A pickle under numpy's name, which numpy itself would read if it were allowed to.
    with pytest.raises(ValueError, match="cannot read embeddings from"):
        load_embeddings(pickled(tmp_path / "other.npy", HOSTILE["eval"]))
    assert MARK not in os.environ


@pytest.mark.parametrize("name", ["z.npy", "z.npz", "z.safetensors", "z.pkl"])
def test_broken_and_missing_files(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        load_embeddings(tmp_path / name)
    (tmp_path / name).write_bytes(b"broken")
    with pytest.raises(ValueError, match=f"cannot read embeddings from .*{name}"):
        load_embeddings(tmp_path / name)


def test_other_suffixes_and_shapes(tmp_path):
    with pytest.raises(ValueError, match=r"unknown suffix .*'\.pt'; expected one of '\.npy'"):
        load_embeddings(tmp_path / "z.pt")
    np.save(tmp_path / "z.npy", Z[0])
    with pytest.raises(ValueError, match=r"shape \(N, d\)"):
        load_embeddings(tmp_path / "z.npy")
