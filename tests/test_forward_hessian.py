"""Second derivatives of forward dynamics: complex step of the exact first derivatives, differences of the accelerations
themselves where coordinates are not joints, a formula on paper; then identities, and what is accepted and refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from tests.conftest import random_loads, random_state, tree
from tests.kernels.child import child, output
from tests.mixed import mixed_loads, mixed_state, mixed_tree

# Relative to the largest entry, times the condition of the mass matrix, which both routes divide by.
CLOSE = 1e-12
BLOCKS = {"d2_dqdq": (0, 0), "d2_dqdv": (0, 1), "d2_dqdtau": (0, 2), "d2_dvdv": (1, 1)}
MODELS = {"puma560": samples.puma560, "human43": lambda: HUMAN, "cart_pendulum": samples.cart_pendulum}
HUMAN = samples.human43().replace(armature=np.full(43, 0.1))  # some of its links have no inertia about their joints

COMPLEX_STEP = """
import sys
import numpy as np
import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.rnea_derivatives import rnea_derivatives
from tests.test_forward_hessian import stepped

h = 1e-30
results = {}
for name, model, (q, v, a), first, w, loads in stepped(np.load(sys.argv[1])):
    n = model.n
    rows = 3 * n  # a row for each direction: q, v, τ
    q, v, a = (np.repeat(x[None].astype(complex), rows, axis=0) for x in (q, v, a))
    for k, x in enumerate((q, v)):
        x[k * n : (k + 1) * n] += 1j * h * np.eye(n)
    a += 1j * h * np.concatenate([x.T for x in first])  # what follows
    given = [np.empty((0, 3 * n))] * 3 if loads is None else [x.reshape(1, -1) for x in loads.arrays(model).values()]
    tables, slots = engine.torque_tables(model, "dense", loads is not None, False)
    out = [np.empty((rows, columns), complex) for columns in (n, n * n, n * n, n * n)]
    scratch = np.full((slots, WIDTH), np.nan, complex)
    rnea_derivatives(engine.mechanism(model), q, v, a, *given, *tables, *out, scratch, 0, rows)
    by_q, by_v, M = (x.reshape(rows, n, n) for x in out[1:])
    gradients = [-w @ np.linalg.solve(M, by_q), -w @ np.linalg.solve(M, by_v), w @ np.linalg.inv(M)]
    results[name] = np.stack([x.imag.reshape(3, n, n).swapaxes(-1, -2) / h for x in gradients])
