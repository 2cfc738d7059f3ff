"""Complexity curves: held-out objects stay unseen, rows are kept, complexity is a number."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from binding_lib import (
    ConceptSpace,
    LinearProbe,
    MLPApproximator,
    ProductApproximator,
    SceneSet,
    TreeApproximator,
    all_scenes,
    complexity_curve,
    load_dual_encoder,
    recognised,
    sample_scenes,
    swap_accuracy,
)
from binding_lib.approximators.base import Approximator
from binding_lib.cli import app
from binding_lib.complexity import COLUMNS, REAL, real_curve
from binding_lib.concepts import ObjectSplit
from binding_lib.curve_data import CurveData, curve_data, curve_scenes
from binding_lib.description import description_length, parameters_to_reach
from binding_lib.readouts import QueryReadout, query_readouts
from binding_lib.recorded import recorded

SPACE = ConceptSpace.grid(2, 7)
TARGETS = ("object", *SPACE.names)
PROMISED = [
    "approximator",
    "coverage",
    "seed",
    "concept_recognition",
    "object_recognition",
    "swap_accuracy",
    "r2",
    "n_parameters",
    "seconds",
]


def product_code(scenes, dim=40, seed=0):
    """Bind by products alone: a scene is the sum of its objects, each a product of two vectors."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(2, 7, dim))
    one = vectors[0][scenes.values[..., 0]] * vectors[1][scenes.values[..., 1]]
    return one.sum(axis=1) + vectors.sum(axis=(0, 1)) / 7


SCENES = all_scenes(SPACE)
Z = product_code(SCENES)


@pytest.fixture(scope="module")
def probes():
    scenes = sample_scenes(SPACE, 1000, seed=7)
    return [LinearProbe(target).fit(scenes, product_code(scenes)) for target in TARGETS]


class Spy(Approximator):
    """Keeps what it is shown, for good: copies share the lists."""

    name = "spy"

    def __init__(self):
        self._fitted, self._asked = [], []

    def __deepcopy__(self, memo):
        return self

    def _fit(self, scenes, Z):
        self._fitted.append((scenes.object_ids, Z))
        self.n_parameters_ = 1

    def _predict(self, scenes):
        self._asked.append(scenes.object_ids)
        return np.ones((len(scenes), 40))


def test_scenes_of_held_out_objects_are_never_fitted_on(probes):
    spy = Spy()
    coverages, seeds = (0.4, 0.7), (0, 3)
    curve = complexity_curve(SCENES, Z, [spy], coverages, probes, seeds, n_jobs=1)
    splits = [SPACE.split(c, s) for c in coverages for s in seeds]
    assert len(spy._fitted) == len(splits) == len(curve)
    for i, (split, (ids, embeddings)) in enumerate(zip(splits, spy._fitted, strict=True)):
        assert np.isin(ids, split.train).all()
        assert len(ids) == len(split.train) ** 2  # all such scenes
        np.testing.assert_array_equal(embeddings, product_code(SceneSet(SPACE, ids)))
        tested = spy._asked[2 * i + 1]  # after the score on training scenes
        assert np.isin(tested, split.held_out).all()
        assert len(tested) == len(split.held_out) ** 2
        assert curve.loc[i, ["n_train", "n_test"]].tolist() == [len(ids), len(tested)]


def test_embeddings_of_held_out_objects_change_nothing_that_is_learnt(probes):
    split = SPACE.split(0.6, 0)
    holds_unseen = np.isin(SCENES.object_ids, split.held_out).any(axis=1)
    spoilt = np.where(holds_unseen[:, None], 0.0, Z)
    spoilt[holds_unseen, 0] = np.arange(holds_unseen.sum())
    makers = [ProductApproximator("additive"), TreeApproximator("random-forest", n_trees=5)]
    one, other = (complexity_curve(SCENES, E, makers, [0.6], probes, n_jobs=1) for E in (Z, spoilt))
    learnt = ["n_parameters", "r2_train", "concept_recognition", "object_recognition"]
    pd.testing.assert_frame_equal(one[learnt], other[learnt])
    assert (one["r2"] > other["r2"]).all()


