"""Whatever is given to what makes models, designs and loads ends in a named error or in a sound value.

Good arguments are spoiled one or two at a time.  Then either a :class:`KinegradError` says so, on few lines, or the
result keeps its promises: it pickles to an equal value, and its arrays cannot be made writable.  Any other exception,
and any warning, is a bug of kinegrad.
"""

import copy
import dataclasses
import pickle
import random
import warnings
from functools import partial

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import DH, Design, Inertia, Loads, Model, ModelBuilder, Topology, samples
from kinegrad.constraints import Constraint
from kinegrad.model.dh import DHTable
from tests.fuzz.cases import cases
from tests.fuzz.hostile import VALUES, hostile

ARM = samples.two_link()
TREE = samples.random_tree(3, seed=5, roots=2)
BODY = Inertia.box(2.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0])
LONGEST = 1500  # characters of a message: those with several values or many expected names included


def build(name="mechanism", gravity=(0, 0, -9.81), **joint):
    builder = ModelBuilder(name, gravity=gravity)
    builder.add("hip", None, kg.universal("xy"), link="thigh", inertia=BODY)
    builder.add(joint.pop("joint_name"), joint.pop("parent"), joint.pop("joint"), **joint)
    return builder.build()


def swing(L, m):
    return samples.double_pendulum(L1=L, MQ=m)


FIELDS = {f.name: getattr(TREE, f.name) for f in dataclasses.fields(Model) if f.init}
VECTOR, MATRIX, T = (
    np.array([0.1, 0.2, 0.3]),
    np.diag([0.2, 0.3, 0.4]),
    kg.translate(0.1, 0.2, 0.3) @ kg.rotate("x", 0.4),
)
LINK = {"link0": [1.0, 2.0, 3.0]}
NUMBERS = {"position_limits": np.array([-1.0, 1.0]), "velocity_limits": 1.0, "effort_limits": 1.0, "stiffness": 1.5,
           "rest": 0.3, "damping": 0.5, "armature": 0.1}  # fmt: skip
