"""Scenes: sampling, enumeration, binding distractors, and scenes on disk."""

import itertools
import json
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from binding_lib.concepts import ConceptSpace
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes, swaps

GRID = ConceptSpace.grid(2, 4)


@st.composite
def scene_sets(draw, min_scenes=0, max_concepts=3):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=max_concepts))
    space = ConceptSpace({f"c{k}": [f"v{i}" for i in range(v)] for k, v in enumerate(sizes)})
    m = draw(st.integers(1, 3))
    scene = st.tuples(*[st.integers(0, space.n_objects - 1)] * m)
    ids = draw(st.lists(scene, min_size=min_scenes, max_size=5))
    return SceneSet(space, np.array(ids, dtype=np.int64).reshape(-1, m))


# --- the scene set itself


@given(scene_sets())
def test_values_are_those_of_the_objects(scenes):
    assert scenes.values.shape == (len(scenes), scenes.n_slots, scenes.space.n_concepts)
    for scene, values in zip(scenes.object_ids, scenes.values, strict=True):
        for object_id, indices in zip(scene, values, strict=True):
            assert scenes.space.ids(indices) == object_id


@given(scene_sets())
def test_present_against_a_loop(scenes):
    space = scenes.space
    expected = [[o in scene for o in range(space.n_objects)] for scene in scenes.object_ids]
    np.testing.assert_array_equal(
        scenes.present(), np.array(expected, dtype=bool).reshape(-1, space.n_objects)
    )
    for k, name in enumerate(space.names):
        expected = [[v in scene[:, k] for v in range(space.sizes[k])] for scene in scenes.values]
        np.testing.assert_array_equal(
            scenes.present(name), np.array(expected, dtype=bool).reshape(-1, space.sizes[k])
        )


def test_present_names_the_nearest_target():
    with pytest.raises(ValueError, match=r"unknown concept 'A'.*Did you mean 'a'"):
        sample_scenes(GRID, 2).present("A")


def test_the_callers_array_stays_the_callers():
    ids = np.array([[0, 1], [2, 3]])
    scenes = SceneSet(GRID, ids)
    part = scenes[:1]
    ids[:] = 9
    assert scenes.object_ids.tolist() == [[0, 1], [2, 3]]
    assert part.object_ids.tolist() == [[0, 1]]
    for own in (scenes, part, SceneSet.concatenate([scenes]), sample_scenes(GRID, 3)):
        with pytest.raises(ValueError, match="read-only"):
            own.object_ids[0] = 1


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"shape \(N, m\) with m >= 1 objects a scene, got \(2,\)"),
        (3, r"got \(\)"),
        ([], r"got \(0,\)"),
        (np.zeros((3, 0)), r"got \(3, 0\)"),
        (np.zeros((1, 1, 1), dtype=int), r"got \(1, 1, 1\)"),
        ([[0, 16]], "object id 16 is outside the space; expected 0 to 15"),
        ([[0, -1]], "object id -1"),
        ([[0.0, 1.0]], "must be integers, got dtype float64"),
        ([[True, False]], "must be integers, got dtype bool"),
        (np.array([[0, 1]], dtype=object), "must be integers, got dtype object"),
        ([[0, 1], [2]], "must form an array without gaps"),
    ],
)
def test_wrong_object_ids(ids, message):
    with pytest.raises(ValueError, match=message):
        SceneSet(GRID, ids)


@given(scene_sets(min_scenes=1), st.data())
def test_selecting_follows_numpy(scenes, data):
    rows = data.draw(
        st.one_of(
            st.slices(len(scenes)),
            st.lists(st.integers(-len(scenes), len(scenes) - 1), max_size=4),
            st.lists(st.booleans(), min_size=len(scenes), max_size=len(scenes)).map(np.array),
        )
    )
    assert scenes[rows] == SceneSet(scenes.space, scenes.object_ids[rows])
    row = data.draw(st.integers(-len(scenes), len(scenes) - 1))
    assert scenes[row] == scenes[np.int64(row)] == scenes[[row]]


def test_scenes_can_be_walked_through():
    scenes = SceneSet(GRID, [[0, 1], [2, 3]])
    assert [one.object_ids.tolist() for one in scenes] == [[[0, 1]], [[2, 3]]]
    with pytest.raises(IndexError):
        scenes[2]


