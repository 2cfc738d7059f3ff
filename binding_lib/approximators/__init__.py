"""Answers 2 and 3: how complex is a binding function, and what form does it take?

An approximator predicts a scene's embedding from the concept values of its objects alone. What it
gets right on objects that it never saw, it got by a rule.
"""

from __future__ import annotations

from binding_lib.approximators.base import Approximator
from binding_lib.approximators.mlp import MLPApproximator
from binding_lib.approximators.product_units import ProductUnitsApproximator
from binding_lib.approximators.products import FORMS, ProductApproximator
from binding_lib.approximators.trees import KINDS, TreeApproximator
from binding_lib.checks import unknown_name

__all__ = [
    "Approximator",
    "MLPApproximator",
    "ProductApproximator",
    "ProductUnitsApproximator",
    "TreeApproximator",
    "make_approximator",
]

_NETWORKS = {"mlp": MLPApproximator, "product-units": ProductUnitsApproximator}


def make_approximator(name: str, seed: int = 0) -> Approximator:
    """Make an approximator by the name that tables give it.

    Parameters
    ----------
    name : str
        "additive", "per-object", "global", "xgboost", "random-forest", or, with a hidden layer of
        256 units, "mlp-256" and "product-units-256".
    seed : int

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name in FORMS:
        return ProductApproximator(name, seed)
    if name in KINDS:
        return TreeApproximator(name, seed)
    kind, _, width = name.rpartition("-")
    if kind in _NETWORKS and width.isdecimal():
        return _NETWORKS[kind](int(width), seed)
    known = [*FORMS, *KINDS, *(f"{kind}-256" for kind in _NETWORKS)]
    raise unknown_name("approximator", name, known)
