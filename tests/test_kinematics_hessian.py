"""Second derivatives of points, centre of mass and momentum: complex step of the exact first derivatives, differences
of the quantities themselves where coordinates are not joints; then identities, and what is accepted and refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, ModelError, samples
from tests.conftest import random_state, tree
from tests.kernels.child import child, output
from tests.mixed import mixed_state, mixed_tree

CLOSE = 1e-12  # of the largest entry: sums of some dozen terms, each right to a few 1e-16
BLOCKS = {"d2_dqdq": (0, 0), "d2_dqdv": (0, 1), "d2_dqda": (0, 2), "d2_dvdv": (1, 1)}

COMPLEX_STEP = """
import sys
import numpy as np
from kinegrad import _engine as engine
from kinegrad._kernels import energy_derivatives, kinematics_derivatives
from kinegrad._kernels.compiler.width import WIDTH
from tests.test_kinematics_hessian import stepped

h, results = 1e-30, {}
for name, model, state, (links, local), (w, linear, angular) in stepped():
    n, k = model.n, len(links)
    rows = 3 * n  # a row for each direction
    q, v, a = (np.repeat(x[None].astype(complex), rows, axis=0) for x in state)
    for which, x in enumerate((q, v, a)):
        x[which * n : (which + 1) * n] += 1j * h * np.eye(n)
    m, numbers = engine.mechanism(model), np.array([model.link_names.index(x) for x in links])
    scratch = np.full((kinematics_derivatives.slots(n), WIDTH), np.nan, complex)
    out = [np.zeros((rows, 3 * k * n), complex) for _ in range(3)]
    kinematics_derivatives.points(m, q, v, a, numbers, local.reshape(1, -1), *out, scratch, 0, rows)
    P, dP, ddP = (x.reshape(3, n, k, 3, n).imag / h for x in out)
    by_q = sum(np.einsum("kx,dikxj->dij", w[s], x) for s, x in enumerate((P, dP, ddP)))
    by_v = np.einsum("kx,dikxj->dij", w[1], P) + 2 * np.einsum("kx,dikxj->dij", w[2], dP)
    by_a = np.einsum("kx,dikxj->dij", w[2], P)
    results[f"{name} points"] = np.stack([by_q, by_v, by_a]).swapaxes(-1, -2)
    scratch = np.full(((n + 1) * energy_derivatives.N, WIDTH), np.nan, complex)
    out = [np.zeros((rows, 3 * n), complex) for _ in range(5)]
    energy_derivatives.momentum_derivatives(m, q, v, *out, scratch, 0, rows)
    c_q, p_q, p_v, L_q, L_v = (x.reshape(3, n, 3, n).imag / h for x in out)
    turned = [np.einsum("x,dixj->dji", linear, x) + np.einsum("x,dixj->dji", angular, y)
              for x, y in ((p_q, L_q), (p_v, L_v))]
    results[f"{name} momentum"] = np.stack(turned)
    results[f"{name} center"] = np.einsum("x,dixj->dji", linear, c_q)[0]
