"""Mixed second derivatives by motion and design: complex step of the exact gradient by parameters, the oracle with
constants stepped into the complex plane, differences where coordinates are not joints; then what is refused."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, InputError, samples
from tests.conftest import parts, random_loads, random_state, some_now, tree
from tests.design.stepped import kinds_of_constants
from tests.design.stepped import stepped as with_steps
from tests.kernels.child import child, output
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.reference import elements, oracle

CLOSE = 1e-12  # of the largest number of its kind of constant
FIELDS = ("d2_dqdp", "d2_dvdp", "d2_dadp")
SIXTH = np.array([-1, 9, -45, 45, -9, 1]) / 60
STEPS = (-3, -2, -1, 1, 2, 3)

COMPLEX_STEP = """
import sys
import numpy as np
from kinegrad._kernels import rnea_reverse
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad.design.parameters import kernel_constants, sparse_slopes
from tests.design.test_hessian import stepped

h, results = 1e-30, {}
for name, design, state, w in stepped():
    model = design.model
    n, rows = model.n, 3 * model.n  # a row for each direction
    q, v, a = (np.repeat(x[None].astype(complex), rows, axis=0) for x in state)
    for which, x in enumerate((q, v, a)):
        x[which * n : (which + 1) * n] += 1j * h * np.eye(n)
    given = [x.reshape(1, -1) for x in design.loads.arrays(model).values()]
    gradient = np.zeros((rows, rnea_reverse.columns(n, True)), complex)
    scratch = np.full(((n + 1) * rnea_reverse.N, WIDTH), np.nan, complex)
    rnea_reverse.by_constants(kernel_constants(design), q, v, a, w[None], *given, gradient, scratch, 0, rows)
    results[name] = (sparse_slopes(design) @ gradient.T.imag).T.reshape(3, n, -1) / h
