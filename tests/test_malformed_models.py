"""Malformed models: fields, builders, Denavit–Hartenberg rows, topologies, inertias, joints, placements, names."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import kinegrad as kg
from tests.conftest import assert_close, parts, random_loads, random_state
from tests.disguises import CLOSE, DISGUISES, MANY, MODEL, any_array, attempt_to_build, disguised, nonsense, things
from tests.reference import oracle


def check_model(model):
    """A model that was accepted computes what the oracle computes from its constants."""
    assert isinstance(model, kg.Model)
    state, loads = random_state(model, 7), random_loads(model, 7)
    numbers = ("placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature")
    constants = [*(getattr(model, what) for what in numbers), np.array([joint.pitch for joint in model.joints])]
    if not all(np.abs(x).max() < 1e6 for x in constants):
        return  # products of such numbers overflow, in the oracle as well
    desired = oracle.regular_lagrangian(model, *state, *parts(loads))
    for method in ("spatial", "lagrange"):
        assert_close(kg.inverse_dynamics(model, *state, loads=loads, method=method), desired, CLOSE)


FIELDS = {
    name: getattr(MODEL, name)
    for name in (
        "name", "joints", "parents", "joint_names", "link_names", "placement", "tip", "mass", "com",
        "inertia", "gravity", "position_limits", "velocity_limits", "effort_limits", "stiffness", "rest", "damping",
        "armature",
    )
}  # fmt: skip

SPOILERS = {
    "negative": lambda x: -x,
    "zero": np.zeros_like,
    "one entry NaN": lambda x: np.where(np.arange(x.size).reshape(x.shape) == x.size // 2, np.nan, x),
    "scaled": lambda x: x * 1.001,
    "rounded": lambda x: np.round(x, 3),
    "nudged": lambda x: x + 1e-12,
    "reversed": lambda x: x[::-1],
    "swapped axes": lambda x: np.swapaxes(x, -1, -2) if x.ndim > 1 else x,
    "too long": lambda x: np.concatenate([x, x[-1:]]),
    "too short": lambda x: x[:-1],
    "empty": lambda x: x[:0],
    "first only": lambda x: x[0],
    "more axes": lambda x: x[None],
}


@st.composite
def spoiled(draw, x):
    """A field of a model, spoiled; or something else altogether."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return draw(things)
    if kind == 1:
        return draw(nonsense | any_array)
    if isinstance(x, np.ndarray) and x.ndim:
        name = draw(st.sampled_from([*SPOILERS, *DISGUISES]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (SPOILERS | DISGUISES)[name](np.asarray(x, dtype=np.float64))
    if isinstance(x, tuple) and x:
        other = draw(things | st.sampled_from(x))
        place = draw(st.integers(0, len(x)))
        return draw(st.sampled_from([x[:-1], x + x[:1], (*x[:place], other, *x[place + 1 :]), list(x), iter(x)]))
    if isinstance(x, float):
        return draw(st.sampled_from([-x, 0.0, np.nan, np.inf, 1e300, str(x), np.float32(x), [x], x + 0j, int(x)]))
    return draw(things)


@settings(max_examples=300)
@given(data=st.data())
def test_models_from_fields(data):
    fields = dict(FIELDS)
    for what in data.draw(st.sets(st.sampled_from(list(FIELDS)), min_size=1, max_size=2)):
        fields[what] = data.draw(spoiled(FIELDS[what]))
    model = attempt_to_build(kg.Model, **fields)
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_replaced_fields(data):
    what = data.draw(st.sampled_from([*FIELDS, "colour"]))
    x = FIELDS.get(what, 0.0)
    value = data.draw(spoiled(x))
    if data.draw(st.booleans()) and isinstance(x, np.ndarray):
        names = st.sampled_from([*MODEL.link_names, *MODEL.joint_names, "elbow", None, 0])
        value = {data.draw(names): data.draw(spoiled(np.array(x[0])))}
    model = attempt_to_build(MODEL.replace, **{what: value})
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_built_models(data):
    """Two good joints, then one of which up to two arguments are spoiled."""
    builder = kg.ModelBuilder("built")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0])
    builder.add("hip", None, kg.universal("xy"), link="thigh", inertia=body)
    arguments = {
        "name": "knee",
        "parent": "thigh",
        "joint": kg.revolute("x"),
        "link": "shank",
        "placement": kg.translate(0.1, 0.2, 0.3) @ kg.rotate([1, 2, 3], 0.4),
        "tip": kg.translate(0, 0, -0.4),
        "inertia": body,
        "stiffness": 1.5,
        "rest": 0.3,
        "damping": 0.5,
        "armature": 0.1,
        "position_limits": np.array([-1.0, 1.0]),
    }
    for what in data.draw(st.sets(st.sampled_from([*arguments, "colour"]), min_size=1, max_size=2)):
        twins = {"name": "hip.x", "link": "thigh", "parent": "shank", "joint": kg.free()}
        arguments[what] = data.draw(spoiled(arguments.get(what, 1.0)) | st.just(twins.get(what)))
    name, parent, joint = (arguments.pop(what) for what in ("name", "parent", "joint"))
    added = attempt_to_build(builder.add, name, parent, joint, **arguments)
    model = attempt_to_build(builder.build)
    if added is None:
        assert model is not None, "a refused joint leaves the builder as it was"
        assert model.n == 2
    if model is not None:
        check_model(model)