np.savez(sys.argv[1], **results)
"""


def stepped():
    """Name, model, state, points and weights of what the child process differentiates."""
    models = {"puma560": samples.puma560(), "human43": samples.human43(), "cart": samples.cart_pendulum()}
    models |= {f"tree {seed}": tree(seed) for seed in range(6)}
    for number, (name, model) in enumerate(models.items()):
        rng = np.random.default_rng([number, 8])
        links = [str(x) for x in rng.choice(model.link_names, size=3)]
        yield name, model, random_state(model, number), (links, rng.normal(size=(3, 3))), weights(rng)


def weights(rng):
    return rng.normal(size=(3, 3, 3)), rng.normal(size=3), rng.normal(size=3)


def named(w):
    return dict(zip(("w_position", "w_velocity", "w_acceleration"), w, strict=False))


def assert_close(found, expected, size, what):
    error = np.abs(found - expected).max() / size
    assert error <= CLOSE, f"{what}: {error:.1e} of the largest"


def test_complex_step_of_the_first_derivatives(tmp_path):
    """Kernels of first derivatives on complex numbers, in plain Python: exact but for rounding."""
    output(child(COMPLEX_STEP, tmp_path / "second.npz", NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="16"))
    second = np.load(tmp_path / "second.npz")
    for name, model, (q, v, a), (links, local), (w, linear, angular) in stepped():
        whole = second[f"{name} points"]
        found = kg.point_motion_hessian(model, q, v, a, link=links, point=local, **named(w))
        for block, (i, j) in BLOCKS.items():
            assert_close(getattr(found, block), whole[i, j], max(1.0, np.abs(whole[i, j]).max()), (name, block))
        whole = second[f"{name} momentum"]
        found = kg.momentum_hessian(model, q, v, w_linear=linear, w_angular=angular)
        size = max(1e-3, np.abs(whole).max())
        assert_close(found.d2_dqdq, whole[0, 0], size, name)
        assert_close(found.d2_dqdv, whole[0, 1], size, name)
        assert np.abs(whole[1, 1:]).max() <= CLOSE * size, "by v twice there is nothing"
        whole = second[f"{name} center"]
        assert_close(kg.center_of_mass_hessian(model, q, linear), whole, max(1e-3, np.abs(whole).max()), name)


@pytest.mark.parametrize("seed", range(3))
def test_couplings_and_quaternions_by_differences(seed):
    """Of φ(q ⊕ δ) itself, along directions, of order 6: they err by some h⁶ = 1e-14 and by ε/h² = 1e-11 of what φ is,
    as long as no knot of a spline is crossed, where f‴ jumps."""
    model, rng = mixed_tree(seed), np.random.default_rng(seed)
    q, v, a = mixed_state(model, seed)
    w, linear, angular = weights(rng)
    links, local = [model.link_names[k] for k in (-1, 0, -2)], rng.normal(size=(3, 3))
    of = {"link": links, "point": local}

    def quantities(q, v, a):
        x, p = kg.point_motion(model, q, v, a, **of), kg.momentum(model, q, v)
        moved = sum((y * z).sum() for y, z in zip(w, (x.position, x.velocity, x.acceleration), strict=True))
        return np.array([moved, linear @ p.linear + angular @ p.angular, linear @ kg.center_of_mass(model, q)])

    H = kg.point_motion_hessian(model, q, v, a, **of, **named(w))
    P = kg.momentum_hessian(model, q, v, w_linear=linear, w_angular=angular)
    C = kg.center_of_mass_hessian(model, q, linear)
    for block in (H.d2_dqdq, H.d2_dvdv, P.d2_dqdq, C):
        np.testing.assert_array_equal(block, block.swapaxes(-1, -2))
    h = 0.005
    for _ in range(4):
        dq, dv, da = d = rng.normal(size=(3, model.nv))
        d /= np.abs(d).max()
        phi = [quantities(kg.integrate(model, q, s * h * dq), v + s * h * dv, a + s * h * da) for s in range(-3, 4)]
        expected = np.tensordot([2, -27, 270, -490, 270, -27, 2], phi, 1) / (180 * h * h)
        moved = dq @ H.d2_dqdq @ dq + 2 * dq @ H.d2_dqdv @ dv + 2 * dq @ H.d2_dqda @ da + dv @ H.d2_dvdv @ dv
        found = [moved, dq @ P.d2_dqdq @ dq + 2 * dq @ P.d2_dqdv @ dv, dq @ C @ dq]
        scale = np.maximum(np.abs(phi).max(axis=0), np.abs(expected))
        assert np.all(np.abs(found - expected) < 1e-8 * scale)


def test_points_are_summed_and_parts_left_out():
    """Several points are their sum; without a, or without v and a, what remains is the same; zeros of topology."""
    model = samples.human43()
    (q, v, a), rng = random_state(model, 2), np.random.default_rng(2)
    links, local, (w, *_) = [model.link_names[-1], model.link_names[20]], rng.normal(size=(2, 3)), weights(rng)
    w = w[:, :2]
    whole = kg.point_motion_hessian(model, q, v, a, link=links, point=local, **named(w))
    each = [
        kg.point_motion_hessian(model, q, v, a, link=link, point=local[k], **named(w[:, k]))
        for k, link in enumerate(links)
    ]
    for name in BLOCKS:
        expected = sum(getattr(x, name) for x in each)
        np.testing.assert_allclose(getattr(whole, name), expected, rtol=0, atol=CLOSE * np.abs(expected).max())
    at_speed = kg.point_motion_hessian(model, q, v, link=links[0], w_velocity=[1, 2, 3])
    moving = kg.point_motion_hessian(model, q, v, a, link=links[0], w_velocity=[1, 2, 3])
    np.testing.assert_array_equal(at_speed.d2_dqdv, moving.d2_dqdv)
    assert at_speed.d2_dqda is None
    still = kg.point_motion_hessian(model, q, link=links[0], w_position=[1, 2, 3])
    np.testing.assert_array_equal(still.d2_dqdq, at_speed.d2_dqdv, "H and H of x and ẋ are the same")
    assert still.d2_dqdv is None
    apart = np.ones((model.n, model.n), bool)
    apart[model.pattern] = False
    assert not whole.d2_dqdq[apart].any()
    assert not kg.center_of_mass_hessian(model, q, [1, 2, 3])[apart].any()
    assert kg.momentum_hessian(model, q, v, w_angular=[1, 2, 3]).d2_dqdq[apart].any(), "about a point that moves"


def test_batches_and_several_weights():
    """The same bits alone and in a batch; weights of shape (k, 3) go with one state; empty batches."""
    model = samples.human43()
    (q, v, a), rng = random_state(model, 3, (9,)), np.random.default_rng(3)
    w, link = rng.normal(size=(9, 3)), model.link_names[-1]

    def every(q, v, a, w, threads=None):
        found = kg.point_motion_hessian(
            model, q, v, a, link=link, w_position=w, w_velocity=2 * w, w_acceleration=-w, threads=threads
        )
        turned = kg.momentum_hessian(model, q, v, w_linear=w, w_angular=3 * w, threads=threads)
        return [*vars(found).values(), *vars(turned).values(), kg.center_of_mass_hessian(model, q, w, threads=threads)]

    whole, one, several = every(q, v, a, w, 2), every(q[4], v[4], a[4], w[4]), every(q[4], v[4], a[4], w)
    for x, y, z in zip(whole, one, several, strict=True):
        np.testing.assert_array_equal(x[4], y)
        np.testing.assert_array_equal(z[4], y)
    assert all(x.shape == (0, 43, 43) for x in every(q[:0], v[:0], a[:0], w[0]))


def test_far_from_the_origin():
    """Places of the world do not enter, so that nothing is lost where coordinates are large."""
    near = samples.puma560()
    placement = np.array(near.placement)
    placement[0, :3, 3] += [4e5, -3e5, 2e5]
    far = near.replace(placement=placement)
    q, v, _ = random_state(near, 1)
    one, other = (kg.momentum_hessian(x, q, v, w_linear=[1, 2, 3], w_angular=[3, 1, 2]) for x in (near, far))
    for name in ("d2_dqdq", "d2_dqdv"):
        x, y = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(y, x, rtol=0, atol=1e-10 * np.abs(x).max())


def test_refused():
    arm, zero = samples.two_link(), [0.0, 0.0]
    with pytest.raises(InputError, match="`w_velocity` is given without `v`"):
        kg.point_motion_hessian(arm, zero, link="forearm", w_velocity=[1, 0, 0])
    with pytest.raises(InputError, match="`w_acceleration` is given without `a`"):
        kg.point_motion_hessian(arm, zero, zero, link="forearm", w_acceleration=[1, 0, 0])
    with pytest.raises(InputError, match=r"`w_position` has shape \(2,\)"):
        kg.point_motion_hessian(arm, zero, link="forearm", w_position=[1, 0])
    with pytest.raises(InputError, match="`w`"):
        kg.center_of_mass_hessian(arm, zero, [np.nan, 0, 0])
    with pytest.raises(InputError, match="`w_linear`"):
        kg.momentum_hessian(arm, zero, zero, w_linear="abc")
    with pytest.raises(InputError, match="not finite"):
        kg.momentum_hessian(arm, zero, [1e200, 1], w_linear=[0, 1e200, 0])
    builder = kg.ModelBuilder("bare")
    builder.add("pin", None, kg.revolute("z"), link="bar")
    bare = builder.build()
    with pytest.raises(ModelError, match="no mass"):
        kg.center_of_mass_hessian(bare, [0.0], [1, 0, 0])
