"""What tests of charts share: walking through a Vega-Lite specification, and the common look."""

import altair as alt


def parts(node):
    """All dictionaries in a chart."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from parts(child)


def assert_shared_look(spec):
    assert alt.Chart.from_dict(spec).to_dict()  # valid by the schema of Vega-Lite
    assert spec["config"]["background"] == "transparent"
    assert spec["usermeta"]["embedOptions"] == {"renderer": "svg", "actions": False}
    assert len(spec["description"]) > 80
