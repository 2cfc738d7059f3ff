"""Recognition, swaps, retrieval and intervals against brute-force loops and scipy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from binding_lib.concepts import ConceptSpace
from binding_lib.recognition import (
    Estimate,
    bootstrap_interval,
    r2_interval,
    recognised,
    retrieval_accuracy,
    retrieved,
    swap_accuracy,
    swaps_beaten,
)
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes

GRID = ConceptSpace.grid(2, 3)


# --- recognised


@given(st.integers(0, 2**16), st.integers(1, 6), st.integers(1, 6))
def test_recognised_against_a_loop(seed, n, k):
    rng = np.random.default_rng(seed)
    scores = rng.integers(3, size=(n, k))  # small integers: many ties
    present = rng.random((n, k)) < 0.5
    present[np.arange(n), rng.integers(k, size=n)] = True
    expected = [
        all(s[i] > s[j] for i in range(k) if p[i] for j in range(k) if not p[j])
        for s, p in zip(scores, present, strict=True)
    ]
    np.testing.assert_array_equal(recognised(scores, present), expected)
    np.testing.assert_array_equal(recognised(scores * 0.5 - 7, present), expected)


def test_a_tie_is_not_recognised_and_a_full_scene_is():
    present = np.array([[True, False], [True, False], [True, True], [True, True]])
    scores = [[1, 1], [1.0, 0.999], [0, -1], [0, -np.inf]]
    np.testing.assert_array_equal(recognised(scores, present), [False, True, True, True])
    # A score of minus infinity is no higher than that of an absent candidate.
    np.testing.assert_array_equal(recognised([[-np.inf, -np.inf]], present[:1]), [False])


@pytest.mark.parametrize(
    ("scores", "present", "message"),
    [
        ([[1, 2]], [[True]], r"share one shape \(N, K\), got \(1, 2\), \(1, 1\)"),
        ([1, 2], [True, False], r"share one shape \(N, K\), got \(2,\)"),
        ([[1, 2]], [[1, 0]], "present must be boolean, got dtype int"),
        ([[1, 2], [np.nan, 0]], [[True, False]] * 2, "got NaN in row 1"),
        ([[1, 2], [3, 4]], [[True, False], [False, False]], "scene 1 has no present candidate"),
    ],
)
def test_what_recognised_refuses(scores, present, message):
    with pytest.raises(ValueError, match=message):
        recognised(scores, present)


# --- swaps


@given(st.integers(0, 2**16), st.sampled_from([GRID, ConceptSpace.grid(3, 2)]), st.integers(1, 3))
def test_swaps_beaten_against_a_loop(seed, space, m):
    rng = np.random.default_rng(seed)
    scenes = SceneSet(space, rng.integers(space.n_objects, size=(8, m)))
    scores = rng.integers(4, size=(8, space.n_objects)).astype(float)
    expected, rows = [], []
    for row, (ids, values) in enumerate(zip(scenes.object_ids, scenes.values, strict=True)):
        mixed = {int(space.ids(v)) for v in itertools.product(*values.T.tolist())} - {*ids.tolist()}
        if mixed:
            rows.append(row)
            expected.append(min(scores[row, ids]) > max(scores[row, list(mixed)]))
    beaten, at = swaps_beaten(scores, scenes)
    np.testing.assert_array_equal(at, rows)
    np.testing.assert_array_equal(beaten, expected)
    if rows:
        assert swap_accuracy(scores, scenes) == pytest.approx(np.mean(expected))


def test_the_last_object_is_no_distractor_of_scenes_with_fewer_swaps():
    """Missing swaps are -1, which numpy would read as the last object."""
    space = ConceptSpace.grid(3, 2)
    scenes = SceneSet(space, [[0, 3]])  # they share a value of one concept of three
    scores = np.zeros((1, 8))
    scores[0, [0, 3]], scores[0, 7] = 1, 2
    np.testing.assert_array_equal(swaps_beaten(scores, scenes)[0], [True])


def test_chance_for_pairs_is_a_sixth():
    scenes = sample_scenes(ConceptSpace.grid(2, 20), 20_000)
    scores = np.random.default_rng(0).random((len(scenes), 400))
    assert swap_accuracy(scores, scenes) == pytest.approx(1 / 6, abs=0.01)


def test_what_swaps_refuse():
    alike = SceneSet(GRID, [[0, 1], [4, 4]])  # one value in common, one object twice
    beaten, rows = swaps_beaten(np.zeros((2, 9)), alike)
    assert (beaten.shape, rows.shape) == ((0,), (0,))
    with pytest.raises(ValueError, match="none of the scenes has a swapped object"):
        swap_accuracy(np.zeros((2, 9)), alike)
    with pytest.raises(ValueError, match=r"shape \(2, 9\), one column an object, got \(2, 8\)"):
        swap_accuracy(np.zeros((2, 8)), alike)
    with pytest.raises(ValueError, match="got NaN in row 1"):
        swaps_beaten(np.array([[0.0] * 9, [0.0] * 8 + [np.nan]]), alike)
    single = all_scenes(GRID, 1)
    assert len(swaps_beaten(np.zeros((9, 9)), single)[0]) == 0


# --- retrieval


@given(st.integers(0, 2**16), st.sampled_from([np.float32, np.float64]))
def test_retrieved_against_a_loop(seed, dtype):
    rng = np.random.default_rng(seed)
    bank = rng.normal(size=(12, 3)).astype(dtype)
    bank[7] = bank[2]  # one scene drawn twice
    queries = rng.normal(size=(9, 3)) + 2 * bank[:9]
    truth = rng.integers(12, size=9)

    def cosine(x, y):
        return x @ y / np.sqrt((x @ x) * (y @ y))

    expected = []
    for x, t in zip(queries, truth, strict=True):
        best = max(range(12), key=lambda row: cosine(x, bank[row].astype(float)))
        expected.append(best == t or {best, t} == {2, 7})
    np.testing.assert_array_equal(retrieved(queries, bank, truth), expected)
    lengths = rng.uniform(0.1, 10, size=(12, 1)).astype(dtype)
    lengths[7] = lengths[2]
    scaled = retrieved(5 * queries, bank * lengths, truth)  # a cosine knows no lengths
    np.testing.assert_array_equal(scaled, expected)
    assert retrieval_accuracy(queries, bank, truth) == pytest.approx(np.mean(expected))


def test_each_row_is_its_own_truth_by_default():
    bank = np.random.default_rng(0).normal(size=(700, 8)).astype(np.float32)  # more than one part
    assert retrieved(bank, bank).all()
    assert retrieved(bank[:10], bank).all()
    assert not retrieved(bank[:10], bank, np.arange(1, 11)).any()


def test_zeros_point_nowhere():
    bank = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    predictions = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(retrieved(predictions, bank), [False, False, True])


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([0, 3], r"\(0 to 2\) for each of 2 predictions, got 0 to 3"),
        ([-1, 0], r"\(0 to 2\) for each of 2 predictions, got -1 to 0"),
        ([0], r"for each of 2 predictions, got \(1,\)"),
        ([0.0, 1.0], "true bank rows must be integers, got dtype float64"),
        ([True, False], "true bank rows must be integers, got dtype bool"),
    ],
)
def test_what_retrieval_refuses(truth, message):
    with pytest.raises(ValueError, match=message):
        retrieved(np.ones((2, 2)), np.ones((3, 2)), truth)


def test_shapes_and_numbers_of_retrieval():
    with pytest.raises(ValueError, match="predictions have 2 dimensions, the bank has 3"):
        retrieved(np.ones((2, 2)), np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"\(0 to 2\) for each of 4 predictions"):
        retrieved(np.ones((4, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="must be finite"):
        retrieved(np.ones((2, 2)), np.full((3, 2), np.nan))


# --- intervals


@pytest.mark.parametrize("kind", ["rate", "numbers"])
def test_the_interval_of_a_mean_against_scipy(kind):
    values = np.random.default_rng(1).random(300)
    values = values < 0.8 if kind == "rate" else values
    ours = bootstrap_interval(values, n_resamples=4000)
    theirs = stats.bootstrap(
        (values.astype(float),), np.mean, method="percentile", n_resamples=4000, rng=0
    ).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.006)
    assert ours.high == pytest.approx(theirs.high, abs=0.006)


def test_the_interval_of_r2_against_scipy():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(200, 3)) + 50
    P = Z + rng.normal(size=Z.shape) * 0.5
    errors, spread = ((Z - P) ** 2).sum(axis=1), ((Z - Z.mean(axis=0)) ** 2).sum(axis=1)
    ours = r2_interval(Z.astype(np.float32), P, n_resamples=4000)
    theirs = stats.bootstrap(
        (errors, spread),
        lambda e, s, axis: 1 - e.sum(axis=axis) / s.sum(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=4000,
        rng=0,
    ).confidence_interval
    assert ours.value == pytest.approx(1 - errors.sum() / spread.sum(), abs=1e-5)
    assert ours.low == pytest.approx(theirs.low, abs=0.006)
    assert ours.high == pytest.approx(theirs.high, abs=0.006)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.floats(0.5, 0.99))
def test_an_interval_holds_its_value(outcomes, confidence):
    value, low, high = bootstrap_interval(outcomes, confidence, n_resamples=200)
    assert 0 <= low <= value <= high <= 1
    wide = bootstrap_interval(outcomes, 0.999, n_resamples=200)
    assert wide.low <= low
    assert wide.high >= high


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        interval = bootstrap_interval(rng.random(100) < 0.7, 0.9, n_resamples=200, seed=rng)
        inside += interval.low <= 0.7 <= interval.high
    assert 165 <= inside <= 195


def test_the_seed_decides():
    outcomes = np.random.default_rng(0).random(50)
    assert bootstrap_interval(outcomes, seed=1) == bootstrap_interval(outcomes, seed=1)
    assert bootstrap_interval(outcomes, seed=1) != bootstrap_interval(outcomes, seed=2)


def test_outcomes_that_are_all_alike():
    assert bootstrap_interval([True] * 5) == Estimate(1, 1, 1)
    assert str(bootstrap_interval([True])) == "1.00 [1.00, 1.00]"


def test_resamples_in_which_nothing_varies_do_not_count():
    Z = np.array([[-1.0], [0.0], [1.0]])  # the middle row alone is the mean
    estimate = r2_interval(Z, Z * 0.5)
    assert estimate.value == pytest.approx(0.75)
    np.testing.assert_allclose(estimate, 0.75)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), r"must have shape \(N,\) with N >= 1, got \(0,\)"),
        (([[1, 0]],), r"got \(1, 2\)"),
        (([1, np.nan],), "must be finite, got nan in row 1"),
        (([1, 0], 95), "confidence must be between 0 and 1, got 95"),
        (([1, 0], np.nan), "confidence must be between 0 and 1, got nan"),
        (([1, 0], 0.9, 0), "n_resamples must be an integer of at least 1, got 0"),
    ],
)
def test_what_the_interval_of_a_mean_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(*arguments)


def test_what_the_interval_of_r2_refuses():
    Z = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(ValueError, match=r"share one shape, got \(5, 3\), \(5, 1\)"):
        r2_interval(Z, Z[:, :1])  # numpy would broadcast it
    with pytest.raises(ValueError, match=r"share one shape, got \(5, 3\), \(4, 3\)"):
        r2_interval(Z, Z[:4])
    with pytest.raises(ValueError, match="two embeddings that differ, got 1 alike"):
        r2_interval(Z[:1], Z[:1])
