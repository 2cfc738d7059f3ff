"""Networks of product units: products in any basis, and the contract of the approximators."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from binding_lib import (
    ConceptSpace,
    MLPApproximator,
    ProductApproximator,
    ProductUnitsApproximator,
    sample_scenes,
)
from binding_lib.approximators import make_approximator
from binding_lib.hand_built import ProductCode

SPLIT = ConceptSpace.grid(2, 12).split(0.8, seed=0)
CODE = ProductCode(SPLIT.space, dim=16)
TRAIN = sample_scenes(SPLIT.space, 3000, ids=SPLIT.train)
TEST = sample_scenes(SPLIT.space, 100, ids=SPLIT.held_out)


@pytest.fixture(scope="module")
def fitted():
    return ProductUnitsApproximator(64).fit(TRAIN, CODE.encode_scenes(TRAIN))


def test_products_along_any_direction_are_found():
    """A rotation hides the products from a form that multiplies within each dimension."""
    turn = ortho_group.rvs(CODE.dim, random_state=0)
    train, test = CODE.encode_scenes(TRAIN) @ turn, CODE.encode_scenes(TEST) @ turn
    units = ProductUnitsApproximator(64).fit(TRAIN, train).score(TEST, test)
    within = ProductApproximator("per-object").fit(TRAIN, train).score(TEST, test)
    assert units > 0.9
    assert within < 0.5


def test_held_out_objects_of_a_product_code_are_predicted(fitted):
    assert fitted.score(TEST, CODE.encode_scenes(TEST)) > 0.9


def test_parameters_are_the_factors_the_map_and_the_mean(fitted):
    factors, linear_map, biases, mean = 2 * 24 * 64, 64 * 16, 16, 16
    assert fitted.n_parameters_ == factors + linear_map + biases + mean
    mlp = MLPApproximator(64, max_epochs=1).fit(TRAIN, CODE.encode_scenes(TRAIN))
    assert mlp.n_parameters_ == fitted.n_parameters_ + 64


def test_the_same_seed_gives_the_same_fit(fitted):
    again = ProductUnitsApproximator(64).fit(TRAIN, CODE.encode_scenes(TRAIN))
    assert np.array_equal(again.predict(TEST), fitted.predict(TEST))


def test_its_name_makes_it():
    made = make_approximator("product-units-40", seed=3)
    assert made.settings == ProductUnitsApproximator(40, 3).settings
    assert made.name == "product-units-40"


@pytest.mark.parametrize("name", ["product-units", "product-units-", "product-units-x"])
def test_a_name_without_a_width_is_refused(name):
    with pytest.raises(ValueError, match="approximator"):
        make_approximator(name)
