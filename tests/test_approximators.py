"""Rules and lists: what each form can and cannot recover, and the contract that all keep."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from binding_lib import (
    ConceptSpace,
    MLPApproximator,
    ProductApproximator,
    SceneSet,
    TreeApproximator,
    all_scenes,
    sample_scenes,
    swaps,
)
from binding_lib.approximators import make_approximator
from binding_lib.approximators.base import slot_columns
from binding_lib.approximators.products import FORMS
from binding_lib.approximators.sums_of_products import SumOfProducts, evaluate
from binding_lib.encoders import MissingExtraError

UNEQUAL = ConceptSpace({"colour": list("rgbyk"), "shape": list("cbo"), "size": list("sl")})
SMALL = {
    "additive": lambda seed=0: ProductApproximator("additive", seed),
    "per-object": lambda seed=0: ProductApproximator("per-object", seed, max_iter=20),
    "global": lambda seed=0: ProductApproximator("global", seed, restarts=1, max_iter=20),
    "mlp-24": lambda seed=0: MLPApproximator(24, seed, max_epochs=100),
    "xgboost": lambda seed=0: TreeApproximator("xgboost", seed, n_trees=20),
    "random-forest": lambda seed=0: TreeApproximator("random-forest", seed, n_trees=10),
}


def world(form, space, m, d=5, seed=0):
    """Embeddings of exactly one form, written out scene by scene from its formula."""
    rng = np.random.default_rng(seed)
    u, v, w = (
        [rng.normal(centre, spread, size=(m, size, d)) for size in space.sizes]
        for centre, spread in ((0, 0.7), (0, 1), (1, 0.7))
    )

    def embed(scenes):
        Z = np.zeros((len(scenes), d))
        for row, values in zip(Z, scenes.values, strict=True):
            row += sum(u[k][0, c] for o in values for k, c in enumerate(o))
            if form != "additive":
                for i, o in enumerate(values):
                    row += np.prod([v[k][i, c] for k, c in enumerate(o)], axis=0)
            if form == "global":
                factors = [w[k][i, c] for i, o in enumerate(values) for k, c in enumerate(o)]
                row += np.prod(factors, axis=0)
        return Z

    return embed


@pytest.mark.parametrize(
    ("space", "m"), [(ConceptSpace.grid(2, 6), 2), (UNEQUAL, 2), (ConceptSpace.grid(2, 4), 3)]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_recovered_by_itself_and_by_no_weaker_one(space, m, form):
    split = space.split(0.75, seed=1)
    train = sample_scenes(space, 900, m, ids=split.train, seed=0)
    test = sample_scenes(space, 100, m, ids=split.held_out, seed=1)
    embed = world(form, space, m)
    scores = {
        f: ProductApproximator(f, restarts=8).fit(train, embed(train)).score(test, embed(test))
        for f in FORMS
    }
    at = FORMS.index(form)
    assert scores[form] > 0.98
    assert all(scores[weaker] < 0.95 for weaker in FORMS[:at])
    assert all(scores[stronger] > 0.98 for stronger in FORMS[at:])


@given(
    st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([UNEQUAL, ConceptSpace.grid(2, 4)])
)
@settings(max_examples=20)
def test_the_closed_form_is_least_squares(seed, m, space):
    scenes = sample_scenes(space, 150, m, seed=seed)
    Z = np.random.default_rng(seed).normal(size=(150, 3)) + 5
    fitted = ProductApproximator("additive").fit(scenes, Z)
    design = np.zeros((150, sum(space.sizes)))
    for row, values in zip(design, scenes.values, strict=True):
        for value in values:
            for k, c in enumerate(value):
                row[sum(space.sizes[:k]) + c] += 1
    solution = np.linalg.lstsq(design, Z)[0]
    np.testing.assert_allclose(fitted.predict(scenes), design @ solution, atol=1e-8)
    assert fitted.n_parameters_ == 3 * (1 + sum(space.sizes))


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_a_sum_cannot_bind(seed):
    space = ConceptSpace.grid(2, 4)
    scenes = sample_scenes(space, 200, seed=seed)
    Z = np.random.default_rng(seed).normal(size=(200, 3))
    fitted = ProductApproximator("additive").fit(scenes, Z)
    swapped = swaps(scenes)
    both = (swapped >= 0).all(axis=1)
    np.testing.assert_allclose(
        fitted.predict(scenes[both]), fitted.predict(SceneSet(space, swapped[both])), atol=1e-9
    )


def test_a_product_tells_swaps_apart():
    space = ConceptSpace.grid(2, 4)
    scenes = all_scenes(space)
    embed = world("per-object", space, 2)
    fitted = ProductApproximator("per-object").fit(scenes, embed(scenes))
    one, other = (SceneSet(space, [ids]) for ids in ([0, 5], [1, 4]))
    assert np.linalg.norm(fitted.predict(one) - fitted.predict(other)) > 0.1


def test_products_are_the_formula_of_their_vectors():
    scenes = sample_scenes(UNEQUAL, 300, 2)
    fitted = ProductApproximator("global", max_iter=5).fit(
        scenes, world("global", UNEQUAL, 2)(scenes)
    )
    offsets = [0, 5, 8]
    u, v, w = fitted.sums_, fitted.object_products_, fitted.scene_products_
    assert (u.shape, v.shape, w.shape) == ((10, 5), (2, 10, 5), (2, 10, 5))
    assert fitted.n_parameters_ == 5 + u.size + v.size + w.size
    for row, values in zip(fitted.predict(scenes[:10]), scenes.values[:10], strict=True):
        at = values + offsets  # (m, C)
        expected = u[at].sum(axis=(0, 1))
        expected = expected + sum(v[i, at[i]].prod(axis=0) for i in range(2))
        expected = expected + np.prod([w[i, at[i]].prod(axis=0) for i in range(2)], axis=0)
        np.testing.assert_allclose(row, fitted.mean_ + fitted.scale_ * expected)


def test_the_solver_finds_what_scipy_finds():
    space = ConceptSpace.grid(2, 3)
    scenes = sample_scenes(space, 80, 2)
    columns = slot_columns(scenes)  # two factors in the first slot, two in the second
    terms = [columns[:, :1], columns[:, :2], columns]
    rng = np.random.default_rng(0)
    targets, start, l2 = rng.normal(size=(80, 70)), rng.normal(size=(12, 70)), 1e-2
    problem = SumOfProducts(terms, 12, l2, tolerance=1e-10, max_iter=500)
    found = problem.solve(targets, start)
    assert found.converged.all()
    for j in (0, 69):  # the first dimension of the first batch, the last of the second

        def residuals(theta, j=j):
            rest = evaluate(terms, theta[:, None])[:, 0] - targets[:, j]
            return np.concatenate([rest / np.sqrt(80), np.sqrt(l2) * theta])

        assert np.square(residuals(found.parameters[:, j])).sum() == pytest.approx(found.loss[j])
        # From where the solver ended, an independent one finds nothing better nearby.
        other = scipy.optimize.least_squares(residuals, found.parameters[:, j], xtol=1e-12)
        assert 2 * other.cost == pytest.approx(found.loss[j], rel=1e-6)
        assert 2 * other.cost < np.square(residuals(start[:, j])).sum()


def test_too_few_steps_are_no_convergence():
    scenes = sample_scenes(ConceptSpace.grid(2, 4), 200)
    Z = world("global", scenes.space, 2)(scenes)
    assert ProductApproximator("global", max_iter=1).fit(scenes, Z).converged_ == 0
    assert ProductApproximator("global", max_iter=300).fit(scenes, Z).converged_ > 0.7


def test_more_restarts_never_fit_worse():
    scenes = sample_scenes(ConceptSpace.grid(2, 4), 200)
    Z = world("global", scenes.space, 2)(scenes)
    once, often = (ProductApproximator(restarts=r).fit(scenes, Z) for r in (1, 4))
    assert often.score(scenes, Z) >= once.score(scenes, Z) - 1e-3


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("m", [1, 3])
def test_the_contract(make, m):
    scenes = sample_scenes(UNEQUAL, 240, m, seed=2)
    Z = world("per-object", UNEQUAL, m)(scenes).astype(np.float32)
    Z[:, 3] = 2.5  # a dimension in which nothing varies
    approximator = make()
    assert approximator.fit(scenes, Z) is approximator
    predicted = approximator.predict(scenes[:50])
    assert predicted.shape == (50, 5)
    np.testing.assert_allclose(predicted[:, 3], 2.5, atol=0.2)
    assert approximator.predict(scenes[:0]).shape == (0, 5)
    error = np.square(Z - approximator.predict(scenes)).sum()
    r2 = 1 - error / np.square(Z - Z.mean(axis=0)).sum()
    assert approximator.score(scenes, Z) == pytest.approx(r2, abs=1e-5)
    assert r2 > 0.1
    assert approximator.n_parameters_ > 0
    np.testing.assert_array_equal(make().fit(scenes, Z).predict(scenes[:50]), predicted)


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_what_does_not_fit_is_refused(make):
    scenes = sample_scenes(UNEQUAL, 100)
    Z = np.random.default_rng(0).normal(size=(100, 4))
    with pytest.raises(ValueError, match="not fitted yet"):
        make().predict(scenes)
    with pytest.raises(ValueError, match="got 99 embeddings for 100 scenes"):
        make().fit(scenes, Z[:99])
    with pytest.raises(ValueError, match="NaN or infinity"):
        make().fit(scenes, np.where(Z > 2, np.nan, Z))
    with pytest.raises(ValueError, match="at least 2 scenes"):
        make().fit(scenes[:1], Z[:1])
    fitted = make().fit(scenes, Z)
    with pytest.raises(ValueError, match=r"fitted on ConceptSpace\(colour"):
        fitted.predict(sample_scenes(ConceptSpace.grid(2, 4), 5))
    with pytest.raises(ValueError, match="fitted on scenes of 2 objects, got scenes of 3"):
        fitted.predict(sample_scenes(UNEQUAL, 5, 3))
    with pytest.raises(ValueError, match="fitted on 4 dimensions, got 3"):
        fitted.score(scenes, Z[:, :3])


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_values_that_training_lacks_are_named_one_by_one(make):
    ids = [i for i in range(30) if UNEQUAL.values(i)[0] not in (1, 4) and UNEQUAL.values(i)[2] == 0]
    scenes = sample_scenes(UNEQUAL, 60, ids=ids)
    expected = "the 60 training scenes never show colour 'g', 'k'; size 'l'; expected every value"
    with pytest.raises(ValueError, match=expected):
        make().fit(scenes, np.random.default_rng(0).normal(size=(60, 3)))


def test_a_network_knows_the_order_of_objects():
    scenes = sample_scenes(ConceptSpace.grid(2, 4), 500)
    Z = np.eye(16)[scenes.object_ids[:, 0]]  # only the first object counts
    fitted = MLPApproximator(128).fit(scenes, Z)
    assert fitted.score(scenes, Z) > 0.9
    assert fitted.n_parameters_ == 16 * 128 + 128 + 128 * 16 + 16 + 16
    assert ProductApproximator("additive").fit(scenes, Z).score(scenes, Z) < 0.3


def test_a_network_stops_when_validation_gains_nothing():
    scenes = sample_scenes(ConceptSpace.grid(2, 4), 100)
    noise = np.random.default_rng(0).normal(size=(100, 3))
    assert 40 <= MLPApproximator(64, max_epochs=1000).fit(scenes, noise).n_epochs_ < 200


def test_networks_differ_by_seed():
    scenes = sample_scenes(UNEQUAL, 100)
    Z = world("additive", UNEQUAL, 2)(scenes)
    one, other = (MLPApproximator(16, seed, max_epochs=2).fit(scenes, Z) for seed in (0, 1))
    assert not np.allclose(one.predict(scenes), other.predict(scenes))


def test_a_forest_counts_its_numbers():
    scenes = sample_scenes(ConceptSpace.grid(2, 3), 200)
    Z = world("per-object", scenes.space, 2)(scenes)
    fitted = TreeApproximator("random-forest", n_trees=3, n_components=2).fit(scenes, Z)
    trees = [tree.tree_ for tree in fitted._trees.estimators_]
    leaves = sum(int((tree.children_left == -1).sum()) for tree in trees)
    splits = sum(tree.node_count for tree in trees) - leaves
    assert fitted.n_parameters_ == 2 * splits + 2 * leaves + 2 * 5 + 5


def test_boosted_trees_are_multi_output_trees():
    scenes = sample_scenes(ConceptSpace.grid(2, 3), 200)
    Z = world("per-object", scenes.space, 2)(scenes)
    fitted = TreeApproximator("xgboost", n_trees=1, n_components=4).fit(scenes, Z)
    (tree,) = fitted._trees.get_booster().get_dump()
    leaves, splits = tree.count("leaf="), tree.count("yes=")
    assert splits == leaves - 1  # one tree for all four components
    assert fitted.n_parameters_ == 2 * splits + 4 * leaves + 4 * 5 + 5


def test_without_xgboost_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    scenes = sample_scenes(UNEQUAL, 100)
    with pytest.raises(MissingExtraError, match=r"binding_lib\[trees\]"):
        TreeApproximator("xgboost").fit(scenes, world("additive", UNEQUAL, 2)(scenes))


@pytest.mark.parametrize("name", [*SMALL, "mlp-4096"])
def test_names_make_approximators(name):
    approximator = make_approximator(name, seed=3)
    assert (approximator.name, approximator.seed) == (name, 3)


def test_an_approximator_shows_what_it_was_told():
    assert (
        repr(MLPApproximator(64, max_epochs=5)) == "MLPApproximator(width=64, seed=0, max_epochs=5)"
    )
    for make in SMALL.values():  # as could be typed
        again = eval(repr(make(3)), vars(__import__("binding_lib")))
        assert again.settings == make(3).settings


def test_unknown_names_and_settings():
    with pytest.raises(ValueError, match=r"unknown approximator 'aditive'.*mean 'additive'"):
        make_approximator("aditive")
    with pytest.raises(ValueError, match="unknown form"):
        ProductApproximator("sum")
    with pytest.raises(ValueError, match="unknown kind of trees"):
        TreeApproximator("forest")
    with pytest.raises(ValueError, match="l2 must be a number above 0, got 0"):
        ProductApproximator(l2=0)
    with pytest.raises(ValueError, match="width must be an integer of at least 1"):
        MLPApproximator(0)
