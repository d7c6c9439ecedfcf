"""Second derivatives of inverse dynamics: two routes against each other, complex step of the exact first derivatives,
formulas on paper; then identities and zeros."""

import re
from functools import partial

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, samples
from kinegrad._engine import memory
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import random_loads, random_state, tree
from tests.kernels.child import child, output
from tests.mixed import mixed_loads, mixed_state, mixed_tree

# Sums of some hundred terms, each right to a few 1e-16 of the largest; 2e-14 is the worst seen, on a chain of 500.
CLOSE = 1e-12
BLOCKS = {"d2_dqdq": (0, 0), "d2_dqdv": (0, 1), "d2_dqda": (0, 2), "d2_dvdv": (1, 1)}
FIRST = ("tau", "dtau_dq", "dtau_dv", "dtau_da")
MODELS = {"puma560": samples.puma560, "human43": samples.human43, "cart_pendulum": samples.cart_pendulum}


def weights(model, seed=0, batch=()):
    return np.random.default_rng([seed, 3]).normal(size=(*batch, model.nv))


def sizes(model, state, w, loads):
    """What entries of each block are of the size of: first derivatives, times the weights, per radian.

    A block may be exactly zero in theory, and rounding in practice; and then its largest entry is no measure.
    """
    d = kg.inverse_dynamics_derivatives(model, *state, loads=loads)
    by_q, by_v, by_a = (np.abs(getattr(d, name)).max() * np.abs(w).max() for name in FIRST[1:])
    by_v = max(by_v, by_a * np.abs(state[1]).max())
    return {"d2_dqdq": by_q, "d2_dqdv": by_v, "d2_dqda": by_a, "d2_dvdv": by_a}


def assert_blocks_close(found, expected, size, tolerance=CLOSE):
    for name in BLOCKS:
        x, y = getattr(found, name), expected[name]
        assert x.shape == y.shape
        scale = max(np.abs(y).max(initial=0.0), size[name])
        error = np.abs(x - y).max(initial=0.0)
        assert error <= tolerance * scale, f"{name}: {error / scale:.1e} of the largest; expected {tolerance:.0e}"


def by_products(model, q, v, a, w, loads=None, method="dual"):
    """The blocks, column by column, from products of one state with unit vectors."""
    n = model.nv
    unit = np.eye(3 * n).reshape(3 * n, 3, n)
    d = kg.inverse_dynamics_hvp(model, q, v, a, w, unit[:, 0], unit[:, 1], unit[:, 2], loads=loads, method=method)
    whole = np.stack([d.dq, d.dv, d.da]).reshape(3, 3, n, n).swapaxes(-1, -2)  # gradient, direction; row, column
    found = {name: whole[i, j] for name, (i, j) in BLOCKS.items()}
    rest = np.abs(whole[1:, 2]).max(), np.abs(whole[2, 1:]).max()
    assert not any(rest), "by v and a, and by a twice, there is nothing"
    return found


# --- by other routes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("loaded", [False, True])
def test_duals_through_the_reverse_sweep(name, loaded):
    """Which share nothing with the factors but the joint's constants."""
    model = MODELS[name]()
    state, w = random_state(model), weights(model)
    loads = random_loads(model) if loaded else None
    found = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    assert_blocks_close(found, by_products(model, *state, w, loads), sizes(model, state, w, loads))


def test_duals_on_random_trees():
    """200 trees of all kinds of joints, every second one under loads; springs, dampers and rotors everywhere."""
    for seed in range(200):
        model = tree(seed, largest=8)
        state, w = random_state(model, seed), weights(model, seed)
        loads = random_loads(model, seed) if seed % 2 else None
        found, size = kg.inverse_dynamics_hessian(model, *state, w, loads=loads), sizes(model, state, w, loads)
        for method in ("dual", "spatial"):
            assert_blocks_close(found, by_products(model, *state, w, loads, method), size)