@MANY
@given(gravity=things | nonsense | disguised(np.array([0.0, 0.0, -9.81])), name=things)
def test_builders(gravity, name):
    builder = attempt_to_build(kg.ModelBuilder, name, gravity=gravity)
    if builder is not None and attempt_to_build(
        builder.add, "hinge", None, kg.revolute("x"), inertia=kg.Inertia.point(1, [0, 1, 0])
    ):
        model = attempt_to_build(builder.build)
        if model is not None:
            check_model(model)


@MANY
@given(data=st.data())
def test_models_from_dh(data):
    good = (0.1, 0.2, 0.3, 0.4)
    row = st.one_of(
        st.just(good),
        things,
        st.tuples(*[st.floats(-1, 1) | things] * 4),
        st.lists(st.floats(), max_size=5),
        st.builds(
            lambda **row: attempt_to_build(kg.DH, **row),
            theta=st.floats(-1, 1),
            variable=st.sampled_from(["theta", "-d"]),
        ),
    )
    rows = data.draw(st.lists(row, max_size=4) | things)
    options = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "parents": st.lists(st.integers(-2, 4), max_size=4) | things,
                "branches": st.just(([-1, 0], [[0, 1], [2, 2]])) | things,
                "convention": st.sampled_from(["distal", "proximal", "craig", None]),
                "joint_names": st.lists(st.sampled_from("abcd"), max_size=4) | things,
                "inertias": st.lists(st.sampled_from([None, kg.Inertia.sphere(1, 0.1), 3]), max_size=4) | things,
                "damping": things,
                "colour": st.just("red"),
            },
        )
    )
    model = attempt_to_build(kg.Model.from_dh, rows, **options)
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_topologies(data):
    small = st.integers(-3, 6)
    vector = st.lists(small, max_size=5) | things | any_array
    matrix = st.lists(st.tuples(small, small), max_size=4) | things | any_array
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.Topology(data.draw(vector), names=data.draw(st.none() | things)),
                lambda: kg.Topology.from_branches(data.draw(vector), data.draw(matrix)),
                lambda: kg.Topology.from_paper(upsilon=data.draw(matrix)),
                lambda: kg.Topology.from_paper(phi=data.draw(matrix), psi=data.draw(matrix)),
                lambda: kg.Topology([-1, 0, 0]).renumbered(data.draw(vector)),
                lambda: kg.Topology([-1, 0, 0]).subtree(data.draw(things)),
            ]
        )
    )
    found = attempt_to_build(make)
    if isinstance(found, kg.Topology):
        assert (found.parents < np.arange(found.n)).all()
        assert (found.parents >= -1).all()
        assert len(found.support) == found.n


