"""Every model, with constraints, loads and designs, comes back from a file to the last bit."""

import dataclasses
import random

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad.io import read_model
from kinegrad.model import Quaternion
from tests.constraints.sets import random_constraints
from tests.fuzz.mechanisms import design_of, mechanism
from tests.mixed import mixed_tree

# what is in a file; a new field of Model must be written, or it is lost
WRITTEN = {
    "name", "joints", "parents", "joint_names", "link_names", "placement", "tip", "mass", "com", "inertia", "gravity",
    "position_limits", "velocity_limits", "effort_limits", "stiffness", "rest", "damping", "armature", "dh", "frames",
    "shapes", "coordinates", "elements", "actuation",
}  # fmt: skip


def bits(value):
    """Everything in it, numbers as their bytes: −0 is not 0."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, float):
        return np.float64(value).tobytes()
    if isinstance(value, tuple | list):
        return tuple(bits(x) for x in value)
    if hasattr(value, "items"):
        return tuple((key, bits(x)) for key, x in value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple((f.name, bits(getattr(value, f.name))) for f in dataclasses.fields(value) if f.init)
    return value


def check(tmp_path, model, **parts):
    path = tmp_path / "model.toml"
    kg.save(model, path, **parts)
    found = read_model(path)
    assert found.model == model
    assert bits(found.model) == bits(model)
    assert len(found.report) == 0
    first = path.read_bytes()
    kg.save(found, path)
    assert path.read_bytes() == first
    return found


def test_no_field_of_a_model_is_forgotten():
    assert {f.name for f in dataclasses.fields(kg.Model) if f.init} == WRITTEN


@pytest.mark.parametrize("name", kg.samples.SAMPLES)
def test_samples(tmp_path, name):
    check(tmp_path, kg.samples.SAMPLES[name]())


@pytest.mark.parametrize("seed", range(60))
def test_random_mechanisms(tmp_path, seed):
    rng = random.Random(seed)
    check(tmp_path, mechanism(rng)[0])
    check(tmp_path, mixed_tree(seed, joints=1 + seed % 9))
    check(tmp_path, kg.samples.random_tree(1 + seed % 13, seed, roots=1))


@pytest.mark.parametrize("seed", range(12))
def test_constraints_loads_and_designs(tmp_path, seed):
    rng = random.Random(seed)
    model = mechanism(rng, largest=6, mixed=False)[0]
    constraints = kg.ConstraintSet(model, random_constraints(model, seed, loops=("hinge", "xYZ", "pin")))
    loads = kg.Loads(
        force={model.link_names[0]: [1.0, -0.0, 1 / 3]},
        torque=np.random.default_rng(seed).normal(size=(model.n, 3)) if seed % 2 else None,
    )
    design = design_of(rng, model)
    found = check(tmp_path, model, constraints=constraints, loads=loads, design=design)
    assert found.constraints == constraints
    assert bits(found.constraints.constraints) == bits(constraints.constraints)
    assert found.loads == loads
    assert found.design == design


def test_designs_of_loads_and_of_combinations(tmp_path):
    arm = kg.samples.two_link()
    loads = kg.Loads(force={"forearm": [0, -10, 0]})
    parameters = {"L2": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "m2": "forearm.mass", "F": "forearm.load.force.y"}
    design = kg.Design(arm, parameters, loads)
    assert check(tmp_path, arm, design=design).design == design
    assert check(tmp_path, arm, design=design, loads=loads).design == design
    assert check(tmp_path, arm, design=["forearm.mass"], loads=None).design.names == ("forearm.mass",)


def everything():
    """A model of what samples and random trees do not have."""
    builder = kg.ModelBuilder('odd "names" \\ and Grün', gravity=(-0.0, 1e-300, 9.8))
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    builder.add("base.of it", None, kg.free("xzx"), link="trunk", inertia=body, damping=[1, 2, 3, 4, 5, 6])
    builder.add("hip", "trunk", kg.spherical("yxz"), inertia=body, position_limits=[-1, 1], stiffness=0.3)
    builder.add("ball", "hip", kg.spherical(quaternion=True), inertia=body, damping=[0.1, 0.2, 0.3], velocity_limits=5)
    builder.add("cardan", "ball", kg.universal("yz"), inertia=body, position_limits=[[-1, 2], [-np.inf, 0]])
    builder.add("sheet", "trunk", kg.planar("y"), inertia=body, effort_limits=[1, np.inf, 3])
    builder.add("drone", None, kg.free(quaternion=True), link="rotor", inertia=body, tip=[0, 0, 0.1])
    builder.add("plain.x", "rotor", kg.Joint("revolute", (1.0, 0.0, 0.0), label="other"), inertia=body)
    builder.add("screw", "rotor", kg.screw([1, 2, 3], pitch=-0.01), inertia=body, armature=0.2, rest=0.7)
    builder.add("knee", "sheet", kg.planar("z"), inertia=body)
    clamped = CubicSpline([0, 1, 2], [0.0, 0.1, 0.0], bc_type="clamped")
    builder.couple(
        "knee angle", {"knee.rz": 1.0, "knee.tx": clamped, "knee.ty": kg.PolynomialFunction([-0.4, 0, 0.01])}
    )
    builder.mimic("screw", "plain.x", multiplier=-2, offset=1 / 3)
    builder.add_frame("tool", "rotor", kg.rotate([1, 2, 3], 0.4) @ kg.translate(0.1, -0.0, 0.3))
    builder.add_frame("tip", "tool", [0, 0, 1])
    builder.add_shape("tool", kg.Mesh("a b/c.stl", (1, -1, 0.5)), color=(0.1, 0.2, 0.3, 0.4))
    builder.add_shape(None, kg.Capsule(0.1, 0.2), kg.rotate("x", 0.3), collision=True)
    builder.add_shape("trunk", kg.Sphere(0.1))
    builder.add_shape("trunk", kg.Box([1, 2, 3]), [0, 0, 1])
    builder.add_shape("trunk", kg.Cylinder(1, 2))
    builder.add_element("strap", kg.SpringDamper("tool", [0, 0, 1], "hip", stiffness=3, damping=0.1, rest_length=0.2))
    turned = kg.rotate("y", 0.2)
    builder.add_element("mount", kg.Bushing("tip", turned, stiffness=[1, 2, 3, 4, 5, 6], damping=[0, 0, 1, 0, 0, 0]))
    builder.actuate({"motor": {"plain.x": 2.0, "ball.wx": -1 / 3}, "idle": {}})
    return builder.build()


def test_everything_at_once(tmp_path):
    model = everything()
    check(tmp_path, model)
    text = (tmp_path / "model.toml").read_text()
    assert text.count("[[joint]]") == 9  # joints of several primitives are one table
    check(tmp_path, model.replace(actuation=kg.Actuation((), np.zeros((model.nv, 0)))))
    check(tmp_path, model.replace(coordinates=model.coordinates[::-1]))
    odd = model.com.copy()
    odd[6, 1] = -0.0
    check(tmp_path, model.replace(com=odd))


def test_joints_that_only_look_like_one_of_several(tmp_path):
    """A tip between two hinges, a link of another name, a row, a mass within: it is not written as one."""
    builder = kg.ModelBuilder("hinges")
    builder.add("hip", None, kg.spherical("zyx"), inertia=kg.Inertia.box(1, [1, 2, 3]))
    model = builder.build()
    check(tmp_path, model)
    assert (tmp_path / "model.toml").read_text().count("[[joint]]") == 1
    for changes in (
        {"tip": {"hip.z": [0, 0, 1e-9]}},
        {"placement": {"hip.y": [0, 0, -0.0]}},
        {"link_names": ("hip.z", "other", "hip")},
        {"joint_names": ("hip.z", "hip.q", "hip.x")},
        {"mass": {"hip.y": 1e-9}},
        {"com": {"hip.y": [0, -0.0, 0]}},
    ):
        check(tmp_path, model.replace(**changes))
        assert (tmp_path / "model.toml").read_text().count("[[joint]]") >= 2
    ball = kg.ModelBuilder("ball")
    ball.add("hip", None, kg.spherical(quaternion=True), inertia=kg.Inertia.box(1, [1, 2, 3]))
    model = ball.build()
    check(tmp_path, model.replace(damping={"hip.pose_z": 1.0}))
    check(tmp_path, model.replace(coordinates=()))
    check(tmp_path, model.replace(coordinates=(Quaternion("another name", 0),)))
    assert "[[quaternion]]" in (tmp_path / "model.toml").read_text()


def test_rows_that_do_not_say_all(tmp_path):
    """A Denavit–Hartenberg row keeps its joint's placement; a joint of another kind, or −0 in it, is written, too."""
    arm = kg.samples.puma560()
    check(tmp_path, arm)
    check(tmp_path, arm.replace(placement={arm.joint_names[2]: kg.translate(0, 0, 0.1)}))
    joints = list(arm.joints)
    joints[1] = kg.prismatic("-z")
    check(tmp_path, arm.replace(joints=joints))
    proximal = kg.Model.from_dh([kg.DH(0.1, 0.2, 0.3, 0.4, "-d"), kg.DH(pitch=0.1)], convention="proximal")
    check(tmp_path, proximal)