COMPLEX_STEP = """
import sys
import numpy as np
from kinegrad import _engine as engine
from kinegrad._engine import memory
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.rnea_derivatives import rnea_derivatives
from tests.test_dynamics_hessian import stepped

h = 1e-30
results = {}
for name, model, state, w, loads in stepped():
    n = model.n
    rows = 3 * n  # a row for each direction
    q, v, a = (np.repeat(x[None].astype(complex), rows, axis=0) for x in state)
    for k, x in enumerate((q, v, a)):
        x[k * n : (k + 1) * n] += 1j * h * np.eye(n)
    given = [np.empty((0, 3 * n))] * 3 if loads is None else [x.reshape(1, -1) for x in loads.arrays(model).values()]
    tables, slots = engine.torque_tables(model, "dense", loads is not None, False)
    out = [np.empty((rows, columns), complex) for columns in (n, n * n, n * n, n * n)]
    scratch = np.full((slots, WIDTH), np.nan, complex)
    rnea_derivatives(engine.mechanism(model), q, v, a, *given, *tables, *out, scratch, 0, rows)
    second = [x.imag.reshape(3, n, n, n) / h for x in out[1:]]  # direction; of it, torque, by
    results[name] = np.stack([np.einsum("k,djki->dij", w, x) for x in second])
np.savez(sys.argv[1], **results)
"""


def stepped():
    """Name, model, state, weights and loads of what the child process differentiates: samples, and 200 trees of all
    kinds of joints."""
    models = {name: make() for name, make in MODELS.items()} | {f"tree {x}": tree(x, largest=6) for x in range(200)}
    for number, (name, model) in enumerate(models.items()):
        loads = random_loads(model, number) if number % 2 else None
        yield name, model, random_state(model, number), weights(model, number), loads


@pytest.mark.slow
def test_complex_step_of_the_first_derivatives(tmp_path):
    """The kernel of ∂τ on complex numbers, in plain Python: exact but for rounding."""
    output(child(COMPLEX_STEP, tmp_path / "second.npz", NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="16"))
    second = np.load(tmp_path / "second.npz")
    for name, model, state, w, loads in stepped():
        whole = second[name]
        expected = {block: whole[i, j] for block, (i, j) in BLOCKS.items()}
        found, size = kg.inverse_dynamics_hessian(model, *state, w, loads=loads), sizes(model, state, w, loads)
        assert_blocks_close(found, expected, size)
        for i, j in ((1, 2), (2, 2)):
            assert np.abs(whole[i, j]).max() <= CLOSE * size["d2_dqda"]


def test_two_link_arm_on_paper():
    """Of the Lagrangian of two links in a plane: with c₂ = cos q₂ and s₂ = sin q₂, terms of τ₁ and τ₂ by hand."""
    m, l, c, moment = 2.0, 0.7, 0.3, 0.05
    builder = kg.ModelBuilder("arm", gravity=(0, -9.81, 0))
    upper = builder.add("shoulder", None, kg.revolute("z"), link="upper", tip=kg.translate(l, 0, 0))
    body = Inertia(m, [c, 0, 0], np.diag([0.0, moment, moment]))
    builder.add("elbow", upper, kg.revolute("z"), link="fore", inertia=body)
    model = builder.build()
    q, v, a, w = np.array([0.4, 0.9]), np.array([1.3, -0.6]), np.array([0.8, 2.1]), np.array([0.7, -1.9])
    k, s2, c2, g = m * l * c, np.sin(q[1]), np.cos(q[1]), 9.81
    found = kg.inverse_dynamics_hessian(model, q, v, a, w)
    # τ₁ = … + k c₂ (2a₁ + a₂) − k s₂ (2v₁v₂ + v₂²) + m g (l cos q₁ + c cos(q₁+q₂)),  τ₂ = … + k c₂ a₁ + k s₂ v₁² + …
    both = -m * g * c * np.cos(q[0] + q[1]) * w.sum()
    upper = both - m * g * l * np.cos(q[0]) * w[0]
    elbow = w[0] * (-k * c2 * (2 * a[0] + a[1]) + k * s2 * (2 * v[0] * v[1] + v[1] ** 2))
    elbow += w[1] * (-k * c2 * a[0] - k * s2 * v[0] ** 2)
    np.testing.assert_allclose(found.d2_dqdq, [[upper, both], [both, both + elbow]], rtol=1e-13)
    speeds = [-2 * k * c2 * w[0] * v[1] + 2 * k * c2 * w[1] * v[0], -2 * k * c2 * w[0] * (v[0] + v[1])]
    np.testing.assert_allclose(found.d2_dqdv, [[0, 0], speeds], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.d2_dqda, [[0, 0], [-k * s2 * (2 * w[0] + w[1]), -k * s2 * w[0]]], rtol=1e-13)
    corner = -2 * k * s2 * w[0]
    np.testing.assert_allclose(found.d2_dvdv, [[2 * k * s2 * w[1], corner], [corner, corner]], rtol=1e-13)