def moments_exist(body):
    """No body has a negative mass, or a pseudo-inertia with a negative eigenvalue (beyond rounding)."""
    J = body.pseudo
    return body.mass >= 0 and np.linalg.eigvalsh(J).min() >= -1e-8 * max(np.abs(J).max(), 1e-300)


@MANY
@given(data=st.data())
def test_inertias(data):
    numbers = {"mass": 2.0, "radius": 0.1}
    vector = np.array([0.1, 0.2, 0.3])
    matrix = np.diag([0.2, 0.3, 0.4])
    makers = {
        kg.Inertia: (2.0, vector, matrix),
        kg.Inertia.about_frame: (2.0, vector, matrix + np.eye(3)),
        kg.Inertia.from_pseudo: (kg.Inertia(2.0, vector, matrix).pseudo,),
        kg.Inertia.point: (2.0, vector),
        kg.Inertia.rod: (2.0, vector, -vector),
        kg.Inertia.cylinder: (2.0, numbers["radius"], vector, -vector),
        kg.Inertia.frustum: (2.0, 0.1, 0.2, vector, -vector),
        kg.Inertia.box: (2.0, vector, vector),
        kg.Inertia.ellipsoid: (2.0, vector, vector),
        kg.Inertia.sphere: (2.0, 0.1, vector),
        kg.Inertia(2.0, vector, matrix).moved: (kg.translate(1, 2, 3),),
    }
    maker = data.draw(st.sampled_from(list(makers)))
    good = makers[maker]
    wrong = data.draw(st.integers(0, len(good) - 1))
    body = attempt_to_build(maker, *(data.draw(spoiled(x)) if k == wrong else x for k, x in enumerate(good)))
    if body is not None and max(body.mass, np.abs(body.com).max(), np.abs(body.inertia).max()) < 1e50:
        assert moments_exist(body)


@MANY
@given(data=st.data())
def test_joints(data):
    """Whatever makes a joint makes a model with it, as the oracle moves it."""
    axis = st.sampled_from(["x", "-z", "+y", "w", [0, 0, 2], [0, 0, 0], [1, 2], "--x", "−y", "-"]) | things | nonsense
    axis = axis | disguised(np.array([1.0, -2.0, 0.5]))
    letters = st.text("xyzw", max_size=4) | things
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.revolute(data.draw(axis)),
                lambda: kg.prismatic(data.draw(axis)),
                lambda: kg.screw("z", pitch=data.draw(things | nonsense)),
                lambda: kg.Joint(data.draw(st.sampled_from(["revolute", "screw"]) | things), data.draw(axis)),
                lambda: kg.Joint("screw", (0.0, 0.0, 1.0), data.draw(things | nonsense), data.draw(things)),
                lambda: kg.spherical(data.draw(letters)),
                lambda: kg.universal(data.draw(letters)),
                lambda: kg.planar(data.draw(letters)),
                lambda: kg.free(data.draw(letters)),
            ]
        )
    )
    joint = attempt_to_build(make)
    if joint is None:
        return
    builder = kg.ModelBuilder("joint")
    if attempt_to_build(builder.add, "joint", None, joint, inertia=kg.Inertia.box(1.0, [1, 2, 3])):
        check_model(builder.build())


@MANY
@given(data=st.data())
def test_placements(data):
    number = st.floats(-10, 10) | things
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.translate(data.draw(number), 1.0, data.draw(number)),
                lambda: kg.rotate("z", data.draw(number)),
                lambda: kg.rotate(data.draw(things), 0.3),
            ]
        )
    )
    T = attempt_to_build(make)
    if T is not None:
        assert T.shape == (4, 4)
        np.testing.assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-14)
        assert np.isfinite(T).all()


@MANY
@given(data=st.data())
def test_names(data):
    find = data.draw(st.sampled_from([MODEL.link_index, MODEL.joint_index, MODEL.link_inertia]))
    name = data.draw(things | nonsense | st.just("link1"))
    found = attempt_to_build(find, name)
    assert found is None or name in (*MODEL.link_names, *MODEL.joint_names)
