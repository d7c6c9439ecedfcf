"""Second derivatives of constrained dynamics: complex step of the exact first derivatives, differences of accelerations
and forces themselves where coordinates are not joints; then identities, and what is accepted and refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from tests.constrained.test_derivatives import MECHANISMS, closed_state
from tests.constrained.test_dynamics import LAW, loads_of, random_case
from tests.constraints.choice import independent_set
from tests.kernels.child import child, output
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.reference import constrained as reference
from tests.reference.elements import random_elements
from tests.reference.oracle import STEP

BLOCKS = {"d2_dqdq": (0, 0), "d2_dqdv": (0, 1), "d2_dqdtau": (0, 2), "d2_dvdv": (1, 1)}
CLOSE = 1e-12  # of the largest entry, times the condition of the system beyond 1e2, which both routes divide by

COMPLEX_STEP = """
import sys
import numpy as np
from kinegrad import _engine as engine
from kinegrad._kernels import constraints as rows
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.rnea_derivatives import rnea_derivatives
from tests.constrained.test_hessian import LAW, stepped

known, h, results = np.load(sys.argv[1]), 1e-30, {}
alpha, beta = LAW
for name, model, held, (q, v, _), w, loads in stepped():
    n, m = model.n, held.m
    count = 3 * n  # a row for each direction: q, v, τ
    a, f, *first = (known[f"{name} {k}"] for k in range(8))
    q, v, a, f = (np.repeat(x[None].astype(complex), count, axis=0) for x in (q, v, a, f))
    for k, x in enumerate((q, v)):
        x[k * n : (k + 1) * n] += 1j * h * np.eye(n)
    a += 1j * h * np.concatenate([x.T for x in first[:3]])  # what follows
    f += 1j * h * np.concatenate([x.T for x in first[3:]])
    given = [np.empty((0, 3 * n))] * 3 if loads is None else [x.reshape(1, -1) for x in loads.arrays(model).values()]
    tables, slots = engine.torque_tables(model, "dense", loads is not None, False)
    out = [np.empty((count, columns), complex) for columns in (n, n * n, n * n, n * n)]
    constants = engine.mechanism(model)
    rnea_derivatives(constants, q, v, a, *given, *tables, *out, np.full((slots, WIDTH), np.nan, complex), 0, count)
    by_q, by_v, M = (x.reshape(count, n, n) for x in out[1:])
    c, scratch = tuple(held._tables), np.full((rows.slots(n), WIDTH), np.nan, complex)
    G, dG, ddG = (np.zeros((count, m * n), complex) for _ in range(3))
    rows.derivatives(constants, q, v, a, c, G, dG, ddG, scratch, 0, count)
    H = np.zeros((count, n * n), complex)
    rows.curvature(constants, q, c, f, H, scratch, 0, count)
    G, dG, ddG, H = G.reshape(count, m, n), dG.reshape(count, m, n), ddG.reshape(count, m, n), H.reshape(count, n, n)
    K = np.block([[M, -G.swapaxes(1, 2)], [G, np.zeros((count, m, m))]])
    right = [np.concatenate([H - by_q, -ddG - 2 * alpha * dG - beta**2 * G], axis=1),
             np.concatenate([-by_v, -2 * dG - 2 * alpha * G], axis=1),
             np.concatenate([np.broadcast_to(np.eye(n), M.shape), np.zeros((count, m, n))], axis=1)]
    gradients = [np.einsum("i,rij->rj", w, np.linalg.solve(K, x)) for x in right]
    results[name] = np.stack([x.imag.reshape(3, n, n).swapaxes(-1, -2) / h for x in gradients])