# --- identities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_everything_at_once(name, loaded, packed):
    """τ and ∂τ as by their own function, ∂² to rounding as alone: sums are shared, and their order may differ."""
    model = MODELS[name]()
    state, w = random_state(model, 1, (5,)), weights(model, 1, (5,))
    options = {"loads": random_loads(model, 1, (5,)) if loaded else None, "packed": packed}
    both = kg.inverse_dynamics_second_order(model, *state, w, **options)
    for kind in (
        kg.inverse_dynamics_derivatives(model, *state, **options),
        kg.inverse_dynamics_hessian(model, *state, w, **options),
    ):
        for field, x in vars(kind).items():
            x, y = (getattr(x, "values", x) for x in (x, getattr(both, field)))
            np.testing.assert_allclose(y, x, rtol=0, atol=4e-15 * np.abs(x).max())


def test_symmetric_and_linear_in_the_weights():
    model = samples.human43()
    state, (w, x) = random_state(model), weights(model, 2, (2,))
    loads = random_loads(model)
    one, other, total = (kg.inverse_dynamics_hessian(model, *state, y, loads=loads) for y in (w, x, 2 * w - x))
    for name in BLOCKS:
        expected = 2 * getattr(one, name) - getattr(other, name)
        np.testing.assert_allclose(getattr(total, name), expected, rtol=0, atol=CLOSE * np.abs(expected).max())
    for block in (one.d2_dqdq, one.d2_dvdv):
        np.testing.assert_array_equal(block, block.T)


@pytest.mark.parametrize("method", ["spatial", "dual"])
def test_products_with_vectors(method):
    """Several states, and several directions of one state."""
    model = samples.human43()
    state, w, d = random_state(model, 4, (3,)), weights(model, 4, (3,)), random_state(model, 5, (3,))
    loads = random_loads(model, 4, (3,))
    H = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    found = kg.inverse_dynamics_hvp(model, *state, w, *d, loads=loads, method=method)

    def times(matrix, x):
        return np.einsum("...ij,...j->...i", matrix, x)

    def back(matrix, x):
        return np.einsum("...ij,...i->...j", matrix, x)

    dq, dv, da = d
    np.testing.assert_allclose(
        found.dq, times(H.d2_dqdq, dq) + times(H.d2_dqdv, dv) + times(H.d2_dqda, da), rtol=1e-12, atol=1e-10
    )
    np.testing.assert_allclose(found.dv, back(H.d2_dqdv, dq) + times(H.d2_dvdv, dv), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.da, back(H.d2_dqda, dq), rtol=1e-12, atol=1e-11)
    first = [x[0] for x in (*state, w)]
    several = kg.inverse_dynamics_hvp(model, *first, *d, method=method)
    for k in range(3):
        one = kg.inverse_dynamics_hvp(model, *first, *(x[k] for x in d), method=method)
        for field in ("dq", "dv", "da"):
            np.testing.assert_array_equal(getattr(several, field)[k], getattr(one, field))


