"""Forward dynamics by two formulations, and its exact sensitivities ∂a/∂(q, v, τ).

Against inverse dynamics, which has its own oracle; against each other; against M⁻¹(τ − bias) of the oracle,
differentiated by complex step; then mechanisms that nothing resists.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import SingularError, samples
from kinegrad import _engine as engine
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import assert_close, difference, parts, random_loads, random_state, some_now, tree
from tests.reference import oracle

METHODS = ("aba", "crba")
FIELDS = ("a", "da_dq", "da_dv", "da_dtau")
MODELS = {
    **{
        name: make(thickness=0.1) if name.startswith("human43") else make() for name, make in samples.SAMPLES.items()
    },  # limbs of no thickness turn about themselves without inertia
    **{f"multi_pendulum({n})": samples.multi_pendulum(n) for n in (1, 3, 10, 40)},
    **{f"spatial_chain({n})": samples.spatial_chain(n) for n in (3, 10, 24, 40)},
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
twenties = pytest.mark.parametrize("first", range(0, 200, 20))
methods = pytest.mark.parametrize("method", METHODS)

# Noise of torques and accelerations, by what it may be (`size` and `reach`, below): 2e-15 is the worst of 1000 states.
CLOSE = 2e-14
# ∂a/∂(q, v, τ) of the states below, by their largest entry: 2e-12 is the worst, of the human; M's condition does it.
DERIVATIVES = 1e-11


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


def fields(result):
    return [getattr(result, name) for name in FIELDS]


def size(model, q, v, a, loads):
    """|M||a| + |bias|, by the largest entries: the terms that torques are sums of.

    Entries of M and bias are sums over the links that may cancel, so the small ones carry the noise of the large: the
    bars of a spatial chain are 270 times easier to turn about themselves than about their ends.
    """
    M, bias = kg.mass_matrix(model, q), kg.bias_forces(model, q, v, loads=loads)
    return np.abs(M).max() * np.abs(a).max() + np.abs(bias).max()


def reach(model, q, v, a, loads):
    """How far noise of that size in the torques moves accelerations: M⁻¹ enlarges it.

    Any formulation has this error, and so has any method that is given torques rounded to 1e-16.  It is some
    hundred |a| for a robot, and 1e7 |a| for the human, whose thin limbs turn easily about themselves.
    """
    return np.linalg.norm(np.linalg.inv(kg.mass_matrix(model, q)), np.inf) * size(model, q, v, a, loads)


def conditioned(M):
    """What M⁻¹, and what it multiplies, may differ by: 1e-16 times the condition number, 1e-13 if that is small.

    3e-17 times the condition number is the worst seen where that is large.
    """
    return 1e-13 + 2e-16 * np.linalg.cond(M)


def check_inverse(model, state, loads, method):
    """FD(ID(a)) = a as far as conditioning lets it, and ID(FD(τ)) = τ whatever the conditioning."""
    q, v, a = state
    tau = kg.inverse_dynamics(model, q, v, a, loads=loads)
    found = kg.forward_dynamics(model, q, v, tau, loads=loads, method=method)
    error = np.abs(found - a).max()
    assert error <= CLOSE * reach(model, q, v, a, loads)
    again = kg.inverse_dynamics(model, q, v, found, loads=loads)
    assert np.abs(again - tau).max() <= CLOSE * size(model, q, v, found, loads)
    return found


# --- forward ∘ inverse, two formulations --------------------------------------------------------------------


@models
@methods
@pytest.mark.parametrize("loaded", [True, False])
def test_forward_undoes_inverse(model, method, loaded):
    check_inverse(model, random_state(model, 3), random_loads(model, 3) if loaded else None, method)


@twenties
def test_forward_undoes_inverse_on_random_trees(first):
    """Any kinds of joints, one to three roots, either numbering, massless links, springs, dampers, rotors, loads.

    No tree is ill-conditioned (M up to 5e3): here accelerations come back to 1e-11, in plain numbers.
    """
    for seed in range(first, first + 20):
        model, loads = tree(seed), random_loads(tree(seed), seed)
        state = random_state(model, seed)
        for method in METHODS:
            assert_close(check_inverse(model, state, loads, method), state[2], 1e-11)


@models
@pytest.mark.parametrize("loaded", [True, False])
def test_formulations_agree(model, loaded):
    """Articulated bodies never see M; the other never sees an articulated inertia."""
    q, v, tau = random_state(model, 4)
    loads = random_loads(model, 4) if loaded else None
    by_aba, by_crba = (kg.forward_dynamics(model, q, v, tau, loads=loads, method=m) for m in METHODS)
    assert np.abs(by_aba - by_crba).max() <= CLOSE * reach(model, q, v, by_aba, loads)


@twenties
def test_formulations_agree_on_random_trees(first):
    for seed in range(first, first + 20):
        model, loads = tree(seed), random_loads(tree(seed), seed)
        q, v, tau = random_state(model, seed)
        assert_close(*(kg.forward_dynamics(model, q, v, tau, loads=loads, method=m) for m in METHODS), 1e-11)


def test_pendulum_on_paper():
    """A rod hinged about y: m L²/3 q̈ = τ − m g L/2 sin q − k q − d q̇."""
    m, L, g, k, d = 1.3, 0.7, 9.81, 2.0, 0.4
    rod = samples.multi_pendulum(1, length=L, mass=m).replace(gravity=(0, 0, -g), stiffness=[k], damping=[d])
    q, v, tau = random_state(rod, 1, (50,))
    inertia = m * L**2 / 3
    a = (tau - m * g * L / 2 * np.sin(q) - k * q - d * v) / inertia
    for method in METHODS:
        assert_close(kg.forward_dynamics(rod, q, v, tau, method=method), a, 1e-14)  # a handful of terms
    by = kg.forward_dynamics_derivatives(rod, q, v, tau)
    assert_close(by.a, a, 1e-14)
    assert_close(by.da_dq[..., 0], -(m * g * L / 2 * np.cos(q) + k) / inertia, 1e-14)
    assert_close(by.da_dv[..., 0], np.full_like(q, -d / inertia), 1e-14)
    assert_close(by.da_dtau[..., 0], np.full_like(q, 1 / inertia), 1e-14)


# --- derivatives --------------------------------------------------------------------------------------------


def complex_step(model, q, v, tau, loads):
    """∂/∂(q, v, τ) of a = M⁻¹(τ − bias), both of the oracle: none of the code that is tested."""
    zero = np.zeros(model.n)

    def bias(q, v):
        return oracle.regular_lagrangian(model, q, v, zero, *parts(loads))

    M, c, solve = oracle.mass_matrix(model, q), bias(q, v), np.linalg.solve
    return {
        "a": solve(M, tau - c),
        "da_dq": oracle.numerical_derivative(lambda x: solve(oracle.mass_matrix(model, x), tau - bias(x, v)), q),
        "da_dv": oracle.numerical_derivative(lambda x: solve(M, tau - bias(q, x)), v),
        "da_dtau": oracle.numerical_derivative(lambda x: solve(M, x - c), tau),
    }


def assert_derivatives_close(actual, desired, v, tolerance=DERIVATIVES):
    """Each by its own largest entry, ∂a/∂v by v at least: where the mass matrix is constant it is rounding."""
    for name in FIELDS:
        scale = np.abs(desired[name]).max()
        if name == "da_dv":
            scale = max(scale, np.abs(v).max())
        error = np.abs(getattr(actual, name) - desired[name]).max()
        assert error <= tolerance * scale, f"{name}: {error / scale:.1e} of the largest; expected {tolerance:.0e}"


def check_complex_step(model, seed):
    q, v, tau = random_state(model, seed)
    loads = random_loads(model, seed)
    result = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
    assert_derivatives_close(result, complex_step(model, q, v, tau, loads), v)


@pytest.mark.parametrize("seed", some_now(range(200), 50))
def test_random_trees_equal_complex_step(seed):
    check_complex_step(tree(seed), seed)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.n <= 10])
def test_samples_equal_complex_step(name):
    check_complex_step(MODELS[name], 1)


@pytest.mark.slow
def test_human_equals_complex_step():
    check_complex_step(MODELS["human43"], 1)


def check_identities(model, seed):
    """∂a/∂τ = M⁻¹ and symmetric, ∂a/∂q = −M⁻¹ ∂τ/∂q, ∂a/∂v = −M⁻¹ ∂τ/∂v; a is that of forward dynamics."""
    q, v, tau = random_state(model, seed)
    loads = random_loads(model, seed)
    result = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
    same_bits(result.a, kg.forward_dynamics(model, q, v, tau, loads=loads))
    M = kg.mass_matrix(model, q)
    assert_close(result.da_dtau, np.linalg.inv(M), conditioned(M))
    same_bits(result.da_dtau, result.da_dtau.T)
    by = kg.inverse_dynamics_derivatives(model, q, v, result.a, loads=loads)
    # Without M⁻¹, so without its condition: by the sizes of the terms that n products sum up
    for ours, theirs in ((result.da_dq, by.dtau_dq), (result.da_dv, by.dtau_dv)):
        terms = (np.abs(M) @ np.abs(ours)).max() + np.abs(theirs).max()
        assert np.abs(M @ ours + theirs).max() <= 1e-13 * max(terms, np.abs(M).max() * np.abs(v).max())
    terms = (np.abs(M) @ np.abs(result.da_dtau)).max()
    assert np.abs(M @ result.da_dtau - np.eye(model.n)).max() <= 1e-13 * terms


@models
def test_identities(model):
    check_identities(model, 2)


@twenties
def test_identities_of_random_trees(first):
    for seed in range(first, first + 20):
        check_identities(tree(seed), seed)


def test_trees_of_different_roots_do_not_feel_each_other():
    """Exact zeros in all three matrices; M⁻¹ is full within a tree, unlike M."""
    found = 0
    for seed in range(40):
        model = tree(seed)
        root = [(model.topology.ancestors(i) or (i,))[0] for i in range(model.n)]
        apart = np.not_equal.outer(root, root)
        found += apart.any()
        result = kg.forward_dynamics_derivatives(model, *random_state(model, seed), loads=random_loads(model, seed))
        for matrix in fields(result)[1:]:
            assert not matrix[apart].any()
    assert found > 10


# --- far from the origin ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1e3, 1e6])
def test_accelerations_do_not_depend_on_where_the_human_walks(distance):
    """Taken about the world's origin, inertias would lose six digits at 1 km, and all at 1000 km.

    About a point of the mechanism nothing is lost.
    """
    human = MODELS["human43"]
    q, v, tau = random_state(human, 5)
    loads = random_loads(human, 5)
    far = q.copy()
    far[:3] += np.array([1.0001, -2.0002, 3.0003]) * distance  # pelvis.tz, ty, tx
    near = kg.forward_dynamics_derivatives(human, q, v, tau, loads=loads)
    away = kg.forward_dynamics_derivatives(human, far, v, tau, loads=loads)
    for name in FIELDS:
        assert difference(getattr(away, name), getattr(near, name)) <= 1e-13, name
    for method in METHODS:
        a = kg.forward_dynamics(human, far, v, tau, loads=loads, method=method)
        assert np.abs(a - near.a).max() <= CLOSE * reach(human, q, v, near.a, loads)


@pytest.mark.parametrize("distance", [1e3, 1e6])
def test_accelerations_do_not_depend_on_where_a_machine_is_bolted(distance):
    near = samples.puma560()
    there = kg.translate(distance, -0.7 * distance, 0.3 * distance) @ kg.rotate("z", 0.7)
    far = near.replace(placement={near.joint_names[0]: there @ near.placement[0]})
    state = random_state(near, 6)
    one, other = (kg.forward_dynamics_derivatives(model, *state) for model in (far, near))
    for name in FIELDS:
        assert difference(getattr(one, name), getattr(other, name)) <= 1e-12, name
    for method in METHODS:
        assert_close(*(kg.forward_dynamics(model, *state, method=method) for model in (far, near)), 1e-12)


# --- nothing resists a joint --------------------------------------------------------------------------------

WAYS = {
    "aba": lambda *x, **o: kg.forward_dynamics(*x, method="aba", **o),
    "crba": lambda *x, **o: kg.forward_dynamics(*x, method="crba", **o),
    "derivatives": kg.forward_dynamics_derivatives,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def crane(armature=0.0):
    """A point mass that slides along a massless jib which turns: nothing resists the turn when it is at the axis."""
    builder = kg.ModelBuilder("crane")
    builder.add("turn", None, kg.revolute("z"), link="jib", armature=armature)
    builder.add("reach", "jib", kg.prismatic("x"), link="bob", inertia=kg.Inertia.point(2.0, [0, 0, 0]))
    return builder.build()


@ways
@pytest.mark.parametrize(
    ("shape", "bad", "where"),
    [((), (), ""), ((5,), (3,), " in state 3"), ((2, 3), (1, 0), r" in state \(1, 0\)"), ((1,), (0,), " in state 0")],
)
def test_singular_state_is_named(way, shape, bad, where):
    q, v, tau = random_state(crane(), 1, shape)
    q[..., 1] = 1.0
    way(crane(), q, v, tau)
    q[(*bad, 1)] = 0.0
    message = rf"nothing resists joint 'turn' of model 'crane'{where}: the links it moves .* give the joint armature"
    with pytest.raises(SingularError, match=message):
        way(crane(), q, v, tau)


@ways
@pytest.mark.parametrize("size", [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 1])
def test_singular_state_is_found_in_every_lane(way, size):
    model = crane()
    for bad in range(size):
        q = np.ones((size, 2))
        q[bad, 1] = 0.0
        with pytest.raises(SingularError, match=rf"in state {bad}:"):
            way(model, q, 0 * q, 0 * q)


@ways
def test_armature_cures_a_singular_state(way):
    """The bob at the axis: the rotor alone resists the turn."""
    result = way(crane(armature=0.5), [0.3, 0.0], [0.0, 0.0], [2.0, 6.0])
    assert_close(getattr(result, "a", result), np.array([4.0, 3.0]), 1e-15)


@ways
def test_slender_limbs_resist_no_turn_about_themselves(way):
    """[zhakatayev2023]'s human is made of slender rods; thickness or rotors make it dynamic."""
    human = samples.human43()
    state = random_state(human, 1)
    with pytest.raises(SingularError, match=r"nothing resists joint '[a-z_.]+' of model 'human43': "):
        way(human, *state)
    way(human.replace(armature=np.full(43, 0.01)), *state)
    way(samples.human43(thickness=0.1), *state)


