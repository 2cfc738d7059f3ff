"""Edits and removals: exact where embeddings are exactly additive, and tables that tell so."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding_lib import (
    AdditiveDecomposition,
    ConceptSpace,
    LinearProbe,
    SceneSet,
    all_scenes,
    edit,
    remove,
    sample_scenes,
)
from binding_lib.concepts import OBJECT
from binding_lib.cross_modal import has_swap
from binding_lib.readings import read_probes
from binding_lib.surgery import COMPONENTS, edit_table, removal_table, replace_object

SPACE = ConceptSpace({"colour": ["red", "blue", "gray"], "shape": ["cube", "ball", "cone", "ring"]})
D = 40


def vectors(space=SPACE, n_slots=1, bound=True, seed=0):
    """u for each slot and object: concept vectors and, if bound, something of each object's own."""
    rng = np.random.default_rng(seed)
    values = space.values(np.arange(space.n_objects))
    parts = [
        rng.normal(size=(n_slots, size, D))[:, values[:, k]] for k, size in enumerate(space.sizes)
    ]
    return sum(parts) + bound * rng.normal(size=(n_slots, space.n_objects, D))


def embed(scenes, u, mean=3.0):
    slots = np.arange(scenes.n_slots) % len(u)
    return mean + u[slots, scenes.object_ids].sum(axis=1)


def spread(Z):
    return np.square(Z - Z.mean(axis=0)).sum() / len(Z)


@pytest.mark.parametrize("estimator", ["avg", "avg+pos", "single-obj", "least-squares"])
@given(seed=st.integers(0, 1000), n_objects=st.integers(1, 3))
def test_edits_are_exact_on_sums(estimator, seed, n_objects):
    space = ConceptSpace.grid(2, 2)
    u = vectors(space, n_slots=n_objects if estimator == "avg+pos" else 1, seed=seed)
    scenes = all_scenes(space, n_objects)
    Z = embed(scenes, u)
    alone = all_scenes(space, 1)
    singles = (alone, embed(alone, u)) if estimator == "single-obj" else None
    decomposition = AdditiveDecomposition("object", estimator).fit(scenes, Z, singles)
    rng = np.random.default_rng(seed)
    slot, new = int(rng.integers(n_objects)), rng.integers(4, size=len(scenes))
    target = replace_object(scenes, slot, new)
    np.testing.assert_array_equal(target.object_ids[:, slot], new)
    kept = np.delete(np.arange(n_objects), slot)
    np.testing.assert_array_equal(target.object_ids[:, kept], scenes.object_ids[:, kept])
    edited = edit(Z, scenes, slot, new, decomposition)
    np.testing.assert_allclose(edited, embed(target, u), atol=1e-9)
    half = edit(Z, scenes, slot, new, decomposition, strength=0.5)
    np.testing.assert_allclose(half, (Z + edited) / 2, atol=1e-9)
    np.testing.assert_allclose(edit(Z, scenes, slot, new, decomposition, strength=0), Z)


def test_what_is_not_additive_stays_through_an_edit():
    scenes = sample_scenes(SPACE, 200, seed=1)
    noise = np.random.default_rng(2).normal(size=(200, D))
    u = vectors()
    decomposition = AdditiveDecomposition().fit(all_scenes(SPACE), embed(all_scenes(SPACE), u))
    edited = edit(embed(scenes, u) + noise, scenes, 1, 5, decomposition)
    expected = embed(replace_object(scenes, 1, 5), u) + noise
    np.testing.assert_allclose(edited, expected, atol=1e-9)


def test_wrong_edits():
    scenes = all_scenes(SPACE)
    Z = embed(scenes, vectors())
    fitted = AdditiveDecomposition().fit(scenes, Z)
    with pytest.raises(ValueError, match="slot must be from 0 to 1, got 2"):
        edit(Z, scenes, 2, 0, fitted)
    with pytest.raises(ValueError, match="slot must be an integer"):
        edit(Z, scenes, -1, 0, fitted)
    with pytest.raises(ValueError, match="object id 12 is outside the space"):
        edit(Z, scenes, 0, 12, fitted)
    with pytest.raises(ValueError, match=r"one id or 144 ids, got shape \(3,\)"):
        edit(Z, scenes, 0, [1, 2, 3], fitted)
    with pytest.raises(ValueError, match="new_object must be integers"):
        edit(Z, scenes, 0, 1.5, fitted)
    with pytest.raises(ValueError, match="got 9 embeddings for 144 scenes"):
        edit(Z[:9], scenes, 0, 1, fitted)
    for d in (1, 7):
        with pytest.raises(ValueError, match=f"fitted on 40 dimensions, got {d}"):
            edit(Z[:, :d], scenes, 0, 1, fitted)
    for strength in (np.nan, np.inf, "1", [1.0]):
        with pytest.raises(ValueError, match="strength must be a finite number"):
            edit(Z, scenes, 0, 1, fitted, strength)
    some = scenes[[0, 1, 12]]
    few = AdditiveDecomposition().fit(some, embed(some, vectors()))
    with pytest.raises(ValueError, match="fit never saw 'gray ring'"):
        edit(embed(some, vectors()), some, 0, 11, few)


