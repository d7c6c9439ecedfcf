"""Where [anderson2002] is misprinted: the printed formula, evaluated, fails; the one we use holds.

Bodies are numbered from 0; vectors of body k are in its basis, about its mass centre, the angular part first.
"""

import numpy as np
import pytest

from kinegrad import Design, forward_dynamics, mass_matrix, mass_matrix_design_derivatives
from kinegrad.papers.anderson2002.chain import chain_of, outward
from kinegrad.papers.anderson2002.misprints import MISPRINTS
from tests.papers.anderson2002.chains import random_chain, random_state
from tests.reference import oracle

N = 4


@pytest.fixture(scope="module")
def setting():
    """A design, its chain, a state, and what the outward pass makes of it."""
    design = random_chain(N)
    q, v, _, _ = random_state(design)
    chain = chain_of(design)
    return design, chain, q, v, outward(chain, q, v)


def same(x, y):
    return np.abs(x - y).max() < 1e-11 * np.abs(y).max()


def cross(x):
    return oracle.skew(x)


def partial_velocities(motion):
    """(37): 𝒫_i of body k, [i, k]."""
    P = np.zeros((N, N, 6))
    for i in range(N):
        P[i, i] = motion.P[i]
        for k in range(i + 1, N):
            P[i, k] = motion.S[k].T @ P[i, k - 1]
    return P


def partial_velocity_oracle(model, q, i, k):
    """The same from a Jacobian, turned into the basis of body k; complex-safe."""
    J_v, J_w = oracle.jacobian(model, q, k, model.com[k])
    R = oracle.transforms(model, q)[k, :3, :3]
    return np.concatenate([R.T @ J_w[:, i], R.T @ J_v[:, i]])


def accelerations(design, q, P, F1):
    """(26) and (6)."""
    K = np.einsum("rkx,kx->r", P, F1)
    return np.linalg.solve(mass_matrix(design.model, q), K)


def test_every_entry_marked_as_tested_is_tested_here():
    here = {
        "(23), (24)", "(27), (28)", "(34)", "(35), (36)", "(37)", "(43), first line", "(49), (51)", "(53), first line",
        "(66), (67)", "(72)–(74)",
    }  # fmt: skip
    assert {row.place for row in MISPRINTS if row.tested} == here


def test_23_24_loads(setting):
    design, chain, q, v, motion = setting
    P = partial_velocities(motion)
    exact = forward_dynamics(design.model, q, v, np.zeros(N))
    assert same(accelerations(design, q, P, motion.F1), exact)
    exchanged = np.concatenate([motion.F1[:, 3:], motion.F1[:, :3]], axis=1)
    assert not same(accelerations(design, q, P, exchanged), exact)
    other = motion.F1.copy()
    for k in range(N):  # −I α − ω × I α
        I_alpha = chain.inertia[k] @ motion.al[k]
        other[k, :3] = -I_alpha - np.cross(motion.w[k], I_alpha)
    assert not same(accelerations(design, q, P, other), exact)


def test_27_28_middle_term(setting):
    """A parameter that changes both 𝒫 and I1 of a body."""
    model, _, q, v, _ = setting[0].model, *setting[1:]
    design = Design(model, {"x": {"link1.com.x": 0.3, "link1.mass": 0.5, "link1.inertia.xx": 0.1}})
    chain = chain_of(design)
    motion = outward(chain, q, v)
    P, I1 = partial_velocities(motion), motion.I1
    step = 1e-30
    moved = oracle.with_constants(model, com=model.com + 1j * step * chain.dr[0])
    dP = np.array([[partial_velocity_oracle(moved, q, i, k).imag / step for k in range(N)] for i in range(N)])
    dI1 = np.zeros((N, 6, 6))
    dI1[:, :3, :3] = chain.dinertia[0]
    dI1[:, [3, 4, 5], [3, 4, 5]] = chain.dm[0][:, None]

    def sums(middle):
        outer = np.einsum("rkx,kxy,iky->ri", dP, I1, P)
        return outer + outer.T + np.einsum("rkx,kxy,iky->ri", middle, dI1, P)

    exact = mass_matrix_design_derivatives(design, q)[..., 0]
    assert same(sums(P), exact)
    assert not same(sums(dP), exact)


def test_34_velocities(setting):
    design, chain, q, v, motion = setting
    T = oracle.transforms(design.model, q)
    exact = np.array(
        [oracle.point_motion(design.model, q, v, np.zeros(N), k, design.model.com[k])[1] for k in range(N)]
    )

    def velocities(printed):
        found, w, velocity = [], np.zeros(3), np.zeros(3)
        for k in range(N):
            C, s = motion.C[k], chain.s[k]
            r, rate = C @ chain.r[k], C @ chain.e[k] * v[k]  # in the parent's basis
            velocity = velocity + (
                np.cross(w, r) + np.cross(rate, s) if printed else np.cross(w, s + r) + np.cross(rate, r)
            )
            w, velocity = motion.w[k], C.T @ velocity
            found.append(T[k, :3, :3] @ velocity)
        return np.array(found)

    assert same(velocities(printed=False), exact)
    assert not same(velocities(printed=True), exact)