np.savez(sys.argv[2], **results)
"""


def stepped():
    """Name, model, constraints, state, weights and loads of what the child process differentiates."""
    for number, (name, make) in enumerate(MECHANISMS.items()):
        model, held = make()
        yield name, model, held, closed_state(model, held, 1), weights(model, held, number), None
    for seed in range(8):
        model, held, *state = random_case(seed, states=1)
        loads = loads_of(model, 1) if seed % 2 else None
        yield f"tree {seed}", model, held, [x[0] for x in state], weights(model, held, seed), loads


def weights(model, held, seed):
    return np.random.default_rng([seed, 7]).normal(size=model.nv + held.m)


def named(model, w):
    return {"w_a": w[: model.nv], "w_forces": w[model.nv :]}


def test_complex_step_of_the_first_derivatives(tmp_path):
    """The system of first derivatives on complex numbers, from kernels in plain Python: exact but for rounding."""
    known, conditions = {}, {}
    for name, model, held, state, _, loads in stepped():
        d = kg.constrained_dynamics_derivatives(model, held, *state, loads=loads, stabilisation=LAW)
        known |= {f"{name} {k}": x.reshape(x.shape[-2:] if k > 1 else -1) for k, x in enumerate(vars(d).values())}
        G, M = held.jacobian(state[0]), kg.mass_matrix(model, state[0])
        conditions[name] = np.linalg.cond(np.block([[M, -G.T], [G, np.zeros((held.m, held.m))]]))
    np.savez(tmp_path / "first.npz", **known)
    files = tmp_path / "first.npz", tmp_path / "second.npz"
    output(child(COMPLEX_STEP, *files, NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="16"))
    second = np.load(tmp_path / "second.npz")
    for name, model, held, state, w, loads in stepped():
        found = kg.constrained_dynamics_hessian(model, held, *state, **named(model, w), loads=loads, stabilisation=LAW)
        whole, allowed = second[name], CLOSE * max(1.0, 1e-2 * conditions[name])
        size = np.abs(whole).max()
        for block, (i, j) in BLOCKS.items():
            scale = max(np.abs(whole[i, j]).max(), 1e-3 * size)
            x = getattr(found, block).reshape(model.n, model.n)
            error = np.abs(x - whole[i, j]).max() / scale
            assert error <= allowed, f"{name} {block}: {error:.1e}, {allowed:.1e} allowed"
        for i, j in ((1, 2), (2, 2)):
            assert np.abs(whole[i, j]).max() <= allowed * size, "by v and τ, and by τ twice, there is nothing"


def check_by_differences(model, held, state, w, rng, loads=None, redundant="error"):
    """Of φ(q ⊕ δ) itself, along directions, of order 6: they err by some h⁶ and by ε/h² of what φ is."""
    q, v, tau = state
    how = {"loads": loads, "stabilisation": LAW, "redundant": redundant}
    H = kg.constrained_dynamics_hessian(model, held, q, v, tau, **named(model, w), **how)
    for block in (H.d2_dqdq, H.d2_dvdv):
        np.testing.assert_allclose(block, block.swapaxes(-1, -2), rtol=0, atol=1e-13 * np.abs(block).max())
    h = 0.003
    for moving in ((1, 1, 1), (0, 1, 0), (1, 1, 1)):  # by speeds alone, too: they may be lost in what all do
        dq, dv, dtau = d = rng.normal(size=(3, model.nv)) * np.array(moving)[:, None]
        d /= np.abs(d).max()
        phi = []
        for s in range(-3, 4):
            moved = kg.integrate(model, q, s * h * dq), v + s * h * dv, tau + s * h * dtau
            x = kg.constrained_dynamics(model, held, *moved, **how)
            phi.append(w @ np.concatenate([x.a, x.forces]))
        expected = np.dot([2, -27, 270, -490, 270, -27, 2], phi) / (180 * h * h)
        found = dq @ H.d2_dqdq @ dq + 2 * dq @ H.d2_dqdv @ dv + 2 * dq @ H.d2_dqdtau @ dtau + dv @ H.d2_dvdv @ dv
        assert abs(found - expected) < 1e-7 * max(np.abs(phi).max(), abs(expected))


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_couplings_and_quaternions_by_differences(seed):
    model, rng = mixed_tree(seed), np.random.default_rng(seed)
    held = kg.ConstraintSet(model, [kg.Contact(model.link_names[-1], [0.1, 0.2, 0.3], directions="xz")])
    check_by_differences(model, held, mixed_state(model, seed), weights(model, held, seed), rng)


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_everything_at_once_by_differences(seed):
    """Rods and loops between branches, couplings across them, quaternions, force elements and loads.

    What ties two branches has second derivatives by a speed of each, which torques of a tree do not have.
    """
    bare, rng = mixed_tree(seed), np.random.default_rng(seed)
    model = bare.replace(elements=random_elements(bare, seed))
    state = mixed_state(model, seed)
    held = independent_set(model, state[0], seed, most=4)
    assert any(isinstance(one, kg.Loop | kg.Distance) and one.other is not None for one in held)
    check_by_differences(model, held, state, weights(model, held, seed), rng, mixed_loads(model, seed))


def test_batches_of_coordinates():
    """The same bits alone and in a batch where coordinates are not joints."""
    model = mixed_tree(4)
    q, v, tau = mixed_state(model, 4, (3,))
    held = kg.ConstraintSet(model, [kg.Distance("l4", other="l2", length=1.0)])
    whole = kg.constrained_dynamics_hessian(model, held, q, v, tau, w_a=np.ones(model.nv))
    one = kg.constrained_dynamics_hessian(model, held, q[1], v[1], tau[1], w_a=np.ones(model.nv))
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(whole, name)[1], getattr(one, name))


def test_random_sets_are_independent_of_how_they_are_called():
    """The same bits alone and in a batch; several weights of one state; an empty set is forward dynamics."""
    model, held, q, v, tau = random_case(3, states=5)
    rng = np.random.default_rng(4)
    w_a, w_forces = rng.normal(size=(5, model.n)), rng.normal(size=(5, held.m))
    whole = kg.constrained_dynamics_hessian(model, held, q, v, tau, w_a=w_a, w_forces=w_forces, threads=2)
    one = kg.constrained_dynamics_hessian(model, held, q[2], v[2], tau[2], w_a=w_a[2], w_forces=w_forces[2])
    several = kg.constrained_dynamics_hessian(model, held, q[2], v[2], tau[2], w_a=w_a, w_forces=w_forces)
    none = kg.constrained_dynamics_hessian(model, held, q[:0], v[:0], tau[:0], w_a=w_a[0])
    free = kg.constrained_dynamics_hessian(model, kg.ConstraintSet(model, []), q, v, tau, w_a=w_a)
    plain = kg.forward_dynamics_hessian(model, q, v, tau, w_a)
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(whole, name)[2], getattr(one, name))
        np.testing.assert_array_equal(getattr(several, name)[2], getattr(one, name))
        np.testing.assert_array_equal(getattr(free, name), getattr(plain, name))
        assert getattr(none, name).shape == (0, model.n, model.n)


def test_force_elements_and_sets_that_are_chosen():
    """With a strap between links, against differences of the first derivatives."""
    model = samples.human43(thickness=0.1)
    strap = kg.SpringDamper("head", other_point=[3, 2, 1], stiffness=50.0, damping=4.0, rest_length=1)
    model = model.replace(elements={"strap": strap})
    q, v, tau = 0.3 * np.random.default_rng(5).normal(size=(3, model.n))
    held = independent_set(model, q, 2)
    w = weights(model, held, 2)
    H = kg.constrained_dynamics_hessian(model, held, q, v, tau, **named(model, w))
    dq, h, gradients = np.random.default_rng(6).normal(size=model.n), 1e-3, []
    for s in (-3, -2, -1, 1, 2, 3):
        d = kg.constrained_dynamics_derivatives(model, held, q + s * h * dq, v, tau)
        gradients.append(w[: model.n] @ d.da_dq + w[model.n :] @ d.dforces_dq)
    expected = np.tensordot([-1, 9, -45, 45, -9, 1], gradients, 1) / (60 * h)
    np.testing.assert_allclose(H.d2_dqdq @ dq, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


class TestRedundant:
    """Forces of least norm, where the rank of the constraints stays what it is near the state."""

    def check(self, model, held, q, v, tau, rank, law=LAW):
        """Differences of sixth order of complex steps of the oracle, along directions of q, v and τ; seen: 3e-11."""
        w, rng, h = weights(model, held, 3), np.random.default_rng(4), 1e-3
        H = kg.constrained_dynamics_hessian(
            model, held, q, v, tau, **named(model, w), stabilisation=law, redundant="least-squares"
        )
        for moving in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1)):
            dq, dv, dtau = d = rng.normal(size=(3, model.n)) * np.array(moving)[:, None]
            slopes = []
            for s in (-3, -2, -1, 0, 1, 2, 3):
                moved = [x + (s * h + 1j * STEP) * dx for x, dx in zip((q, v, tau), d, strict=True)]
                a, f = reference.constrained_dynamics(model, held, *moved, stabilisation=law, rank=rank)
                slopes.append(w @ np.concatenate([a, f]).imag / STEP)
            expected = np.dot([-1, 9, -45, 0, 45, -9, 1], slopes) / (60 * h)
            found = dq @ H.d2_dqdq @ dq + 2 * dq @ H.d2_dqdv @ dv + 2 * dq @ H.d2_dqdtau @ dtau + dv @ H.d2_dvdv @ dv
            assert abs(found - expected) < 1e-9 * max(abs(expected), np.abs(slopes).max())

    def test_a_planar_mechanism_hinged_in_space(self):
        model, held = samples.four_bar()
        pin = held["pin"]
        hinge = kg.ConstraintSet(model, [kg.Loop(pin.link, other=pin.other, directions="xyzXZ")])
        self.check(model, hinge, *closed_state(model, held, 1), rank=2)

    @pytest.mark.parametrize("seed", [0, 3])
    def test_a_constraint_said_three_times(self, seed):
        model, held, q, v, tau = random_case(seed, states=1)
        again = [kg.Loop(one.link, one.placement, one.other, one.other_placement, one.directions)
                 for one in held if isinstance(one, kg.Loop)]  # fmt: skip
        assert again
        self.check(model, kg.ConstraintSet(model, [*held, *again, *again]), q[0], v[0], tau[0], rank=held.m)

    @pytest.mark.parametrize("law", [(0.0, 0.0), LAW])
    def test_rows_that_contradict_each_other(self, law):
        arm = samples.two_link()
        pins = [kg.Contact("forearm", directions="xyz"), kg.Contact("upper_arm", [0.1, 0.2, 0], directions="xy")]
        held = kg.ConstraintSet(arm, pins)
        q, v, tau = np.random.default_rng(39).normal(size=(3, 2))
        found = kg.constrained_dynamics(arm, held, q, v, tau, redundant="least-squares")
        assert np.abs(held.acceleration(q, v, found.a)).max() > 0.01
        self.check(arm, held, q, v, tau, rank=2, law=law)

    @pytest.mark.parametrize("seed", [0, 1, 3])
    def test_couplings_and_quaternions(self, seed):
        """A point held twice, once by a rod that contradicts."""
        model, rng = mixed_tree(seed), np.random.default_rng(seed)
        link, point = model.link_names[-1], [0.1, 0.2, 0.3]
        rows = [kg.Contact(link, point, directions="xz"), kg.Distance(link, point, length=0.7)]
        held = kg.ConstraintSet(model, [*rows, kg.Contact(link, point, directions="y", name="again")])
        state = mixed_state(model, seed)
        with pytest.raises(kg.SingularError, match="redundant"):
            kg.constrained_dynamics_hessian(model, held, *state)
        check_by_differences(model, held, state, weights(model, held, seed), rng, redundant="least-squares")

    @pytest.mark.parametrize("method", ["range-space", "null-space", "direct"])
    def test_rows_of_a_long_lever_said_twice(self, method):
        """Beside others: accelerations are those of the rows said once, and so are sums of the forces of both.

        Rows are nearly dependent, 6e-4 apart; what rounding leaves of those that are met is not to be taken for a
        contradiction, which made 1e-6 of it.  Seen: 4e-9, by which methods differ for rows that are said once, too.
        """
        arm = samples.puma560()
        hand, far = arm.link_names[-1], [100.0, 50.0, -33.0]
        once = [kg.Contact(hand, far, name="far"), kg.Contact(hand, [0.1, 0.2, 0.05], directions="xy", name="near")]
        twice = kg.ConstraintSet(arm, [*once, kg.Contact(hand, far, directions="xz", name="again")])
        state, w_a = np.random.default_rng(3).normal(size=(3, 6)), np.arange(6.0)
        plain = kg.constrained_dynamics_hessian(
            arm, kg.ConstraintSet(arm, once), *state, w_a=w_a, w_forces=[1, 2, 3, 4, 5], stabilisation=LAW
        )
        least = kg.constrained_dynamics_hessian(
            arm, twice, *state, w_a=w_a, w_forces=[1, 2, 3, 4, 5, 1, 3], stabilisation=LAW, method=method,
            redundant="least-squares",
        )  # fmt: skip
        for name in BLOCKS:
            x, y = getattr(plain, name), getattr(least, name)
            np.testing.assert_allclose(y, x, rtol=0, atol=3e-8 * np.abs(x).max())

    def test_independent_rows_and_batches(self):
        """The same as without, to rounding; the same bits alone and in a batch."""
        model, held, q, v, tau = random_case(3, states=4)
        w_a, w_forces = np.ones(model.n), np.random.default_rng(5).normal(size=(2, 1, held.m))
        given = {"w_a": w_a, "w_forces": w_forces, "stabilisation": LAW}
        plain, whole = (
            kg.constrained_dynamics_hessian(model, held, q, v, tau, **given, redundant=way)
            for way in ("error", "least-squares")
        )
        given["w_forces"] = w_forces[1, 0]
        one = kg.constrained_dynamics_hessian(model, held, q[2], v[2], tau[2], **given, redundant="least-squares")
        for name in BLOCKS:
            x, y = getattr(plain, name), getattr(whole, name)
            assert x.shape == (2, 4, model.n, model.n)
            np.testing.assert_allclose(y, x, rtol=0, atol=1e-11 * np.abs(x).max())
            np.testing.assert_array_equal(y[1, 2], getattr(one, name))


def test_refused():
    arm, zero = samples.two_link(), [0.3, 0.4]
    tip = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    with pytest.raises(InputError, match=r"`w_forces` has shape \(2,\)"):
        kg.constrained_dynamics_hessian(arm, tip, zero, zero, zero, w_forces=[1, 2])
    with pytest.raises(InputError, match="`w_a`"):
        kg.constrained_dynamics_hessian(arm, tip, zero, zero, zero, w_a=[np.inf, 0])
    with pytest.raises(InputError, match="not finite"):
        kg.constrained_dynamics_hessian(arm, tip, zero, [1e160, 1], zero, w_a=[1e10, 0])
    both = kg.ConstraintSet(arm, [kg.Contact("forearm", name=x, directions="y") for x in ("one", "two")])
    with pytest.raises(kg.SingularError, match="redundant"):
        kg.constrained_dynamics_hessian(arm, both, zero, zero, zero, w_a=[1, 0])
    with pytest.raises(InputError, match="`redundant`"):
        kg.constrained_dynamics_hessian(arm, both, zero, zero, zero, w_a=[1, 0], redundant="any")