def hinges(kinds, seed):
    """A trunk and two branches of joints that turn (r), slide (p) or screw (h), each kind given by its letter: after a
    bar the joint is away from the one before, and before a dot its link has mass."""
    rng, builder, trunk = np.random.default_rng(seed), kg.ModelBuilder(), None
    for branch in range(3):
        last = trunk
        for k, (bar, kind, dot) in enumerate(re.findall(r"(\|?)([rph])(\.?)", kinds)):
            axis, shift, com, A = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 3))
            joint = {"r": kg.revolute, "p": kg.prismatic, "h": partial(kg.screw, pitch=0.3)}[kind](axis)
            body = (1.0, 0.1 * com, np.trace(A @ A.T) * np.eye(3) - A @ A.T) if dot else None
            last = builder.add(f"{branch}.{k}", last, joint, placement=shift if bar else None, inertia=body)
        trunk = trunk or last
    return builder.build()


@pytest.mark.parametrize("kinds", ["rrr.", "r.rrr.", "|r|rr.|rrr.", "ppprrr.", "rprpr.", "hrhr.|rr.", "rr", "rrrrrrr."])
def test_products_where_links_have_no_mass(kinds):
    """Links between joints about one point, of which some slide, branch, or carry nothing, or a load."""
    assert_products_agree(hinges(kinds, seed=len(kinds)))


@pytest.mark.parametrize("kinds", ["rrr", "prp", "hrh"])
@pytest.mark.parametrize("base", [0.0, np.pi / 2, np.pi])
@pytest.mark.parametrize("tilt", [0.0, 1e-300, 1e-17, 1e-16, 1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1.5e-8, 1e-5, 0.3])
@pytest.mark.parametrize("way", [1, -1])
def test_products_about_axes_of_all_angles(kinds, base, tilt, way):
    """Parallel, at right angles, opposite, and almost so: joint frames have angles that parallel axes leave open."""
    rng, builder, last = np.random.default_rng(5), kg.ModelBuilder(), None
    for k in range(7):
        azimuth, angle, sign = rng.uniform(0, 7), (base if k % 2 else 0.0) + tilt, way if k % 2 else 1
        side = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        axis, place = sign * np.array([0.0, 0.0, 1.0]), kg.translate(*rng.normal(size=3))
        if k < 4:  # by the axis, or by the placement
            axis = sign * (np.sin(angle) * side + np.cos(angle) * axis)
        else:
            place = place @ kg.rotate(side, angle)
        joint = {"r": kg.revolute, "p": kg.prismatic, "h": partial(kg.screw, pitch=0.3)}[kinds[k % 3]](axis)
        parent = None if k == 0 else "0" if k == 5 else last  # two children of the first
        body = Inertia.box(1.0, rng.uniform(0.1, 1, size=3), com=rng.normal(size=3))
        last = builder.add(f"{k}", parent, joint, placement=place, inertia=body)
    assert_products_agree(builder.build())