def test_the_table(probes):
    makers = [ProductApproximator("additive"), ProductApproximator("per-object")]
    curve = complexity_curve(SCENES, Z, makers, [0.8, 0.9], probes, [1, 2], n_jobs=1)
    assert list(curve) == COLUMNS
    assert COLUMNS[: len(PROMISED)] == PROMISED
    assert curve["approximator"].tolist() == ["additive", "per-object"] * 4
    assert curve["coverage"].tolist() == [0.8] * 4 + [0.9] * 4
    assert curve["seed"].tolist() == [1, 1, 2, 2] * 2
    kinds = {name: curve[name].dtype.kind for name in COLUMNS[1:]}
    whole = {"seed", "n_parameters", "n_train", "n_test", "dim"}
    assert kinds == {name: "i" if name in whole else "f" for name in COLUMNS[1:]}
    assert curve.notna().all(axis=None)
    assert (curve["dim"] == 40).all()
    for short, name in {"concept": "concept_recognition", "object": "object_recognition"}.items():
        assert (curve[f"{short}_low"] <= curve[name]).all()
        assert (curve[name] <= curve[f"{short}_high"]).all()
    # A product recognises unseen objects, a sum none, though it too knows their concepts.
    rates = curve.groupby("approximator")[["object_recognition", "swap_accuracy"]].mean()
    assert (rates.loc["per-object"] > 0.7).all()
    assert (rates.loc["additive"] < 0.3).all()


def test_each_number_is_what_its_name_says(probes):
    split = SPACE.split(0.6, 1)
    fitted = ProductApproximator("additive").fit(*_part(split.train))
    scenes, real = _part(split.held_out)
    predicted = fitted.predict(scenes)
    (row,) = complexity_curve(
        SCENES, Z, [ProductApproximator("additive")], [0.6], probes, [1]
    ).to_dict("records")
    scores = [probe.scores(predicted) for probe in probes]
    concepts = [recognised(scores[i], scenes.present(TARGETS[i])) for i in (1, 2)]
    assert row["object_recognition"] == recognised(scores[0], scenes.present("object")).mean()
    assert row["concept_recognition"] == (concepts[0] & concepts[1]).mean()
    assert row["swap_accuracy"] == swap_accuracy(scores[0], scenes)
    assert row["r2"] == pytest.approx(fitted.score(scenes, real))
    assert row["r2_train"] == pytest.approx(fitted.score(*_part(split.train)))
    assert row["n_parameters"] == fitted.n_parameters_


def _part(ids):
    inside = np.isin(SCENES.object_ids, ids).all(axis=1)
    return SCENES[inside], Z[inside]


def test_a_split_of_ones_own(probes):
    own = SPACE.split(30 / 49, seed=9)
    makers = [ProductApproximator("additive")]
    by_split = complexity_curve(SCENES, Z, makers, [own], probes)
    by_share = complexity_curve(SCENES, Z, makers, [30 / 49], probes, [9])
    assert by_split["coverage"].tolist() == [30 / 49]
    numbers = [c for c in COLUMNS if c not in ("seed", "seconds")]
    pd.testing.assert_frame_equal(by_split[numbers], by_share[numbers])
    with pytest.raises(ValueError, match=r"scenes of ConceptSpace.* got a split of ConceptSpace"):
        complexity_curve(SCENES, Z, makers, [ConceptSpace.grid(2, 4).split(0.6)], probes)


def test_real_embeddings_are_the_ceiling(probes):
    real = real_curve(SCENES, Z, [0.6], probes, [0, 1])
    assert real["approximator"].tolist() == [REAL, REAL]
    assert (real["object_recognition"] > 0.95).all()
    assert (real["r2"] == 1).all()
    assert real[["n_parameters", "seconds"]].isna().all(axis=None)


def test_approximators_are_left_as_they_were(probes):
    maker = ProductApproximator("additive")
    complexity_curve(SCENES, Z, [maker], [0.6], probes, n_jobs=1)
    assert not hasattr(maker, "space_")


# --- kept rows


