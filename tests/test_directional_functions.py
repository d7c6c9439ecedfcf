"""Directional derivatives of impacts, G, γ, hybrid dynamics and Jacobians, in four modes.

Both exact modes against each other, which share little, against the complex-safe oracle of constraints, and against
differences; values are those of the functions themselves.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import ConstraintSet, InputError, directional, samples
from kinegrad.directional import MODES
from tests.constrained.test_dynamics import random_case
from tests.mixed import mixed_state, mixed_tree
from tests.reference import constrained as reference
from tests.reference.oracle import STEP

EXACT = 1e-9  # of the largest entry: rounding, amplified by the condition of saddle matrices
TOLERANCE = {"structured": EXACT, "tangent": EXACT, "forward": 1e-4, "central": 1e-6}
K = 3


def directions(model, count, seed, batch=()):
    return tuple(np.random.default_rng([seed, 71]).normal(size=(count, *batch, model.nv, K)))


def check(function, model, state, D, value, desired, modes=MODES, **options):
    """All modes, values and derivatives."""
    for mode in modes:
        found = directional(function, model, state, D, mode=mode, **options)
        np.testing.assert_allclose(found.value, value, atol=1e-9 * max(1.0, np.abs(value).max()))
        assert found.derivative.shape == desired.shape
        error = np.abs(found.derivative - desired).max()
        assert error <= TOLERANCE[mode] * max(1.0, np.abs(desired).max()), (mode, error)


def complex_states(state, D, j):
    return [x + 1j * STEP * d[..., j] for x, d in zip(state, D, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_impacts(seed):
    """[M −Gᵀ; G 0] by complex step of the dense oracle, with restitution."""
    model, held, q, v, _ = random_case(seed, states=2)
    D = directions(model, 2, seed, (2,))
    e = np.linspace(0.2, 0.7, held.m)
    found = kg.impact(model, held, q, v, restitution=e)
    columns = np.empty((2, model.n + held.m, K))
    for k in range(2):
        for j in range(K):
            moved = complex_states([q[k], v[k]], [d[k] for d in D], j)
            columns[k, :, j] = np.concatenate(reference.impact(model, held, *moved, e)).imag / STEP
    value = np.concatenate([found.v, found.impulses], axis=-1)
    check(kg.impact, model, (q, v), D, value, columns, constraints=held, restitution=e)
    plastic = directional(kg.impact, model, (q, v), (None, D[1]), constraints=held)
    by = kg.impact_derivatives(model, held, q, v)
    np.testing.assert_allclose(plastic.derivative[:, : model.n], by.dv_dv @ D[1], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_rows(seed):
    """G and γ of random trees by complex step of the oracle."""
    model, held, q, v, _ = random_case(seed, states=2)
    q, v = q[0], v[0]
    D = directions(model, 2, seed)

    def G(x):
        return reference.rows(model, held, x)[1]

    def drift(x, y):
        return -np.einsum("kij,i,j->k", reference.rows(model, held, x)[2], y, y)

    by_q = np.stack([G(complex_states([q], D[:1], j)[0]).imag / STEP for j in range(K)], axis=-1)
    check(ConstraintSet.jacobian, model, (q,), D[:1], held.jacobian(q), by_q, constraints=held)
    both = np.stack([drift(*complex_states([q, v], D, j)).imag / STEP for j in range(K)], axis=-1)
    check(ConstraintSet.drift, model, (q, v), D, held.drift(q, v), both, constraints=held)


@pytest.mark.parametrize("seed", range(3))
def test_hybrid_dynamics(seed):
    """Where τ of free and a of prescribed joints change, too; what is ignored changes nothing."""
    model, _, q, v, tau = random_case(seed, states=2)
    a = np.random.default_rng(seed).normal(size=v.shape)
    names = [model.joint_names[k] for k in range(0, model.n, 2)]
    D = directions(model, 4, seed, (2,))
    held = np.isin(model.joint_names, names)
    loads = kg.Loads(force=np.random.default_rng(seed).normal(size=(model.n, 3)))
    value = kg.hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads)
    d = kg.hybrid_dynamics_derivatives(model, q, v, tau, a, prescribed=names, loads=loads)
    desired = [
        sum(getattr(d, f"d{y}_d{x}") @ dx for x, dx in zip(("q", "v", "tau", "a"), D, strict=True))
        for y in ("a", "tau")
    ]
    both = np.concatenate([value.a, value.tau], axis=-1), np.concatenate(desired, axis=-2)
    check(kg.hybrid_dynamics, model, (q, v, tau, a), D, *both, prescribed=names, loads=loads)
    other = [x.copy() for x in D]
    other[2][:, held], other[3][:, ~held] = 7.0, 8.0
    for mode in ("structured", "tangent"):
        one, two = (
            directional(kg.hybrid_dynamics, model, (q, v, tau, a), x, prescribed=names, mode=mode) for x in (D, other)
        )
        np.testing.assert_allclose(one.derivative, two.derivative, atol=1e-12)


@pytest.mark.parametrize("link", ["one", "several", "frame"])
def test_jacobians(link):
    """Of one point, of several, and of a frame, along turns; against differences."""
    model = samples.spatial_chain(4)
    links = {"one": "bar2", "several": ["bar4", "bar1"], "frame": "bar3"}[link]
    q = np.random.default_rng(1).normal(size=(2, 4))
    D = directions(model, 1, 2, (2,))
    found = kg.jacobian(model, q, link=links, point=[0.1, 0.2, 0.3])
    value = np.concatenate([found.linear, found.angular], axis=-2)
    h = 1e-5
    columns = []
    for j in range(K):
        sides = [kg.jacobian(model, q + s * h * D[0][..., j], link=links, point=[0.1, 0.2, 0.3]) for s in (1, -1)]
        ends = [np.concatenate([x.linear, x.angular], axis=-2) for x in sides]
        columns.append((ends[0] - ends[1]) / (2 * h))
    desired = np.stack(columns, axis=-1)
    options = {"link": links, "point": [0.1, 0.2, 0.3]}
    exact = directional(kg.jacobian, model, (q,), D, **options).derivative
    np.testing.assert_allclose(exact, desired, atol=1e-8)
    check(kg.jacobian, model, (q,), D, value, exact, **options)


def test_coordinates_that_are_not_joints():
    """Couplings and quaternions: exact modes against central differences along turns."""
    model = mixed_tree(1)
    q, v, a = mixed_state(model, 1)
    held = ConstraintSet(model, [kg.Contact(model.link_names[-1], [0.1, 0.2, 0.3], directions="zx")]).held_at(q)
    D = directions(model, 4, 5)
    cases = [
        (kg.impact, (q, v), {"constraints": held, "restitution": 0.5}),
        (ConstraintSet.jacobian, (q,), {"constraints": held}),
        (ConstraintSet.drift, (q, v), {"constraints": held}),
        (kg.hybrid_dynamics, (q, v, v, a), {"prescribed": [model.speed_names[0]]}),
        (kg.jacobian, (q,), {"link": model.link_names[-1]}),
    ]
    for function, state, options in cases:
        along = D[: len(state)]
        wanted = directional(function, model, state, along, mode="central", **options)
        size = max(1.0, np.abs(wanted.derivative).max())
        for mode in ("structured", "tangent"):
            found = directional(function, model, state, along, mode=mode, **options)
            np.testing.assert_allclose(found.derivative, wanted.derivative, atol=1e-6 * size)


def test_what_is_refused():
    model, loop = samples.four_bar()
    zero, D = np.zeros(3), np.eye(3)
    with pytest.raises(InputError, match="`prescribed` is given; impact does not take it, so expected None"):
        directional(kg.impact, model, (zero, zero), (D, D), constraints=loop, prescribed=["crank"])
    with pytest.raises(InputError, match="`constraints` is None; expected a ConstraintSet"):
        directional(kg.impact, model, (zero, zero), (D, D))
    with pytest.raises(InputError, match="`link` is None; expected the link of the point"):
        directional(kg.jacobian, model, (zero,), (D,))
    with pytest.raises(InputError, match="`prescribed` is None; expected names"):
        directional(kg.hybrid_dynamics, model, (zero,) * 4, (D,) * 4)
    with pytest.raises(InputError, match=r"`loads` are given; ConstraintSet\.drift does not depend on loads"):
        directional(ConstraintSet.drift, model, (zero, zero), (D, D), constraints=loop, loads=kg.Loads())
    with pytest.raises(
        InputError, match=r"expected one of the functions mass_matrix, .*impact, hybrid_dynamics, jacob"
    ):
        directional(kg.kinetic_energy, model, (zero,), (D,))
