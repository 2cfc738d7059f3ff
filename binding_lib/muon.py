"""Muon for many small matrices: those of one shape are orthogonalised together, in float32."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Muon
from torch.optim.optimizer import ParamsT


def orthogonalised(
    matrices: Float[Tensor, "n rows columns"],
    coefficients: tuple[float, float, float],
    steps: int,
    eps: float,
) -> Float[Tensor, "n rows columns"]:
    """Bring the singular values of each matrix near 1, by the Newton-Schulz iteration of Muon."""
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class BatchedMuon(Muon):
    """PyTorch's Muon with its usual settings and the same memory, and fewer and faster products.

    PyTorch's own goes through the matrices one by one and rounds each to bfloat16. Where they are
    as small as here the first costs more than the products; where a processor has no instructions
    for bfloat16, as most laptops' have not, the second makes each product many times slower.

    Parameters
    ----------
    params : iterable of Tensor or of groups of them
        Matrices.
    weight_decay : float
    """

    def __init__(self, params: ParamsT, weight_decay: float) -> None:
        super().__init__(params, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step; `closure` is not supported."""
        if closure is not None:
            raise ValueError("BatchedMuon takes no closure, expected None")
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for shape, matrices in alike.items():
                update = orthogonalised(
                    torch.stack(self._directions(matrices, group)),
                    group["ns_coefficients"],
                    group["ns_steps"],
                    group["eps"],
                )
                # Updates of equal size in both directions of a matrix, as in Muon's first version.
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(update.unbind()), alpha=-rate)

    def _directions(self, matrices: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Move the momentum along, and look ahead as Nesterov's does."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix, gradient in zip(matrices, gradients, strict=True):
            self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(gradient))
        momenta = [self.state[matrix]["momentum_buffer"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        return list(torch._foreach_lerp(gradients, momenta, group["momentum"]))