def test_kept_rows_are_read_back_and_missing_ones_made(probes, tmp_path):
    spy, keep = Spy(), {"folder": tmp_path, "n_jobs": 1}
    one = complexity_curve(SCENES, Z, [spy], [0.4], probes, **keep)
    again = complexity_curve(SCENES, Z, [spy], [0.4, 0.6], probes, **keep)
    assert len(spy._fitted) == 2  # one for each coverage
    pd.testing.assert_frame_equal(again[:1], one)
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_of_another_kind_are_never_mixed_in(probes, tmp_path):
    made = []

    def fitted(scenes=SCENES, embeddings=Z, maker=None, coverage=0.6, read=probes, seed=0):
        maker = maker or ProductApproximator("additive")
        known = set(tmp_path.iterdir())
        curve = complexity_curve(
            scenes, embeddings, [maker], [coverage], read, [seed], folder=tmp_path, n_jobs=1
        )
        made.append(len(set(tmp_path.iterdir()) - known))
        return curve

    fitted()
    fitted(embeddings=product_code(SCENES, seed=1))  # another encoder
    order = np.random.default_rng(0).permutation(len(SCENES))
    fitted(SCENES[order], Z[order])
    fitted(maker=ProductApproximator("per-object"))
    fitted(maker=ProductApproximator("per-object", l2=1e-3))
    fitted(coverage=0.8)
    fitted(seed=1)
    fitted(read=[QueryReadout(t, np.eye(K, 40)) for t, K in zip(TARGETS, (49, 7, 7), strict=True)])
    fitted(coverage=SPACE.split(0.6, seed=5))
    split = SPACE.split(0.6, seed=6)
    halves = [ObjectSplit(SPACE, split.train, ids) for ids in np.array_split(split.held_out, 2)]
    for half in halves:
        fitted(coverage=half)  # the same objects to fit on, and others to test on
    assert made == [1] * 11
    fitted()
    assert made[-1] == 0


@pytest.mark.parametrize("damage", ["", "{", "{}", "[1]"])
def test_a_damaged_row_is_made_again(probes, tmp_path, damage):
    keep = {"folder": tmp_path, "n_jobs": 1}
    forms = [ProductApproximator("additive")]
    one = complexity_curve(SCENES, Z, forms, [0.4], probes, **keep)
    (file,) = tmp_path.iterdir()
    file.write_text(damage)
    again = complexity_curve(SCENES, Z, forms, [0.4], probes, **keep)
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), one.drop(columns="seconds"))


@pytest.mark.slow  # starts processes
def test_rows_are_the_same_whoever_makes_them(probes):
    makers = [ProductApproximator("additive"), MLPApproximator(8, max_epochs=5)]
    one, two = (complexity_curve(SCENES, Z, makers, [0.6], probes, n_jobs=n) for n in (1, 2))
    rest = [c for c in COLUMNS if c != "seconds"]
    pd.testing.assert_frame_equal(one[rest], two[rest], rtol=1e-4)
    assert (one["seconds"] > 0).all()


# --- what is refused


def test_too_few_scenes_for_a_split(probes):
    makers = [ProductApproximator("additive")]
    with pytest.raises(
        ValueError, match=r"coverage 0.98, seed 0: 2304 of 2401 scenes hold training .* 1 held-out"
    ):
        complexity_curve(SCENES, Z, makers, [0.6, 0.98], probes)
    with pytest.raises(ValueError, match=r"coverage 0.02, seed 2: 1 of 2401 scenes hold training"):
        real_curve(SCENES, Z, [0.02], probes, [2])


def test_concept_values_missing_from_training_are_named(probes):
    lacks = ~(SCENES.values == [2, 4]).any(axis=(1, 2))
    with pytest.raises(ValueError, match=r"never show a 'a2'; b 'b4'; expected every value"):
        complexity_curve(
            SCENES[lacks], Z[lacks], [ProductApproximator("additive")], [0.6], probes, n_jobs=1
        )


@pytest.mark.parametrize("other", ["additive", ProductApproximator])
def test_what_is_no_approximator_is_named(probes, other):
    with pytest.raises(ValueError, match=r"such as MLPApproximator\(64\), got ('additive'|<class)"):
        complexity_curve(SCENES, Z, [MLPApproximator(8), other], [0.6], probes)


def test_a_split_comes_with_one_seed(probes):
    makers, own = [ProductApproximator("additive")], SPACE.split(0.6, seed=9)
    with pytest.raises(ValueError, match=r"drawn already: expected one seed .* got \[0, 1\]"):
        complexity_curve(SCENES, Z, makers, [0.8, own], probes, [0, 1])
    with pytest.raises(ValueError, match=r"seed must be an integer of at least 0, got 1\.5"):
        complexity_curve(SCENES, Z, makers, [0.8], probes, [1.5])


