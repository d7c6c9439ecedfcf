"""External loads: how they are given, and what they do to torques."""

import copy
import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Loads, samples
from tests.conftest import assert_close, random_loads, random_state, tree

CLOSE = 1e-12  # as in test_dynamics.py
METHODS = ("spatial", "lagrange")


def torques(model, state, loads=None, method="spatial"):
    return kg.inverse_dynamics(model, *state, loads=loads, method=method)


def dictionary(model, array):
    """An array (..., n, 3) by link name."""
    return {link: array[..., i, :] for i, link in enumerate(model.link_names)}


# --- what they do -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(20))
def test_loads_act_through_jacobians(seed, method):
    """Virtual work: τ(with) = τ(without) − Σ J_vᵀ f − J_ωᵀ h.

    The difference of two torques, compared by the torques themselves.
    """
    model, loads = tree(seed), random_loads(tree(seed), seed)
    state = random_state(model, seed)
    J = kg.jacobian(model, state[0], link=model.link_names, point=loads.point)
    work = np.einsum("kxi,kx->i", J.linear, loads.force) + np.einsum("kxi,kx->i", J.angular, loads.torque)
    assert_close(torques(model, state, loads, method), torques(model, state, None, method) - work, CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_zero_loads_change_nothing(method):
    human = samples.human43()
    state = random_state(human, batch=(3,))
    assert np.array_equal(torques(human, state, Loads(), method), torques(human, state, None, method))


@pytest.mark.parametrize("method", METHODS)
def test_a_point_without_a_force_changes_nothing(method):
    human = samples.human43()
    state = random_state(human)
    loads = Loads(point={"left_hand": [1, 2, 3]})
    assert np.array_equal(torques(human, state, loads, method), torques(human, state, None, method))


@pytest.mark.parametrize("method", METHODS)
def test_loads_reach_massless_links(method):
    """A force on a virtual link is felt by the joints before it, as the weight of a mass there would be."""
    builder = kg.ModelBuilder("stick", gravity=(0, 0, 0))
    builder.add("hinge", None, kg.revolute("y"), link="stick")
    loads = Loads(force={"stick": [0, 0, -10]}, point={"stick": [2, 0, 0]})
    # y · ((2, 0, 0) × (0, 0, −10)) = 20: the load turns it by +20 N·m, so the hinge must hold −20
    assert torques(builder.build(), ([0], [0], [0]), loads, method) == [-20.0]


def test_gravity_is_a_load_at_each_center_of_mass():
    model = tree(11)
    state = random_state(model)
    weights = Loads(force=model.mass[:, None] * model.gravity, point=model.com)
    weightless = model.replace(gravity=(0, 0, 0))
    assert_close(torques(weightless, state, weights), torques(model, state), CLOSE)


# --- how they are given -------------------------------------------------------------------------------------


def test_by_name_equals_by_array():
    model, state = tree(13), random_state(tree(13), batch=(4,))
    loads = random_loads(model, batch=(4,))
    named = Loads(*(dictionary(model, x) for x in (loads.force, loads.point, loads.torque)))
    assert np.array_equal(torques(model, state, named), torques(model, state, loads))


def test_links_that_are_not_named_are_free():
    human = samples.human43()
    state = random_state(human)
    force, point = np.zeros((2, 43, 3))
    hand = human.link_index("right_hand")
    force[hand], point[hand] = [0, 0, -50], [0.1, 0, 0]
    named = Loads(force={"right_hand": [0, 0, -50]}, point={"right_hand": [0.1, 0, 0]})
    assert np.array_equal(torques(human, state, named), torques(human, state, Loads(force, point)))


@pytest.mark.parametrize("method", METHODS)
def test_constant_loads_serve_all_states(method):
    model, state = tree(14), random_state(tree(14), batch=(6,))
    loads = random_loads(model)
    repeated = Loads(*(np.broadcast_to(x, (6, model.n, 3)) for x in (loads.force, loads.point, loads.torque)))
    tau = torques(model, state, loads, method)
    assert np.array_equal(tau, torques(model, state, repeated, method))
    for k in range(6):
        assert np.array_equal(tau[k], torques(model, [x[k] for x in state], loads, method))


@pytest.mark.parametrize("method", METHODS)
def test_loads_of_each_state_stay_with_it(method):
    """Also with constant points, and more states than a processor takes at a time."""
    model, state = tree(15), random_state(tree(15), batch=(21,))
    loads = random_loads(model, batch=(21,))
    mixed = Loads(force=loads.force, point=loads.point[0], torque=dictionary(model, loads.torque))
    tau = torques(model, state, mixed, method)
    for k in range(21):
        own = Loads(loads.force[k], loads.point[0], loads.torque[k])
        assert np.array_equal(tau[k], torques(model, [x[k] for x in state], own, method))


def test_many_loads_of_one_state_make_a_batch():
    model, state = tree(16), random_state(tree(16))
    loads = random_loads(model, batch=(5, 2))
    tau = torques(model, state, loads)
    assert tau.shape == (5, 2, model.n)
    one = Loads(loads.force[3, 1], loads.point[3, 1], loads.torque[3, 1])
    assert np.array_equal(tau[3, 1], torques(model, state, one))


def test_named_loads_broadcast_among_themselves():
    human = samples.human43()
    state = random_state(human, batch=(4,))
    rising = np.linspace(0, 100, 4)[:, None] * [0, 0, -1.0]
    loads = Loads(force={"left_hand": rising, "right_hand": [0, 0, -20]})
    tau = torques(human, state, loads)
    for k in range(4):
        own = Loads(force={"left_hand": rising[k], "right_hand": [0, 0, -20]})
        assert np.array_equal(tau[k], torques(human, [x[k] for x in state], own))


def test_loads_are_not_changed_and_arrays_are_fresh():
    model = tree(17)
    loads = random_loads(model)
    before = loads.force.copy()
    torques(model, random_state(model), loads)
    assert np.array_equal(loads.force, before)
    arrays = Loads(force={model.link_names[0]: [1, 2, 3]}).arrays(model)
    assert list(arrays) == ["force", "point", "torque"]
    assert all(x.shape == (model.n, 3) for x in arrays.values())


def test_loads_are_values():
    force = np.ones((3, 3))
    named = {"link0": [1, 2, 3]}
    loads = Loads(force=force, torque=named)
    for again in (Loads(force=force, torque=named), pickle.loads(pickle.dumps(loads)), copy.deepcopy(loads)):
        assert again == loads
        assert hash(again) == hash(loads)
        for array in (again.force, again.torque["link0"]):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
        with pytest.raises(TypeError):
            again.torque["link1"] = [1, 2, 3]
    force[:], named["link0"] = 99, [99, 99, 99]
    assert loads.force.max() == 1, "loads own their numbers"
    assert loads.torque["link0"].tolist() == [1, 2, 3]
    assert loads != Loads(force=force, torque=named)
    assert loads != Loads(force=np.ones((3, 3)))


# --- errors -------------------------------------------------------------------------------------------------


def bad(loads, message, batch=()):
    human = samples.human43()
    with pytest.raises(kg.InputError, match=message):
        torques(human, random_state(human, batch=batch), loads)


def test_batches_that_do_not_fit_are_named():
    bad(Loads(force=np.zeros((4, 43, 3))), r"do not broadcast: `q` \(5,\).*`loads.force` \(4,\)", batch=(5,))
    bad(
        Loads(force={"head": np.zeros((4, 3)), "left_hand": np.zeros((5, 3))}),
        r"batch shapes of `loads.force` do not broadcast: 'head' \(4,\), 'left_hand' \(5,\)",
    )


def test_unknown_links_come_with_the_closest_names():
    bad(
        Loads(torque={"right_hnd": [0, 0, 1]}),
        r"link 'right_hnd' does not exist in model 'human43'.*'right_hand'",
    )


@pytest.mark.parametrize("what", ["force", "point", "torque"])
def test_wrong_values_are_named(what):
    bad(Loads(**{what: [1, 2, 3]}), rf"`loads.{what}` has shape \(3,\); model 'human43' has 43 links")
    bad(Loads(**{what: np.zeros((3, 43))}), rf"`loads.{what}` has shape \(3, 43\)")
    bad(
        Loads(**{what: {"head": [1, 2]}}),
        rf"`loads.{what}\['head'\]` has shape \(2,\); expected \(\.\.\., 3\)",
    )
    bad(Loads(**{what: {"head": "up"}}), rf"`loads.{what}\['head'\]` holds str")
    bad(Loads(**{what: "up"}), f"`loads.{what}` holds str")
    bad(
        Loads(**{what: {"head": [0, np.inf, 0]}}),
        f"`loads.{what}` at index .* is inf; expected finite numbers",
    )


@pytest.mark.parametrize("loads", [np.zeros((43, 3)), {"head": [0, 0, 1]}, "gravity", 3])
def test_what_is_no_loads_is_named(loads):
    bad(loads, rf"`loads` is a {type(loads).__name__}; expected Loads\(force=…, point=…, torque=…\)")
