"""Input checks, and files that are there whole or not at all."""

import os
import stat
import threading
import zipfile

import numpy as np
import pytest

from binding_lib.checks import (
    check_choice,
    check_count,
    check_embeddings,
    check_integers,
    unknown_name,
)
from binding_lib.files import atomic_path

# --- names


@pytest.mark.parametrize(
    ("got", "near"), [("miniln", "minilm"), ("MINILM", "minilm"), ("clip", "CLIP"), (7, None)]
)
def test_the_nearest_name_whatever_its_case(got, near):
    message = str(unknown_name("encoder", got, ["minilm", "CLIP"]))
    assert message.startswith(f"unknown encoder {got!r}; expected one of 'minilm', 'CLIP'.")
    assert message.endswith(f"Did you mean {near!r}?" if near else "'CLIP'.")


def test_a_long_list_of_names_is_cut_short():
    message = str(unknown_name("value", "v98x", (f"v{i}" for i in range(100))))
    assert "'v11', ...." in message
    assert "'v12'" not in message
    assert "Did you mean 'v98'?" in message


def test_a_choice_is_given_back_or_refused():
    assert check_choice("level", "object", ("object", "concept")) == "object"
    with pytest.raises(ValueError, match=r"unknown level 'objects'.*Did you mean 'object'"):
        check_choice("level", "objects", ("object", "concept"))


# --- numbers


@pytest.mark.parametrize("got", [0, 5, np.int64(5), np.uint8(5)])
def test_counts(got):
    count = check_count("n", got, least=0)
    assert count == got
    assert type(count) is int


@pytest.mark.parametrize("got", [-1, 1.0, np.float64(2), True, np.True_, "1", None, [1]])
def test_what_is_no_count(got):
    with pytest.raises(ValueError, match=r"n must be an integer of at least 1, got"):
        check_count("n", got)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64])
def test_integers_keep_their_type(dtype):
    assert check_integers(np.ones(2, dtype=dtype), "ids").dtype == dtype


@pytest.mark.parametrize("empty", [[], np.zeros((0, 3)), np.zeros(0, dtype=str), [[], []]])
def test_an_empty_array_is_one_of_integers(empty):
    array = check_integers(empty, "ids")
    assert array.dtype == np.int64
    assert array.shape == np.shape(empty)


@pytest.mark.parametrize("wrong", [1.5, [True], "1", [None], [1, 2.0], [1j], [[1], [1, 2]]])
def test_what_is_no_array_of_integers(wrong):
    with pytest.raises(ValueError, match=r"^ids must"):
        check_integers(wrong, "ids")


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float32, np.float32), (np.float16, np.float64), (np.int8, np.float64), (bool, np.float64)],
)
def test_embeddings_become_floats(dtype, kept):
    array = check_embeddings(np.ones((2, 3), dtype=dtype), n=2)
    assert array.dtype == kept
    assert (array == 1).all()


def test_lists_of_numbers_are_embeddings():
    assert check_embeddings([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ([1.0, 2.0], r"shape \(N, d\) with d >= 1, got shape \(2,\)"),
        (np.zeros((2, 0)), r"got shape \(2, 0\)"),
        (np.zeros((0, 3)), "got no embeddings"),
        ([["1", "2"]], "must be real numbers, got dtype <U1"),
        ([[1j]], "must be real numbers, got dtype complex128"),
        ([[None]], "must be real numbers, got dtype object"),
        ([[1.0], [1.0, 2.0]], "must form an array without gaps"),
        ([[0.0], [np.nan], [np.inf]], "2 of 3 rows hold NaN or infinity, the first is row 1"),
        (np.array([[-np.inf, 0]], dtype=np.float32), "1 of 1 rows"),
    ],
)
def test_wrong_embeddings(embeddings, message):
    with pytest.raises(ValueError, match=message):
        check_embeddings(embeddings)


def test_one_embedding_for_each_scene():
    with pytest.raises(ValueError, match="got 2 embeddings for 3 scenes"):
        check_embeddings(np.ones((2, 3)), n=3)


# --- files


def test_a_file_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "new" / "folder" / "table.csv"
    with atomic_path(str(target)) as temporary:
        temporary.write_text("one")
        assert not target.exists()
        assert (temporary.parent, temporary.suffix) == (target.parent, ".csv")
    assert target.read_text() == "one"
    assert os.listdir(target.parent) == ["table.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "table.csv"
    target.write_text("old")

    def stopped_half_way():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        stopped_half_way()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_block_that_writes_nothing_does_not_empty_the_old_file(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_path(target):
        pass
    assert target.read_text() == "old"


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    (tmp_path / "file.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("file.txt")
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "file.txt").read_text() == "new"


def test_what_is_no_regular_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(FileExistsError, match="no regular file"), atomic_path(tmp_path / name):
            pass
    assert (tmp_path / "pipe").is_fifo()


def test_the_last_of_two_writers_wins(tmp_path):
    target = tmp_path / "table.csv"
    with atomic_path(target) as first:
        first.write_text("first")
        with atomic_path(target) as second:
            second.write_text("second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_readers_see_whole_files_only(tmp_path):
    target = tmp_path / "table.txt"
    contents = {letter * 200_000 for letter in "abc"}

    def write(letter):
        for _ in range(20):
            with atomic_path(target) as temporary, temporary.open("w") as file:
                for _ in range(200):
                    file.write(letter * 1000)

    write("a")
    writers = [threading.Thread(target=write, args=(letter,)) for letter in "bc"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert target.read_text() in contents
    assert os.listdir(tmp_path) == ["table.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with atomic_path(tmp_path / "a.npz") as temporary:
            np.savez(temporary, x=np.arange(3))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == mode
    assert zipfile.is_zipfile(tmp_path / "a.npz")