def assert_products_agree(model):
    """By both methods, with loads and without."""
    x = np.random.default_rng(1).normal(size=(7, 2 * WIDTH + 1, model.n))
    for loads in (None, random_loads(model, 2, (len(x[0]),))):
        found, expected = (vars(kg.inverse_dynamics_hvp(model, *x, loads=loads, method=m)) for m in ("spatial", "dual"))
        for name, y in expected.items():
            np.testing.assert_allclose(found[name], y, rtol=0, atol=1e-13 * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("digits", [10, 12])
def test_products_where_rotations_are_rounded(digits):
    """As files print them.  Products take rotations for angles, the Hessian takes them for matrices: both agree only
    where matrices are rotations."""
    rng, builder, last, n = np.random.default_rng(3), kg.ModelBuilder(), None, 40
    for k in range(n):
        place = np.round(kg.translate(0.3, 0.1, 0.2) @ kg.rotate([1.0, 2.0, 3.0], 0.7 + k), digits)
        tip = np.round(kg.rotate(rng.normal(size=3), 1.0), digits)
        body = Inertia.box(1.0, [0.2, 0.3, 0.4], com=[0.1, 0.05, 0.02])
        last = builder.add(f"{k}", last, kg.revolute("z"), placement=place, tip=tip, inertia=body)
    model, (q, v, a, w) = builder.build(), rng.normal(size=(4, n))
    hessian = kg.inverse_dynamics_hessian(model, q, v, a, w)
    size = sizes(model, (q, v, a), w, None)
    for method in ("spatial", "dual"):
        assert_blocks_close(hessian, by_products(model, q, v, a, w, method=method), size, 1e-13)


@pytest.mark.parametrize("n", [2, WIDTH, 19])
@pytest.mark.parametrize("count", [1, 3, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH - 1])
def test_products_of_a_state_do_not_depend_on_the_others(n, count):
    """The last states of a batch, which some lanes do twice, and arguments that are the same for all states."""
    model = samples.spatial_chain(n) if n == WIDTH else samples.random_tree(n, seed=n)
    x = np.random.default_rng([n, count]).normal(size=(7, count, n))
    for loads in (None, random_loads(model, seed=count, batch=(count,))):
        for shared in ((), (3,), (0, 4, 5, 6)):
            given = [y[:1] if k in shared else y for k, y in enumerate(x)]
            found = vars(kg.inverse_dynamics_hvp(model, *given, loads=loads))
            for k in range(count):
                own = None if loads is None else kg.Loads(loads.force[k], loads.point[k], loads.torque[k])
                one = kg.inverse_dynamics_hvp(model, *(y[min(k, len(y) - 1)] for y in given), loads=own)
                for name, expected in vars(one).items():
                    assert found[name][k].tobytes() == expected.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_tensors_contracted(seed):
    model = tree(seed) if seed else mixed_tree(1)
    state = random_state(model, seed, (2,)) if seed else mixed_state(model, 0, (2,))
    loads = random_loads(model, seed, (2,)) if seed else mixed_loads(model)
    w = weights(model, seed, (2,))
    tensors = kg.inverse_dynamics_hessian_tensors(model, *state, loads=loads)
    H = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    for name in BLOCKS:
        tensor = getattr(tensors, name.replace("d2_", "d2tau_"))
        assert tensor.shape == (2, model.nv, model.nv, model.nv)
        found, expected = np.einsum("bk,bkij->bij", w, tensor), getattr(H, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * max(1, np.abs(expected).max()))


def test_zeros_of_topology():
    """Joints on different paths; rows q of root joints by v and a; chains of sliders from the world on."""
    model = samples.human43()
    H = kg.inverse_dynamics_hessian(model, *random_state(model), weights(model))
    apart = np.ones((model.n, model.n), bool)
    apart[model.topology.pattern.rows, model.topology.pattern.cols] = False
    sliding = [i for i in range(3) if model.joints[i].kind == "prismatic"]
    assert apart.any()
    assert sliding == [0, 1, 2]
    for name in BLOCKS:
        assert not getattr(H, name)[apart].any()
    for x in (H.d2_dqdq[sliding], H.d2_dqdq[:, sliding], H.d2_dqdv[sliding], H.d2_dqdv[:, sliding]):
        assert not x.any()
    for x in (H.d2_dqda[sliding], H.d2_dvdv[sliding], H.d2_dvdv[:, sliding]):
        assert not x.any()
    assert H.d2_dqda[:, sliding].any()
    puma = samples.puma560()
    H = kg.inverse_dynamics_hessian(puma, *random_state(puma), weights(puma))
    assert not H.d2_dqdv[0].any()
    assert not H.d2_dqda[0].any()


def test_packed_are_the_same_bits():
    model = samples.human43()
    state, w, loads = random_state(model, 1, (7,)), weights(model, 1, (7,)), random_loads(model, 1, (7,))
    dense = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    packed = kg.inverse_dynamics_hessian(model, *state, w, loads=loads, packed=True)
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(packed, name).to_dense(), getattr(dense, name))
    second = kg.inverse_dynamics_second_order(model, *state, w, loads=loads)
    packed = kg.inverse_dynamics_second_order(model, *state, w, loads=loads, packed=True)
    for name in (*FIRST[1:], *BLOCKS):
        np.testing.assert_array_equal(getattr(packed, name).to_dense(), getattr(second, name))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n", [3, 7, 10])