@given(scene_sets(), st.integers(0, 5))
def test_cut_and_joined_is_as_before(scenes, cut):
    assert SceneSet.concatenate([scenes[:cut], scenes[cut:]]) == scenes


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "expected at least one"),
        ([sample_scenes(GRID, 1), sample_scenes(ConceptSpace.grid(2, 5), 1)], "cannot join"),
        ([sample_scenes(GRID, 1), sample_scenes(GRID, 1, 3)], "3 objects to scenes of 2"),
    ],
)
def test_wrong_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        SceneSet.concatenate(parts)


def test_equality_needs_the_space_too():
    assert SceneSet(GRID, [[1, 2]]) != SceneSet(ConceptSpace.grid(4, 2), [[1, 2]])
    assert SceneSet(GRID, [[1, 2]]) != SceneSet(GRID, [[2, 1]])
    assert repr(SceneSet(GRID, [[1, 2]])).startswith("SceneSet(1 scenes of 2, ConceptSpace(")


# --- sampling and enumeration


@given(st.integers(1, 5), st.integers(0, 30), st.integers(1, 5), st.integers(0, 2**32), st.data())
def test_objects_of_a_scene_are_distinct_and_from_the_pool(v, n, m, seed, data):
    space = ConceptSpace.grid(2, v)
    every = st.integers(0, space.n_objects - 1)
    ids = data.draw(st.none() | st.lists(every, min_size=1, max_size=20))
    pool = set(range(space.n_objects) if ids is None else ids)
    if len(pool) < m:
        with pytest.raises(ValueError, match=f"{m} distinct objects.*got {len(pool)}"):
            sample_scenes(space, n, m, ids, seed)
        return
    scenes = sample_scenes(space, n, m, ids, seed)
    assert scenes.object_ids.shape == (n, m)
    assert set(scenes.object_ids.flat) <= pool
    assert all(len(set(scene)) == m for scene in scenes.object_ids.tolist())
    assert scenes == sample_scenes(space, n, m, ids, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("m", "ids"), [(1, None), (2, None), (3, [1, 4, 7, 8, 15]), (2, [9, 3, 9, 5])]
)
def test_every_scene_is_equally_likely(m, ids):
    # Chi-square over all ordered scenes; with a pool given twice, the double counts once.
    pool = range(16) if ids is None else sorted(set(ids))
    drawn = sample_scenes(GRID, 60_000, m, ids, seed=3).object_ids.tolist()
    cells = dict.fromkeys(itertools.permutations(pool, m), 0)
    for scene in drawn:
        cells[tuple(scene)] += 1
    assert stats.chisquare(list(cells.values())).pvalue > 1e-3


def test_seeds_differ_and_a_generator_moves_on():
    rng = np.random.default_rng(0)
    assert sample_scenes(GRID, 50, seed=0) != sample_scenes(GRID, 50, seed=1)
    assert sample_scenes(GRID, 50, seed=rng) != sample_scenes(GRID, 50, seed=rng)


def test_a_million_scenes_and_their_swaps_are_quick():
    space = ConceptSpace.grid(7, 10)
    train = np.arange(0, 10**7, 2)
    start = time.perf_counter()
    scenes = sample_scenes(space, 10**6, ids=train)
    sampled = time.perf_counter()
    swaps(sample_scenes(ConceptSpace.grid(2, 20), 10**6))
    assert sampled - start < 3  # about 0.15 s; a Python loop over the scenes takes longer
    assert time.perf_counter() - sampled < 3  # about 0.15 s
    assert (scenes.object_ids % 2 == 0).all()


@pytest.mark.parametrize("n", [-1, 2.0, 2.5, True, "3", None])
def test_counts_of_scenes_and_objects(n):
    with pytest.raises(ValueError, match="n must be an integer of at least 0, got"):
        sample_scenes(GRID, n)
    for call in (lambda: sample_scenes(GRID, 5, n), lambda: all_scenes(GRID, n)):
        with pytest.raises(ValueError, match="n_objects must be an integer of at least 1, got"):
            call()


def test_sampling_refuses_objects_outside_the_space():
    with pytest.raises(ValueError, match="object id 16 is outside"):
        sample_scenes(GRID, 3, ids=[0, 16])
    assert len(sample_scenes(GRID, 0)) == 0


@given(st.integers(1, 4), st.integers(1, 3))
def test_all_scenes_in_order(v, m):
    space = ConceptSpace.grid(1, v)
    expected = list(itertools.product(range(v), repeat=m))
    assert list(map(tuple, all_scenes(space, m).object_ids.tolist())) == expected


