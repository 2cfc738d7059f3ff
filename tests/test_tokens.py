"""Token layouts agree with scenes laid out by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from binding_lib.views.tokens import LAYOUTS, TokenLayout

# Three colours (ids 0 to 2) and two shapes (ids 3 and 4): "blue cone, red cube".
SCENE = torch.tensor([[[2, 1], [0, 0]]])


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("marked", [[6], [2], [4], [7], [6], [0], [3], [7], [5]]),
        ("plain", [[2], [4], [0], [3], [5]]),
        ("objects", [[2, 4], [0, 3], [5, 6]]),
    ],
)
def test_scenes_by_hand(kind, tokens):
    layout = TokenLayout((3, 2), kind)
    assert layout.scenes(SCENE)[0].tolist() == tokens
    assert layout.length(2) == len(tokens)


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("marked", [[6], [2], [4], [7], [5]]),
        ("plain", [[2], [4], [5]]),
        ("objects", [[2, 4], [5, 6]]),
    ],
)
def test_object_queries_are_no_longer_than_one_object(kind, tokens):
    assert TokenLayout((3, 2), kind).objects(torch.tensor([[2, 1]]))[0].tolist() == tokens


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("marked", [[[1], [5]], [[4], [5]]]),
        ("plain", [[[1], [5]], [[4], [5]]]),
        ("objects", [[[1, 6], [5, 6]], [[4, 6], [5, 6]]]),
    ],
)
def test_concept_queries_are_two_tokens(kind, tokens):
    assert TokenLayout((3, 2), kind).concepts(torch.tensor([1, 4])).tolist() == tokens


@given(
    st.lists(st.integers(2, 5), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from(LAYOUTS),
    st.randoms(use_true_random=False),
)
def test_scenes_can_be_read_back(sizes, m, kind, random):
    layout = TokenLayout(tuple(sizes), kind)
    values = torch.tensor([[[random.randrange(v) for v in sizes] for _ in range(m)]])
    tokens = layout.scenes(values)
    assert tokens.shape[1] == layout.length(m)
    assert tokens.max() < layout.n_ids
    named = tokens[tokens < layout.n_values].view(m, len(sizes))
    assert torch.equal(named - torch.tensor([0, *sizes[:-1]]).cumsum(0), values[0])


def test_same_object_marks_pairs_within_an_object_only():
    same = TokenLayout((3, 2), "plain").same_object(2)
    assert same.tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0],
    ]
    assert TokenLayout((3, 2), "marked").same_object(2).sum() == 2 * 4 * 4


def test_unknown_layout_names_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'plain'"):
        TokenLayout((3, 2), "plane")
