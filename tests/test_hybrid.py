"""Hybrid dynamics, where the motion of some joints is prescribed, and its derivatives.

Against the oracle's mass matrix, cut into free and prescribed blocks and solved, differentiated by complex step; by
inverse and forward dynamics, between which it is; then joints that nothing resists, batches, and what is refused.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, InputError, SingularError, samples
from kinegrad import _engine as engine
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import assert_close, difference, parts, random_loads, random_state, tree
from tests.design.stepped import CLOSE, all_constants, h, kinds_of_constants, stepped, worst
from tests.reference import oracle
from tests.test_forward_dynamics import MODELS, conditioned, crane, hinges_in_line, reach, same_bits, size

models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
twenties = pytest.mark.parametrize("first", range(0, 200, 20))

# Noise, by what it may be, as in test_forward_dynamics.py.  By the largest entry, 1e-14 is the worst seen of 200 trees,
# 2e-11 of the human, where M_ff has a condition number of 3e6; 1e-13 of derivatives.
NOISE = 2e-14


def dense(model, q, v, tau, a, free, loads):
    """a and τ of all joints from M and bias of the oracle; complex-safe.

    M_ff a_f = τ_f − bias_f − M_fp a_p  and  τ_p = M_pf a_f + M_pp a_p + bias_p.
    """
    M = oracle.mass_matrix(model, q)
    bias = oracle.regular_lagrangian(model, q, v, np.zeros(model.n), *loads)
    held = ~free
    a, tau = a + 0 * bias, tau + 0 * bias
    push = tau[free] - bias[free] - M[np.ix_(free, held)] @ a[held]
    a[free] = np.linalg.solve(M[np.ix_(free, free)], push)
    tau[held] = (M @ a + bias)[held]
    return a, tau


def some_joints(model, seed):
    """Which joints are free, at random: at least one, and a prescribed one where there are two; their names."""
    rng = np.random.default_rng([seed, 11])
    free = rng.random(model.n) < rng.uniform(0.2, 0.8)
    free[rng.integers(model.n)] = True
    if model.n > 1 and free.all():
        free[rng.integers(model.n)] = False
    return free, [name for name, f in zip(model.joint_names, free, strict=True) if not f]


def case(model, seed, batch=()):
    """A state, torques of tens of N·m, loads, which joints are free, names of the others."""
    q, v, a = random_state(model, seed, batch)
    tau = 10 * np.random.default_rng([seed, 3]).normal(size=(*batch, model.n))
    return (q, v, tau, a), random_loads(model, seed, batch), *some_joints(model, seed)


# --- against dense blocks -----------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("seed", range(3))
def test_samples_equal_dense_blocks(model, seed):
    """To 1e-11, or to what the condition of M_ff makes of rounding: limbs of the human turn easily about themselves."""
    state, loads, free, names = case(model, seed)
    result = kg.hybrid_dynamics(model, *state, prescribed=names, loads=loads)
    a, tau = dense(model, *state, free, parts(loads))
    M_ff = kg.mass_matrix(model, state[0])[np.ix_(free, free)]
    close = max(CLOSE, 10 * conditioned(M_ff))
    assert_close(result.a, a, close)
    assert_close(result.tau, tau, close)


@twenties
def test_random_trees_equal_dense_blocks(first):
    """Any kinds of joints, massless links, springs, dampers, rotors, oblique gravity, loads on every link."""
    held = 0
    for seed in range(first, first + 20):
        model = tree(seed)
        state, loads, free, names = case(model, seed)
        result = kg.hybrid_dynamics(model, *state, prescribed=names, loads=loads)
        a, tau = dense(model, *state, free, parts(loads))
        assert_close(result.a, a, CLOSE)
        assert_close(result.tau, tau, CLOSE)
        held += len(names)
    assert held > 40, "otherwise this is forward dynamics"


@models
def test_inverse_dynamics_of_all_accelerations_gives_all_torques(model):
    """Whatever the conditioning."""
    (q, v, tau, a), loads, _, names = case(model, 7)
    result = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads)
    again = kg.inverse_dynamics(model, q, v, result.a, loads=loads)
    assert np.abs(again - result.tau).max() <= NOISE * size(model, q, v, result.a, loads)


def test_what_is_given_is_returned():
    (q, v, tau, a), _, free, names = case(tree(5), 3, (6,))
    result = kg.hybrid_dynamics(tree(5), q, v, tau, a, prescribed=names)
    same_bits(result.a[:, ~free], a[:, ~free])
    same_bits(result.tau[:, free], tau[:, free])


@models
def test_all_prescribed_is_inverse_dynamics(model):
    (q, v, tau, a), loads, _, _ = case(model, 2)
    result = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=model.joint_names, loads=loads)
    assert np.abs(result.tau - kg.inverse_dynamics(model, q, v, a, loads=loads)).max() <= NOISE * size(
        model, q, v, a, loads
    )
    same_bits(result.a, a)


@models
def test_none_prescribed_is_forward_dynamics(model):
    (q, v, tau, a), loads, _, _ = case(model, 2)
    result = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=[], loads=loads)
    expected = kg.forward_dynamics(model, q, v, tau, loads=loads)
    assert np.abs(result.a - expected).max() <= NOISE * reach(model, q, v, expected, loads)
    same_bits(result.tau, tau)


def test_cart_on_paper():
    """m L/2 cos q ẍ + m L²/3 q̈ + m g L/2 sin q = τ;  F = (M + m) ẍ + m L/2 (q̈ cos q − q̇² sin q)."""
    M, m, L, g = 1.4, 0.3, 0.8, 9.81
    model = samples.cart_pendulum(cart_mass=M, rod_mass=m, length=L)
    q, v, a = random_state(model, 1, (20,))
    tau = np.random.default_rng(2).normal(size=q.shape)
    result = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=["track"])
    # the hinge turns about y: q > 0 swings the rod, which hangs along −z, towards −x
    s, c = np.sin(q[:, 1]), np.cos(q[:, 1])
    swing = (tau[:, 1] + m * L / 2 * c * a[:, 0] - m * g * L / 2 * s) / (m * L**2 / 3)
    push = (M + m) * a[:, 0] - m * L / 2 * (swing * c - v[:, 1] ** 2 * s)
    assert_close(result.a[:, 1], swing, 1e-14)  # a handful of terms
    assert_close(result.tau[:, 0], push, 1e-14)


# --- derivatives --------------------------------------------------------------------------------------------


def slopes(model, p, seed):
    """How state, torques and accelerations follow p parameters."""
    names = ("dq_dp", "dv_dp", "dtau_dp", "da_dp")
    return dict(zip(names, np.random.default_rng([seed, 8]).normal(size=(4, model.n, p)), strict=True))


def complex_step(model, constants, state, free, loads, follow):
    """da/dp and dτ/dp of the dense blocks."""
    columns = []
    for k, name in enumerate(constants):
        moved = [x + 1j * h * dx[:, k] for x, dx in zip(state, follow.values(), strict=True)]
        columns.append(dense(stepped(model, **{name: 1.0}), *moved, free, parts(loads)))
    return [np.stack([np.imag(x) / h for x in column], axis=-1) for column in zip(*columns, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_total_derivatives_equal_complex_step(seed):
    """Every kind of constant; state, torques and prescribed accelerations follow the parameters, too."""
    model = tree(seed)
    state, loads, free, names = case(model, seed)
    rng = np.random.default_rng([seed, 9])
    constants = [str(x) for x in rng.permutation(kinds_of_constants(model, rng))[:12]]
    follow = slopes(model, len(constants), seed)
    found = kg.hybrid_dynamics_design_derivatives(
        Design(model, constants), *state, prescribed=names, loads=loads, **follow
    )
    da, dtau = complex_step(model, constants, state, free, loads, follow)
    assert worst(found.da_dp, da) <= CLOSE
    assert worst(found.dtau_dp, dtau) <= CLOSE
    assert np.array_equal(found.da_dp[~free], follow["da_dp"][~free])
    assert np.array_equal(found.dtau_dp[free], follow["dtau_dp"][free])


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_derivatives_of_samples_equal_complex_step(name):
    """M_ff⁻¹ enlarges noise, as in test_design.py."""
    model = samples.SAMPLES[name](thickness=0.1) if name.startswith("human43") else samples.SAMPLES[name]()
    state, loads, free, names = case(model, 4)
    constants = kinds_of_constants(model, np.random.default_rng(4))[:10]
    follow = slopes(model, len(constants), 4)
    found = kg.hybrid_dynamics_design_derivatives(
        Design(model, constants), *state, prescribed=names, loads=loads, **follow
    )
    da, dtau = complex_step(model, constants, state, free, loads, follow)
    close = max(CLOSE, 10 * conditioned(kg.mass_matrix(model, state[0])[np.ix_(free, free)]))
    assert worst(found.da_dp, da) <= close
    assert worst(found.dtau_dp, dtau) <= close


@pytest.mark.parametrize("seed", range(20))
def test_derivatives_obey_those_of_inverse_dynamics(seed):
    """dτ/dp = ∂τ/∂q dq/dp + ∂τ/∂v dv/dp + M da/dp + ∂τ/∂p at the accelerations found, for all constants at once."""
    model = tree(seed)
    (q, v, tau, a), loads, _, names = case(model, seed)
    design = Design(model, all_constants(model))
    follow = slopes(model, design.p, seed)
    found = kg.hybrid_dynamics_design_derivatives(design, q, v, tau, a, prescribed=names, loads=loads, **follow)
    a = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads).a
    by = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
    expected = kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads)
    expected = expected + by.dtau_dq @ follow["dq_dp"] + by.dtau_dv @ follow["dv_dp"] + by.dtau_da @ found.da_dp
    assert_close(found.dtau_dp, expected, CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_with_all_or_none_prescribed(seed):
    model = tree(seed)
    (q, v, tau, a), loads, _, _ = case(model, seed)
    design = Design(model, kinds_of_constants(model, np.random.default_rng(seed)))
    follow = slopes(model, design.p, seed)
    every = kg.hybrid_dynamics_design_derivatives(
        design, q, v, tau, a, prescribed=model.joint_names, loads=loads
    ).dtau_dp
    assert_close(every, kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads), CLOSE)
    none = kg.hybrid_dynamics_design_derivatives(design, q, v, tau, a, prescribed=(), loads=loads, **follow).da_dp
    del follow["da_dp"]
    assert_close(none, kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads, **follow), CLOSE)


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("states", [1, 3, 40])
def test_derivatives_of_each_state_alone(states, loaded):
    """Lanes over states or over directions, loads that differ from state to state."""
    model = tree(9)
    state, loads, _, names = case(model, 1, (states,))
    design = Design(model, all_constants(model)[:12])
    many = {key: np.broadcast_to(x, (states, *x.shape)) * np.arange(1, states + 1)[:, None, None]
            for key, x in slopes(model, design.p, 1).items()}  # fmt: skip
    given = loads if loaded else None
    found = kg.hybrid_dynamics_design_derivatives(design, *state, prescribed=names, loads=given, **many)
    for k in range(states):
        one = {key: x[k] for key, x in many.items()}
        load = kg.Loads(*(x[k] for x in parts(loads))) if loaded else None
        alone = kg.hybrid_dynamics_design_derivatives(
            design, *(x[k] for x in state), prescribed=names, loads=load, **one
        )
        assert_close(found.da_dp[k], alone.da_dp, 1e-13)  # the order of sums may differ
        assert_close(found.dtau_dp[k], alone.dtau_dp, 1e-13)


# --- nothing resists a joint --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "bad", "where"), [((), (), ""), ((5,), (3,), " in state 3"), ((2, 3), (1, 0), r" in state \(1, 0\)")]
)
def test_singular_state_is_named(shape, bad, where):
    """The bob is held at the axis of a crane: nothing resists the turn."""
    model = crane()
    design = Design(model, ["bob.mass"])
    q, v, tau = random_state(model, 1, shape)
    q[..., 1] = 1.0
    kg.hybrid_dynamics(model, q, v, tau, tau, prescribed=["reach"])
    q[(*bad, 1)] = 0.0
    with pytest.raises(SingularError, match=rf"nothing resists joint 'turn' of model 'crane'{where}: "):
        kg.hybrid_dynamics(model, q, v, tau, tau, prescribed=["reach"])
    with pytest.raises(SingularError, match=rf"nothing resists joint 'turn' of model 'crane'{where}: "):
        kg.hybrid_dynamics_design_derivatives(design, q, v, tau, tau, prescribed=iter(["reach"]))


def test_singular_state_is_found_in_every_lane():
    for bad in range(WIDTH + 1):
        q = np.ones((WIDTH + 1, 2))
        q[bad, 1] = 0.0
        with pytest.raises(SingularError, match=rf"in state {bad}:"):
            kg.hybrid_dynamics(crane(), q, 0 * q, 0 * q, 0 * q, prescribed=["reach"])


def test_prescribed_joints_need_no_resistance():
    """A crane that is turned at the axis; one of two hinges in line; the slender human with all but one thigh held."""
    result = kg.hybrid_dynamics(crane(), [0.3, 0.0], [1.0, 0.5], [0.0, 6.0], [2.0, 0.0], prescribed=["turn"])
    assert_close(result.a, [2.0, 3.0], 1e-15)
    assert_close(result.tau, [2 * 2.0 * 0.0 * 1.0 * 0.5, 6.0], 1e-15)
    for seed in range(5):
        line = hinges_in_line(seed)
        q, v, a = random_state(line, seed)
        for held in line.joint_names:
            result = kg.hybrid_dynamics(line, q, v, a, a, prescribed=[held])
            assert_close(kg.inverse_dynamics(line, q, v, result.a), result.tau, 1e-12)
    human = samples.human43()
    q, v, a = random_state(human, 1)
    with pytest.raises(SingularError):
        kg.hybrid_dynamics(human, q, v, a, a, prescribed=[human.joint_names[0]])
    resisted = next(name for name in human.joint_names if name.startswith("left_hip"))
    names = [name for name in human.joint_names if name != resisted]
    result = kg.hybrid_dynamics(human, q, v, a, a, prescribed=names)
    assert_close(kg.inverse_dynamics(human, q, v, result.a), result.tau, 1e-12)


def test_noise_is_measured_by_all_that_moves():
    """Two hinges in line inboard of a third that is prescribed: still rounding noise of the links beyond."""
    for seed in range(10):
        model = hinges_in_line(seed)
        builder = kg.ModelBuilder("thrice")
        builder.add("first", None, kg.revolute("z"), placement=model.placement[0])
        builder.add("second", "first", kg.revolute("z"))
        body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3], [0.3, 0.1, 0.2])
        builder.add("third", "second", kg.revolute("x"), placement=[0.1, 0.2, 0.3], inertia=body)
        three = builder.build()
        with pytest.raises(SingularError, match="joint 'first'"):
            kg.hybrid_dynamics(three, *random_state(three, seed), np.ones(3), prescribed=["third"])


# --- batches, threads, arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize("states", [1, WIDTH, 2 * WIDTH + 1, 97])
def test_states_do_not_see_each_other(states, monkeypatch):
    """The same bits alone, in a batch, and on several threads."""
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)
    model = tree(9)
    state, loads, _, names = case(model, 1, (states,))
    whole = kg.hybrid_dynamics(model, *state, prescribed=names, loads=loads, threads=1)
    threaded = kg.hybrid_dynamics(model, *state, prescribed=names, loads=loads, threads=3)
    same_bits(whole.a, threaded.a)
    same_bits(whole.tau, threaded.tau)
    for k in range(0, states, 5):
        load = kg.Loads(*(x[k] for x in parts(loads)))
        alone = kg.hybrid_dynamics(model, *(x[k] for x in state), prescribed=names, loads=load)
        same_bits(whole.a[k], alone.a)
        same_bits(whole.tau[k], alone.tau)


def test_shapes_broadcast_and_inputs_stay():
    model = tree(9)
    (q, v, tau, a), _, _, names = case(model, 1, (5, 7))
    given = q[:, :1], v[:1], tau[0, 0], a
    before = [x.copy() for x in given]
    result = kg.hybrid_dynamics(model, *given, prescribed=names)
    assert result.a.shape == result.tau.shape == (5, 7, model.n)
    full = [np.broadcast_to(x, q.shape).copy() for x in given]
    same_bits(result.a, kg.hybrid_dynamics(model, *full, prescribed=names).a)
    assert all(np.array_equal(x, y) for x, y in zip(given, before, strict=True))
    none = kg.hybrid_dynamics(model, np.empty((0, model.n)), v[0, 0], tau[0, 0], a[0, 0], prescribed=names)
    assert none.a.shape == none.tau.shape == (0, model.n)


def test_entries_that_are_not_needed_are_ignored():
    """NaN for what is unknown; the order of names does not matter."""
    model = tree(9)
    (q, v, tau, a), loads, free, names = case(model, 1)
    design, follow = Design(model, all_constants(model)[:5]), slopes(model, 5, 1)
    expected = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads)
    change = kg.hybrid_dynamics_design_derivatives(design, q, v, tau, a, prescribed=names, loads=loads, **follow)
    tau[~free], a[free] = np.nan, np.nan
    follow["dtau_dp"][~free], follow["da_dp"][free] = np.nan, np.inf
    found = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=tuple(names[::-1]), loads=loads)
    same_bits(found.a, expected.a)
    same_bits(found.tau, expected.tau)
    again = kg.hybrid_dynamics_design_derivatives(design, q, v, tau, a, prescribed=names, loads=loads, **follow)
    same_bits(again.da_dp, change.da_dp)
    same_bits(again.dtau_dp, change.dtau_dp)


def values(**arguments):
    return kg.hybrid_dynamics(samples.cart_pendulum(), **arguments)


def derivatives(**arguments):
    return kg.hybrid_dynamics_design_derivatives(Design(samples.cart_pendulum(), ["cart.mass"]), **arguments)


@pytest.mark.parametrize("function", [values, derivatives])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prescribed": ["trak"]}, r"joint 'trak' does not exist in model 'cart_pendulum'; did you mean 'track'\?"),
        ({"prescribed": "track"}, r"`prescribed` is 'track'; expected names of joints, such as \['track'\]"),
        ({"prescribed": 3}, r"`prescribed` is 3; expected names of joints"),
        ({"prescribed": None}, r"`prescribed` is None; expected names of joints"),
        ({"prescribed": [0]}, r"joint 0 does not exist"),
        ({"prescribed": ["hinge", "track", "hinge"]}, r"`prescribed` names joint 'hinge' twice"),
        ({"a": [np.nan, 0.0]}, r"`a` at index \(0,\) is nan; expected finite numbers"),
        ({"tau": [np.nan, np.inf]}, r"`tau` at index \(1,\) is inf; expected finite numbers"),
        ({"q": [np.nan, 0.0]}, r"`q` at index \(0,\) is nan"),
        ({"a": [0.0, 0.0, 0.0]}, r"`a` has shape \(3,\); model 'cart_pendulum' has 2 degrees of freedom"),
        ({"tau": 1j}, r"`tau` holds complex numbers"),
        ({"loads": 1}, r"`loads` is a int"),
        ({"threads": 0}, r"`threads` is 0"),
    ],
)
def test_wrong_input_is_refused(function, change, message):
    arguments = {name: [0.0, 0.0] for name in ("q", "v", "tau", "a")} | {"prescribed": ["track"]} | change
    with pytest.raises(InputError, match=message):
        function(**arguments)


def test_wrong_slopes_are_refused():
    design = Design(samples.cart_pendulum(), ["cart.mass"])
    state = {name: [0.0, 0.0] for name in ("q", "v", "tau", "a")} | {"prescribed": ["track"]}
    with pytest.raises(InputError, match=r"`da_dp` has shape \(3, 1\); expected \(2, 1\)"):
        kg.hybrid_dynamics_design_derivatives(design, **state, da_dp=np.zeros((3, 1)))
    with pytest.raises(InputError, match=r"`dtau_dp` at index \(1, 0\) is nan"):
        kg.hybrid_dynamics_design_derivatives(design, **state, dtau_dp=[[0.0], [np.nan]])
    with pytest.raises(InputError, match=r"`design` is a Model; expected a Design"):
        kg.hybrid_dynamics_design_derivatives(design.model, **state)


def test_difference_is_seen():
    """What the tests above compare would not be equal without the prescribed accelerations."""
    model = tree(9)
    (q, v, tau, a), loads, _, names = case(model, 1)
    one, other = (kg.hybrid_dynamics(model, q, v, tau, x, prescribed=names, loads=loads).a for x in (a, 0 * a))
    assert difference(one, other) > 1e-3


class _Refuses:
    def __iter__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("prescribed", [_Refuses(), 3, None, "track", np.array("track")])
def test_what_is_no_list_of_names_is_named(prescribed):
    with pytest.raises(InputError, match=r"`prescribed` is .*; expected names of joints"):
        kg.hybrid_dynamics(samples.cart_pendulum(), *np.zeros((4, 2)), prescribed=prescribed)
