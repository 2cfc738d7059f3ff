"""Widgets for a live kernel: they compute anew at every move of a slider."""

from __future__ import annotations

import ipywidgets as widgets
from IPython.display import display

from binding_lib.charts import readings_chart
from binding_lib.readings import Data, decomposition_table


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
        title = f"Level {level.value}, {count.value:,} training scenes"
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
