"""Directional derivatives in four modes: against the oracle by complex step, against each other, and misuse by name."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, Loads, SingularError, directional, samples
from kinegrad.directional import MODES, STEPS
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.reference import oracle

STATES = {
    kg.mass_matrix: ("q",),
    kg.bias_forces: ("q", "v"),
    kg.inverse_dynamics: ("q", "v", "a"),
    kg.forward_dynamics: ("q", "v", "tau"),
}
EXACT = 1e-11  # of the largest entry: rounding, amplified by the condition of M
DIFFERENCES = {"forward": 2e-6, "central": 2e-8}  # of the largest entry: what half and two thirds of the digits leave


def tree(seed, n=6):
    model = samples.random_tree(n, seed=seed)
    return model.replace(armature=model.armature + 0.2)  # so that every joint resists


def problem(model, function, seed, batch=(3,), k=4):
    """A state, k directions and loads of order one."""
    rng = np.random.default_rng([seed, 11])
    count = len(STATES[function])
    state = tuple(rng.normal(size=(count, *batch, model.n)))
    D = tuple(rng.normal(size=(count, *batch, model.n, k)))
    loads = None if function is kg.mass_matrix else Loads(*rng.normal(size=(3, model.n, 3)))
    return state, D, loads


def by_complex_step(model, function, state, D, loads):
    """∂f along the columns of D at one state, by the oracle."""
    acting = () if loads is None else tuple(loads.arrays(model).values())

    def torques(q, v, a):
        return oracle.regular_lagrangian(model, q, v, a, *acting)

    def accelerations(q, v, tau):
        return np.linalg.solve(oracle.mass_matrix(model, q), tau - torques(q, v, np.zeros(model.n)))

    slow = {
        kg.mass_matrix: lambda q: oracle.mass_matrix(model, q),
        kg.bias_forces: lambda q, v: torques(q, v, np.zeros(model.n)),
        kg.inverse_dynamics: torques,
        kg.forward_dynamics: accelerations,
    }[function]
    columns = [oracle.rate(slow, *((x, d[:, j]) for x, d in zip(state, D, strict=True))) for j in range(D[0].shape[-1])]
    return np.stack(columns, axis=-1)


def assert_close(actual, desired, tolerance):
    assert actual.shape == desired.shape
    assert np.abs(actual - desired).max() <= tolerance * max(1.0, np.abs(desired).max())


# --- right ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", STATES)
def test_all_modes_equal_the_oracle_by_complex_step(function):
    for seed in range(3):
        model = tree(seed)
        state, D, loads = problem(model, function, seed)
        found = {mode: directional(function, model, state, D, mode=mode, loads=loads) for mode in MODES}
        plain = function(model, *state) if loads is None else function(model, *state, loads=loads)
        for k in range(3):
            desired = by_complex_step(model, function, [x[k] for x in state], [d[k] for d in D], loads)
            for mode, tolerance in ({"structured": EXACT, "tangent": EXACT} | DIFFERENCES).items():
                assert_close(found[mode].derivative[k], desired, tolerance)
        for each in found.values():
            np.testing.assert_allclose(each.value, plain, rtol=1e-11, atol=1e-11 * np.abs(plain).max())


@pytest.mark.parametrize("function", STATES)
def test_more_directions_than_states_and_fewer_are_the_same(function):
    """Lanes are states in one case and directions in the other; groups of sixteen directions share values."""
    model = tree(5, 9)
    state, D, loads = problem(model, function, 5, batch=(40,), k=35)
    for mode in ("structured", "tangent"):
        many = directional(function, model, state, D, mode=mode, loads=loads)
        one = directional(function, model, [x[7] for x in state], [d[7] for d in D], mode=mode, loads=loads)
        few = directional(function, model, state, [d[..., 20:22] for d in D], mode=mode, loads=loads)
        assert_close(one.derivative, many.derivative[7], 1e-13)
        assert_close(few.derivative, many.derivative[..., 20:22], 1e-13)


@pytest.mark.parametrize("function", STATES)
def test_where_coordinates_are_not_joints(function):
    """Couplings and quaternions: exact modes agree with each other and with central differences."""
    for seed in (0, 4):
        model, rng = mixed_tree(seed), np.random.default_rng(seed)
        state = mixed_state(model, seed, (2,))[: len(STATES[function])]
        D = [rng.normal(size=(2, model.nv, 3)) for _ in state]
        loads = None if function is kg.mass_matrix else mixed_loads(model, seed)
        found = {mode: directional(function, model, state, D, mode=mode, loads=loads).derivative for mode in MODES}
        assert_close(found["tangent"], found["structured"], EXACT)
        assert_close(found["central"], found["structured"], 1e-7)


@pytest.mark.parametrize("function", [*STATES, kg.constrained_dynamics])
def test_force_elements_are_differentiated(function):
    """Elements between links are no part of the kernels of duals: exact modes agree, with differences, too."""
    strap = kg.SpringDamper("forearm", other_point=[0.1, 1, 0], stiffness=30.0, damping=2.0, rest_length=0.3)
    arm, rng = samples.two_link(gravity=(0, -10, 0)).replace(elements={"strap": strap}), np.random.default_rng(9)
    parts = len(STATES.get(function, "qvt"))
    state, D = list(rng.normal(size=(parts, 2, 2))), list(rng.normal(size=(parts, 2, 2, 3)))
    held = {"constraints": kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])}
    options = held if function is kg.constrained_dynamics else {}
    found = {mode: directional(function, arm, state, D, mode=mode, **options).derivative for mode in MODES}
    assert_close(found["tangent"], found["structured"], EXACT)
    assert_close(found["central"], found["structured"], 1e-7)


def test_the_mass_matrix_keeps_its_structure():
    """Symmetric, and exact zeros between branches, along every direction."""
    model = samples.human43()
    rng = np.random.default_rng(0)
    q, dq = rng.normal(size=43), rng.normal(size=(43, 5))
    zero = kg.mass_matrix(model, q) == 0.0
    for mode in ("structured", "tangent"):
        change = directional(kg.mass_matrix, model, (q,), (dq,), mode=mode).derivative
        assert not change[zero].any()
        np.testing.assert_array_equal(change, change.swapaxes(0, 1))


def test_directions_that_are_left_out_are_zero():
    model = tree(1)
    (q, v, a), (dq, dv, da), _ = problem(model, kg.inverse_dynamics, 1)
    for mode in ("structured", "tangent"):
        whole = directional(kg.inverse_dynamics, model, (q, v, a), (dq, dv, 0 * da), mode=mode).derivative
        part = directional(kg.inverse_dynamics, model, (q, v, a), (dq, dv, None), mode=mode).derivative
        by_a = directional(kg.inverse_dynamics, model, (q, v, a), (None, None, da), mode=mode).derivative
        assert_close(part, whole, 1e-14)
        assert_close(by_a, kg.mass_matrix(model, q) @ da, 1e-13)


def test_steps_of_differences():
    """The error of forward differences grows in proportion to the step, that of central ones with its square."""
    model = samples.double_pendulum()
    state, D, _ = problem(model, kg.forward_dynamics, 2)
    exact = directional(kg.forward_dynamics, model, state, D).derivative
    errors = {
        (mode, step): np.abs(directional(kg.forward_dynamics, model, state, D, mode=mode, step=step).derivative - exact)
        for mode in STEPS
        for step in (1e-3, 1e-4)
    }
    for mode, order in {"forward": 1, "central": 2}.items():
        ratio = errors[mode, 1e-3].max() / errors[mode, 1e-4].max()
        assert 0.5 < ratio / 10**order < 2


# --- constrained ----------------------------------------------------------------------------------------------------


def constrained(make, seed=0, k=5):
    """A closed mechanism, three states of it that need not close, directions and loads."""
    model, constraints = make()
    rng = np.random.default_rng([seed, 12])
    state = tuple(rng.normal(size=(3, 3, model.n)) * [[[0.3]], [[1.0]], [[1.0]]])
    return model, constraints, state, tuple(rng.normal(size=(3, 3, model.n, k))), rng.normal(size=(3, model.n, 3))


def held(model, *constraints):
    return model, kg.ConstraintSet(model, constraints)


CLOSED = {
    "cart": lambda: samples.cart_pendulum(constrained=True),
    "four_bar": samples.four_bar,
    "slider_crank": samples.slider_crank,
    "stewart_platform": samples.stewart_platform,
    "rod": lambda: held(samples.double_pendulum(), kg.Distance("Q", other_point=[0.5, 0, -1.2], length=0.4)),
    "coupled": lambda: held(
        samples.multi_pendulum(4), kg.Coupling("hinge1", "hinge3", 0.5), kg.Contact("rod4", directions="x")
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_modes_of_constrained_dynamics_agree(name):
    """Duals through inverse dynamics and rows of constraints, and the kernel of derivatives: two ways that share only
    the rows; differences share nothing with them."""
    model, constraints, state, D, loads = constrained(CLOSED[name])
    given = {"constraints": constraints, "loads": Loads(*loads)}
    found = {mode: directional(kg.constrained_dynamics, model, state, D, mode=mode, **given) for mode in MODES}
    wanted = found["structured"].derivative
    assert wanted.shape == (3, model.n + constraints.m, 5)
    assert_close(found["tangent"].derivative, wanted, EXACT)
    assert_close(found["central"].derivative, wanted, 1e-7)
    assert_close(found["forward"].derivative, wanted, 1e-4)
    plain = kg.constrained_dynamics(model, constraints, *state, loads=Loads(*loads))
    for each in found.values():
        assert_close(each.value, np.concatenate([plain.a, plain.forces], axis=-1), 1e-12)


def test_constrained_dynamics_along_torques_alone():
    model, constraints, state, (_, _, dtau), _ = constrained(samples.four_bar)
    D = (None, None, dtau)
    found = [
        directional(kg.constrained_dynamics, model, state, D, mode=mode, constraints=constraints).derivative
        for mode in ("structured", "tangent")
    ]
    assert_close(found[0], found[1], EXACT)


def test_no_constraints_is_forward_dynamics():
    model = tree(3)
    state, D, _ = problem(model, kg.forward_dynamics, 3)
    empty = kg.ConstraintSet(model, [])
    for mode in MODES:
        free = directional(kg.forward_dynamics, model, state, D, mode=mode)
        same = directional(kg.constrained_dynamics, model, state, D, mode=mode, constraints=empty)
        assert_close(same.derivative, free.derivative, 1e-11)


def test_constraints_where_coordinates_are_not_joints():
    model, rng = mixed_tree(4), np.random.default_rng(4)
    constraints = kg.ConstraintSet(model, [kg.Contact(model.link_names[-1], directions="z")])
    state = mixed_state(model, 4, (2,))
    D = [rng.normal(size=(2, model.nv, 3)) for _ in state]
    found = [
        directional(kg.constrained_dynamics, model, state, D, mode=mode, constraints=constraints).derivative
        for mode in ("structured", "tangent", "central")
    ]
    assert_close(found[1], found[0], EXACT)
    assert_close(found[2], found[0], 1e-7)


# --- shapes and forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_batch_shapes_broadcast(mode):
    model, rng = samples.two_link(), np.random.default_rng(3)
    q, v, a = rng.normal(size=(4, 1, 2)), rng.normal(size=(3, 2)), rng.normal(size=2)
    D = rng.normal(size=(2, 5)), None, rng.normal(size=(3, 2, 5))
    loads = Loads(force=rng.normal(size=(4, 1, 2, 3)))
    found = directional(kg.inverse_dynamics, model, (q, v, a), D, mode=mode, loads=loads)
    assert found.value.shape == (4, 3, 2)
    assert found.derivative.shape == (4, 3, 2, 5)
    one = [np.broadcast_to(x, (4, 3, 2))[2] for x in (q, v, a)]
    same = directional(kg.inverse_dynamics, model, one, D, mode=mode, loads=Loads(force=loads.force[2]))
    np.testing.assert_allclose(same.derivative, found.derivative[2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", STATES)
def test_no_states_and_no_directions(function, mode):
    model = samples.two_link()
    core = (2, 2) if function is kg.mass_matrix else (2,)
    parts = len(STATES[function])
    none = directional(function, model, [np.zeros((0, 2))] * parts, [np.zeros((2, 3))] * parts, mode=mode)
    assert none.derivative.shape == (0, *core, 3)
    still = directional(function, model, [np.ones(2)] * parts, [np.zeros((2, 0))] * parts, mode=mode)
    assert still.derivative.shape == (*core, 0)
    np.testing.assert_array_equal(still.value, function(model, *[np.ones(2)] * parts))


@pytest.mark.parametrize("mode", MODES)
def test_a_direction_of_zero_gives_zero(mode):
    found = directional(kg.mass_matrix, samples.two_link(), ([0.3, 0.4],), (np.zeros((2, 1)),), mode=mode)
    np.testing.assert_array_equal(found.derivative, np.zeros((2, 2, 1)))


def test_arguments_are_left_alone_and_any_form_is_taken():
    model = tree(2)
    state, D, _ = problem(model, kg.forward_dynamics, 2)
    for x in (*state, *D):
        x.flags.writeable = False
    forms = [np.asfortranarray, lambda x: np.repeat(x, 2, axis=-1)[..., ::2], lambda x: x.tolist()]
    for mode in MODES:
        wanted = directional(kg.forward_dynamics, model, state, D, mode=mode).derivative
        for form in forms:
            found = directional(kg.forward_dynamics, model, list(map(form, state)), list(map(form, D)), mode=mode)
            np.testing.assert_array_equal(found.derivative, wanted)


# --- wrong ----------------------------------------------------------------------------------------------------------

Q, D2 = [0.0, 0.0], np.ones((2, 1))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((kg.gravity_forces, (Q,), (D2,)), {}, "`function` is <function gravity_forces"),
        ((None, (Q,), (D2,)), {}, "`function` is None; expected one of the functions mass_matrix"),
        (([], (Q,), (D2,)), {}, "`function` is \\[\\]"),
        ((kg.mass_matrix, Q, (D2,)), {}, "`state` has 2 parts; expected a sequence of 1: q"),
        ((kg.mass_matrix, np.zeros(2), (D2,)), {}, "`state` is a ndarray; expected a sequence of 1: q"),
        ((kg.bias_forces, (Q, Q), (D2,)), {}, "`D` has 1 parts; expected a sequence of 2: q, v"),
        ((kg.mass_matrix, ([0.0],), (D2,)), {}, "`state: q` has shape \\(1,\\); model 'two_link' has 2"),
        ((kg.mass_matrix, (Q,), ([1.0, 2.0],)), {}, "`D: q` has shape \\(2,\\); .* \\(..., 2, directions\\)"),
        ((kg.mass_matrix, (Q,), (np.ones((1, 2)),)), {}, "`D: q` has shape \\(1, 2\\)"),
        ((kg.mass_matrix, (Q,), (None,)), {}, "`D` has no direction"),
        ((kg.bias_forces, (Q, Q), (D2, np.ones((2, 3)))), {}, "directions differ: `D: q` 1, `D: v` 3"),
        ((kg.mass_matrix, ([np.nan, 0],), (D2,)), {}, "`state: q` at index \\(0,\\) is nan"),
        ((kg.mass_matrix, (Q,), (np.inf * D2,)), {}, "`D: q` at index \\(0, 0\\) is inf"),
        ((kg.mass_matrix, (["a", "b"],), (D2,)), {}, "`state: q` holds"),
        ((kg.mass_matrix, (Q,), (D2,)), {"mode": "exact"}, "`mode` is 'exact'; expected one of 'structured'"),
        ((kg.mass_matrix, (Q,), (D2,)), {"step": 1e-3}, "`step` is 0.001; mode 'structured' takes no steps"),
        ((kg.mass_matrix, (Q,), (D2,)), {"step": 0.0, "mode": "forward"}, "`step` is 0.0; expected a positive"),
        ((kg.mass_matrix, (Q,), (D2,)), {"step": np.inf, "mode": "central"}, "`step` is inf; expected a finite"),
        ((kg.mass_matrix, (Q,), (D2,)), {"loads": Loads()}, "`loads` are given; mass_matrix does not depend"),
        ((kg.bias_forces, (Q, Q), (D2, None)), {"loads": 1}, "`loads` is a int"),
        ((kg.mass_matrix, ([Q] * 3,), (np.ones((2, 2, 1)),)), {}, "batch shapes do not broadcast: `state: q`"),
        ((kg.mass_matrix, (Q,), (1e-320 * D2,)), {"mode": "forward"}, "`D` has directions with largest numbers"),
    ],
)
def test_misuse_is_named(arguments, options, message):
    function, state, D = arguments
    with pytest.raises(InputError, match=message):
        directional(function, samples.two_link(), state, D, **options)


@pytest.mark.parametrize("mode", MODES)
def test_what_overflows_is_an_error(mode):
    """Directions so large that derivatives do not fit; speeds so large that torques do not."""
    arm = samples.two_link()
    with pytest.raises(InputError, match="not finite"):
        directional(kg.inverse_dynamics, arm, ([0, 1], [1e9, 0], Q), (None, np.full((2, 1), 1e308), None), mode=mode)
    with pytest.raises(InputError, match=r"not finite|overflow"):
        directional(kg.inverse_dynamics, arm, (Q, [1e200, 1e200], Q), (D2, None, None), mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_joint_that_nothing_resists_is_named(mode):
    with pytest.raises(SingularError, match="nothing resists"):
        directional(kg.forward_dynamics, samples.human43(), [np.zeros(43)] * 3, [np.eye(43)] * 3, mode=mode)


def test_constraints_are_asked_for_and_refused():
    arm = samples.two_link()
    floor = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    with pytest.raises(InputError, match="`constraints` is None; expected a ConstraintSet"):
        directional(kg.constrained_dynamics, arm, (Q, Q, Q), (D2, None, None))
    with pytest.raises(InputError, match="`constraints` are given; mass_matrix does not depend on constraints"):
        directional(kg.mass_matrix, arm, (Q,), (D2,), constraints=floor)
    twice = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y", name=name) for name in "ab"])
    for mode in MODES:
        with pytest.raises(SingularError, match="redundant"):
            directional(kg.constrained_dynamics, arm, (Q, Q, Q), (D2, None, None), mode=mode, constraints=twice)


def test_model_is_checked_first():
    with pytest.raises(InputError, match="`model` is a str"):
        directional(kg.mass_matrix, "arm", (Q,), (D2,))
