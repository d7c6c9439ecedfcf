"""Drawings lead to ends, frames and loops, and show springs: what a person looks for first in a figure.

A forearm that ends at its centre of mass is half as long as it is, a four-bar without its last bar looks open, and a
spring that is not drawn is forgotten.
"""

import numpy as np
import pytest
from matplotlib.figure import Figure

import kinegrad as kg
from kinegrad.model.segments import link_segments
from kinegrad.plot import animate, draw_skeleton, plot_skeleton
from kinegrad.plot.connections import attachments, coil, connections, places
from kinegrad.view import picture
from kinegrad.view.parts import body_parts
from kinegrad.view.shown import Shown

ROD = kg.Inertia.rod(1.0, [0, 0, 0], [0.35, 0, 0])


def arm(inertia=ROD, **frames):
    builder = kg.ModelBuilder("arm")
    builder.add("shoulder", None, kg.revolute("y"), link="upper", inertia=kg.Inertia.rod(2.0, [0, 0, 0], [0.4, 0, 0]))
    builder.add("elbow", "upper", kg.revolute("y"), link="fore", placement=[0.4, 0, 0], inertia=inertia)
    for name, place in frames.items():
        builder.add_frame(name, "fore", place)
    return builder.build()


def ends(model, link, points=()):
    k = model.link_index(link)
    return [(x.start.round(9).tolist(), x.end.round(9).tolist()) for x in link_segments(model, points) if x.link == k]


def test_a_last_link_is_as_long_as_its_rod():
    assert ends(arm(), "fore") == [([0, 0, 0], [0.35, 0, 0])]
    assert ends(arm(kg.Inertia.point(1.0, [0.3, 0, 0])), "fore") == [([0, 0, 0], [0.3, 0, 0])]
    assert ends(arm(kg.Inertia.point(1.0, [0, 0, 0])), "fore") == []


def test_a_last_link_leads_to_its_frames():
    """Those that stand out: one beside a line, or at the joint, has no line."""
    frames = {"grip": [0.45, 0, 0], "watch": [0.3, 0.02, 0], "here": [0, 0, 0]}
    assert ends(arm(**frames), "fore") == [([0, 0, 0], [0.45, 0, 0])]
    both = ends(arm(thumb=[0.3, 0.3, 0], **frames), "fore")
    assert both == [([0, 0, 0], [0.45, 0, 0]), ([0.45, 0, 0], [0.3, 0.3, 0])]  # from the nearest end


def test_a_human_has_head_hands_and_feet():
    human = kg.samples.human_sagittal()
    seen = {human.link_names[x.link]: [] for x in link_segments(human)}
    for x in link_segments(human):
        seen[human.link_names[x.link]] += [x.start, x.end]
    for frame in ("crown", "grip", "toe", "heel"):
        there = human.frames[frame]
        assert min(np.linalg.norm(point - there.placement[:3, 3]) for point in seen[there.link]) < 1e-12
    q = np.zeros(human.nv)
    heights = [part.surface.moved(kg.forward_kinematics(human, q).transform[part.link]).vertices[:, 2]
               for part in body_parts(human)]  # fmt: skip
    assert max(z.max() for z in heights) > 1.72  # of 1.75 m


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "stewart_platform"])
def test_loops_look_closed(name):
    """A line of each link ends at the point where its loop is closed."""
    model, constraints = kg.samples.CLOSED[name]()
    found = connections(model, constraints)
    q = kg.neutral(model)
    for each, (first, second) in zip(found, places(model, found, q), strict=True):
        if each.kind == "loop":
            np.testing.assert_allclose(first, second, atol=1e-9)
    lines = link_segments(model, attachments(found))
    for link, point in attachments(found):
        own = [x for x in lines if x.link == link]
        along = [np.linalg.norm(np.cross(x.end - x.start, point - x.start)) for x in own]
        assert not own or min(along) < 0.03


def springs():
    elements = {
        "spring": kg.SpringDamper("fore", [0.2, 0, 0], None, [0, 0, 0.4], stiffness=10.0),
        "bushing": kg.Bushing("fore", [0.35, 0, 0], "upper", [0.1, 0, 0.2]),
    }
    return arm().replace(elements=elements)


def test_springs_are_coils_between_their_points():
    model = springs()
    q = np.array([0.2, -0.4])
    found = connections(model)
    assert [each.kind for each in found] == ["spring", "bushing"]
    start, end = places(model, found, q)[0]
    np.testing.assert_allclose(start, kg.point_motion(model, q, link="fore", point=[0.2, 0, 0]).position)
    np.testing.assert_array_equal(end, [0, 0, 0.4])
    path = coil(start, end, 0.02)
    np.testing.assert_allclose([path[0], path[-1]], [start, end])
    u = (end - start) / np.linalg.norm(end - start)
    radius = np.linalg.norm(np.cross(path - start, u), axis=-1)
    np.testing.assert_allclose(radius[2:-2], 0.02)
    assert len(coil(start, start, 0.02)) == 2


def test_figures_show_them(tmp_path):
    """Skeletons, animations, shaded pictures: as many lines more as there are connections."""
    ax = Figure().add_subplot()
    draw_skeleton(springs(), None, ax)
    assert any(len(line.get_xdata()) > 50 for line in ax.lines)
    model, loop = kg.samples.four_bar()
    two = Figure().subplots(2)
    draw_skeleton(model, None, two[0])
    draw_skeleton(model, None, two[1], constraints=loop)
    assert len(two[1].lines) > len(two[0].lines)
    assert len(plot_skeleton(model, constraints=loop).axes) == 2
    assert any(len(line.get_xdata()) > 50 for line in picture(springs()).axes[0].lines)
    t = np.linspace(0, 0.2, 3)
    motion = kg.Motion(springs(), t, *np.zeros((3, 3, 2)))
    assert animate(springs(), motion, tmp_path / "a.gif", fps=10).stat().st_size > 1000
    with pytest.raises(kg.InputError, match="`constraints` are of another model than the one shown"):
        draw_skeleton(arm(), None, ax, constraints=loop)


def test_wires_move_with_the_posture():
    shown = Shown(springs())
    still, moved = shown.wires(np.zeros(2)), shown.wires(np.array([0.3, 0.2]))
    assert len(still) == len(moved) == 2
    assert abs(still[0][0] - moved[0][0]).max() > 0.01
    np.testing.assert_array_equal(still[0][-1], moved[0][-1])  # fixed in the world