def with_massless_leaf(**numbers):
    builder = kg.ModelBuilder("arm")
    builder.add("shoulder", None, kg.revolute("y"), inertia=kg.Inertia.sphere(1.0, 0.1, [0, 0, 0.3]))
    builder.add("wrist", "shoulder", kg.screw("z", pitch=0.1), placement=[0, 0, 0.5], **numbers)
    return builder.build()


@pytest.mark.parametrize("name", ["aba", "crba", "derivatives"])
def test_massless_leaf_is_named(name):
    way = WAYS[name]
    zero = [0.2, 0.1]
    with pytest.raises(SingularError, match=r"nothing resists joint 'wrist' of model 'arm': "):
        way(with_massless_leaf(), zero, zero, zero)
    with pytest.raises(SingularError, match="'wrist'"):  # springs and dampers are no inertia
        way(with_massless_leaf(stiffness=1.0, damping=1.0), zero, zero, zero)
    way(with_massless_leaf(armature=1e-6), zero, zero, zero)


ways_that_see_all = pytest.mark.parametrize("name", ["aba", "crba", "derivatives"])


def hinges_in_line(seed):
    """Two hinges about one oblique axis, with nothing between: only the sum of their angles moves anything."""
    turn = kg.rotate("x", 0.3 + seed) @ kg.rotate("y", 0.4 - seed) @ kg.translate(0.3, 0.2, 0.1)
    builder = kg.ModelBuilder("twice")
    builder.add("first", None, kg.revolute("z"), placement=turn)
    builder.add("second", "first", kg.revolute("z"), inertia=kg.Inertia.box(1.0, [0.1, 0.2, 0.3], [0.3, 0.1, 0.2]))
    return builder.build()