@given(seed=st.integers(0, 1000), n_slots=st.integers(1, 2), bound=st.booleans())
def test_removal_is_exact_on_sums(seed, n_slots, bound):
    """With vectors for each slot or for all, from a sample that is not balanced."""
    space = ConceptSpace.grid(2, 3)
    u = vectors(space, n_slots, bound, seed)
    scenes = sample_scenes(space, 300, n_objects=2, seed=seed)
    Z = embed(scenes, u)
    assert spread(remove(Z, scenes, "object")) < 1e-12
    left = spread(remove(Z, scenes, "concept"))
    assert left > 1 if bound else left < 1e-12
    for component in COMPONENTS:
        rest = remove(Z, scenes, component)
        np.testing.assert_allclose(rest.mean(axis=0), Z.mean(axis=0), atol=1e-6)


def test_the_concept_component_is_part_of_the_object_component():
    scenes = sample_scenes(SPACE, 400, seed=1)
    Z = embed(scenes, vectors()) + np.random.default_rng(3).normal(size=(400, D))
    without = remove(Z, scenes, "object")
    again = remove(remove(Z, scenes, "concept"), scenes, "object")
    np.testing.assert_allclose(again, without, atol=1e-8)
    # Nothing additive is left that a second removal could find.
    np.testing.assert_allclose(remove(without, scenes, "concept"), without, atol=1e-8)


def test_the_control_takes_little_and_depends_on_the_seed():
    scenes = sample_scenes(SPACE, 4000, seed=1)
    Z = embed(scenes, vectors())
    for component, n_vectors in [("concept", 2 * 7), ("object", 2 * 12)]:
        control = remove(Z, scenes, component, permuted=True)
        # Of N scenes, as large a share as there are vectors.
        assert 1 - spread(control) / spread(Z) < 2 * n_vectors / len(scenes)
        np.testing.assert_array_equal(control, remove(Z, scenes, component, permuted=True, seed=0))
        assert (control != remove(Z, scenes, component, permuted=True, seed=1)).any()


@pytest.fixture(scope="module")
def data():
    scenes = sample_scenes(SPACE, 1500, seed=1)
    Z = embed(scenes, vectors(seed=4))
    return (scenes[:1200], Z[:1200]), (scenes[1200:], Z[1200:])


def test_removal_table(data):
    table = removal_table(*data)
    assert list(table) == ["removed", "permuted", "reading", "value", "low", "high", "n_scenes"]
    assert len(table) == 5 * 4
    value = table.set_index(["removed", "permuted", "reading"])["value"].sort_index()
    assert (value["nothing", False] == 1).all()
    assert (value["concept", True] > 0.97).all()
    assert (value["object", True] > 0.97).all()
    # Objects are found, and told from their swaps, by what each has of its own.
    assert value["concept", False, "probe: object"] == 1
    assert value["concept", False, "probe: swap"] == 1
    # Nothing is left to read: two colours of three are guessed more often than two objects, and
    # one of two pairs more often still.
    assert value["object", False, "probe: object"] < 0.1
    assert (value["object", False].drop("probe: swap") < 0.5).all()
    assert value["object", False, "probe: swap"] < 0.7
    alone = [LinearProbe(t).fit(*data[0]) for t in ("colour", "shape", OBJECT)]
    pd.testing.assert_frame_equal(
        table.query("removed == 'nothing' and reading != 'probe: swap'")[["reading", "value"]],
        read_probes(data[1], alone)[["reading", "value"]],
    )
    assert set(table["n_scenes"]) == {300, has_swap(data[1][0]).sum()}


