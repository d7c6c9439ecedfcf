"""Parameters of designs by name: their values, the models they change, and designs as values."""

import pickle
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import DH, Design, Inertia, InputError, Model, samples
from tests.conftest import assert_close, random_state, tree
from tests.design.stepped import ROW, check, random_dh, same_bits


def test_names_and_values():
    arm = samples.two_link()
    design = Design(arm, {"m": "forearm.mass", "L": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "g": "gravity.y"})
    assert design.names == ("m", "L", "g")
    assert design.p == 3
    assert_close(design.values, [arm.mass[1], 0.0, arm.gravity[1]], 0.0)
    assert "m=0.5" in repr(design)
    assert Design(arm, ("elbow.a", "elbow.alpha")).values.tolist() == [0.4, 0.0]
    assert Design(arm, ["forearm.inertia.yx"]).values == arm.inertia[1, 0, 1]
    again = pickle.loads(pickle.dumps(design))
    assert again.names == design.names
    state = random_state(arm)
    same_bits(*(kg.inverse_dynamics_design_derivatives(d, *state) for d in (design, again)))


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_values_of_rows(convention):
    rows = [DH(0.3, 0.1), DH(-2.0, 0.2, 0.4, 1.2), DH(3.0, -0.3, -0.5, -3.0, variable="-d")]
    model = Model.from_dh(rows, convention=convention)
    names = [f"{joint}.{what}" for joint in model.joint_names for what in ROW]
    assert_close(Design(model, names).values, [getattr(row, what) for row in rows for what in ROW], 1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_changed_model_round_trip(seed):
    """at(values) changes exactly what is named, and back."""
    model = random_dh(4, seed, "proximal") if seed % 2 else tree(seed + 8)
    rng = np.random.default_rng(seed)
    heavy = [link for link, mass in zip(model.link_names, model.mass, strict=True) if mass]
    joint = model.joint_names[-1]
    names = [f"{heavy[0]}.mass", f"{heavy[-1]}.com.y", f"{joint}.tip.y", f"{joint}.rest", "gravity.x"]
    if seed % 2:
        names = [*names[:2], *names[3:], *(f"{x}.{what}" for x in model.joint_names for what in ROW), f"{joint}.pitch"]
    design = Design(model, names)
    values = design.values + 0.1 * rng.random(design.p)
    moved = design.at(values)
    assert moved.names == design.names
    assert_close(moved.values, values, 1e-14)
    assert moved.model != model
    back = moved.at(design.values).model
    for what in ("mass", "com", "inertia", "placement", "tip", "gravity", "rest", "stiffness"):
        assert np.abs(getattr(back, what) - getattr(model, what)).max() <= 1e-14
    assert design.at(design.values).model.mass.tolist() == model.mass.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_finite_differences_of_changed_models(seed):
    """at() and the derivatives mean the same parameters."""
    model = random_dh(4, seed, ("distal", "proximal")[seed % 2])
    joints, links = model.joint_names, model.link_names
    specs = {f"{joint} {what}": {f"{joint}.{what}": 1.0} for joint in joints for what in ROW}
    specs |= {"m": f"{links[1]}.mass", "I": f"{links[2]}.inertia.xz", "pitch": f"{joints[-1]}.pitch"}
    specs |= {"mix": {f"{joints[1]}.a": 2.0, f"{links[1]}.com.x": -1.0, f"{joints[2]}.theta": 0.5, "gravity.z": 3.0}}
    design = Design(model, specs)
    q, v, tau = random_state(model, seed)
    found = kg.forward_dynamics_design_derivatives(design, q, v, tau)
    step = 1e-5
    for k, e in enumerate(step * np.eye(design.p)):
        up, down = (kg.forward_dynamics(design.at(design.values + x).model, q, v, tau) for x in (e, -e))
        # truncation, step² times third derivatives, and rounding, 1e-16 / step times conditioning
        assert np.abs((up - down) / (2 * step) - found[:, k]).max() <= 1e-6 * np.abs(found).max()


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_rows_without_a_and_alpha_keep_their_convention(convention):
    """All frames are the same in both conventions; derivatives by a and alpha are not."""
    rng = np.random.default_rng(8)
    rows = [DH(theta, d) for theta, d in rng.normal(size=(4, 2))]
    bodies = [Inertia.box(1 + rng.random(), 0.1 + rng.random(3), rng.normal(size=3)) for _ in rows]
    model = Model.from_dh(rows, convention=convention, inertias=bodies, name=convention)
    names = [f"{joint}.{what}" for joint in model.joint_names for what in ROW]
    copies = model, pickle.loads(pickle.dumps(model)), model.replace(name="other", mass=2 * model.mass), replace(model)
    for each in copies:
        check(each, names, seed=8, convention=convention)
    design = Design(model, names)
    moved = design.at(design.values + 0.1)
    check(moved.model, names, seed=9, convention=convention)
    other = {"distal": "proximal", "proximal": "distal"}[convention]
    assert Model.from_dh(rows, convention=other, inertias=bodies, name=convention) != model


def test_numbers_of_rows_read_back_as_given():
    """Angles beyond half a turn, too, and after any number of changes."""
    arm = Model.from_dh([(3.5, 0.1, 0.4, -4.0), (0.0, 0.0, 0.3, 7.0)])
    design = Design(arm, ["joint0.theta", "joint1.alpha", "joint0.alpha"])
    assert design.values.tolist() == [3.5, 7.0, -4.0]
    moved = design.at([-9.1, 0.3, 1e3]).at([-9.1, 0.7, 100.3])
    assert moved.values.tolist() == [-9.1, 0.7, 100.3]
    with pytest.warns(kg.UnitsWarning, match="looks like degrees"):
        assert moved.model == Model.from_dh([(-9.1, 0.1, 0.4, 100.3), (0.0, 0.0, 0.3, 0.7)])
    scaled = arm.replace(joint_names=["hip", "knee"], gravity=(0, 0, 0))
    assert Design(scaled, ["hip.theta"]).values == 3.5


def test_rows_do_not_outlive_what_they_place():
    arm = samples.two_link()
    tip = arm.tip.copy()
    assert arm.replace(tip=tip).dh == arm.dh, "the same place, so the same row"
    tip[1, 0, 3] = 0.7
    moved = arm.replace(tip=tip)
    assert Design(moved, ["shoulder.a"]).values == 0.4
    with pytest.raises(InputError, match=r"'elbow' .* not placed by a Denavit–Hartenberg row"):
        Design(moved, ["elbow.a"])
    turned = arm.replace(joints=[arm.joints[0], kg.revolute("x")])
    with pytest.raises(InputError, match=r"'elbow' .* not placed by a Denavit–Hartenberg row"):
        Design(turned, ["elbow.a"])
    assert arm.replace(placement=2 * [kg.translate(1, 2, 3)]).dh is None


def test_rows_of_functions():
    """A function's model carries slopes in its rows; the design's own model has plain ones."""

    def arm(x):
        return Model.from_dh([(x, 0, 0.4, 0), (0, 0, x, 0)], inertias=[Inertia.sphere(1, 0.1, [0.1, 0, 0])] * 2)

    design = Design.from_function(arm, {"x": 3.5})
    assert Design(design.model, ["joint0.theta", "joint1.a"]).values.tolist() == [3.5, 3.5]
    state = random_state(design.model)
    parts = kg.inverse_dynamics_design_derivatives(Design(design.model, ["joint0.theta", "joint1.a"]), *state)
    found = kg.inverse_dynamics_design_derivatives(design, *state)
    assert_close(found[:, 0], parts.sum(axis=1), 1e-14)


def slender_arm(L):
    return samples.two_link().replace(com={"forearm": [-np.ravel(L)[0] / 2, 0, 0]})


def some_designs():
    arm, loads = samples.two_link(), kg.Loads(force={"forearm": [1, 2, 3]}, point={"forearm": [0.1, 0, 0]})
    return [
        Design(arm, ["forearm.mass", "elbow.a"]),
        Design(arm, {"m": {"forearm.mass": 1.0, "upper_arm.mass": 0.5}, "f": "forearm.load.force.x"}, loads),
        Design.from_function(slender_arm, {"L": 0.4}),
        Design.from_function(slender_arm, [0.4]),
    ]


@pytest.mark.parametrize("k", range(4))
def test_designs_are_values(k):
    """Pickled, copied or made again they are equal, as are the derivatives; and simulations take them."""
    design, others = some_designs()[k], some_designs()
    state = random_state(design.model)
    for again in (pickle.loads(pickle.dumps(design)), deepcopy(design), copy(design), others[k]):
        assert again == design
        assert hash(again) == hash(design)
        assert {design: 1}[again] == 1
        same_bits(again.values, design.values)
        same_bits(*(kg.inverse_dynamics_design_derivatives(d, *state) for d in (design, again)))
        moved = again.at(again.values + 0.01)
        assert moved != design
        assert moved == design.at(design.values + 0.01)
    assert [design == other for other in others] == [j == k for j in range(4)]
    assert design != "design"
    assert design != Design(design.model.replace(gravity=(0, 0, 0)), ["forearm.mass"])


def test_unpickled_designs_are_designs_of_an_equal_model():
    from kinegrad.simulate import simulate_fixed

    design = Design(samples.two_link(), ["forearm.mass"])
    again = pickle.loads(pickle.dumps(design))
    q, v = np.zeros((2, 2))
    run = {"step": 0.01, "steps": 3}
    one, two = (simulate_fixed(design.model, q, v, design=d, **run) for d in (design, again))
    same_bits(one.dq_dp, two.dq_dp)
    with pytest.raises(InputError, match="design of another model"):
        simulate_fixed(design.model.replace(gravity=(0, 0, 0)), q, v, design=again, **run)


def test_designs_cannot_be_written_to():
    for design in (
        *some_designs(),
        *map(deepcopy, some_designs()),
        *(pickle.loads(pickle.dumps(d)) for d in some_designs()),
    ):
        arrays = [design.values, *design._slopes, *(design._load_slopes or ())]
        assert arrays
        for array in arrays:
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
        with pytest.raises(TypeError):
            design.parameters["x"] = "forearm.mass"
        for spec in design.parameters.values():
            if not isinstance(spec, str) and not callable(spec):
                with pytest.raises(TypeError):
                    spec["forearm.mass"] = 2.0


def test_parameters_stay_what_they_were():
    given = {"m": {"forearm.mass": 1.0}}
    design = Design(samples.two_link(), given)
    given["m"]["forearm.mass"] = 7.0
    assert design.parameters["m"]["forearm.mass"] == 1.0


def test_combination_moves_all_its_constants():
    arm = samples.two_link()
    moved = Design(arm, {"L": {"elbow.a": 1.0, "forearm.com.x": -0.5}}).at([0.1])
    assert_close(moved.model.tip[1, 0, 3], 0.5, 1e-15)
    assert_close(moved.model.com[1, 0], arm.com[1, 0] - 0.05, 1e-15)
    assert moved.values == 0.1, "a combination counts from the model that was given"


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"a": "forearm.mass", "b": "forearm.mass"}, ["'a'", "'b'"]),
        (["forearm.inertia.yz", "forearm.inertia.zy"], ["'forearm.inertia.yz'", "'forearm.inertia.zy'"]),
        (["elbow.a", "elbow.tip.x"], ["'elbow.a'", "'elbow.tip.x'"]),
        (["elbow.placement.y", "elbow.theta"], ["'elbow.theta'", "'elbow.placement.y'"]),
        (["elbow.tip.rx", "elbow.alpha"], ["'elbow.alpha'", "'elbow.tip.rx'"]),
        ({"a": "forearm.mass", "b": {"upper_arm.mass": 1.0, "forearm.mass": 0.5}}, ["'a'", "'b'"]),
        ({"b": {"upper_arm.mass": 1.0, "forearm.mass": 0.5}, "a": "forearm.mass"}, ["'a'", "'b'"]),
        ({"a": {"forearm.inertia.yz": 1.0, "forearm.inertia.zy": 1.0}}, ["forearm.inertia.yz", "forearm.inertia.zy"]),
        ({"a": {"elbow.a": 1.0, "elbow.tip.x": 1.0}}, ["'elbow.a'", "'elbow.tip.x'"]),
        ({"a": {"forearm.mass": 1.0}, "b": {"forearm.mass": -3.0}}, ["'a'", "'b'"]),
        ({"a": {"gravity.x": 1.0, "gravity.y": 0.3}, "b": {"gravity.y": 0.6, "gravity.x": 2.0}}, ["'a'", "'b'"]),
        ({"a": "elbow.placement.rx", "b": "elbow.placement.rx"}, ["'a'", "'b'"]),
        ({"a": "forearm.load.point.x", "b": "forearm.load.point.x"}, ["'a'", "'b'"]),
    ],
)  # fmt: skip
def test_parameters_that_move_one_constant_are_refused(parameters, named):
    """The model would not have the values that it was given."""
    with pytest.raises(InputError, match="expected one parameter") as error:
        Design(samples.two_link(), parameters, kg.Loads(force={"forearm": [1, 0, 0]}))
    assert all(name in str(error.value) for name in named)


