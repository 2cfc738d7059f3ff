"""Muon in batches: PyTorch's own results, to the digits of its bfloat16."""

import pytest
import torch
from torch.optim import Muon

from binding_lib.muon import BatchedMuon, orthogonalised

SHAPES = [(8, 8), (8, 8), (24, 8), (8, 24), (8, 8)]
COEFFICIENTS = (3.4445, -4.775, 2.0315)


def matrices(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def descend(optimizer, parameters, steps=5):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()


def test_steps_are_those_of_torch():
    mine, its = matrices(0), matrices(0)
    optimizers = BatchedMuon(mine, weight_decay=0.03), Muon(its, weight_decay=0.03)
    for optimizer, parameters in zip(optimizers, (mine, its), strict=True):
        optimizer.param_groups[0]["lr"] = 0.05
        descend(optimizer, parameters)
    start = matrices(0)
    for one, other, before in zip(mine, its, start, strict=True):
        moved = (other - before).norm()
        # bfloat16 has three digits, and five steps of the iteration multiply what they cut off.
        assert (one - other).norm() < 0.06 * moved


def test_its_memory_goes_on_in_either():
    mine, its = matrices(0), matrices(0)
    first, second = BatchedMuon(mine, weight_decay=0.03), Muon(its)
    descend(first, mine)
    second.load_state_dict(first.state_dict())
    for parameter, other in zip(mine, its, strict=True):
        torch.testing.assert_close(
            first.state[parameter]["momentum_buffer"], second.state[other]["momentum_buffer"]
        )


@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 9), (2, 9, 4)])
def test_singular_values_come_near_one(shape):
    found = orthogonalised(
        torch.randn(shape, generator=torch.Generator().manual_seed(0)), COEFFICIENTS, 5, 1e-7
    )
    values = torch.linalg.svdvals(found)
    assert found.shape == shape
    assert 0.5 < values.min() < values.max() < 1.5


def test_each_matrix_is_on_its_own():
    many = torch.randn(4, 5, 7, generator=torch.Generator().manual_seed(0))
    together = orthogonalised(many, COEFFICIENTS, 5, 1e-7)
    alone = torch.cat([orthogonalised(one[None], COEFFICIENTS, 5, 1e-7) for one in many])
    torch.testing.assert_close(together, alone)


def test_matrices_without_a_gradient_stay():
    mine = matrices(0)
    mine[0].grad = torch.ones(SHAPES[0])
    before = [one.detach().clone() for one in mine]
    optimizer = BatchedMuon(mine, weight_decay=0.03)
    optimizer.step()
    moved = [not torch.equal(one, other) for one, other in zip(mine, before, strict=True)]
    assert moved == [True, False, False, False, False]
    with pytest.raises(ValueError, match="closure"):
        optimizer.step(lambda: 0.0)