def test_binding_is_gone_where_vectors_are_sums_of_concepts():
    """Concepts are read from such embeddings, swaps are a toss-up, and removal leaves nothing."""
    scenes = sample_scenes(SPACE, 1500, seed=1)
    Z = embed(scenes, vectors(bound=False)) + np.random.default_rng(2).normal(size=(1500, D)) / 9
    table = removal_table((scenes[:1000], Z[:1000]), (scenes[1000:], Z[1000:]))
    value = table.query("not permuted").set_index(["removed", "reading"])["value"]
    assert value["nothing", "probe: colour"] > 0.98
    assert 0.3 < value["nothing", "probe: swap"] < 0.7
    assert value["concept", "probe: object"] < 0.1


def test_edit_table(data):
    train, test = data
    alone = all_scenes(SPACE, 1)
    singles = (alone, embed(alone, vectors(seed=4)))
    probes = [LinearProbe(target).fit(*train) for target in (OBJECT, "colour")]
    table = edit_table(train, test, singles, probes, strengths=[0.0, 1.0])
    assert list(table) == [
        "estimator", "strength", "reading", "value", "low", "high", "n_edits",
    ]  # fmt: skip
    assert len(table) == 3 * 2 * 3
    assert set(table["n_edits"]) == {300}
    value = table.set_index(["strength", "estimator", "reading"])["value"].sort_index()
    assert (value[1.0] > 0.98).all()
    assert (value[1.0, "single-obj"] == 1).all()
    # Without an edit, the scene before it is found.
    assert (value[0.0].xs("retrieval", level="reading") == 0).all()
    assert (value[0.0].xs("probe: object", level="reading") == 0).all()
    # The same edits whatever else is asked, and others with another seed.
    noisy = (test[0], test[1] + np.random.default_rng(0).normal(size=test[1].shape))
    assert edit_table(train, noisy).equals(edit_table(train, noisy))
    assert not edit_table(train, noisy).equals(edit_table(train, noisy, seed=1))
    assert list(edit_table(train, noisy)["estimator"]) == ["avg", "avg+pos"]


def test_the_table_agrees_with_edits_by_hand(data):
    train, _ = data
    scenes = all_scenes(SPACE)
    Z = embed(scenes, vectors(seed=4)) + np.random.default_rng(0).normal(size=(144, D))
    table = edit_table(train, (scenes, Z), estimators=["avg"])
    fitted = AdditiveDecomposition().fit(*train)
    # Every edit that there may be; the table draws one for each scene.
    right = []
    for row, ids in enumerate(scenes.object_ids):
        hits = []
        for other, new in enumerate(scenes.object_ids):
            if (ids != new).sum() == 1:
                slot = int(np.flatnonzero(ids != new)[0])
                z = edit(Z[row][None], scenes[row], slot, new[slot], fitted)[0]
                cosine = Z @ z / np.linalg.norm(Z, axis=1)
                hits.append(cosine.argmax() == other)
        right.append(np.mean(hits))
    (value,) = table["value"]
    assert 0.2 < value < 0.95
    assert abs(value - np.mean(right)) < 0.1


def test_scenes_of_one_object_and_scenes_without_neighbours(data):
    alone = all_scenes(SPACE, 1)
    Z = embed(alone, vectors())
    table = edit_table((alone, Z), (alone, Z))
    assert (table["value"] == 1).all()
    assert set(table["n_edits"]) == {12}
    far = SceneSet(SPACE, [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="no two test scenes differ in one slot alone"):
        edit_table((far, Z[:2]), (far, Z[:2]))
    near = SceneSet(SPACE, [[0, 1], [0, 2]])
    with pytest.raises(ValueError, match="each of 2 edits needs an object that fit never saw"):
        edit_table((far[:1], Z[:1]), (near, Z[:2]))


def test_removal_costs_what_occurs_and_not_what_might():
    scenes = sample_scenes(ConceptSpace.grid(4, 40), 50)  # of 2.56 million objects
    Z = np.random.default_rng(0).normal(size=(50, 8))
    left = remove(Z, scenes, "object")
    np.testing.assert_allclose(left, np.tile(Z.mean(axis=0), (50, 1)), atol=1e-9)


def test_wrong_removals():
    scenes = all_scenes(SPACE, 1)
    with pytest.raises(ValueError, match=r"unknown component 'objects'.*Did you mean 'object'"):
        remove(embed(scenes, vectors()), scenes, "objects")
    with pytest.raises(ValueError, match="got 3 embeddings for 12 scenes"):
        remove(np.ones((3, 2)), scenes)
