"""Derivatives by design parameters: masses, moments, lengths, Denavit–Hartenberg rows, springs, screws, gravity.

Against the oracle, with the constant itself stepped into the complex plane; then identities, batches, changed models,
and what is refused.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, samples
from tests.conftest import assert_close, parts, random_loads, random_state, some_now, tree
from tests.design.stepped import (
    CLOSE,
    ROW,
    all_constants,
    check,
    h,
    kinds_of_constants,
    random_dh,
    stepped,
    worst,
)
from tests.reference import oracle


@pytest.mark.parametrize("seed", range(20))
def test_points_equal_complex_step(seed):
    model = tree(seed)
    names = kinds_of_constants(model, np.random.default_rng(seed))
    q, v, a = random_state(model, seed)
    point, links = np.array([0.1, -0.2, 0.3]), [model.link_names[0], model.link_names[-1]]
    design = Design(model, names)
    found = kg.point_motion_design_derivatives(design, q, v, a, link=links, point=point)
    varied = [stepped(model, **{name: 1.0}) for name in names]
    for k, link in enumerate(links):
        i = model.link_index(link)
        moved = [oracle.point_motion(m, q, v, a, i, point) for m in varied]
        for what, columns in zip(vars(found), zip(*moved, strict=True), strict=True):
            expected = np.stack([np.imag(x) / h for x in columns], axis=-1)
            actual = getattr(found, what)[k]
            scale = max(1.0, np.abs(expected).max())
            assert np.abs(actual - expected).max() <= CLOSE * scale
    alone = kg.point_motion_design_derivatives(design, q, link=links[1], point=point)
    assert np.array_equal(alone.dposition_dp, found.dposition_dp[1])
    assert alone.dvelocity_dp is None


@pytest.mark.parametrize("seed", some_now(range(200), 40))
def test_random_trees_equal_complex_step(seed):
    """Every kind of constant, on any kinds of joints, massless links, springs, dampers, rotors, loads."""
    model = tree(seed)
    check(model, kinds_of_constants(model, np.random.default_rng([seed, 9])), seed, loaded=seed % 3 > 0)


def test_trees_have_massless_links_and_screws():
    """Otherwise half of the constants would not be tried."""
    models = [tree(seed) for seed in range(70)]
    assert sum((model.mass == 0).any() for model in models) > 20
    assert sum(any(joint.kind == "screw" for joint in model.joints) for model in models) > 20


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_samples_equal_complex_step(name):
    model = samples.SAMPLES[name](thickness=0.1) if name.startswith("human43") else samples.SAMPLES[name]()
    row = name in ("human43", "human43_lumbar", "puma560", "two_link")
    check(model, kinds_of_constants(model, np.random.default_rng(4), row), 2)


@pytest.mark.parametrize("convention", ["distal", "proximal"])
@pytest.mark.parametrize("seed", range(8))
def test_all_rows_equal_complex_step(convention, seed):
    """θ, d, a and α of every joint; the first row alone would not tell the convention."""
    model = random_dh(5, seed, convention)
    check(model, [f"{joint}.{what}" for joint in model.joint_names for what in ROW], seed, convention)


def test_puma_rows_equal_complex_step():
    model = samples.puma560()
    check(model, [f"{joint}.{what}" for joint in model.joint_names for what in ROW])


@pytest.mark.parametrize("seed", range(10))
def test_linear_combinations(seed):
    """As the oracle with all constants stepped at once, and as the sum of the parts."""
    model, rng = tree(seed + 100), np.random.default_rng(seed)
    names = kinds_of_constants(model, rng)
    shared = names[1:]
    specs = {f"p{k}": {str(x): float(rng.normal()) for x in rng.choice(shared, 4, replace=False)} for k in range(6)}
    da = check(model, names, seed, parameters={**specs, "plain": names[0]})
    q, v, _ = random_state(model, seed)
    tau = 10 * np.random.default_rng([seed, 3]).normal(size=model.n)
    alone = kg.forward_dynamics_design_derivatives(Design(model, names), q, v, tau, loads=random_loads(model, seed))
    sums = [sum(c * alone[:, names.index(x)] for x, c in spec.items()) for spec in specs.values()]
    assert_close(da, np.stack([*sums, alone[:, 0]], axis=-1), 1e-12)  # of columns up to ten times as large


@pytest.mark.parametrize("seed", range(20))
def test_total_derivative_equals_complex_step(seed):
    """[anderson2002] (9): state and torques follow the parameters, too."""
    model, rng = tree(seed), np.random.default_rng([seed, 8])
    loads = random_loads(model, seed)
    q, v, _ = random_state(model, seed)
    tau = 10 * rng.normal(size=model.n)
    names = [str(x) for x in rng.permutation(kinds_of_constants(model, rng))[:8]]
    follow = dict(zip(("dq_dp", "dv_dp", "dtau_dp"), rng.normal(size=(3, model.n, len(names))), strict=True))
    given = [{}, *({name: value} for name, value in follow.items()), follow]
    design = Design(model, names)
    for some in given:
        columns = []
        for k, name in enumerate(names):
            moved = stepped(model, **{name: 1.0})
            x, dx, f = (
                u + 1j * h * some[key][:, k] if key in some else u for key, u in zip(follow, (q, v, tau), strict=True)
            )
            bias = oracle.regular_lagrangian(moved, x, dx, 0 * q, *parts(loads))
            columns.append(np.imag(np.linalg.solve(oracle.mass_matrix(moved, x), f - bias)) / h)
        found = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads, **some)
        assert worst(found, np.stack(columns, axis=-1)) <= CLOSE


@pytest.mark.parametrize("seed", range(20))
def test_accelerations_and_torques(seed):
    """M(p) a + c(p) = τ at fixed τ:  ∂a/∂p = −M⁻¹ ∂τ/∂p, with a the acceleration by τ."""
    model, loads = tree(seed), random_loads(tree(seed), seed)
    q, v, tau = random_state(model, seed)
    design = Design(model, all_constants(model))
    a = kg.forward_dynamics(model, q, v, tau, loads=loads)
    dtau = kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads)
    da = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads)
    assert_close(da, -np.linalg.solve(kg.mass_matrix(model, q), dtau), CLOSE)


@pytest.mark.parametrize("seed", range(20))
def test_energies_and_mass_matrix(seed):
    """∂T/∂p = ½ vᵀ ∂M/∂p v; ∂M/∂p = ∂²τ/∂a∂p, symmetric, zero where the tree says so."""
    model = tree(seed)
    q, v, a = random_state(model, seed)
    design = Design(model, all_constants(model))
    dM = kg.mass_matrix_design_derivatives(design, q)
    assert_close(np.einsum("i,ijp,j->p", v, dM, v) / 2, kg.energy_design_derivatives(design, q, v).dkinetic_dp, 1e-13)
    assert np.array_equal(dM, dM.swapaxes(0, 1))
    apart = np.ones((model.n, model.n), dtype=bool)
    apart[model.topology.pattern] = False
    assert not dM[apart].any()
    moving, still = (kg.inverse_dynamics_design_derivatives(design, q, v, x) for x in (a, 0 * a))
    assert_close(np.einsum("ijp,j->ip", dM, a), moving - still, 1e-12)  # a difference of larger numbers


@pytest.mark.parametrize("seed", range(5))
def test_potential_energy_and_gravity_forces(seed):
    """∂²V/∂q∂p both ways: the torque at rest, without loads, is ∂V/∂q."""
    model = tree(seed)
    q, _, _ = random_state(model, seed)
    design = Design(model, all_constants(model))
    still = kg.inverse_dynamics_design_derivatives(design, q, 0 * q, 0 * q)
    for k in range(model.n):
        e = 1e-5 * np.eye(model.n)[k]
        up, down = (kg.energy_design_derivatives(design, x, 0 * q).dpotential_dp for x in (q + e, q - e))
        assert np.abs((up - down) / 2e-5 - still[k]).max() <= 1e-8 * np.abs(still).max()  # a central difference


def test_directions_of_the_state_are_the_other_derivatives():
    """With parameters that do nothing, dq/dp = 1 gives ∂a/∂q, and so on."""
    model = samples.puma560()
    q, v, tau = random_state(model, batch=(3,))
    design = Design(model, [f"{joint}.rest" for joint in model.joint_names])  # no springs
    each = kg.forward_dynamics_derivatives(model, q, v, tau)
    one = np.eye(model.n)
    for name, expected in (("dq_dp", each.da_dq), ("dv_dp", each.da_dv), ("dtau_dp", each.da_dtau)):
        found = kg.forward_dynamics_design_derivatives(design, q, v, tau, **{name: one})
        assert_close(found, expected, 1e-12)


def test_pendulum_on_paper():
    """A point mass m on a rod of length L: τ = mL²q̈ + mgL sin q + k (q − q₀) + d q̇ + J q̈."""
    m, L, g, k, rest, d, J = 1.3, 0.7, 9.81, 2.0, 0.1, 0.3, 0.05
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("y"), link="bob", inertia=Inertia.point(m, [0, 0, -L]))
    model = builder.build().replace(gravity=(0, 0, -g), stiffness=[k], rest=[rest], damping=[d], armature=[J])
    names = ["bob.mass", "bob.com.z", "gravity.z", "hinge.stiffness", "hinge.rest", "hinge.damping", "hinge.armature"]
    names += ["bob.inertia.yy", "bob.inertia.xy", "hinge.placement.x", "hinge.tip.z"]
    q, v, a = 0.4, 1.5, -2.0
    s = np.sin(q)
    by_length = -(2 * m * L * a + m * g * s)
    expected = [L**2 * a + g * L * s, by_length, -m * L * s, q - rest, -k, v, a, a, 0, 0, by_length]
    found = kg.inverse_dynamics_design_derivatives(Design(model, names), [q], [v], [a])
    assert_close(found[0], expected, 1e-15 * 4)
