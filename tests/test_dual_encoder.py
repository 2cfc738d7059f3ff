"""The dual encoder: shapes, equivalences, and what it can and cannot tell apart by construction."""

import dataclasses

import numpy as np
import pytest
import torch

from binding_lib.concepts import ConceptSpace
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.scenes import SceneSet, sample_scenes
from binding_lib.views.tokens import LAYOUTS

SPACE = ConceptSpace.grid(2, 5)
SMALL = DualEncoderConfig(width=16, heads=2, mlp_width=24, output=12, same_object_bias=3.0)


def model(**changes) -> DualEncoder:
    torch.manual_seed(0)
    return DualEncoder(dataclasses.replace(SMALL, **changes), SPACE).eval()


def scene(*objects: tuple[int, int]) -> SceneSet:
    return SceneSet(SPACE, [SPACE.ids(objects)])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mlp", ["gated", "gelu"])
@pytest.mark.parametrize("readout", ["end", "mean"])
def test_embeddings_are_unit_vectors(layout, mlp, readout):
    encoder = model(layout=layout, mlp=mlp, readout=readout, embedding_rank=None, layers=1)
    for array, n in [
        (encoder.encode_scenes(sample_scenes(SPACE, 7)), 7),
        (encoder.encode_queries(range(25)), 25),
        (encoder.encode_concepts(), 10),
    ]:
        assert array.shape == (n, encoder.dim)
        assert array.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(array, axis=1), 1, rtol=1e-5)


def test_every_value_reaches_the_embedding():
    for layout in LAYOUTS:
        encoder = model(layout=layout)
        assert len(np.unique(encoder.encode_queries(range(25)).round(4), axis=0)) == 25
        assert len(np.unique(encoder.encode_concepts().round(4), axis=0)) == 10


def test_skipping_unread_tokens_changes_nothing():
    encoder = model()
    values = torch.tensor(sample_scenes(SPACE, 6).values)
    transformer, layout = encoder.scene_encoder, encoder.layout
    same = layout.same_object(2)
    x = transformer.widen(transformer.embedding(layout.scenes(values)).sum(2))
    x = x + transformer.positions
    for block in transformer.blocks:
        x = block(x, same, last=False)
    full = torch.nn.functional.normalize(transformer.output(transformer.norm(x[:, -1])), dim=-1)
    torch.testing.assert_close(encoder.scenes(values), full)


def test_without_places_and_bias_plain_tokens_are_a_bag():
    scenes = SceneSet.concatenate([scene((0, 1), (2, 3)), scene((0, 3), (2, 1))])
    first, swapped = model(positions="none", same_object_bias=None).encode_scenes(scenes)
    np.testing.assert_allclose(first, swapped, atol=1e-6)
    # Either of the two tells the scene from its swap.
    for told in ({"positions": "none"}, {"same_object_bias": None}):
        first, swapped = model(**told).encode_scenes(scenes)
        assert np.abs(first - swapped).max() > 1e-3


def test_without_places_the_order_of_objects_does_not_matter():
    scenes = SceneSet.concatenate([scene((0, 1), (2, 3)), scene((2, 3), (0, 1))])
    first, turned = model(positions="none").encode_scenes(scenes)
    np.testing.assert_allclose(first, turned, atol=1e-6)
    first, turned = model().encode_scenes(scenes)
    assert np.abs(first - turned).max() > 1e-3


def test_the_bias_raises_attention_within_objects():
    encoder = model(layers=1)
    with torch.no_grad():
        encoder.scene_encoder.blocks[0].same_object_bias.fill_(50.0)
    x = torch.randn(1, 5, 16, requires_grad=True)
    same = encoder.layout.same_object(2)
    out = encoder.scene_encoder.blocks[0](x, same, last=False)
    out[0, 0].sum().backward()
    assert x.grad[0, 1].abs().max() > 1e-4
    assert x.grad[0, 2:].abs().max() < 1e-12


def test_low_rank_embeddings_and_biases_are_counted():
    def count(**changes):
        return sum(p.numel() for p in model(**changes).scene_encoder.parameters())

    n_ids, width = 11, 16
    assert count(embedding_rank=None) - count(embedding_rank=3) == n_ids * width - 3 * (
        n_ids + width
    )
    assert count() - count(same_object_bias=None) == SMALL.layers * SMALL.heads


def test_fewer_objects_than_the_most_can_be_read():
    assert model().encode_scenes(sample_scenes(SPACE, 3, n_objects=1)).shape == (3, 12)
    with pytest.raises(ValueError, match="up to 2 objects a scene, got 3"):
        model().encode_scenes(sample_scenes(SPACE, 3, n_objects=3))


def test_unequal_sizes_and_three_concepts():
    space = ConceptSpace({"a": list("xyz"), "b": list("uv"), "c": list("klmn")})
    encoder = DualEncoder(dataclasses.replace(SMALL, n_objects=3), space)
    assert encoder.encode_scenes(sample_scenes(space, 4, n_objects=3)).shape == (4, 12)
    assert encoder.encode_queries(range(24)).shape == (24, 12)
    assert encoder.encode_concepts().shape == (9, 12)


def test_nothing_to_encode_gives_no_rows():
    assert model().encode_queries(np.empty(0, dtype=int)).shape == (0, 12)


def test_scenes_of_another_space_are_refused():
    with pytest.raises(ValueError, match="this encoder reads scenes of"):
        model().encode_scenes(sample_scenes(ConceptSpace.grid(2, 6), 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "marks"}, "unknown token layout 'marks'"),
        ({"mlp": "relu"}, "unknown MLP 'relu'"),
        ({"readout": "start"}, "unknown readout"),
        ({"positions": "rotary"}, "unknown positional scheme"),
        ({"width": 15}, "width 15 does not divide into 2 heads"),
        ({"layers": 0}, "layers must be an integer of at least 1, got 0"),
        ({"layers": True}, "layers must be an integer of at least 1, got True"),
        ({"width": "abc"}, "width must be an integer of at least 1, got 'abc'"),
        ({"width": 32.0}, "width must be an integer"),
        ({"embedding_rank": 0}, "embedding_rank must be an integer of at least 1, got 0"),
        ({"embedding_rank": -3}, "embedding_rank must be an integer"),
        ({"same_object_bias": "None"}, "same_object_bias must be a finite number or None"),
        ({"same_object_bias": float("nan")}, "same_object_bias must be a finite number or None"),
        ({"position_std": float("inf")}, "position_std must be a finite number"),
    ],
)
def test_configuration_errors(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SMALL, **change)


def test_numbers_of_numpy_and_whole_biases_make_the_same_model():
    change = {"width": np.int64(16), "position_std": np.float32(0.5), "same_object_bias": -3}
    config = dataclasses.replace(SMALL, **change)
    assert [type(getattr(config, name)) for name in change] == [int, float, float]
    block = DualEncoder(config, ConceptSpace.grid(2, 3)).scene_encoder.blocks[0]
    assert block.same_object_bias.flatten().tolist() == [-3.0, -3.0]
