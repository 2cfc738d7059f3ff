"""Least squares for a sum of products: each summand multiplies parameters looked up in one table.

With parameters theta (P, d) and terms t, whose factors f of scene s look up row ``c[t][s, f]``::

    g[s] = sum over t of the product over f of theta[c[t][s, f]]      element by element, (d,)

Dimensions share nothing, so there are d problems of P unknowns each. They are solved side by side
by Levenberg and Marquardt's method: the model is replaced by its linear part where the parameters
are now, the normal equations are solved with some damping, and a step is kept if it helps. The
Jacobian has as many numbers in each row as a scene has factors, so the normal equations are sums
over scenes that share a pair of rows: products of sparse indicator matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Bool, Float, Int

Terms = Sequence[Int[np.ndarray, "N factors"]]

_DIMS = 64  # dimensions solved at a time: fewer would waste calls, more would leave the cache


class Solution(NamedTuple):
    """Parameters (P, d), the loss of each dimension (d,), and which dimensions converged (d,)."""

    parameters: Float[np.ndarray, "P d"]
    loss: Float[np.ndarray, " d"]
    converged: Bool[np.ndarray, " d"]


def evaluate(terms: Terms, parameters: Float[np.ndarray, "P d"]) -> Float[np.ndarray, "N d"]:
    """Compute the sum of products for each scene."""
    result = np.zeros((len(terms[0]), parameters.shape[1]))
    for columns in terms:
        result += _product([parameters[column] for column in columns.T])
    return result


class SumOfProducts:
    """The least-squares problem of some terms: see the module.

    Parameters
    ----------
    terms : sequence of int arrays, each of shape (N, number of factors)
        Rows of the parameter table. No two factors of one term may share a row.
    n_parameters : int
        P.
    l2 : float
        The loss of a dimension is the mean squared error plus l2 times the sum of its squared
        parameters, so l2 must be positive: products can be scaled against each other at will.
    tolerance : float
        A dimension has converged when a step lowers its loss by less than this share of it.
    max_iter : int
    """

    def __init__(
        self, terms: Terms, n_parameters: int, l2: float, tolerance: float, max_iter: int
    ) -> None:
        self.terms, self.n_parameters = terms, n_parameters
        self.l2, self.tolerance, self.max_iter = l2, tolerance, max_iter
        factors = [column for columns in terms for column in columns.T]
        is_constant = [columns.shape[1] == 1 for columns in terms for _ in columns.T]
        self._indicators = [_indicator(column, n_parameters) for column in factors]
        self._fixed = np.zeros((n_parameters, n_parameters))
        self._pairs = []
        for a, first in enumerate(factors):
            for b, second in enumerate(factors[: a + 1]):
                keys, place = np.unique(first * n_parameters + second, return_inverse=True)
                rows, columns = np.divmod(keys, n_parameters)
                which = _indicator(place, len(keys))
                if not (is_constant[a] and is_constant[b]):
                    self._pairs.append((a, b, rows, columns, which))
                    continue
                # The Jacobian of a single factor is 1 whatever the parameters are.
                self._fixed[rows, columns] += which.sum(axis=1)
                if a != b:
                    self._fixed[columns, rows] += which.sum(axis=1)

    def solve(self, targets: Float[np.ndarray, "N d"], start: Float[np.ndarray, "P d"]) -> Solution:
        """Find the nearest minimum from a start."""
        parts = [
            self._solve(targets[:, i : i + _DIMS], start[:, i : i + _DIMS])
            for i in range(0, targets.shape[1], _DIMS)
        ]
        return Solution(*(np.concatenate(found, axis=-1) for found in zip(*parts, strict=True)))

    def _solve(self, Y: np.ndarray, start: np.ndarray) -> Solution:
        n, d = Y.shape
        theta, rest = start.copy(), Y - evaluate(self.terms, start)
        loss = self._loss(theta, rest)
        damping, growth = np.full(d, 1e-2), np.full(d, 2.0)
        converged = np.zeros(d, dtype=bool)
        diagonal = np.arange(self.n_parameters)
        for _ in range(self.max_iter):
            at = np.flatnonzero(~converged)
            if len(at) == 0:
                break
            hessian, slope = self._normal_equations(theta[:, at], rest[:, at])
            slope -= self.l2 * n * theta[:, at]
            hessian[diagonal, diagonal] += self.l2 * n
            scale = hessian[diagonal, diagonal].copy()
            hessian[diagonal, diagonal] += damping[at] * scale
            step = _solve_each(hessian, slope)
            tried = theta[:, at] + step
            tried_rest = Y[:, at] - evaluate(self.terms, tried)
            tried_loss = self._loss(tried, tried_rest)
            gained = loss[at] - tried_loss
            better = gained > 0
            # Nielsen's rule: the nearer the gain to what the linear model foretold, the less
            # damping; after a step in vain more, faster each time.
            foretold = (step * (damping[at] * scale * step + slope)).sum(axis=0) / n
            share = gained / np.maximum(foretold, np.finfo(float).tiny)
            eased = np.maximum(1 / 3, 1 - (2 * np.clip(share, 0, 2) - 1) ** 3)
            damping[at] *= np.where(better, eased, growth[at])
            growth[at] = np.where(better, 2.0, 2 * growth[at])
            # Where even a tiny step brings nothing, rounding is all that is left.
            converged[at] = (better & (gained <= self.tolerance * loss[at])) | (damping[at] > 1e9)
            kept = at[better]
            theta[:, kept], rest[:, kept] = tried[:, better], tried_rest[:, better]
            loss[kept] = tried_loss[better]
        return Solution(theta, loss, converged)

    def _loss(self, theta: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return np.square(rest).mean(axis=0) + self.l2 * np.square(theta).sum(axis=0)

    def _normal_equations(
        self, theta: np.ndarray, rest: np.ndarray
    ) -> tuple[Float[np.ndarray, "P P d"], Float[np.ndarray, "P d"]]:
        """J'J and J'rest of each dimension."""
        jacobian = self._jacobian(theta)
        hessian = np.repeat(self._fixed[:, :, None], theta.shape[1], axis=2)
        for a, b, rows, columns, which in self._pairs:
            values = which @ (jacobian[a] * jacobian[b])
            hessian[rows, columns] += values
            if a != b:
                hessian[columns, rows] += values
        slope = np.zeros_like(theta)
        for indicator, derivative in zip(self._indicators, jacobian, strict=True):
            slope += indicator @ (derivative * rest)
        return hessian, slope

    def _jacobian(self, theta: np.ndarray) -> list[Float[np.ndarray, "N d"]]:
        """For each factor of each term, the product of the term's other factors."""
        jacobian = []
        for columns in self.terms:
            values = [theta[column] for column in columns.T]
            for f in range(len(values)):
                others = values[:f] + values[f + 1 :]
                jacobian.append(_product(others) if others else np.ones_like(values[0]))
        return jacobian


def _product(factors: list[np.ndarray]) -> np.ndarray:
    result = factors[0].copy()
    for factor in factors[1:]:
        result *= factor
    return result


def _indicator(places: Int[np.ndarray, " N"], n: int) -> scipy.sparse.csr_array:
    """The (n, N) matrix that sums up scenes by place."""
    scenes = np.arange(len(places))
    return scipy.sparse.csr_array((np.ones(len(places)), (places, scenes)), shape=(n, len(places)))


def _solve_each(
    matrices: Float[np.ndarray, "P P d"], sides: Float[np.ndarray, "P d"]
) -> Float[np.ndarray, "P d"]:
    """Solve d positive definite systems."""
    batch = torch.from_numpy(np.ascontiguousarray(matrices.transpose(2, 0, 1)))
    factor = torch.linalg.cholesky(batch)
    right = torch.from_numpy(np.ascontiguousarray(sides.T))[:, :, None]
    return torch.cholesky_solve(right, factor)[:, :, 0].numpy().T
