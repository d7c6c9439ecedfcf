"""Graph drawings: everything is drawn, nothing overlaps or crosses, colours agree between the two graphs."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinegrad.errors import InputError
from kinegrad.model.topology import Topology
from kinegrad.plot import draw_branch_graph, draw_joint_graph
from kinegrad.plot.graphs import _columns

HUMAN = Topology.from_branches(
    [-1, 0, 0, 0, 3, 3, 3], [[0, 4], [5, 12], [13, 20], [21, 21], [22, 30], [31, 39], [40, 42]]
)
FIGURE_1 = Topology([-1, 0, 1, 2, 3, 4, 4, 2, 7, 2, 9])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def drawn_nodes(ax):
    """Colour and kind of each node, by its place."""
    nodes = {}
    for points in ax.collections:
        places = points.get_offsets().data
        edges = np.broadcast_to(points.get_edgecolors(), (len(places), 4))
        for place, edge in zip(places, edges, strict=True):
            nodes[tuple(place)] = (tuple(edge), points.get_label())
    return nodes


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(*(st.integers(-1, i - 1) for i in range(n)))))
def test_layout_has_no_overlaps_and_no_crossings(parents):
    tree = Topology(parents)
    x = _columns(tree)
    for depth in range(tree.depth.max() + 1):
        layer = np.flatnonzero(tree.depth == depth)
        layer = layer[np.argsort(x[layer])]
        assert (np.diff(x[layer]) >= 1).all()
        if depth:  # edges of one layer do not cross if parents come in the order of their children
            assert (np.diff(x[tree.parents[layer]]) >= 0).all()


@pytest.mark.parametrize("tree", [HUMAN, FIGURE_1, Topology([-1]), Topology([-1, -1, 1, 1])])
def test_joint_graph_draws_each_joint_and_arc(tree):
    ax = draw_joint_graph(tree, show_numbers_from=1)
    assert [text.get_text() for text in ax.texts] == ["world", *map(str, range(1, tree.n + 1))]
    kinds = [kind for _, kind in drawn_nodes(ax).values()]
    assert len(kinds) == tree.n
    assert kinds.count("leaf") == len(tree.leaves)
    assert kinds.count("junction") == len(tree.junctions)
    assert len(ax.lines) == tree.n  # one to each joint, from its parent or from the world
    ax.figure.canvas.draw()


def test_branch_graph_labels_joints():
    texts = [text.get_text() for text in draw_branch_graph(HUMAN, show_numbers_from=1).texts]
    assert texts[1::2] == list("1234567")
    assert texts[2::2] == ["1–5", "6–13", "14–21", "22", "23–31", "32–40", "41–43"]


def test_a_branch_has_one_colour_in_both_graphs():
    joints, branches = drawn_nodes(draw_joint_graph(HUMAN)), drawn_nodes(draw_branch_graph(HUMAN))
    tree = Topology(HUMAN.branch_parents)
    branch_colour = [branches[place][0] for place in zip(_columns(tree), -tree.depth, strict=True)]
    joint_colour = [joints[place][0] for place in zip(_columns(HUMAN), -HUMAN.depth, strict=True)]
    assert len(set(branch_colour)) == 7
    assert joint_colour == [branch_colour[k] for k in HUMAN.branch_of]


def test_nodes_do_not_touch_with_43_joints():
    ax = draw_joint_graph(HUMAN)
    ax.figure.canvas.draw()
    pixels = ax.transData.transform(np.stack([_columns(HUMAN), -HUMAN.depth], axis=1))
    distance = np.linalg.norm(pixels[:, None] - pixels, axis=2) + np.diag(np.full(43, np.inf))
    diameter = np.sqrt(ax.collections[0].get_sizes()[0]) * ax.figure.dpi / 72
    assert distance.min() > 1.2 * diameter
    assert ax.texts[1].get_fontsize() >= 6  # points: readable


def test_names_and_given_axes():
    _, ax = plt.subplots()
    named = Topology([-1, 0], names=["hip", "knee"])
    assert draw_joint_graph(named, ax) is ax
    assert [text.get_text() for text in ax.texts] == ["world", "0", "hip", "1", "knee"]
    assert "ankle" in [text.get_text() for text in draw_joint_graph(named, names=["hip", "ankle"]).texts]
    with pytest.raises(InputError, match="`names` has 1 entries; expected 2"):
        draw_joint_graph(named, names=["hip"])


def test_two_thousand_joints_draw():
    rng = np.random.default_rng(3)
    tree = Topology([-1, *(int(rng.integers(max(0, i - 5), i)) for i in range(1, 2000))])
    assert len(drawn_nodes(draw_joint_graph(tree))) == 2000