MAKERS = {
    "Inertia": (Inertia, {"mass": 2.0, "com": VECTOR, "inertia": MATRIX}),
    "about_frame": (Inertia.about_frame, {"mass": 2.0, "com": VECTOR, "inertia": MATRIX + np.eye(3)}),
    "from_pseudo": (Inertia.from_pseudo, {"pseudo": BODY.pseudo}),
    "point": (Inertia.point, {"mass": 2.0, "at": VECTOR}),
    "rod": (Inertia.rod, {"mass": 2.0, "start": VECTOR, "end": -VECTOR}),
    "cylinder": (Inertia.cylinder, {"mass": 2.0, "radius": 0.1, "start": VECTOR, "end": -VECTOR}),
    "frustum": (Inertia.frustum,
                {"mass": 2.0, "radius_start": 0.1, "radius_end": 0.2, "start": VECTOR, "end": -VECTOR}),
    "box": (Inertia.box, {"mass": 2.0, "size": VECTOR, "com": VECTOR}),
    "ellipsoid": (Inertia.ellipsoid, {"mass": 2.0, "semi_axes": VECTOR, "com": VECTOR}),
    "sphere": (Inertia.sphere, {"mass": 2.0, "radius": 0.1, "com": VECTOR, "hollow": False}),
    "moved": (BODY.moved, {"transform": T}),
    "revolute": (kg.revolute, {"axis": VECTOR}),
    "prismatic": (kg.prismatic, {"axis": "-x"}),
    "screw": (kg.screw, {"axis": VECTOR, "pitch": 0.1}),
    "spherical": (kg.spherical, {"sequence": "zyx"}),
    "universal": (kg.universal, {"axes": "xy"}),
    "planar": (kg.planar, {"normal": "z"}),
    "free": (kg.free, {"sequence": "zyx"}),
    "Joint": (kg.Joint, {"kind": "screw", "axis": (0.0, 0.0, 1.0), "pitch": 0.1, "label": "z"}),
    "rotate": (kg.rotate, {"axis": VECTOR, "angle": 0.4}),
    "translate": (kg.translate, {"x": 0.1, "y": 0.2, "z": 0.3}),
    "DH": (DH, {"theta": 0.1, "d": 0.2, "a": 0.3, "alpha": 0.4, "variable": "-theta", "pitch": 0.1}),
    "DHTable": (DHTable, {"rows": (DH(0.1), None), "convention": "distal"}),
    "Topology": (Topology, {"parents": [-1, 0, 0], "single_root": True, "names": ["a", "b", "c"]}),
    "from_branches": (Topology.from_branches, {"phi": [-1, 0, 0], "psi": [[0, 1], [2, 2], [3, 4]]}),
    "upsilon": (Topology.from_paper, {"upsilon": [[1, 0], [2, 1], [3, 1]]}),
    "phi, psi": (Topology.from_paper, {"phi": [[1, 0], [2, 1], [3, 1]], "psi": [[1, 4], [5, 5], [6, 9]]}),
    "renumbered": (Topology([-1, 0, 0]).renumbered, {"order": [0, 2, 1]}),
    "subtree": (Topology([-1, 0, 0]).subtree, {"i": 1}),
    "ancestors": (Topology([-1, 0, 0]).ancestors, {"i": 1}),
    "children": (Topology([-1, 0, 0]).children, {"i": 1}),
    "Model": (Model, FIELDS),
    "replace": (TREE.replace, {k: v for k, v in FIELDS.items() if k != "dh"}),
    "from_dh": (Model.from_dh, {"rows": [(0.1, 0.2, 0.3, 0.4), DH(0.5)], "parents": [-1, 0], "convention": "proximal",
                                "name": "arm", "joint_names": ["a", "b"], "link_names": ["c", "d"],
                                "inertias": [BODY, None], "gravity": (0, 0, 1), "damping": [0.1, 0.2]}),
    "from_dh by branches": (Model.from_dh, {"rows": [(0.1, 0.2, 0.3, 0.4), DH(0.5)], "branches": ([-1], [[0, 1]])}),
    "from_dh by field": (Model.from_dh, {"rows": [(0.1, 0.2, 0.3, 0.4)], "mass": [1.0], "placement": [T]}),
    "builder": (build, {"name": "leg", "gravity": (0, 0, 1), "joint_name": "knee", "parent": "thigh", "link": "shank",
                        "joint": kg.revolute("x"), "placement": T, "tip": [0, 0, -0.4], "inertia": BODY, **NUMBERS}),
    "builder of several": (build, {"joint_name": "knee", "parent": None, "joint": list(kg.free()), **NUMBERS,
                                   "inertia": (2.0, VECTOR, MATRIX)}),
    "link_inertia": (TREE.link_inertia, {"name": "link0"}),
    "joint_index": (TREE.joint_index, {"name": "joint0"}),
    "random_tree": (samples.random_tree,
                    {"n": 4, "seed": 3, "kinds": ("screw",), "depth_first": True, "roots": 2, "passive": True}),
    "multi_pendulum": (samples.multi_pendulum, {"n": 3, "length": 1.0, "mass": 1.0}),
    "spatial_chain": (samples.spatial_chain, {"n": 3, "length": 1.0, "mass": 1.0}),
    "double_pendulum": (samples.double_pendulum, {"L1": 1.0, "L2": 1.0, "MP": 1.0, "MQ": 1.0}),
    "cart_pendulum": (samples.cart_pendulum, {"cart_mass": 1.0, "rod_mass": 0.2, "length": 0.6}),
    "human43": (samples.human43,
                {"lengths": {"thigh": 0.5}, "masses": {"hand": 0.6}, "thickness": 0.1, "gravity": (0, 0, 1)}),
    "two_link": (samples.two_link, {"gravity": (0, 0, 1)}),
    "four_bar": (samples.four_bar, {"ground": 0.5, "crank": 0.2, "coupler": 0.45, "rocker": 0.4, "density": 2.0}),
    "slider_crank": (samples.slider_crank, {"crank": 0.1, "rod": 0.3, "density": 2.0, "piston": 0.5}),
    "stewart_platform": (samples.stewart_platform, {"base": 1.0, "top": 0.6, "height": 1.0, "mass": 20.0}),
    "cart on a rail": (samples.cart_pendulum, {"constrained": True, "cart_mass": 1.0, "rod_mass": 0.2, "length": 0.6}),
    "Contact": (kg.Contact, {"link": "link0", "point": VECTOR, "directions": [[0, 0, 1.0]], "other": "link1",
                             "other_point": VECTOR, "name": "tip"}),
    "Loop": (kg.Loop, {"link": "link0", "placement": T, "other": None, "other_placement": VECTOR,
                       "directions": "hinge", "name": "pin"}),
    "Distance": (kg.Distance, {"link": "link0", "point": VECTOR, "other": "link1", "other_point": VECTOR,
                               "length": 0.5, "name": "rod"}),
    "Coupling": (kg.Coupling, {"joint": "joint0", "other": "joint1", "ratio": 0.5, "offset": 0.1, "name": "gear"}),
    "Given": (kg.Given, {"joint": "joint0", "value": 0.1, "name": "held"}),
    "ConstraintSet": (kg.ConstraintSet, {"model": TREE, "constraints": [
        kg.Contact("link0"), kg.Loop("link2", VECTOR, "link1"), kg.Distance("link1", VECTOR, "link0", -VECTOR)]}),
    "ConstraintSet of one contact": (
        lambda **given: kg.ConstraintSet(TREE, [kg.Contact(**given)]),
        {"link": "link0", "point": VECTOR, "directions": "xz", "other": "link1", "other_point": VECTOR}),
    "ConstraintSet of one loop": (
        lambda **given: kg.ConstraintSet(TREE, [kg.Loop(**given)]),
        {"link": "link0", "placement": T, "other": "link1", "directions": "weld", "name": "pin"}),
    "ConstraintSet of one distance": (
        lambda **given: kg.ConstraintSet(TREE, [kg.Distance(**given)]),
        {"link": "link0", "point": VECTOR, "other": "link1", "other_point": VECTOR}),
    "ConstraintSet of one coupling": (
        lambda **given: kg.ConstraintSet(TREE, [kg.Coupling(**given)]), {"joint": "joint0", "other": "joint1"}),
    "Loads": (Loads, {"force": LINK, "point": np.ones((3, 3)), "torque": LINK}),
    "arrays": (Loads(force=LINK).arrays, {"model": TREE}),
    "Design": (Design, {"model": ARM, "parameters": {"L": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "m": "forearm.mass"},
                        "loads": Loads(force={"forearm": [1, 2, 3]})}),
    "Design by name": (Design, {"model": TREE, "parameters": ["link0.mass", "joint1.placement.rx", "gravity.z"]}),
    "from_function": (partial(Design.from_function, swing), {"values": {"L": 1.0, "m": 2.0}}),
    "at": (Design(ARM, ["forearm.mass", "elbow.theta", "elbow.a"]).at, {"values": [0.5, 0.1, 0.2]}),
    "at of a function": (Design.from_function(swing, {"L": 1.0, "m": 2.0}).at, {"values": [1.0, 2.0]}),
}  # fmt: skip
SLOW = {"human43", "from_function", "at of a function"}  # some milliseconds each
OWN = kg.Joint | Inertia | Topology | Model | DH | DHTable | Loads | Design | Constraint