def test_missing_readouts_and_embeddings(probes):
    makers = [ProductApproximator("additive")]
    with pytest.raises(ValueError, match=f"got none for 'object', {SPACE.names[1]!r}"):
        complexity_curve(SCENES, Z, makers, [0.6], [probes[1]])
    with pytest.raises(ValueError, match="got 2400 embeddings for 2401 scenes"):
        complexity_curve(SCENES, Z[1:], makers, [0.6], probes)
    with pytest.raises(ValueError, match="coverage must be a number in"):
        complexity_curve(SCENES, Z, makers, [1.2], probes)


# --- description lengths


def rows(**columns):
    """A curve with the columns given and plausible others."""
    length = max(len(column) for column in columns.values())
    base = dict.fromkeys(COLUMNS, [0.0] * length) | {"approximator": ["a"] * length}
    return pd.DataFrame(base | columns)


def test_description_length_by_hand():
    # 8 scenes of 4 numbers: n = 32, so a parameter takes 2.5 bits.
    curve = rows(n_parameters=[16, 16, 16], n_train=[8] * 3, dim=[4] * 3, r2_train=[0.75, 0.0, 1.0])
    described = description_length(curve)
    assert described["parameter_bits"].tolist() == [5.0] * 3  # 16 * 2.5 / 8
    assert described["residual_bits"].tolist() == [-4.0, 0.0, -96.0]  # 4 / 2 * log2(1 / 4), ...
    assert described["code_bits"].tolist() == [1.0, 5.0, -91.0]
    assert list(described)[: len(COLUMNS)] == COLUMNS


def test_a_rule_is_shorter_than_a_list(probes):
    makers = [ProductApproximator("per-object"), TreeApproximator("random-forest", n_trees=5)]
    described = description_length(complexity_curve(SCENES, Z, makers, [0.8], probes))
    rule, listed = described["code_bits"]
    assert rule < listed


def test_parameters_to_reach():
    curve = rows(
        approximator=[REAL, "small", "large", "huge", "small", "large"],
        coverage=[0.3, 0.3, 0.3, 0.3, 0.9, 0.9],
        seed=[0] * 6,
        object_recognition=[1.0, 0.4, 0.5, 0.9, 0.1, 0.2],
        n_parameters=[np.nan, 8, 32, 64, 8, 32],
        n_train=[8] * 6,
        dim=[4] * 6,
        r2_train=[1.0, 0.5, 0.75, 0.9, 0.0, 0.0],
    )
    reached = parameters_to_reach(curve)
    assert reached["coverage"].tolist() == [0.3, 0.9]
    assert reached.loc[0, "approximator"] == "large"
    assert reached.loc[0, ["n_parameters", "code_bits", "best"]].tolist() == [32, 6.0, 0.9]
    assert reached.loc[1, ["approximator", "n_parameters", "code_bits"]].isna().all()
    assert reached.loc[1, "best"] == 0.2
    assert parameters_to_reach(curve, 0.4).loc[0, "approximator"] == "small"
    with pytest.raises(ValueError, match=r"of one encoder .* got real embeddings at coverage 0.3"):
        parameters_to_reach(pd.concat([curve, curve]))


# --- what curves are drawn from


def test_queries_read_as_cosines():
    queries = np.array([[3.0, 0.0], [1.0, 1.0]])
    readout = QueryReadout("object", queries)
    scores = readout.scores(np.array([[0.0, 5.0], [0.0, 0.0]]))
    np.testing.assert_allclose(scores, [[0, np.sqrt(0.5)], [0, 0]])
    with pytest.raises(ValueError, match="queries have 2 dimensions, got 3"):
        readout.scores(np.ones((1, 3)))


def test_a_dual_encoder_is_read_by_its_own_queries():
    model = load_dual_encoder("binding")
    readouts = query_readouts(model)
    assert [r.target for r in readouts] == ["object", *model.space.names]
    data = curve_data("dual:binding", [model.split, 0.5], n_scenes=500)
    assert data.scenes.space == model.space
    np.testing.assert_array_equal(data.embeddings, model.encode_scenes(data.scenes))
    assert [r.target for r in data.probes] == ["object", *model.space.names]
    real = real_curve(data.scenes, data.embeddings, [model.split], data.probes)
    last = model.history[model.history["objects"] == "held_out"].iloc[-1]
    assert real["object_recognition"][0] == pytest.approx(last["object"], abs=0.1)


