"""Results compare by value and travel between processes; loads own their numbers."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from kinegrad.results import Result, owned, same

MODEL = samples.two_link(gravity=(0.0, -10.0, 0.0))
STATE = np.array([[0.3, 0.2], [0.1, -0.4], [1.0, 2.0]])
DESIGN = kg.Design(MODEL, ["forearm.mass", "elbow.a"])


def results(x):
    """One result of each kind, of a state x."""
    q, v, a = x
    return [
        kg.inverse_dynamics_derivatives(MODEL, q, v, a),
        kg.inverse_dynamics_derivatives(MODEL, q, v, a, packed=True),
        kg.forward_dynamics_derivatives(MODEL, q, v, a),
        kg.inverse_dynamics_vjp(MODEL, q, v, a, v),
        kg.inverse_dynamics_load_derivatives(MODEL, q),
        kg.hybrid_dynamics(MODEL, q, v, a, a, prescribed=["elbow"]),
        kg.forward_kinematics(MODEL, q, v, a),
        kg.point_motion(MODEL, q, v, a, link="forearm"),
        kg.jacobian(MODEL, q, link="forearm"),
        kg.forward_kinematics_derivatives(MODEL, q, v, a),
        kg.point_motion_derivatives(MODEL, q, v, a, link="forearm"),
        kg.momentum(MODEL, q, v),
        kg.momentum_derivatives(MODEL, q, v),
        kg.energy_design_derivatives(DESIGN, q, v),
        kg.point_motion_design_derivatives(DESIGN, q, v, a, link="forearm"),
        kg.hybrid_dynamics_design_derivatives(DESIGN, q, v, a, a, prescribed=["elbow"]),
    ]


@pytest.mark.parametrize("k", range(16))
def test_every_result_compares_by_value_and_pickles(k):
    one, other, different = results(STATE)[k], results(STATE)[k], results(STATE + 0.25)[k]
    assert isinstance(one, Result)
    assert one == other
    assert one != different
    assert one != 1
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert type(copy) is type(one)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_same_looks_at_every_number():
    """NaN is the same as NaN, and the shape counts."""
    assert same(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    assert same(float("nan"), float("nan"))
    assert not same(np.ones(2), np.ones((1, 2)))
    assert not same(np.ones(2), [1.0, 1.0])
    assert not same((1, np.ones(2)), (1, np.array([1.0, np.nextafter(1.0, 2.0)])))
    assert not same({"a": 1}, {"b": 1})
    assert same(np.array(["a", "b"]), np.array(["a", "b"]))


@pytest.mark.parametrize("part", ["force", "point", "torque"])
@pytest.mark.parametrize("by_name", [True, False])
def test_loads_own_their_numbers(part, by_name):
    """What is done to the arrays afterwards is not seen; nor can the loads' own be written to."""
    given = np.ones(3) if by_name else np.ones((2, 3))
    loads = kg.Loads(**{part: {"forearm": given} if by_name else given})
    before = loads.arrays(MODEL)[part].copy()
    given[:] = 99.0
    assert np.array_equal(loads.arrays(MODEL)[part], before)
    kept = getattr(loads, part)
    with pytest.raises(ValueError, match="read-only"):
        (kept["forearm"] if by_name else kept)[...] = 1.0


def test_owned_leaves_functions_as_they_are():
    """A torque function may be an object with a state that its owner looks at."""
    assert owned(np.sin) is np.sin
    nested = [np.ones(2), (np.zeros(2), "name")]
    copy = owned(nested)
    nested[0][:] = 7.0
    assert same(copy, [np.ones(2), (np.zeros(2), "name")])
    memory = np.zeros(2)
    foreign = owned(memoryview(memory))
    memory[:] = 7.0
    assert same(foreign, np.zeros(2))
    assert owned(2.5) == 2.5
    ragged = [[1.0], [2.0, 3.0]]
    assert owned(ragged) == ragged


def test_what_is_owned_cannot_be_made_writable():
    kept = owned({"a": [np.ones(2)], "b": np.ma.masked_array([1.0, 2.0], mask=[False, True])})
    with pytest.raises(ValueError, match="WRITEABLE"):
        kept["a"][0].flags.writeable = True
    assert kept["b"].mask.tolist() == [False, True]  # not forgotten, so that it is refused by name