np.savez(sys.argv[1], **results)
"""


def stepped():
    """Name, design, state and weights of what the child process differentiates."""
    models = {f"tree {seed}": tree(seed) for seed in range(6)}
    models |= {"human43": samples.human43(), "puma560": samples.puma560()}
    for number, (name, model) in enumerate(models.items()):
        rng, loads = np.random.default_rng([number, 9]), random_loads(model, number)
        link = model.link_names[-1]
        names = [
            *kinds_of_constants(model, rng),
            f"{link}.load.force.x",
            f"{link}.load.point.y",
            f"{link}.load.torque.z",
        ]
        yield name, Design(model, names, loads=loads), random_state(model, number), rng.normal(size=model.n)


@pytest.mark.slow
def test_complex_step_of_the_gradient_by_parameters(tmp_path):
    """The reverse sweep by constants on complex states, in plain Python: exact but for rounding."""
    output(child(COMPLEX_STEP, tmp_path / "second.npz", NUMBA_DISABLE_JIT="1", KINEGRAD_LANES="16"))
    second = np.load(tmp_path / "second.npz")
    for name, design, state, w in stepped():
        found = kg.inverse_dynamics_design_hessian(design, *state, w)
        size = np.abs(second[name]).max()
        for field, expected in zip(FIELDS, second[name], strict=True):
            scale = np.maximum(np.abs(expected).max(axis=0), 1e-3 * size)
            error = np.abs(getattr(found, field) - expected).max(axis=0) / scale
            assert error.max() <= CLOSE, f"{name} {field}: {error.max():.1e} by {design.names[error.argmax()]}"


def test_against_the_oracle():
    """∂τ/∂p of the oracle, exact by complex constants, and differences of it along the motion."""
    for seed in range(3):
        model = tree(seed, largest=5)
        names, loads = kinds_of_constants(model, np.random.default_rng([seed, 9])), random_loads(model, seed)
        state, rng, h = random_state(model, seed), np.random.default_rng(seed), 0.01
        w, *along = rng.normal(size=(4, model.n))
        found = kg.inverse_dynamics_design_hessian(Design(model, names), *state, w, loads=loads)
        total = sum(d @ getattr(found, field) for d, field in zip(along, FIELDS, strict=True))
        for k, name in enumerate(names):
            varied = with_steps(model, **{name: 1.0})
            moved = [[x + s * h * d for x, d in zip(state, along, strict=True)] for s in STEPS]
            slopes = [np.imag(w @ oracle.regular_lagrangian(varied, *x, *parts(loads))) / oracle.STEP for x in moved]
            expected = SIXTH @ slopes / h
            assert abs(total[k] - expected) <= 1e-8 * max(np.abs(slopes).max(), 1e-3 * np.abs(total).max()), name


def check_by_differences(design, state, w, loads=None, h=0.003):
    """Along directions, of the exact gradient by parameters."""
    model, rng = design.model, np.random.default_rng(3)
    found = kg.inverse_dynamics_design_hessian(design, *state, w, loads=loads)
    q, v, a = state
    for _ in range(3):
        dq, dv, da = along = rng.normal(size=(3, model.nv))
        along /= np.abs(along).max()
        gradients = [
            kg.inverse_dynamics_design_vjp(
                design, kg.integrate(model, q, s * h * dq), v + s * h * dv, a + s * h * da, w, loads=loads
            )
            for s in STEPS
        ]  # fmt: skip
        expected = SIXTH @ gradients / h
        total = sum(d @ getattr(found, field) for d, field in zip(along, FIELDS, strict=True))
        scale = np.maximum(np.abs(gradients).max(axis=0), 1e-3 * np.abs(expected).max())
        assert np.all(np.abs(total - expected) <= 1e-8 * scale), [*zip(design.names, total - expected, strict=True)]
    check_by_two_parameters(design, state, w, loads, found.d2_dpdp)


def check_by_two_parameters(design, state, w, loads, found, h=0.003):
    """Differences of the exact gradient, between designs."""
    np.testing.assert_array_equal(found, found.T)
    gradient = kg.inverse_dynamics_design_vjp(design, *state, w, loads=loads)
    for k, name in enumerate(design.names):
        step = h * (np.arange(design.p) == k) * max(1.0, abs(design.values[k]))
        gradients = [
            kg.inverse_dynamics_design_vjp(design.at(design.values + s * step), *state, w, loads=loads) for s in STEPS
        ]
        expected = SIXTH @ gradients / step[k]
        scale = np.abs(gradients).max(axis=0) + 1e-3 * np.abs(gradient).max() + np.abs(found).max()
        assert np.all(np.abs(found[k] - expected) <= 1e-9 * scale), name


@pytest.mark.parametrize("seed", some_now(range(4), 2))
def test_couplings_quaternions_and_elements(seed):
    """Dampers of balls too, which resist ω whatever the chart is."""
    model = mixed_tree(seed)
    loads, sprung = mixed_loads(model, seed) if seed % 2 else None, seed > 1
    if sprung:
        model = model.replace(elements=elements.random_elements(model, seed))
    names = [f"{link}.{what}" for link in ("l1", "l3") for what in ("mass", "com.y", "inertia.xz")]
    hinges = [first + k for first, _, _ in model.layout.balls for k in range(3, 6)]
    inner = {k for first, _, _ in model.layout.balls for k in range(first, first + 6)}
    free = [joint for k, joint in enumerate(model.joint_names) if k not in inner]
    names += [f"{model.joint_names[k]}.damping" for k in hinges]
    names += [f"{free[-1]}.{what}" for what in ("damping", "stiffness", "placement.x", "tip.z")]
    if sprung:
        names += [f"{name}.{x.constants[0]}" for name, x in model.elements.items()]
    assert hinges
    w = np.random.default_rng(seed).normal(size=model.nv)
    check_by_differences(Design(model, names), mixed_state(model, seed), w, loads)


def test_elements_of_joints():
    """Constants of elements, and geometry between their links."""
    model = tree(3, largest=7)
    model = model.replace(elements=elements.random_elements(model, 3))
    names = [f"{name}.{x}" for name, one in model.elements.items() for x in one.constants[:4]]
    names += [f"{joint}.placement.y" for joint in model.joint_names]
    check_by_differences(Design(model, names), random_state(model, 3), np.ones(model.n), h=0.002)


def bent_arm(length, tilt, mass, pull):
    """Parameters in every place, none of them linear, loads too."""
    arm = samples.spatial_chain(3, length=1.0 + 0.3 * length**2, mass=0.5 + mass**2)
    turned = arm.placement[1] @ kg.rotate("x", tilt**2) @ kg.translate(0.1 * length * tilt, 0.2, 0.0)
    placement = np.array([arm.placement[0] + 0.0 * turned, turned, arm.placement[2] + 0.0 * turned])
    loads = kg.Loads(force={"bar3": np.array([pull**3, 0.0 * pull, length * pull])}, point={"bar3": [0.1, 0.2, 0.3]})
    return arm.replace(placement=placement), loads


def test_functions_that_build_models():
    """Second derivatives of what functions do to constants and loads, and of what these do to torques."""
    design = Design.from_function(bent_arm, {"length": 0.7, "tilt": 0.4, "mass": 1.1, "pull": 2.0})
    check_by_differences(design, random_state(design.model, 1), np.array([0.3, -1.0, 0.7]))


def test_turns_that_do_not_commute():
    """Of one placement, two turns: slopes of a moved design are by the parameters it was moved by."""
    model = samples.spatial_chain(3)
    joint = model.joint_names[1]
    base = Design(model, [f"{joint}.placement.rx", f"{joint}.placement.ry", f"{joint}.placement.y"])
    values, state, w = np.array([0.7, -0.8, 0.3]), random_state(model, 2), np.ones(3)
    moved = base.at(values)
    gradient = kg.inverse_dynamics_design_vjp(moved, *state, w)
    for k in range(3):
        step = 1e-3 * np.eye(3)[k]
        torques = [w @ kg.inverse_dynamics(base.at(values + s * step).model, *state) for s in STEPS]
        assert abs(SIXTH @ torques / 1e-3 - gradient[k]) < 1e-9 * np.abs(gradient).max()
    check_by_two_parameters(moved, state, w, None, kg.inverse_dynamics_design_hessian(moved, *state, w).d2_dpdp)
    again = moved.at([0.1, 0.2, 0.5])
    np.testing.assert_allclose(again.model.placement, base.at([0.1, 0.2, 0.5]).model.placement, rtol=0, atol=1e-14)
    assert pickle.loads(pickle.dumps(moved)) == moved != base


def test_batches_and_what_is_refused():
    """The same bits alone, in a batch, and for several weights; more states than parameters and fewer."""
    model = samples.puma560()
    design, rng = Design(model, [f"{model.link_names[-1]}.mass", "gravity.z"]), np.random.default_rng(1)
    q, v, a, w = rng.normal(size=(4, 9, model.n))
    whole = kg.inverse_dynamics_design_hessian(design, q, v, a, w, threads=2)
    one = kg.inverse_dynamics_design_hessian(design, q[4], v[4], a[4], w[4])
    several = kg.inverse_dynamics_design_hessian(design, q[4], v[4], a[4], w)
    none = kg.inverse_dynamics_design_hessian(design, q[:0], v[:0], a[:0], w[0])
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(whole, field)[4], getattr(one, field))
        np.testing.assert_array_equal(getattr(several, field)[4], getattr(one, field))
        assert getattr(none, field).shape == (0, model.n, 2)
    np.testing.assert_array_equal(whole.d2_dpdp[4], one.d2_dpdp)
    np.testing.assert_array_equal(several.d2_dpdp[4], one.d2_dpdp)
    assert none.d2_dpdp.shape == (0, 2, 2)
    with pytest.raises(InputError, match="`w` has shape"):
        kg.inverse_dynamics_design_hessian(design, q, v, a, [1.0])
    with pytest.raises(InputError, match="`design`"):
        kg.inverse_dynamics_design_hessian(model, q, v, a, w)
    with pytest.raises(InputError, match="not finite"):
        kg.inverse_dynamics_design_hessian(design, q, 1e200 * v, a, w)