def attempt(make, arguments):
    """The result, or None with a KinegradError; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return make(**arguments)
        except kg.KinegradError as error:
            message = str(error)
    assert len(message) <= LONGEST, f"a message of {len(message)} characters"
    assert "\n" not in message
    return None


def check_value(value):
    """Pickled and copied it is equal; nothing in it can be written to."""
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value
        assert hash(again) == hash(value)
        for array in arrays_of(again):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    assert repr(value)


def arrays_of(value):
    fields = [getattr(value, f.name) for f in dataclasses.fields(value)]
    fields += [x for part in fields if isinstance(part, dict) for x in part.values()]
    return [x for x in fields if isinstance(x, np.ndarray)]


def numeric(loads):
    """Whether loads are all numbers: what is not is kept as it is, to be refused by name where loads are used."""
    parts = [getattr(loads, what) for what in ("force", "point", "torque")]
    parts = [x for part in parts for x in (part.values() if hasattr(part, "values") else [part])]
    return all(x is None or (type(x) is np.ndarray and x.dtype.kind in "fc") for x in parts)


def one_case(name, seed):
    rng = random.Random(f"{name} {seed}")
    make, good = MAKERS[name]
    arguments = copy.copy(good)
    for what in rng.sample(list(good), min(len(good), rng.choice([1, 1, 2]))):
        arguments[what] = hostile(rng, good[what])
    made = attempt(make, arguments)
    if isinstance(made, Loads) and not numeric(made):
        return attempt(made.arrays, {"model": TREE})
    if isinstance(made, OWN):
        check_value(made)
    return made


@pytest.mark.parametrize("name", MAKERS)
def test_good_arguments_are_not_refused(name):
    if name == "from_dh by field":
        with pytest.raises(kg.InputError, match="`mass` follows from `rows` and `inertias`"):
            Model.from_dh(**MAKERS[name][1])
    else:
        assert attempt(*MAKERS[name]) is not None


@pytest.mark.parametrize("name", MAKERS)
def test_spoiled_arguments(name):
    for seed in range(cases(few=20 if name in SLOW else 100)):
        try:
            one_case(name, seed)
        except Exception as error:
            error.add_note(f"one_case({name!r}, {seed})")
            raise


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in SLOW])
def test_each_argument_is_tried_with_each_value(name):
    make, good = MAKERS[name]
    every = [(what, k) for what in good for k in range(len(VALUES))]
    for what, k in random.Random(name).sample(every, min(len(every), cases(few=100))):
        try:
            attempt(make, {**good, what: VALUES[k]})
        except Exception as error:
            error.add_note(f"{name}({what}=VALUES[{k}])")
            raise