def test_results_past_the_caches_are_the_same_bits(monkeypatch, packed, n):
    """Rows of 9, 49 and 100 numbers, which stand differently in memory; whole groups of blocks and a rest."""
    model = samples.random_tree(n, seed=n)
    state, w, loads = random_state(model, 1, (77,)), weights(model, 1, (77,)), random_loads(model, 1, (77,))
    for function in (kg.inverse_dynamics_hessian, kg.inverse_dynamics_second_order):
        found = []
        for setting in ("0", "1"):
            monkeypatch.setattr(memory, "_STREAM", setting)
            found.append(function(model, *state, w, loads=loads, packed=packed))
        assert found[0] == found[1]


# --- coordinates that are not joints ------------------------------------------------------------------------------


def along(model, q, v, a, step):
    """The state moved by a step (δ, dv, da)."""
    return kg.integrate(model, q, step[0]), v + step[1], a + step[2]


@pytest.mark.parametrize("seed", range(4))
def test_couplings_and_quaternions_by_differences(seed):
    """Of φ(q ⊕ δ) itself, along directions, of order 6: they err by some h⁶ = 1e-14 and by ε/h² = 1e-11 of what φ is,
    as long as no knot of a spline is crossed, where f‴ jumps."""
    model = mixed_tree(seed)
    state, w, rng = mixed_state(model, seed), weights(model, seed), np.random.default_rng(seed)
    loads = mixed_loads(model, seed) if seed % 2 else None
    H = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    np.testing.assert_array_equal(H.d2_dqdq, H.d2_dqdq.swapaxes(-1, -2))
    h = 0.005
    for _ in range(6):
        d = rng.normal(size=(3, model.nv))
        steps = np.arange(-3, 4)[:, None, None] * h * d
        moved = [along(model, *state, step) for step in steps]
        phi = [w @ kg.inverse_dynamics(model, *x, loads=loads) for x in moved]
        expected = np.dot([2, -27, 270, -490, 270, -27, 2], phi) / (180 * h * h)
        dq, dv, da = d
        found = dq @ H.d2_dqdq @ dq + 2 * dq @ H.d2_dqdv @ dv + 2 * dq @ H.d2_dqda @ da + dv @ H.d2_dvdv @ dv
        scale = max(np.abs(phi).max(), abs(expected))
        assert abs(found - expected) < 1e-9 * scale
        change = kg.inverse_dynamics_hvp(model, *state, w, *d, loads=loads)
        np.testing.assert_allclose(dq @ change.dq + dv @ change.dv + da @ change.da, found, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_couplings_by_differences_of_the_gradient(seed):
    """Every entry; without quaternions, where the gradient is taken in frames that turn."""
    model = mixed_tree(seed, kinds="rpsc")
    q, v, a = mixed_state(model, seed)
    w, loads = weights(model, seed), mixed_loads(model, seed)
    h, n = 1e-3, model.nv
    steps = h * np.arange(-2, 3)[:, None, None, None] * np.eye(3 * n).reshape(3 * n, 3, n)
    x = kg.inverse_dynamics_vjp(model, q + steps[..., 0, :], v + steps[..., 1, :], a + steps[..., 2, :], w, loads=loads)
    gradient = np.stack([x.dq, x.dv, x.da], axis=2)
    slope = np.einsum("s,sdxi->dxi", np.array([1, -8, 0, 8, -1]) / (12 * h), gradient).reshape(3, n, 3, n)
    H = kg.inverse_dynamics_hessian(model, q, v, a, w, loads=loads)
    size = sizes(model, (q, v, a), w, loads)
    for name, (i, j) in BLOCKS.items():
        expected = slope[i, :, j]
        error = np.abs(getattr(H, name) - expected).max()
        assert error < 1e-8 * max(np.abs(expected).max(), size[name])
    for i, j in ((1, 2), (2, 1), (2, 2)):
        assert np.abs(slope[i, :, j]).max() < 1e-8 * size["d2_dqda"]


@pytest.mark.parametrize("seed", range(3))
def test_coordinates_by_all_routes(seed):
    """Products by both methods, packed, all at once, one state of a batch."""
    model = mixed_tree(seed)
    state, w, loads = mixed_state(model, seed, (3,)), weights(model, seed), mixed_loads(model, seed)
    H = kg.inverse_dynamics_hessian(model, *state, w, loads=loads)
    one = kg.inverse_dynamics_hessian(model, *(x[1] for x in state), w, loads=loads)
    both = kg.inverse_dynamics_second_order(model, *state, w, loads=loads)
    packed = kg.inverse_dynamics_hessian(model, *state, w, loads=loads, packed=True)
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(H, name)[1], getattr(one, name))
        np.testing.assert_array_equal(getattr(H, name), getattr(both, name))
        np.testing.assert_array_equal(getattr(H, name), getattr(packed, name).to_dense())
    first = kg.inverse_dynamics_derivatives(model, *state, loads=loads)
    for name in FIRST:
        np.testing.assert_array_equal(getattr(both, name), getattr(first, name))
    size = sizes(model, state, w, loads)
    for method in ("spatial", "dual"):
        columns = by_products(model, *(x[1] for x in state), w, loads, method)
        assert_blocks_close(one, columns, size)
    many = kg.inverse_dynamics_second_order(model, *(x[0] for x in state), np.stack([w, 2 * w]), loads=loads)
    assert many.tau.shape == (2, model.nv)


