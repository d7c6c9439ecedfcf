"""Ranges and strengths of the human, the human in the sagittal plane, the five-bar arm."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad.samples import human_limits, meanings

NECK_AND_ARMS = ("neck", "shoulder", "elbow", "wrist", "clavicle")


def place(model, q, link, point=(0, 0, 0)):
    return kg.point_motion(model, q, link=link, point=point).position


def posture(model, **angles):
    """q with some joints at their limits: name=0 the lower, 1 the upper; dots are written __."""
    q = np.zeros(model.n)
    for name, side in angles.items():
        i = model.joint_index(name.replace("__", "."))
        q[i] = model.position_limits[i, side]
    return q


# --- the human of 43 ----------------------------------------------------------------------------------------


def test_every_joint_but_the_roots_has_a_range_and_a_strength():
    human = samples.human43()
    root = np.array([name.startswith("pelvis.") for name in human.joint_names])
    assert np.isfinite(human.position_limits).all(axis=1).tolist() == (~root).tolist()
    assert np.isfinite(human.effort_limits).tolist() == (~root).tolist()
    lower, upper = human.position_limits[~root].T
    assert ((lower <= 0) & (upper >= 0)).all()  # the person can stand
    assert (upper - lower > np.radians(19)).all()


def test_left_and_right_are_mirror_images():
    """Both sides at the same limit: feet, hands and head lie mirrored, x to −x."""
    human = samples.human43()
    for name in (x for x in human.joint_names if x.startswith("right_")):
        i, j = human.joint_index(name), human.joint_index(name.replace("right", "left"))
        turned = name.endswith((".y", ".z", "_pelvis"))
        assert human.effort_limits[i] == human.effort_limits[j]
        for side in (0, 1):
            q = np.zeros(43)
            q[i] = human.position_limits[i, side]
            q[j] = human.position_limits[j, 1 - side if turned else side]
            for link in ("hand", "toes"):
                right, left = place(human, q, f"right_{link}"), place(human, q, f"left_{link}")
                np.testing.assert_allclose(left * [-1, 1, 1], right, atol=1e-12)


@pytest.mark.parametrize(
    ("joint", "side", "link", "axis", "sign"),
    [
        ("right_hip.x", 0, "right_foot", 1, +1),  # flexion: the foot to the front
        ("right_hip.y", 0, "right_foot", 0, +1),  # abduction: outwards
        ("right_knee", 1, "right_foot", 1, -1),  # flexion: the foot to the back
        ("right_ankle.x", 0, "right_toes", 2, +1),  # dorsiflexion: the toes up
        ("right_shoulder.x", 0, "right_hand", 2, +1),  # flexion: the hand over the head
        ("right_shoulder.y", 0, "right_hand", 0, +1),
        ("right_elbow.x", 0, "right_hand", 1, +1),
        ("right_wrist.x", 0, "right_hand", 1, +1),  # radial: the thumb's side is in front
        ("right_wrist.y", 1, "right_hand", 0, -1),  # flexion: the palm to the thigh
        ("right_clavicle.y", 0, "right_clavicle", 2, +1),
        ("right_clavicle.z", 1, "right_clavicle", 1, +1),
        ("neck.x", 1, "head", 1, +1),
    ],
)
def test_the_larger_range_is_the_anatomical_one(joint, side, link, axis, sign):
    """What the table calls flexion, abduction and so on moves the limb where people move it."""
    human = samples.human43()
    q = np.zeros(43)
    i = human.joint_index(joint)
    q[i] = human.position_limits[i, side]
    assert sign * (place(human, q, link) - place(human, np.zeros(43), link))[axis] > 0.01


def test_the_foot_turns_inwards_further_than_outwards():
    """Inversion lowers the outer edge of the right foot."""
    human = samples.human43()
    q = np.zeros(43)
    i = human.joint_index("right_ankle.y")
    q[i] = human.position_limits[i, 1]
    outer = [0, 0, -0.05]  # z of the foot's frame points to the left
    assert place(human, np.zeros(43), "right_foot", outer)[0] > place(human, np.zeros(43), "right_foot")[0]
    assert place(human, q, "right_foot", outer)[2] < place(human, np.zeros(43), "right_foot")[2] - 0.02
    assert human.position_limits[i, 1] > -human.position_limits[i, 0]


def test_limits_are_kept_by_copies_and_files():
    import pickle

    human = samples.human43()
    for twin in (human.replace(gravity=(0, 0, 0)), human.attach("head", 1.0), pickle.loads(pickle.dumps(human))):
        np.testing.assert_array_equal(twin.position_limits, human.position_limits)
        np.testing.assert_array_equal(twin.effort_limits, human.effort_limits)
    weaker = human.replace(effort_limits={"right_knee": 50.0}, position_limits={"right_knee": (0, 1)})
    assert weaker.effort_limits[9] == 50
    assert weaker.position_limits[9].tolist() == [0, 1]


WEIGHT, CLAVICLE = 77.5, 0.17  # kg of human43, and m
SOURCES = {  # degrees in two directions, as printed; None is an estimate
    "pelvis": (None, None), "hip.z": (45, 45), "hip.y": (45, 30), "hip.x": (125, 15), "knee": (0, 130),
    "ankle.x": (35, 50), "ankle.y": (25, 35), "toes": (80, 30), "lumbar": (30, 30), "lumbar.x": (29, 72),
    "clavicle.y": (45, 10),
    "clavicle.z": (30, 30), "shoulder.z": (90, 70), "shoulder.y": (120, None), "shoulder.x": (180, 60),
    "elbow.x": (150, 0), "elbow.z": (80, 80), "wrist.x": (20, 30), "wrist.y": (70, 80), "neck.y": (45, 45),
    "neck.z": (80, 80), "neck.x": (45, 45),
}  # fmt: skip
TORQUES = {  # N·m as printed, or from N·m/kg or N
    "lumbar.x": 234,
    "hip.z": 0.46 * WEIGHT, "hip.y": 1.29 * WEIGHT, "hip.x": 190, "knee": 168, "ankle.x": 126, "ankle.y": 34.6,
    "toes": 14.2, "clavicle.y": 1101 / 2 * CLAVICLE, "clavicle.z": 1117 / 2 * CLAVICLE, "shoulder.z": 50.522,
    "shoulder.y": 67.9, "shoulder.x": 92, "elbow.x": 77, "elbow.z": 16.2, "wrist.x": 11.0, "wrist.y": 12.2,
    "neck.y": 32, "neck.z": 13, "neck.x": 51,
}  # fmt: skip


@pytest.mark.parametrize("joint", human_limits.LIMITS)
def test_limits_are_the_numbers_of_their_sources(joint):
    """Ranges as printed; torques to three digits, those by kg or N for this body."""
    lower, upper, strength = human_limits.LIMITS[joint]
    for found, printed in ((-lower, SOURCES[joint][0]), (upper, SOURCES[joint][1])):
        assert printed is None or found == printed
    assert strength == pytest.approx(TORQUES.get(joint, 143), rel=5e-3)
    human = samples.human43(lumbar_flexion=True)
    clavicle = abs(human.tip[human.link_index("right_clavicle"), 0, 3])
    assert (human.total_mass, clavicle) == pytest.approx((WEIGHT, CLAVICLE))
    i = human.joint_index(joint if joint in human.joint_names else f"right_{joint}")
    np.testing.assert_allclose(np.degrees(human.position_limits[i]), (lower, upper))
    assert human.effort_limits[i] == strength


def test_every_limit_names_a_source_in_the_bibliography_or_is_called_an_estimate():
    text = inspect.getsource(human_limits).replace("list[", "(").replace("tuple[", "(").replace("Sequence[", "(")
    rows = [line for line in text.splitlines() if "JointLimits(" in line and "#" in line]
    assert len(rows) == len(human_limits.LIMITS)
    assert all("[" in row.split("#")[1] or "estimate" in row for row in rows)
    bibliography = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"\[([a-z]+\d*[a-z]?)\]", text))
    assert len(keys) > 15
    assert not {key for key in keys if f"**{key}**" not in bibliography}


# --- the human in the sagittal plane ------------------------------------------------------------------------


def test_sagittal_human_has_the_fractions_of_the_book():
    human = samples.human_sagittal(height=2.0, mass=100.0)
    masses = dict(zip(human.link_names, human.mass, strict=True))
    expected = {"trunk": 57.8, "thigh": 20, "shank": 9.3, "foot": 2.9, "upper_arm": 5.6, "forearm": 4.4}
    assert {name: masses[name] for name in expected} == pytest.approx(expected)
    assert human.total_mass == pytest.approx(100)
    assert place(human, np.zeros(8), "crown") == pytest.approx([0, 0, 2.0])
    assert place(human, np.zeros(8), "toe") == pytest.approx([0.75 * 0.304, 0, 0])
    thigh = human.link_inertia("thigh")
    assert thigh.inertia[1, 1] == pytest.approx(20 * (0.323 * 0.49) ** 2)
    assert thigh.com == pytest.approx([0, 0, -0.433 * 0.49])


def test_sagittal_human_stands_over_its_feet():
    human = samples.human_sagittal()
    x, _, z = kg.center_of_mass(human, np.zeros(8))
    assert place(human, np.zeros(8), "heel")[0] < x < place(human, np.zeros(8), "toe")[0]
    assert z / 1.75 == pytest.approx(0.58, abs=0.01)  # of the height; 0.56 to 0.58 in textbooks


@pytest.mark.parametrize(
    ("joint", "frame", "axis", "sign"),
    [("hip", "toe", 0, 1), ("knee", "toe", 0, -1), ("ankle", "toe", 2, 1), ("shoulder", "grip", 0, 1),
     ("elbow", "grip", 0, 1), ("trunk.ry", "crown", 0, 1)],
)  # fmt: skip
def test_sagittal_human_bends_as_people_do(joint, frame, axis, sign):
    human = samples.human_sagittal()
    q = np.zeros(8)
    i = human.joint_index(joint)
    q[i] = 0.3
    assert sign * (place(human, q, frame) - place(human, np.zeros(8), frame))[axis] > 0.01
    assert joint == "trunk.ry" or human.position_limits[i, 1] > 0.6


@pytest.mark.parametrize("arguments", [{"height": 0}, {"mass": -1}, {"height": np.nan}, {"mass": "75"}])
def test_sagittal_human_refuses(arguments):
    with pytest.raises(kg.KinegradError, match=next(iter(arguments))):
        samples.human_sagittal(**arguments)


# --- a low back that bends ----------------------------------------------------------------------------------

LOAD = 10.0 * 9.81  # N, ten kilograms


def by_statics(model, q, below, point, force=0.0, at=None):
    """Moment of the weights above a joint about a point, N·m, forwards positive: Σ m g (x − x₀), link by link."""
    T = kg.forward_kinematics(model, q).transform
    above = [i for i in range(model.n) if below in (*model.topology.ancestors(i), i)]
    ahead = np.array([0.0, 1.0, 0.0]) if model.name.startswith("human43") else np.array([1.0, 0.0, 0.0])
    arms = [(T[i, :3, :3] @ model.com[i] + T[i, :3, 3] - point) @ ahead for i in above]
    moment = sum(9.81 * model.mass[i] * arm for i, arm in zip(above, arms, strict=True))
    return moment + (force * (at - point) @ ahead if force else 0.0)


def test_sagittal_low_back_holds_ten_kilograms_in_front():
    """By hand: the grip is 0.186 + 0.146 + 0.054 of the height before the shoulder, L5/S1 0.0312 behind it."""
    human = samples.human_sagittal(lumbar_flexion=True)
    q = kg.neutral(human)
    q[human.coordinate_index("shoulder")] = np.pi / 2
    k = human.speed_index("lumbar")
    reach = human.frames["grip"].placement[:3, 3]
    box = kg.Loads(force={"forearm": [0, 0, -LOAD]}, point={"forearm": reach})
    free, held = (kg.inverse_dynamics(human, q, 0 * q, 0 * q, loads=x)[k] for x in (None, box))
    lever = (0.186 + 0.146 + 0.054 + 0.24 * 0.13) * 1.75
    assert free - held == pytest.approx(LOAD * lever)  # 72 N·m more: backwards, as the back muscles pull
    joint = kg.point_motion(human, q, link="trunk").position
    grip = kg.point_motion(human, q, link="grip").position
    assert held == pytest.approx(-by_statics(human, q, human.link_index("trunk"), joint, LOAD, grip))
    assert 100 < -held < 160  # of 234 N·m
    assert human.position_limits[human.joint_index("lumbar")] == pytest.approx(np.radians([-29, 72]))


def test_human43_low_back_holds_ten_kilograms_in_front():
    """`lumbar` bends to the side and feels nothing of it; `lumbar.x` feels load and arms."""
    human = samples.human43(lumbar_flexion=True)
    q = kg.neutral(human)
    for side in ("right", "left"):
        q[human.coordinate_index(f"{side}_shoulder.x")] = -np.pi / 2
    hands = [f"{side}_hand" for side in ("right", "left")]
    box = kg.Loads(force={hand: [0, 0, -LOAD / 2] for hand in hands})
    tau = kg.inverse_dynamics(human, q, 0 * q, 0 * q, loads=box)
    assert tau[human.speed_index("lumbar")] == pytest.approx(0, abs=1e-9)
    joint = np.array([0.0, 0.0, 0.153 * 0.49])
    grip = kg.point_motion(human, q, link="right_hand").position
    assert grip[1] == pytest.approx(0.28 + 0.26 + 0.19)
    expected = by_statics(human, q, human.link_index("trunk"), joint, LOAD, grip)
    assert tau[human.speed_index("lumbar.x")] == pytest.approx(-expected)
    assert 70 < expected < 110


@pytest.mark.parametrize("name", ["human43", "human_sagittal"])
def test_a_low_back_that_is_held_straight_changes_nothing(name):
    """Torques of all other joints are those of the body without it, in any motion that leaves it at zero."""
    make = getattr(samples, name)
    plain, bends = make(), make(lumbar_flexion=True)
    extra = "lumbar.x" if name == "human43" else "lumbar"
    names = [x.replace("pelvis.t", "trunk.t").replace("pelvis.r", "trunk.r") if name == "human_sagittal" else x
             for x in bends.joint_names]  # fmt: skip
    assert set(names) - set(plain.joint_names) == {extra}
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, plain.nv))
    order = [plain.joint_index(x) if x != extra else -1 for x in names]
    state = [np.where(np.array(order) < 0, 0.0, x[order]) for x in (q, v, a)]
    found = kg.inverse_dynamics(bends, *state)
    expected = kg.inverse_dynamics(plain, q, v, a)
    for k, j in enumerate(order):
        assert j < 0 or found[k] == pytest.approx(expected[j], abs=1e-10 * abs(expected).max())
    assert bends.total_mass == pytest.approx(plain.total_mass)
    frame = "head" if name == "human43" else "crown"
    np.testing.assert_allclose(place(bends, state[0], frame), place(plain, q, frame), atol=1e-12)


@pytest.mark.parametrize("name", ["human43_lumbar", "human_sagittal_lumbar"])
def test_a_low_back_bends_forwards(name):
    model = samples.SAMPLES[name]()
    assert model.name == name
    q = np.zeros(model.nv)
    q[model.joint_index("lumbar.x" if name.startswith("human43") else "lumbar")] = 0.5
    head, ahead = ("head", 1) if name.startswith("human43") else ("crown", 0)
    moved = place(model, q, head) - place(model, 0 * q, head)
    assert moved[ahead] > 0.2
    assert moved[2] < 0
    assert set(meanings.coordinate_meanings(model)) == set(model.joint_names)
    assert not meanings.missing_motion(model)
    assert name in meanings.missing_motion(samples.SAMPLES[name.removesuffix("_lumbar")]())


# --- the five-bar arm ---------------------------------------------------------------------------------------


def test_five_bar_has_two_degrees_of_freedom_and_two_motors():
    model, loop = samples.five_bar()
    assert np.linalg.matrix_rank(loop.jacobian(np.zeros(4))) == 2
    assert model.nu == 2
    q = kg.assemble(model, loop, [0.3, 0, -0.2, 0], keep=["left", "right"])
    assert q[[0, 2]] == pytest.approx([0.3, -0.2])
    np.testing.assert_allclose(place(model, q, "left_elbow"), place(model, q, "right_elbow"), atol=1e-10)


def test_five_bar_is_symmetric():
    model, _ = samples.five_bar(ground=0.3, proximal=0.2, distal=0.5)
    left, right = place(model, np.zeros(4), "left"), place(model, np.zeros(4), "right")
    np.testing.assert_allclose(left * [-1, 1, 1], right, atol=1e-15)
    with pytest.raises(InputError, match=r"`distal` is 0\.1 m, and `ground` 0\.2 m"):
        samples.five_bar(distal=0.1)
