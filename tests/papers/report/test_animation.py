"""A motion that plays on a page: the right places, and nothing from elsewhere."""

import json
import re

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad.papers.report.animation import FRAMES, Arrow, Block, Scene, _plain, animation, motion_scene, skeleton


def scene(**changes):
    human = samples.human43()
    q = np.zeros((3, 43))
    q[:, human.joint_index("right_knee")] = [0, 0.5, 1.0]
    points, limbs, names = skeleton(human, q)
    block = Block.at(points[:, names["right_hand"]], [0.3, 0.2, 0.1])
    arrow = Arrow(points[:, names["right_foot"]], np.tile([0, 0, 0.4], (3, 1)))
    given = {"blocks": [block], "arrows": [arrow], "ground": -0.87, "marks": {"bend <b>": 0.0}}
    return Scene(np.array([0.0, 0.5, 1.0]), points, limbs, **(given | changes))


def data(html):
    return json.loads(re.search(r"const scene=(\{.*?\});\n", html, flags=re.DOTALL)[1])


def test_limbs_are_the_twenty_of_the_human():
    points, limbs, names = skeleton(samples.human43(), np.zeros((2, 43)))
    lengths = [np.linalg.norm(points[0, a] - points[0, b]) for a, b, *_ in limbs]
    expected = [0.09, 0.44, 0.43, 0.16, 0.06, 0.17, 0.28, 0.26, 0.19] * 2 + [0.49, 0.35]
    assert sorted(lengths) == pytest.approx(sorted(expected))
    assert points[0, names["right_foot"]] == pytest.approx([0.09, 0.16, -0.87])
    assert sum(limb.colour == limbs[0].colour for limb in limbs) == 9  # of the right side


def test_links_with_frames_at_their_joints_have_limbs_too():
    """Of the human in the sagittal plane: to the next joint, to frames, and of a pendulum beyond its centre of mass."""
    human = samples.human_sagittal()
    points, _, names = skeleton(human, np.zeros((2, 8)))
    assert points[0, names["crown"]] == pytest.approx([0, 0, 1.75])
    points, limbs, _ = skeleton(samples.multi_pendulum(2), np.zeros((2, 2)))
    assert points[0, limbs[-1][1]] == pytest.approx([0, 0, -2])


def test_limbs_have_the_names_of_their_links():
    human = samples.human43()
    _, limbs, _ = skeleton(human, np.zeros((2, 43)))
    assert {"head", "trunk", "right_thigh", "left_hand"} <= {limb.name for limb in limbs} <= set(human.link_names)


def test_a_particle_is_where_its_link_ends():
    """Of a double pendulum of two particles, both bars are as long as the model says, and gravity points down."""
    pendulum = samples.double_pendulum()
    long = motion_scene(pendulum, np.linspace(0, 20, 2001), np.zeros((2001, 2)))
    assert len(long.t) == FRAMES
    assert (long.t[0], long.t[-1]) == (0, 20)
    assert [np.linalg.norm(long.points[0, x.start] - long.points[0, x.end]) for x in long.limbs] == pytest.approx(
        [1, 1]
    )
    assert long.up == "z"


def test_the_page_holds_all_numbers_and_asks_nobody():
    html = animation(scene(), "Figure 1", "A human.")
    assert not re.search(r"(src|href)=|https?:|fetch\(|import ", html)
    plain = data(html)
    assert len(plain["points"]) == len(plain["t"]) == 3
    assert plain["ground"] == -0.87
    assert np.allclose(plain["blocks"][0]["corners"], scene().blocks[0].corners, atol=1e-4)
    assert animation(scene(), "Figure 1", "A human.") == html  # the same in every run


def test_y_can_be_up():
    arm = samples.two_link()
    points, limbs, names = skeleton(arm, [[np.pi / 2, 0.0]] * 2)
    plain = data(animation(Scene(np.array([0.0, 1.0]), points, limbs, up="y"), "Arm", "Up."))
    assert plain["points"][0][names["forearm"]] == pytest.approx([0, 0, 0.8])


def test_marks_cannot_end_the_script():
    """Names come from users: a tag in one must not end the script."""
    html = animation(scene(marks={"</script><b>": 0.0}), "Figure 1", "A human.")
    assert html.count("</script>") == 1


@pytest.mark.parametrize("change", [{"points": np.zeros((2, 4, 3))}, {"points": np.full((3, 4, 3), np.nan)}])
def test_refused(change):
    with pytest.raises(InputError, match="`points`"):
        Scene(**({"t": np.arange(3.0), "limbs": []} | change))


def test_a_link_that_is_called_as_its_joint_is_where_its_frame_is():
    """The payload of the five-bar arm is at the far end of the rod that the elbow moves, not at the elbow."""
    model, _ = kg.samples.five_bar()
    q = np.array([[0.1, 0.2, -0.1, 0.3], [0.2, 0.3, -0.2, 0.4]])
    points, limbs, names = skeleton(model, q)
    poses = kg.forward_kinematics(model, q).transform
    for link in model.link_names:
        assert points[:, names[link]] == pytest.approx(poses[:, model.link_index(link), :3, 3])
    held = _plain(Scene(np.array([0.0, 1.0]), points, limbs))["pivots"]
    assert sorted(points[0, k, 0] for k, _ in held) == pytest.approx([-0.1, 0.1])
    assert _plain(Scene(np.array([0.0, 1.0]), points, limbs, ground=0.0))["pivots"] == []