def test_parameters_that_leave_each_other_alone():
    """What is set is what is read, whatever else is set; combinations may share constants."""
    names = ["forearm.mass", "forearm.com.x", "forearm.inertia.xx", "elbow.theta", "elbow.d", "elbow.a", "elbow.alpha",
             "shoulder.placement.x", "shoulder.placement.rx", "shoulder.placement.ry", "shoulder.tip.z",
             "elbow.stiffness", "gravity.x"]  # fmt: skip
    design = Design(samples.two_link(), names)
    values = np.random.default_rng(0).uniform(0.1, 0.11, design.p)
    moved = design.at(values)
    assert moved.values.tolist() == values.tolist()
    assert moved.at(design.values).model == design.model
    shared = Design(samples.two_link(), {"both": {"forearm.mass": 1.0, "upper_arm.mass": 1.0},
                                         "apart": {"forearm.mass": 1.0, "upper_arm.mass": -1.0}})  # fmt: skip
    moved = shared.at([0.2, 0.1])
    assert_close(moved.model.mass, [0.6, 0.8], 1e-15)
    assert moved.values.tolist() == [0.2, 0.1] == pickle.loads(pickle.dumps(moved)).values.tolist()
    assert_close(moved.at([0.2, 0.0]).model.mass, [0.7, 0.7], 1e-15)  # counted from the first model, not the second