# --- force elements -----------------------------------------------------------------------------------------------


def sprung(model):
    """With a strap and a mount between distant links."""
    first, *_, last = model.link_names
    strap = kg.SpringDamper(last, [0.1, 0.2, 0.3], first, [0.5, 0.0, 0.2], 20.0, 1.0, 0.3)
    mount = kg.Bushing(last, [0.1, 0.0, 0.2], None, kg.rotate("x", 0.4), np.arange(1.0, 7.0), np.ones(6))
    return model.replace(elements={"strap": strap, "mount": mount})


@pytest.mark.parametrize("which", ["puma560", "tree", "coordinates"])
def test_force_elements(which):
    """Whose second derivatives are duals of their gradients, against differences of φ, as above."""
    bare = {"puma560": samples.puma560, "tree": lambda: tree(6), "coordinates": lambda: mixed_tree(2)}[which]()
    model = sprung(bare)
    state = mixed_state(model, 3, (2,)) if which == "coordinates" else random_state(model, 3, (2,))
    w, rng, h = weights(model, 3), np.random.default_rng(3), 0.005
    H, without = (kg.inverse_dynamics_hessian(x, *state, w) for x in (model, bare))
    assert np.abs(H.d2_dqdq - without.d2_dqdq).max() > 0.1
    np.testing.assert_array_equal(H.d2_dqda, without.d2_dqda)
    both = kg.inverse_dynamics_second_order(model, *state, w)
    first = kg.inverse_dynamics_derivatives(model, *state)
    for name in (*BLOCKS, *FIRST):
        expected = getattr(first if name in FIRST else H, name)
        np.testing.assert_allclose(getattr(both, name), expected, rtol=0, atol=4e-15 * np.abs(expected).max())
    for function, dense in ((kg.inverse_dynamics_hessian, H), (kg.inverse_dynamics_second_order, both)):
        packed = function(model, *state, w, packed=True)
        for name in vars(dense):
            if name != "tau":
                np.testing.assert_array_equal(getattr(packed, name).to_dense(), getattr(dense, name))
    for _ in range(3):
        d = dq, dv, da = rng.normal(size=(3, model.nv))
        moved = [along(model, *(x[1] for x in state), k * h * d) for k in range(-3, 4)]
        phi = [w @ kg.inverse_dynamics(model, *x) for x in moved]
        expected = np.dot([2, -27, 270, -490, 270, -27, 2], phi) / (180 * h * h)
        by_q, by_v = H.d2_dqdq[1] @ dq + 2 * H.d2_dqdv[1] @ dv + 2 * H.d2_dqda[1] @ da, H.d2_dvdv[1] @ dv
        scale = max(np.abs(phi).max(), abs(expected))
        assert abs(dq @ by_q + dv @ by_v - expected) < 1e-8 * scale
        for method in ("spatial", "dual"):
            x = kg.inverse_dynamics_hvp(model, *state, w, *d, method=method)
            np.testing.assert_allclose((x.dq @ dq + x.dv @ dv + x.da @ da)[1], dq @ by_q + dv @ by_v, rtol=1e-10)
