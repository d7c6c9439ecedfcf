"""Algorithm 3 of [kudruss2019] in the frames of the bodies, as printed and put right, against differences of M."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.papers.kudruss2019.misprints import MISPRINTS
from tests.reference.oracle import skew


def motion_transform(T):
    """ᴬX_B of motions, angular part first, from the pose T of B in A."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def cross(v):
    """v× of motions; v×* = −(v×)ᵀ."""
    w, u = skew(v[:3]), skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def algorithm_3(model, q, dq, *, outboard=True, sign=1.0):
    """∂H along dq; `outboard`: with what changed further out in line 13, `sign`: of [×* F] S ∂q in line 22."""
    n = model.n
    T = kg.forward_kinematics(model, q).transform
    X, S, I = [], [], []
    for i, parent in enumerate(model.parents):
        pose = np.linalg.inv(T[parent]) @ T[i] if parent >= 0 else T[i]
        X.append(motion_transform(pose))  # from body i to its parent
        axis = np.array([0.0, 0.0, 1.0])
        S.append(np.concatenate([axis, np.zeros(3)]))
        c = skew(model.com[i])
        m = model.mass[i]
        I.append(np.block([[model.inertia[i] - m * c @ c, m * c], [-m * c, m * np.eye(3)]]))
    dI, dH = [np.zeros((6, 6)) for _ in range(n)], np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        up = np.linalg.inv(X[i])  # ⁱX_λ
        if model.parents[i] >= 0:
            moved, twist = up.T @ I[i] @ up, X[i] @ S[i] * dq[i]
            change = -cross(twist).T @ moved - moved @ cross(twist)
            dI[model.parents[i]] += change + (up.T @ dI[i] @ up if outboard else 0.0)
            I[model.parents[i]] = I[model.parents[i]] + moved
        F, dF = I[i] @ S[i], dI[i] @ S[i]
        dH[i, i] = S[i] @ dF
        j = i
        while model.parents[j] >= 0:
            back = np.linalg.inv(X[j]).T  # λX*_j
            dF = back @ (dF + sign * -cross(S[j] * dq[j]).T @ F)
            F, j = back @ F, model.parents[j]
            dH[i, j] = dH[j, i] = dF @ S[j]
    return dH


@pytest.fixture(scope="module")
def setting():
    """A chain of hinges about z of their own frames, so that S is constant in each; and ∂M along a direction."""
    rng = np.random.default_rng(5)
    builder, parent = kg.ModelBuilder("chain"), None
    for k in range(4):
        place = kg.rotate(rng.normal(size=3), rng.uniform(-2, 2)) @ kg.translate(*rng.normal(size=3))
        body = kg.Inertia.box(rng.uniform(1, 2), rng.uniform(0.5, 1, 3), com=rng.normal(size=3))
        parent = builder.add(f"j{k}", parent, kg.revolute("z"), placement=place, inertia=body)
    model, q, dq = builder.build(), rng.normal(size=4), rng.normal(size=4)
    return model, q, dq, kg.directional(kg.mass_matrix, model, (q,), (dq[:, None],)).derivative[..., 0]


def test_put_right_it_holds(setting):
    model, q, dq, desired = setting
    np.testing.assert_allclose(algorithm_3(model, q, dq), desired, atol=1e-12 * np.abs(desired).max())


@pytest.mark.parametrize("printed", [{"outboard": False}, {"sign": -1.0}], ids=["line 13", "line 22"])
def test_as_printed_it_fails(setting, printed):
    model, q, dq, desired = setting
    assert np.abs(algorithm_3(model, q, dq, **printed) - desired).max() > 0.1 * np.abs(desired).max()


def test_what_is_marked_is_tested_here():
    assert [each.place for each in MISPRINTS if each.tested] == ["algorithm 3, line 13", "algorithm 3, line 22"]