def test_35_36_prescribed_joints_accelerate(setting):
    """All hinges prescribed, so that their rates are ω_t: (35) and (36) with and without dω_t/dt."""
    design, chain, q, v, motion = setting
    a = np.random.default_rng(35).normal(size=N)
    T = oracle.transforms(design.model, q)
    points = [oracle.point_motion(design.model, q, v, a, k, design.model.com[k])[2] for k in range(N)]

    def accelerations_of_mass_centres(own):
        found, w, alpha, acceleration = [], *np.zeros((3, 3))
        for k in range(N):
            C, s, r = motion.C[k], chain.s[k], motion.C[k] @ chain.r[k]  # in the parent's basis
            axis = C @ chain.e[k]
            joint = np.cross(w, axis * v[k]) + (axis * a[k] if own else 0)
            gamma, w_k = s + r, w + axis * v[k]
            acceleration = acceleration + np.cross(alpha, gamma) + np.cross(w, np.cross(w, s))  # (36)
            acceleration = C.T @ (acceleration + np.cross(w_k, np.cross(w_k, r)) + np.cross(joint, r))
            w, alpha = C.T @ w_k, C.T @ (alpha + joint)  # (33), (35)
            found.append(T[k, :3, :3] @ acceleration)
        return np.array(found)

    assert same(accelerations_of_mass_centres(own=True), np.array(points))
    assert not same(accelerations_of_mass_centres(own=False), np.array(points))


def test_37_sign(setting):
    design, chain, q, _, motion = setting
    exact = partial_velocity_oracle(design.model, q, 0, 1)
    C, gamma = motion.C[1], chain.s[1] + motion.C[1] @ chain.r[1]
    turn, one, zero = np.kron(np.eye(2), C.T), np.eye(3), np.zeros((3, 3))
    printed = turn @ np.block([[one, zero], [cross(gamma), one]]) @ motion.P[0]
    assert same(motion.S[1].T @ motion.P[0], exact)
    assert same(turn @ np.block([[one, zero], [-cross(gamma), one]]) @ motion.P[0], exact)
    assert not same(printed, exact)


def test_43_shifted_once(setting):
    design, _, q, _, motion = setting
    P, n = partial_velocities(motion), N - 1
    exact = mass_matrix(design.model, q)[n - 1]
    own = np.array([P[n - 1, n - 1] @ motion.I1[n - 1] @ P[i, n - 1] for i in range(N)])
    shifted = [motion.S[n] @ motion.I1[n] @ P[i, n] for i in range(N)]
    assert same((own + [P[n - 1, n - 1] @ x for x in shifted])[:n], exact[:n])
    assert not same((own + [P[n - 1, n] @ x for x in shifted])[:n], exact[:n])


def test_49_51_all_bodies_count(setting):
    design, _, q, v, motion = setting
    exact = mass_matrix(design.model, q) @ forward_dynamics(design.model, q, v, np.zeros(N))
    F2 = motion.F1.copy()
    printed = motion.F1.copy()
    for k in range(N - 2, -1, -1):
        F2[k] += motion.S[k + 1] @ F2[k + 1]
        printed[k] += motion.S[k + 1] @ motion.F1[k + 1]
    assert same(np.einsum("kx,kx->k", motion.P, F2), exact)
    assert not same(np.einsum("kx,kx->k", motion.P, printed), exact)


def test_53_accelerations_count_once(setting):
    """The last of Kane's equations, with 𝒜̄ = Σ 𝒫_i q̈_i and with 𝒜, which has the rest that F1 holds already."""
    design, _, q, v, motion = setting
    n, a = N - 1, forward_dynamics(design.model, q, v, np.zeros(N))
    explicit = np.einsum("ix,i->x", partial_velocities(motion)[:, n], a)
    whole = explicit + np.concatenate([motion.al[n], motion.a[n]])
    size = np.abs(motion.P[n] @ motion.F1[n])
    assert abs(motion.P[n] @ (motion.I1[n] @ explicit - motion.F1[n])) < 1e-11 * size
    assert abs(motion.P[n] @ (motion.I1[n] @ whole - motion.F1[n])) > 1e-2 * size


def test_66_67_first_acceleration(setting):
    design, _, q, v, motion = setting
    exact = forward_dynamics(design.model, q, v, np.zeros(N))[0]
    I3, F3 = motion.I1.copy(), motion.F1.copy()
    for k in range(N - 1, 0, -1):  # (57)–(59)
        b = I3[k] @ motion.P[k]
        M = motion.P[k] @ b
        I3[k - 1] += motion.S[k] @ (I3[k] - np.outer(b, b) / M) @ motion.S[k].T
        F3[k - 1] += motion.S[k] @ (F3[k] - b * (motion.P[k] @ F3[k]) / M)
    M = motion.P[0] @ I3[0] @ motion.P[0]
    assert motion.P[0] @ F3[0] / M == pytest.approx(exact, rel=1e-11)
    assert motion.P[0] @ motion.F1[0] / M != pytest.approx(exact, rel=1e-3)


def test_72_74_partial_velocities_change_through_the_shift(setting):
    """𝒫_0 of body 1 by q_1: S,q ᵀ 𝒫, while 𝒫_0 of body 0 does not change, so that the printed form is zero."""
    design, chain, q, _, motion = setting
    exact = oracle.numerical_derivative(lambda x: partial_velocity_oracle(design.model, x, 0, 1), q)
    C, e = motion.C[1], chain.e[1]
    dC = C @ cross(e)
    gamma, dgamma = chain.s[1] + C @ chain.r[1], dC @ chain.r[1]
    zero = np.zeros((3, 3))
    dS = np.block([[dC, cross(dgamma) @ C + cross(gamma) @ dC], [zero, dC]])
    assert same(dS.T @ motion.P[0], exact[:, 1])
    unchanged = oracle.numerical_derivative(lambda x: partial_velocity_oracle(design.model, x, 0, 0), q)
    assert np.abs(unchanged).max() < 1e-12
    assert np.abs(exact[:, 1]).max() > 1e-2