np.savez(sys.argv[2], **results)
"""


def stepped(known):
    """Name, model, state, ∂a, weights and loads of what the child process differentiates."""
    for number, (name, model) in enumerate(models().items()):
        loads = random_loads(model, number) if number % 2 else None
        q, v, _ = random_state(model, number)
        a, *first = (known[f"{name} {k}"] for k in range(4))
        yield name, model, (q, v, a), first, weights(model, number), loads


def models():
    return {name: make() for name, make in MODELS.items()} | {f"tree {seed}": tree(seed) for seed in range(6)}


def weights(model, seed=0, batch=()):
    return np.random.default_rng([seed, 5]).normal(size=(*batch, model.nv))


def test_complex_step_of_the_first_derivatives(tmp_path):
    """−M⁻¹ ∂τ and M⁻¹ on complex numbers, from the kernel of ∂τ in plain Python: exact but for rounding."""
    known, sizes = {}, {}
    for number, (name, model) in enumerate(models().items()):
        loads = random_loads(model, number) if number % 2 else None
        q, v, tau = random_state(model, number)
        d = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
        known |= {f"{name} {k}": x for k, x in enumerate((d.a, d.da_dq, d.da_dv, d.da_dtau))}
        sizes[name] = q, v, tau, loads, np.linalg.cond(kg.mass_matrix(model, q))
    np.savez(tmp_path / "first.npz", **known)
    script = tmp_path / "first.npz", tmp_path / "second.npz"
    output(child(COMPLEX_STEP, *script, NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="16"))
    second = np.load(tmp_path / "second.npz")
    for number, (name, model) in enumerate(models().items()):
        q, v, tau, loads, condition = sizes[name]
        found = kg.forward_dynamics_hessian(model, q, v, tau, weights(model, number), loads=loads)
        whole = second[name]
        size = np.abs(whole).max()
        for block, (i, j) in BLOCKS.items():
            scale = max(np.abs(whole[i, j]).max(), 1e-3 * size)
            error = np.abs(getattr(found, block) - whole[i, j]).max() / scale
            assert error <= CLOSE * max(1.0, 1e-2 * condition), f"{name} {block}: {error:.1e} at {condition:.1e}"
        for i, j in ((1, 2), (2, 2)):
            assert np.abs(whole[i, j]).max() <= CLOSE * size, "by v and τ, and by τ twice, there is nothing"


def test_pendulum_on_paper():
    """I q̈ = τ − m g l cos q − k q̇: of w q̈, by q twice w m g l cos q / I, and nothing else."""
    m, l, k, g, w = 2.0, 0.7, 0.4, 9.81, 1.3
    builder = kg.ModelBuilder("pendulum", gravity=(0, -g, 0))
    body = kg.Inertia(m, [l, 0, 0], np.zeros((3, 3)))
    builder.add("pin", None, kg.revolute("z"), link="bob", inertia=body, damping=k)
    found = kg.forward_dynamics_hessian(builder.build(), [0.8], [1.1], [0.3], [w])
    assert found.d2_dqdq[0, 0] == pytest.approx(w * g * np.cos(0.8) / l, rel=1e-14)
    for block in (found.d2_dqdv, found.d2_dqdtau, found.d2_dvdv):
        assert not block.any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("held", [False, True])
def test_couplings_quaternions_and_elements_by_differences(seed, held):
    """Of φ(q ⊕ δ) itself, along directions, of order 6: they err by some h⁶ = 1e-14 and by ε/h² = 1e-11 of what φ is,
    as long as no knot of a spline is crossed, where f‴ jumps."""
    model = mixed_tree(seed)
    if held:
        strap = kg.SpringDamper(model.link_names[-1], other_point=[3, 2, 1], stiffness=50.0, damping=4.0, rest_length=1)
        model = model.replace(elements={"strap": strap})
    q, v, tau = mixed_state(model, seed)
    w, rng = weights(model, seed), np.random.default_rng(seed)
    loads = mixed_loads(model, seed) if seed % 2 else None
    H = kg.forward_dynamics_hessian(model, q, v, tau, w, loads=loads)
    for block in (H.d2_dqdq, H.d2_dvdv):
        np.testing.assert_array_equal(block, block.swapaxes(-1, -2))
    h = 0.004
    for _ in range(4):
        dq, dv, dtau = d = rng.normal(size=(3, model.nv))
        d /= np.abs(d).max()
        phi = [
            w @ kg.forward_dynamics(
                model, kg.integrate(model, q, s * h * dq), v + s * h * dv, tau + s * h * dtau, loads=loads
            )
            for s in range(-3, 4)
        ]  # fmt: skip
        expected = np.dot([2, -27, 270, -490, 270, -27, 2], phi) / (180 * h * h)
        found = dq @ H.d2_dqdq @ dq + 2 * dq @ H.d2_dqdv @ dv + 2 * dq @ H.d2_dqdtau @ dtau + dv @ H.d2_dvdv @ dv
        assert abs(found - expected) < 1e-8 * max(np.abs(phi).max(), abs(expected))


def test_batches_threads_and_several_weights():
    """The same bits alone and in a batch; weights of shape (k, n) go with one state."""
    model = HUMAN
    q, v, tau = random_state(model, 1, (17,))
    w, loads = weights(model, 1, (17,)), random_loads(model, 1, (17,))
    whole = kg.forward_dynamics_hessian(model, q, v, tau, w, loads=loads, threads=2)
    bare = kg.forward_dynamics_hessian(model, q, v, tau, w)
    one = kg.forward_dynamics_hessian(model, q[9], v[9], tau[9], w[9])
    several = kg.forward_dynamics_hessian(model, q[9], v[9], tau[9], w)
    for name in BLOCKS:
        assert getattr(whole, name).shape == (17, 43, 43)
        np.testing.assert_array_equal(getattr(bare, name)[9], getattr(one, name))
        np.testing.assert_array_equal(getattr(several, name)[9], getattr(one, name))
    none = kg.forward_dynamics_hessian(model, q[:0], v[:0], tau[:0], w[0])
    assert none.d2_dqdtau.shape == (0, 43, 43)


def test_refused():
    arm, zero = samples.two_link(), [0.0, 0.0]
    with pytest.raises(InputError, match="`w` has shape"):
        kg.forward_dynamics_hessian(arm, zero, zero, zero, [1.0])
    with pytest.raises(InputError, match="`tau`"):
        kg.forward_dynamics_hessian(arm, zero, zero, [np.nan, 0.0], zero)
    with pytest.raises(InputError, match="not finite"):
        kg.forward_dynamics_hessian(arm, [0.3, 0.4], [1e150, 1.0], zero, [1e200, 0.0])
    with pytest.raises(InputError, match="`model`"):
        kg.forward_dynamics_hessian("arm", zero, zero, zero, zero)
    with pytest.raises(kg.SingularError, match="nothing resists"):
        kg.forward_dynamics_hessian(samples.human43(), *np.zeros((4, 43)))
