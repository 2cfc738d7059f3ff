"""Concept spaces: mixed radix, names, coverage splits, and the errors of all three."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from binding_lib.concepts import ConceptSpace, ObjectSplit

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def space_of(sizes):
    return ConceptSpace({f"c{k}": [f"v{k}_{i}" for i in range(v)] for k, v in enumerate(sizes)})


@pytest.fixture
def toys():
    return ConceptSpace({"colour": ["red", "Blue"], "shape": ["cube", "ball", "cone"]})


# --- ids and values


@given(SIZES)
def test_ids_are_row_major_with_the_last_concept_fastest(sizes):
    space = space_of(sizes)
    every = np.arange(space.n_objects)
    expected = np.stack(np.unravel_index(every, sizes), axis=-1)
    assert space.sizes == tuple(sizes)
    assert space.n_objects == np.prod(sizes)
    np.testing.assert_array_equal(space.values(every), expected)
    np.testing.assert_array_equal(space.ids(expected), every)


@pytest.mark.parametrize("sizes", [(8, 3), (12, 8), (1, 5, 1), (1,)])
def test_unequal_sizes_count_up_like_an_odometer(sizes):
    values = space_of(sizes).values(np.arange(np.prod(sizes))).tolist()
    assert values == sorted(values)
    assert values[-1] == [v - 1 for v in sizes]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=10), st.data())
def test_round_trip_in_large_spaces(sizes, data):
    space = space_of(sizes)
    ids = data.draw(st.lists(st.integers(0, space.n_objects - 1), max_size=5))
    values = space.values(ids)
    assert values.shape == (len(ids), len(sizes))
    assert space.ids(values).tolist() == ids


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3), (2, 0, 3)])
def test_shapes_and_types_are_kept(shape):
    space = space_of((8, 3))
    ids = np.full(shape, 23, dtype=np.uint8)
    values = space.values(ids)
    assert values.shape == (*shape, 2)
    assert values.dtype == space.ids(values).dtype == np.int64
    np.testing.assert_array_equal(space.ids(values.astype(np.uint16)), ids)


def test_ten_million_objects_take_seconds_and_not_minutes():
    space = ConceptSpace.grid(7, 10)
    start = time.perf_counter()
    split = space.split(0.3)
    assert time.perf_counter() - start < 20  # about 2 s; hashing or listing objects takes minutes
    assert (len(split.train), len(split.held_out)) == (3_000_000, 7_000_000)
    sample = split.held_out[::1000]
    np.testing.assert_array_equal(space.ids(space.values(sample)), sample)


def test_the_last_object_of_a_space_far_past_ten_million():
    space = ConceptSpace.grid(26, 5)
    last = 5**26 - 1
    assert space.values([last]).tolist() == [[4] * 26]
    assert space.ids([4] * 26) == last


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([6], "object id 6 is outside the space; expected 0 to 5"),
        ([0, -1], "object id -1 is outside"),
        (np.array([2**64 - 3], dtype=np.uint64), "object id 18446744073709551613 is outside"),
        ([1.0], "object ids must be integers, got dtype float64"),
        ([True], "object ids must be integers, got dtype bool"),
        (np.array([1], dtype=object), "object ids must be integers, got dtype object"),
        ([2**70], "object ids must be integers, got dtype object"),
        (None, "object ids must be integers"),
        ([[1, 2], [1]], "object ids must form an array without gaps"),
    ],
)
def test_wrong_ids(toys, ids, message):
    with pytest.raises(ValueError, match=message):
        toys.values(ids)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 3], "concept 'shape' has values 0 to 2, got 3"),
        ([[0, 0], [-1, 0]], "concept 'colour' has values 0 to 1, got -1"),
        ([0, 1, 2], r"shape \(\.\.\., 2\), one for each of colour, shape; got shape \(3,\)"),
        (3, r"got shape \(\)"),
        ([], r"got shape \(0,\)"),
        ([0.0, 1.0], "value indices must be integers, got dtype float64"),
    ],
)
def test_wrong_value_indices(toys, values, message):
    with pytest.raises(ValueError, match=message):
        toys.ids(values)


# --- names


@given(SIZES, st.data())
def test_names_and_ids_are_inverse(sizes, data):
    space = space_of(sizes)
    wanted = data.draw(st.integers(0, space.n_objects - 1))
    name = space.object_name(wanted)
    assert space.object_id(*name.split(" ")) == wanted
    assert space.object_names([wanted, 0, wanted]) == [name, space.object_name(0), name]


def test_names_in_both_directions(toys):
    assert toys.names == ("colour", "shape")
    assert toys.n_concepts == 2
    assert toys.value_names("shape") == ("cube", "ball", "cone")
    assert toys.concept_index("shape") == 1
    assert toys.value_index("colour", "Blue") == 1
    assert toys.object_id("Blue", "ball") == 4
    assert toys.object_name(4) == "Blue ball"
    assert toys.object_names([]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.value_names("color"), "unknown concept 'color'.*Did you mean 'colour'"),
        (lambda s: s.concept_index("SHAPE"), "unknown concept 'SHAPE'.*Did you mean 'shape'"),
        (lambda s: s.value_index("shape", "cubes"), "value of concept 'shape'.*mean 'cube'"),
        (lambda s: s.value_index("colour", "BLUE"), "'red', 'Blue'.*Did you mean 'Blue'"),
        (lambda s: s.object_id("blu", "ball"), "unknown value.*'blu'.*Did you mean 'Blue'"),
        (lambda s: s.concept_index(["colour"]), "unknown concept"),
        (lambda s: s.value_index("shape", []), "unknown value"),
        (lambda s: s.value_index("shape", 0), "unknown value of concept 'shape' 0"),
        (lambda s: s.object_id("red"), r"one value for each of \('colour', 'shape'\)"),
        (lambda s: s.object_name(6), "object id 6 is outside"),
    ],
)
def test_unknown_names_come_with_the_nearest_known_one(toys, call, message):
    with pytest.raises(ValueError, match=message):
        call(toys)


@pytest.mark.parametrize(
    ("concepts", "message"),
    [
        ({}, "at least one concept's name"),
        (None, "got None"),
        ([("a", ["x"])], "needs a mapping"),
        ({"a": []}, "number of values of concept 'a' must be .* at least 1, got 0"),
        ({"a": "xyz"}, "must be a list of names, got 'xyz'"),
        ({"a": {"x", "y"}}, "must be a list of names"),
        ({"a": ["x", 3]}, "must be a list of names"),
        ({"a": [""]}, "must be a list of names"),
        ({"a": 3}, "must be a list of names, got 3"),
        ({"a": ["x", "y", "x"]}, "concept 'a' names the value 'x' more than once"),
        ({"object": ["x"]}, "not 'object'"),
        ({"": ["x"]}, "a concept needs a name"),
        ({1: ["x"]}, "got 1"),
        ({c: [str(i) for i in range(1000)] for c in "abcdefg"}, "do not fit into 64-bit ids"),
    ],
)
def test_wrong_concepts(concepts, message):
    with pytest.raises(ValueError, match=message):
        ConceptSpace(concepts)


def test_grid_names_its_concepts_and_values():
    assert ConceptSpace.grid().sizes == (20, 20)
    space = ConceptSpace.grid(np.int64(2), 3)
    assert space == ConceptSpace({"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]})


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "2", None])
def test_grid_wants_counts(n):
    with pytest.raises(ValueError, match=r"n_concepts must be an integer of at least 1, got"):
        ConceptSpace.grid(n, 3)
    with pytest.raises(ValueError, match=r"n_values must be an integer of at least 1, got"):
        ConceptSpace.grid(2, n)


def test_grid_has_as_many_concepts_as_the_alphabet():
    with pytest.raises(ValueError, match="from 1 to 26, got 27"):
        ConceptSpace.grid(27, 1)


def test_equality_counts_names_and_order(toys):
    same = ConceptSpace(toys.to_dict())
    turned = ConceptSpace(dict(reversed(toys.to_dict().items())))
    assert same == toys
    assert hash(same) == hash(toys)
    assert turned != toys
    assert ConceptSpace.grid(2, 3) != ConceptSpace.grid(2, 4)


def test_later_changes_to_the_callers_lists_change_nothing():
    values = ["x", "y"]
    space = ConceptSpace({"a": values})
    values.append("z")
    space.to_dict()["a"].append("z")
    assert space.value_names("a") == ("x", "y")


# --- splits


@given(SIZES, st.floats(0.001, 1), st.integers(0, 2**32))
def test_a_split_divides_the_whole_space(sizes, coverage, seed):
    space = space_of(sizes)
    split = space.split(coverage, seed)
    n_train = max(1, round(coverage * space.n_objects))
    if coverage < 1 and space.n_objects > 1:
        n_train = min(n_train, space.n_objects - 1)
    assert len(split.train) == n_train
    assert split.coverage == n_train / space.n_objects
    assert sorted([*split.train, *split.held_out]) == list(range(space.n_objects))
    assert (np.diff(split.train) > 0).all()
    assert (np.diff(split.held_out) > 0).all()
    if n_train >= max(sizes):
        for k, size in enumerate(sizes):
            assert set(space.values(split.train)[:, k]) == set(range(size))


def test_the_seed_decides_and_a_generator_moves_on():
    space = ConceptSpace.grid(2, 20)
    first, again, other = space.split(0.5, 7), space.split(0.5, 7), space.split(0.5, 8)
    np.testing.assert_array_equal(first.train, again.train)
    assert not np.array_equal(first.train, other.train)
    rng = np.random.default_rng(7)
    np.testing.assert_array_equal(space.split(0.5, rng).train, first.train)
    assert not np.array_equal(space.split(0.5, rng).train, first.train)


@pytest.mark.parametrize("sizes", [(4, 4), (6, 2), (3, 2, 2)])
def test_every_object_is_as_likely_to_be_trained_on(sizes):
    space, n = space_of(sizes), 4000
    counts = np.zeros(space.n_objects)
    for seed in range(n):
        counts[space.split(0.6, seed).train] += 1
    share = counts.sum() / counts.size / n
    # Counts of one split sum to a constant, which only makes the statistic smaller.
    statistic = ((counts - n * share) ** 2 / (n * share * (1 - share))).sum()
    assert statistic < stats.chi2.isf(1e-4, space.n_objects)


def test_pairs_of_objects_are_shared_out_evenly_beyond_the_diagonal():
    # Were the rest not uniform, some cells would keep company more often than others.
    space, n = ConceptSpace.grid(2, 4), 3000
    seen = np.zeros((n, 16))
    for seed in range(n):
        seen[seed, space.split(0.5, seed).train] = 1
    together = (seen.T @ seen / n)[np.triu_indices(16, 1)].reshape(-1)
    rows, columns = np.triu_indices(16, 1)
    same_line = (rows // 4 == columns // 4) | (rows % 4 == columns % 4)
    for kind in (same_line, ~same_line):  # all pairs of a kind are alike by symmetry
        rate = together[kind].mean()
        assert abs(together[kind] - rate).max() < 4.5 * np.sqrt(rate * (1 - rate) / n)


def test_the_smallest_spaces():
    alone = ConceptSpace.grid(1, 1).split(0.5)
    assert (alone.train.tolist(), alone.held_out.tolist()) == ([0], [])
    line = ConceptSpace.grid(1, 7).split(0.999)
    assert (len(line.train), len(line.held_out)) == (6, 1)
    assert len(ConceptSpace.grid(2, 4).split(1e-12).train) == 1


@pytest.mark.parametrize("coverage", [0, -0.5, 1.01, np.nan, np.inf, "0.5", None, [0.5]])
def test_wrong_coverage(toys, coverage):
    with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\], got"):
        toys.split(coverage)


def test_a_split_keeps_ascending_arrays_of_its_own(toys):
    train = np.array([5, 1])
    split = ObjectSplit(toys, train, [3])
    train[:] = 0
    assert split.train.tolist() == [1, 5]
    assert split.held_out.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        split.train[0] = 2


@pytest.mark.parametrize(
    ("train", "held_out", "message"),
    [
        ([0, 1], [1], "object 'red ball' stands more than once"),
        ([2, 2], [], "object 'red cone' stands more than once"),
        ([6], [0], "object id 6 is outside"),
        ([0], [-1], "object id -1 is outside"),
        ([[0, 1]], [2], r"train must be 1-D, got shape \(1, 2\)"),
        ([0], 1, r"held_out must be 1-D, got shape \(\)"),
        ([0.5], [1], "must be integers"),
    ],
)
def test_wrong_splits(toys, train, held_out, message):
    with pytest.raises(ValueError, match=message):
        ObjectSplit(toys, train, held_out)


def test_a_split_of_a_space_too_large_to_list():
    space = ConceptSpace.grid(4, 1000)
    split = ObjectSplit(space, [10**12 - 1], [0])
    assert split.coverage == 1e-12
    assert repr(split) == "ObjectSplit(train=1, held_out=1)"
    assert "1000000000000 objects" in repr(space)
