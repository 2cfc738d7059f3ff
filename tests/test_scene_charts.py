"""The captions nearest to a picture: the ranking, its charts, and the widget."""

import json

import numpy as np
import pytest
from chart_specs import assert_shared_look, parts

from binding_lib import ConceptSpace, SceneSet, explorers, load_encoder
from binding_lib.cross_modal import CAPTION_KINDS, OWN, SWAPPED, cosines, nearest_captions
from binding_lib.pocket import pocket_space
from binding_lib.pocket_batches import differing_pairs
from binding_lib.scene_charts import caption_chart, scene_chart
from binding_lib.scenes import exchanged

SPACE = ConceptSpace({"colour": ["red", "blue", "white"], "shape": ["square", "star", "heart"]})
CAPTIONS = differing_pairs(SPACE, np.arange(9))
SCENES = SceneSet(SPACE, CAPTIONS.object_ids[:6, ::-1])
rng = np.random.default_rng(0)
X, T = rng.normal(size=(len(SCENES), 5)), rng.normal(size=(len(CAPTIONS), 5))


def table(n=3):
    return nearest_captions((SCENES, X), (CAPTIONS, T), n)


# The ranking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 100])
def test_the_ranking_against_a_loop(n):
    found = table(n)
    for scene in range(len(SCENES)):
        scores = cosines(X[scene : scene + 1], T)[0]
        sets = [frozenset(ids) for ids in CAPTIONS.object_ids.tolist()]
        own = sets.index(frozenset(SCENES.object_ids[scene].tolist()))
        swap = sets.index(frozenset(exchanged(SCENES[scene]).object_ids[0].tolist()))
        by_score = sorted(range(len(CAPTIONS)), key=lambda row: -scores[row])
        expected = [
            (place, CAPTIONS.captions()[row], OWN if row == own else SWAPPED if row == swap else "")
            for place, row in enumerate(by_score, start=1)
            if place <= n or row in (own, swap)
        ]
        one = found[found["scene"] == scene]
        kinds = [kind if kind in (OWN, SWAPPED) else "" for kind in one["kind"]]
        assert list(zip(one["rank"], one["caption"], kinds, strict=True)) == expected
        np.testing.assert_allclose(one["cosine"], [scores[by_score[r - 1]] for r in one["rank"]])
    assert set(found["kind"]) <= set(CAPTION_KINDS)


def test_captions_must_hold_the_own_one_and_the_swapped_one_once():
    rest = np.flatnonzero(~(np.sort(CAPTIONS.object_ids) == np.sort(SCENES.object_ids[0])).all(1))
    with pytest.raises(ValueError, match=f"'{SCENES.captions()[0]}' is not among"):
        nearest_captions((SCENES[0], X[:1]), (CAPTIONS[rest], T[rest]))
    other = exchanged(SCENES[0])
    rest = np.flatnonzero(~(np.sort(CAPTIONS.object_ids) == np.sort(other.object_ids)).all(1))
    with pytest.raises(ValueError, match=f"'{other.captions()[0]}' is not among"):
        nearest_captions((SCENES[0], X[:1]), (CAPTIONS[rest], T[rest]))
    twice = SceneSet.concatenate([CAPTIONS, SCENES[:2]])
    with pytest.raises(ValueError, match="got 2 again"):
        nearest_captions((SCENES, X), (twice, np.concatenate([T, X[:2]])))


# The charts -------------------------------------------------------------------------------------


def scene_spec():
    seen = {"one": SCENES.object_ids[0, :1], "two": np.arange(9)}
    return scene_chart({"one": table(), "two": table(1)}, SCENES, seen, len(CAPTIONS)).to_dict()


CHARTS = {
    "scene": scene_spec,
    "captions": lambda: caption_chart(table().query("scene == 1"), "One scene").to_dict(),
}


@pytest.mark.parametrize("name", CHARTS)
def test_the_look_that_all_share(name):
    spec = CHARTS[name]()
    assert_shared_look(spec)
    assert "http" not in json.dumps({k: v for k, v in spec.items() if k != "$schema"})
    first = table().query("scene == @scene", local_dict={"scene": int(name == "captions")})
    rank = first.set_index("kind")["rank"]
    sentence = f"The right caption is number {rank[OWN]}, its swap number {rank[SWAPPED]}."
    assert sentence in spec["description"]
    (colours,) = (p["color"] for p in parts(spec) if "scale" in p.get("color", {}))
    assert colours["scale"]["domain"] == list(CAPTION_KINDS)


def test_the_menus_begin_with_the_first_scene_and_offer_what_there_is():
    spec = scene_spec()
    params = {p["name"]: p for p in spec["params"]}
    left, right = SPACE.object_names(SCENES.object_ids[0])
    assert (params["left_object"]["value"], params["right_object"]["value"]) == (left, right)
    assert params["pair"]["bind"]["options"] == ["one", "two"]
    offered = set(params["left_object"]["bind"]["options"])
    assert offered == set(SPACE.object_names(SCENES.object_ids.ravel()))
    rows = [row for rows in spec["datasets"].values() for row in rows]
    halves = [r for r in rows if "url" in r]
    assert len(halves) == len(offered)  # either slot draws an object alike: stored once
    assert len({r["url"] for r in halves}) == len(halves)
    told = {(r["pair"], r["left"], r["right"]): r for r in rows if "pair" in r}
    assert len(told) == 2 * len(SCENES)
    assert told["one", left, right]["note"] == "Training saw the left object only."
    assert told["two", left, right]["note"] == "Training saw both objects."
    first = table().query("scene == 0")
    assert told["one", left, right]["caption"] == first["caption"].tolist()
    assert told["one", left, right]["rank"] == first["rank"].tolist()


# The widget -------------------------------------------------------------------------------------


def test_the_widget_ranks_the_scene_that_its_menus_say(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(explorers, "display", shown.append)
    space = pocket_space()
    captions = differing_pairs(space, np.arange(32))
    first = captions[0]
    encoders = {"ours": load_encoder("pocket-clip:random", cache=False)}
    box = explorers.scene_explorer(encoders, captions, first)
    assert first.captions()[0] in shown[0].data
    by_name = {c.description: c for c in box.children if hasattr(c, "description")}
    by_name["drawing"].value = 3
    assert shown[2].data != shown[0].data  # another picture of the same scene
    assert first.captions()[0] in shown[2].data
    other = captions[1].values[0]
    shown.clear()
    for slot, side in enumerate(("left", "right")):
        for k, concept in enumerate(space.names):
            by_name[f"{side} {concept}"].value = int(other[slot, k])
    assert captions[1].captions()[0] in shown[-2].data
    assert shown[-1].to_dict()["title"] == f"Nearest of {len(captions):,} captions"
    capsys.readouterr()
    by_name["left colour"].value = by_name["right colour"].value
    assert "is not among the captions" in capsys.readouterr().out