def test_curve_scenes_suffice_and_are_distinct():
    space = ConceptSpace.grid(2, 20)
    scenes = curve_scenes(space, 500, [0.1, 0.9], [0, 1])
    assert len(np.unique(scenes.object_ids, axis=0)) == len(scenes)
    np.testing.assert_array_equal(
        curve_scenes(space, 500, [0.1, 0.9], [0, 1]).object_ids, scenes.object_ids
    )
    for coverage in (0.1, 0.9):
        for seed in (0, 1):
            split = space.split(coverage, seed)
            for ids, least in ((split.train, 1000), (split.held_out, 300)):
                n = np.isin(scenes.object_ids, ids).all(axis=1).sum()
                assert n > 0.7 * least  # some drawn twice are left out


# --- from a shell


def test_complexity_prints_what_it_writes(probes, tmp_path, monkeypatch):
    asked = []

    def data(*arguments, **named):
        asked.append((arguments, named))
        return CurveData(SCENES, Z, probes)

    monkeypatch.setattr("binding_lib.curve_data.curve_data", data)
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "numbers.json"
    options = "--encoder mine --coverages 0.6,0.8 --approximators additive,mlp-8 --seed 1"
    result = CliRunner().invoke(
        app, ["complexity", *options.split(), "--scenes", "300", "--json", str(file)]
    )
    assert result.exit_code == 0, result.output
    assert asked == [(("mine", [0.6, 0.8], [1], 300), {"n_probe_scenes": 300})]
    content = json.loads(file.read_text())
    assert content["encoder"] == "mine"
    assert [row["approximator"] for row in content["real"]] == [REAL] * 2
    assert content["real"][0]["seconds"] is None
    fitted = content["approximated"]
    assert [row["approximator"] for row in fitted] == ["additive", "mlp-8"] * 2
    expected = complexity_curve(
        SCENES, Z, [ProductApproximator("additive", 1)], [0.6, 0.8], probes, [1]
    )
    numbers = ["object_recognition", "concept_recognition", "swap_accuracy", "r2", "n_parameters"]
    np.testing.assert_allclose(
        [[row[n] for n in numbers] for row in fitted[::2]], expected[numbers]
    )
    for row in fitted:
        shown = " ".join(f"{row[n]:.3f}" for n in ("object_recognition", "swap_accuracy", "r2"))
        assert shown in " ".join(result.stdout.split())
    assert {"parameter_bits", "residual_bits", "code_bits"} < set(fitted[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--approximators", "mlp"], "unknown approximator 'mlp'"),
        (["--coverages", "half"], "expected coverages such as 0.5,0.9, got 'half'"),
        (["--encoder", "dual:nowhere"], "nowhere"),
    ],
)
def test_complexity_refuses_in_one_sentence(options, said):
    result = CliRunner().invoke(app, ["complexity", *options])
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_recorded_table():
    table = recorded("complexity")
    assert list(table) == ["encoder", "split", *COLUMNS]
    assert not table.duplicated(["encoder", "split", "approximator", "coverage", "seed"]).any()
    rates = table[["concept_recognition", "object_recognition"]]
    assert ((rates >= 0) & (rates <= 1)).all(axis=None)
    # Every fit has the real embeddings of its test scenes beside it.
    at = ["encoder", "split", "coverage", "seed"]
    real = table[table["approximator"] == REAL]
    assert set(map(tuple, real[at].to_numpy())) == set(map(tuple, table[at].to_numpy()))
    # The numbers that chapters tell: concepts by rule and objects by heart; a rule that binds.
    minilm = table[(table["encoder"] == "minilm") & (table["coverage"] > 0.3)]
    networks = minilm[minilm["approximator"].str.startswith(("mlp", "product-units"))]
    assert set(networks["seed"]) == {0, 1}
    assert (networks["concept_recognition"] > 0.8).all()
    assert (networks["object_recognition"] < 0.3).all()
    assert (minilm.loc[minilm["approximator"] == REAL, "object_recognition"] > 0.9).all()
    own = table[table["split"] == "own"].set_index(["encoder", "approximator"])
    assert own.loc[("dual:binding", "mlp-64"), "object_recognition"] > 0.7
    assert own.loc[("dual:failing", "mlp-4096"), "object_recognition"] < 0.2
    assert own.loc[("dual:bag", REAL), "object_recognition"] < 0.3
