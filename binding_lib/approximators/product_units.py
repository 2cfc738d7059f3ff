"""A network whose hidden units multiply where an MLP's add: products in whatever basis fits."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from binding_lib.approximators.mlp import MLPApproximator


class _Products(nn.Module):
    """A factor for each value in each slot -> their products -> embedding."""

    def __init__(self, n_inputs: int, width: int, dim: int) -> None:
        super().__init__()
        self.factors = nn.Embedding(n_inputs, width)
        nn.init.normal_(self.factors.weight, std=0.5)
        self.out = nn.Linear(width, dim)

    def forward(self, columns: Int[Tensor, "N mC"]) -> Float[Tensor, "N d"]:
        # Kept as differences from 1, so that weight decay draws each factor to having no say.
        return self.out((1 + self.factors(columns)).prod(dim=1) - 1)


class ProductUnitsApproximator(MLPApproximator):
    """Like `MLPApproximator`, but each hidden unit is a product of one factor for each value.

    With slots i, concepts k and values c_ik, unit h is ``prod_i prod_k w[i, k, c_ik, h]``, and the
    embedding is a linear map of all units. `ProductApproximator` multiplies within each dimension
    of the embedding; here the products may lie along any direction. Factors may stay at 1, so a
    unit can also be the product of an object's values alone, or one value by itself. For the same
    width there are as many parameters as in the MLP, but for its hidden biases.

    Parameters
    ----------
    width : int
        Hidden units.
    seed : int
        Of the first weights, the batches and the validation scenes.
    max_epochs : int
        Passes over the training scenes at most.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, sample_scenes
    >>> scenes = sample_scenes(ConceptSpace.grid(2, 3), 300)
    >>> Z = scenes.present("object").astype(float)
    >>> ProductUnitsApproximator(32).fit(scenes, Z).score(scenes, Z) > 0.95
    True
    """

    def __init__(self, width: int = 256, seed: int = 0, *, max_epochs: int = 200) -> None:
        super().__init__(width, seed, max_epochs=max_epochs)
        self.name = f"product-units-{width}"

    def _network_of(self, n_inputs: int, n_active: int, dim: int) -> nn.Module:
        return _Products(n_inputs, self.width, dim)