@pytest.mark.parametrize("value", [5e-324, 1e100, -0.0, 0.1, 1 / 3, 123456789.123456789, 1e16, 2**53 + 0.0])
def test_numbers_keep_their_bits(tmp_path, value):
    model = kg.samples.two_link().replace(gravity=[value, 0, -value])
    check(tmp_path, model)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"model": 3}, "`model` is 3; expected a Model"),
        ({"path": "arm.urdf"}, "files of kind '.urdf' cannot be written; expected .toml"),
        ({"path": "no/such/folder/arm.toml"}, "cannot be written: No such file or directory"),
        ({"constraints": [3]}, "`constraints` holds 3"),
        ({"constraints": kg.ConstraintSet(kg.samples.puma560(), [])}, "`constraints` are of model 'puma560'"),
        ({"loads": 3}, "`loads` is 3; expected Loads"),
        ({"loads": kg.Loads(force=np.zeros((5, 2, 3)))}, "`loads` has a force of each of several states"),
        ({"loads": kg.Loads(force={"foot": [0, 0, 0]})}, "'foot' does not exist"),
        ({"design": ["foot.mass"]}, "foot"),
        (
            {"design": kg.Design.from_function(kg.samples.double_pendulum, {"L1": 0.8})},
            "`design` is of model 'double_pendulum'; expected one of `model`",
        ),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, monkeypatch, parts, sentence):
    monkeypatch.chdir(tmp_path)
    arguments = {"model": kg.samples.two_link(), "path": "arm.toml", **parts}
    with pytest.raises(kg.InputError) as caught:
        kg.save(arguments.pop("model"), arguments.pop("path"), **arguments)
    assert sentence in str(caught.value)
    assert list(tmp_path.iterdir()) == []  # nothing half written


def test_designs_of_functions_cannot_be_written(tmp_path):
    design = kg.Design.from_function(kg.samples.double_pendulum, {"L1": 0.8})
    with pytest.raises(kg.InputError, match="`design` is made by a function, which a file cannot hold"):
        kg.save(design.model, tmp_path / "a.toml", design=design)
