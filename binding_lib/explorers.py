"""Widgets for a live kernel: they compute anew at every move of a slider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from binding_lib.charts import readings_chart
from binding_lib.concepts import ConceptSpace
from binding_lib.cross_modal import nearest_captions
from binding_lib.encoders.base import Encoder
from binding_lib.readings import Data, decomposition_table
from binding_lib.scene_charts import caption_chart
from binding_lib.scenes import SceneSet
from binding_lib.training import train_dual_encoder
from binding_lib.training_charts import history_chart, history_curves
from binding_lib.views.images import gallery, render_images


def decomposition_explorer(train: Data, test: Data, singles: Data) -> widgets.VBox:
    """Refit the decomposition on as many scenes as the slider says, and read it again.

    Parameters
    ----------
    train, test : (SceneSet, ndarray)
        Scenes and their embeddings.
    singles : (SceneSet, ndarray)
        The scenes of one object that "single-obj" learns from.

    Returns
    -------
    ipywidgets.VBox
        Sliders for the number of scenes and a menu for the level, over a chart.
    """
    n = len(train[0])
    count = widgets.IntSlider(
        value=n // 2,
        min=n // 10,
        max=n,
        step=n // 10,
        description="scenes",
        continuous_update=False,
    )
    level = widgets.Dropdown(options=["object", "concept"], description="level")
    picture = widgets.Output()

    def draw(_: object = None) -> None:
        some = (train[0][: count.value], train[1][: count.value])
        title = f"Sums of {level.value}s, {count.value:,} training scenes"
        with picture:
            picture.clear_output(wait=True)
            try:
                table = decomposition_table(some, test, singles, levels=[level.value])
            except ValueError as error:  # so few scenes that not every object is among them
                print(error)
            else:
                display(readings_chart(table, "estimator", title))

    count.observe(draw, names="value")
    level.observe(draw, names="value")
    draw()
    return widgets.VBox([count, level, picture])


def scene_explorer(
    encoders: Mapping[str, Encoder], captions: SceneSet, first: SceneSet
) -> widgets.VBox:
    """Draw a picture of any two objects and rank all captions by it.

    Parameters
    ----------
    encoders : mapping of str to Encoder
        Image-text pairs.
    captions : SceneSet
        The scenes whose captions compete, as for `binding_lib.cross_modal.nearest_captions`.
    first : SceneSet
        One scene of two objects, shown at first.

    Returns
    -------
    ipywidgets.VBox
        Menus for the values of both objects and for the pair, and a slider which draws another
        picture of the same scene, over the picture and a chart of the nearest captions.
    """
    space, slots = captions.space, ("left", "right")
    menus = [
        widgets.Dropdown(
            options=[(value, i) for i, value in enumerate(space.value_names(concept))],
            value=int(first.values[0, slot, k]),
            description=f"{side} {concept}",
        )
        for slot, side in enumerate(slots)
        for k, concept in enumerate(space.names)
    ]
    pair = widgets.Dropdown(options=list(encoders), description="encoders")
    another = widgets.IntSlider(
        value=0, min=0, max=20, description="drawing", continuous_update=False
    )
    texts: dict[str, Any] = {}
    shown = widgets.Output()

    def draw(_: object = None) -> None:
        encoder = encoders[pair.value]
        if pair.value not in texts:
            texts[pair.value] = encoder.encode_text(captions.captions())
        values = [menu.value for menu in menus]
        n = space.n_concepts
        scene = SceneSet(space, [space.ids([values[:n], values[n:]])])
        pictures = render_images(scene, size=32, seed=another.value, jitter=0.5)
        with shown:
            shown.clear_output(wait=True)
            try:
                found = nearest_captions(
                    (scene, encoder.encode_images(pictures)), (captions, texts[pair.value])
                )
            except ValueError as error:  # a scene that is not among the captions
                print(error)
            else:
                display(gallery(pictures, scene.captions(), width=160))
                display(caption_chart(found, f"Nearest of {len(captions):,} captions"))

    for control in (*menus, pair, another):
        control.observe(draw, names="value")
    draw()
    return widgets.VBox([*menus, pair, another, shown])


def training_explorer(space: ConceptSpace, **overrides: Any) -> widgets.VBox:
    """Train a model at the coverage that the slider says, when the button is pressed.

    Parameters
    ----------
    space : ConceptSpace
    **overrides
        Passed on to `binding_lib.train_dual_encoder`.

    Returns
    -------
    ipywidgets.VBox
        A slider for the coverage, a box for the growing vocabulary and a button, over a chart of
        the model's history.
    """
    coverage = widgets.FloatSlider(
        value=0.5, min=0.1, max=0.9, step=0.05, description="coverage", readout_format=".2f"
    )
    growing = widgets.Checkbox(value=True, description="growing vocabulary", indent=False)
    button = widgets.Button(description="Train a model")
    picture = widgets.Output()

    def train(_: widgets.Button) -> None:
        button.disabled = True
        settings = overrides if growing.value else {**overrides, "grow_from": None}
        picture.clear_output()
        with picture:
            try:
                trained = train_dual_encoder(space, coverage.value, **settings)
            except ValueError as error:  # too few objects to train on, or to hold out
                print(error)
            else:
                how = "growing vocabulary" if growing.value else "all values at once"
                title = f"Coverage {coverage.value:.2f}, {how}"
                display(history_chart(history_curves(trained.history), title))
            finally:
                button.disabled = False

    button.on_click(train)
    return widgets.VBox([coverage, growing, button, picture])