def test_all_scenes_up_to_a_limit():
    assert all_scenes(ConceptSpace.grid(2, 20)).object_ids.shape == (160_000, 2)
    assert all_scenes(ConceptSpace.grid(1, 1), 100).object_ids.shape == (1, 100)
    for space, m in ((ConceptSpace.grid(2, 100), 2), (GRID, 10**9), (ConceptSpace.grid(1, 2), 26)):
        with pytest.raises(ValueError, match=rf"at most 10 \*\* 8 .*{space.n_objects} \*\* {m}"):
            all_scenes(space, m)


# --- swaps


@settings(max_examples=300)
@given(scene_sets())
def test_swaps_against_a_loop(scenes):
    space, m = scenes.space, scenes.n_slots
    found = swaps(scenes)
    assert found.shape == (len(scenes), m**space.n_concepts - m)
    for scene, values, row in zip(scenes.object_ids, scenes.values, found, strict=True):
        recombined = {int(space.ids(pick)) for pick in itertools.product(*values.T)}
        given_back = row[row >= 0].tolist()
        assert len(given_back) == len(set(given_back))
        assert set(given_back) == recombined - set(scene.tolist())
        assert (row[row < 0] == -1).all()


def test_swaps_of_two_objects():
    space = ConceptSpace({"colour": ["red", "blue"], "shape": ["cube", "ball"]})
    assert swaps(SceneSet(space, [[0, 3], [0, 1], [2, 2]])).tolist() == [[1, 2], [-1, -1], [-1, -1]]


# --- on disk


@settings(max_examples=25)
@given(scenes=scene_sets())
def test_saved_and_loaded(scenes, tmp_path_factory):
    path = tmp_path_factory.mktemp("scenes") / "new" / "scenes.npz"
    scenes.save(path)
    loaded = SceneSet.load(str(path))
    assert loaded == scenes
    assert loaded.object_ids.dtype == np.int64
    assert [p.name for p in path.parent.iterdir()] == ["scenes.npz"]


def test_names_outside_ascii_survive(tmp_path):
    space = ConceptSpace({"couleur": ["rosé", "a\0b", "赤"]})
    SceneSet(space, [[2, 1]]).save(tmp_path / "s.npz")
    assert SceneSet.load(tmp_path / "s.npz").space == space


def test_save_wants_its_own_ending(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.npz, got .*scenes\.csv"):
        sample_scenes(GRID, 1).save(tmp_path / "scenes.csv")


def test_no_altered_byte_changes_the_scenes(tmp_path):
    scenes = sample_scenes(GRID, 20)
    path = tmp_path / "s.npz"
    scenes.save(path)
    whole = path.read_bytes()
    refused = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert SceneSet.load(path) == scenes  # a date in the archive's directory, say
        except ValueError as error:
            assert "is not a saved SceneSet" in str(error)  # noqa: PT017 (either may happen)
            refused += 1
    assert refused > len(whole) / 2


def test_no_shortened_file_is_read(tmp_path):
    path = tmp_path / "s.npz"
    sample_scenes(GRID, 20).save(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"s\.npz' is not a saved SceneSet"):
            SceneSet.load(path)


class Trap:
    """Would raise if it were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


SPACE = np.array(json.dumps(GRID.to_dict()))


@pytest.mark.parametrize(
    "arrays",
    [
        {"other": np.arange(3)},
        {"object_ids": np.array([[0, 1]])},
        {"space": SPACE},
        {"space": SPACE, "object_ids": np.array([[0, 16]])},
        {"space": SPACE, "object_ids": np.array([[0.0, 1.0]])},
        {"space": SPACE, "object_ids": np.array([0, 1])},
        {"space": SPACE, "object_ids": np.array([[Trap()]])},
        {"space": np.array(Trap(), dtype=object), "object_ids": np.array([[0, 1]])},
        {"space": np.array("[1, 2]"), "object_ids": np.array([[0, 1]])},
        {"space": np.array("{"), "object_ids": np.array([[0, 1]])},
    ],
)
def test_foreign_archives_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(ValueError, match="is not a saved SceneSet"):
        SceneSet.load(tmp_path / "s.npz")


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "s.npz"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="is not a saved SceneSet"):
        SceneSet.load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(4))
    with pytest.raises(ValueError, match="is not a saved SceneSet"):
        SceneSet.load(path)
    with pytest.raises(FileNotFoundError):
        SceneSet.load(tmp_path / "missing.npz")