@ways_that_see_all
def test_two_hinges_in_line_resist_no_counterrotation(name):
    """M = I·[[1, 1], [1, 1]]: singular in every state, though every link that moves has inertia."""
    for seed in range(10):
        model = hinges_in_line(seed)
        with pytest.raises(SingularError, match="joint 'first'"):
            WAYS[name](model, *random_state(model, seed))


@ways_that_see_all
def test_gimbal_lock_is_singular(name):
    """A ball joint of three hinges, the middle one at a right angle: the outer two turn about one axis."""
    for seed in range(20):
        builder = kg.ModelBuilder("top")
        turn = kg.rotate("x", 0.3 + seed) @ kg.rotate("y", 0.4 - seed)
        body = kg.Inertia.box(2.0, [0.3, 0.2, 0.1])
        builder.add("ball", None, kg.spherical("zyx"), link="top", placement=turn, inertia=body)
        q, v, tau = random_state(builder.build(), seed)
        q[1] = np.pi / 2
        with pytest.raises(SingularError, match=r"joint 'ball\.z'"):
            WAYS[name](builder.build(), q, v, tau)


@pytest.mark.parametrize("name", WAYS)
def test_ill_conditioned_is_not_singular(name):
    """Ten micrometres from the axis the turn still has an inertia of 2e-10 kg·m², exactly."""
    result = WAYS[name](crane(), [0.3, 1e-5], [0.0, 0.0], [2e-10, 0.0])
    assert_close(getattr(result, "a", result)[0], 1.0, 1e-14)


@ways
def test_the_first_singular_state_is_named_by_any_number_of_threads(way, monkeypatch):
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)
    q = np.ones((40000, 2))  # the last is found long after the first
    q[[0, -1], 1] = 0.0
    for _ in range(20):
        with pytest.raises(SingularError, match="in state 0:"):
            way(crane(), q, 0 * q, 0 * q, threads=2)
