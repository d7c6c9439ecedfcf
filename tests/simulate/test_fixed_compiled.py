"""Compiled fixed steps: those of the loop in Python, of any batch and of many designs; their tangents; what is lost."""

from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicSpline, make_interp_spline

import kinegrad as kg
from kinegrad import Design, Inertia, ModelBuilder, revolute, samples
from kinegrad.errors import InputError, SingularError
from kinegrad.simulate import Feedback, KineticEnergy, Objective, objective_value, simulate, simulate_fixed
from kinegrad.simulate import fixed as integrators
from tests.conftest import random_loads, random_state, tree
from tests.kernels.child import child, output
from tests.simulate.models import chain, pendulum

ROOT = Path(__file__).parents[2]
METHODS = ("rk4", "semi_implicit_euler")
MOTION, SLOPES = ("q", "v", "a", "tau"), ("dq_dp", "dv_dp", "da_dp", "dtau_dp")
STEP, STEPS = 0.01, 12


def sprung(model):
    """Springs, dampers and rotors on all joints."""
    n = np.arange(model.n)
    return model.replace(stiffness=3.0 + n, rest=0.1 * n, damping=0.2 + 0.1 * n, armature=model.armature + 0.3)


MODELS = {
    "double_pendulum": samples.double_pendulum(),
    "puma560": samples.puma560(),
    "cart_pendulum": samples.cart_pendulum(),
    "spatial_chain": sprung(samples.spatial_chain(5)),
    "human43": sprung(samples.human43(thickness=0.1)),
} | {f"tree{seed}": sprung(tree(seed, largest=9)) for seed in range(6)}


def torques(kind, model, batch):
    """The same for each kind in turn: constant, held by all states or by each, splines in time."""
    rng = np.random.default_rng(8)
    times = np.linspace(0, STEPS * STEP, 7)
    return {
        "none": lambda: None,
        "constant": lambda: rng.normal(size=model.n),
        "held": lambda: rng.normal(size=(STEPS, model.n)),
        "held by each": lambda: rng.normal(size=(STEPS, *batch, model.n)),
        "held by some": lambda: rng.normal(size=(STEPS, *batch[:-1], 1, model.n)),
        "spline": lambda: make_interp_spline(times, rng.normal(size=(7, model.n))),
        "spline of each": lambda: CubicSpline(times, rng.normal(size=(7, *batch, model.n))),
        "spline along the last axis": lambda: make_interp_spline(times, rng.normal(size=(model.n, 7)), axis=1),
    }[kind]()


def both(monkeypatch, *arguments, **options):
    """The compiled run, and the loop in Python."""
    compiled = simulate_fixed(*arguments, **options)
    with monkeypatch.context() as patch:
        patch.setattr(integrators, "compiled_run", integrators.loop_run)
        return compiled, simulate_fixed(*arguments, **options)


def assert_same(found, expected, fields, tolerance):
    for name in fields:
        x, y = getattr(found, name), getattr(expected, name)
        assert x.shape == y.shape
        size = np.abs(y).max()
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * size, err_msg=name)


# --- the same steps -----------------------------------------------------------------------------------------------

# Both paths do the same arithmetic in another order: roundings of 1e-16 of each evaluation, which the condition number
# of M enlarges (1e2 to 1e4 here) and steps add up.
ROUNDING = 1e-13


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_steps_are_those_of_the_loop(monkeypatch, model, method):
    """Under loads on all links, torques of each state; 7 states, so that the last block of lanes is incomplete."""
    q, v, _ = random_state(model, batch=(7,))
    tau, loads = torques("held by each", model, (7,)), random_loads(model)
    found, expected = both(
        monkeypatch, model, q, v, step=STEP / 2, steps=STEPS, tau=tau, loads=loads, method=method, every=3
    )
    assert np.ptp(found.q, axis=0).max() > 0.01, "it moves"
    assert_same(found, expected, ("t", *MOTION), ROUNDING)
    assert (found.success, found.status, found.message, found.nfev, found.steps) == (
        expected.success, expected.status, expected.message, expected.nfev, expected.steps
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    ["none", "constant", "held", "held by each", "held by some", "spline", "spline of each",
     "spline along the last axis"],
)  # fmt: skip
@pytest.mark.parametrize("method", METHODS)
def test_torques_of_all_kinds(monkeypatch, kind, method):
    model = MODELS["spatial_chain"]
    q, v, _ = random_state(model, batch=(2, 3))
    tau = torques(kind, model, (2, 3))
    found, expected = both(monkeypatch, model, q, v, step=STEP, steps=STEPS, tau=tau, method=method)
    assert_same(found, expected, MOTION, ROUNDING)
    assert found.tau.flags.writeable


def test_functions_are_called_at_each_stage():
    """RK4 has four, and the end one."""
    times = []

    def tau(t, q, v):
        times.append(t)
        return 0 * q

    simulate_fixed(samples.double_pendulum(), [1, 0], [0, 0], step=0.5, steps=2, tau=tau)
    assert times == [0.0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1.0, 1.0]


def test_same_bits_anywhere_in_any_batch_on_any_threads():
    """Of q, v, a and their tangents, also where lanes change from states to directions."""
    design = chain()
    q, v, tau = random_state(design.model, batch=(41,))
    run = {"step": STEP, "steps": 40, "design": design}
    names = MOTION + SLOPES
    results = []
    for threads in (1, 2, 3):
        kg.set_threads(threads)
        try:
            results.append(simulate_fixed(design.model, q, v, tau=np.stack([tau] * 40), **run))
        finally:
            kg.set_threads(None)
    for name in names:
        assert all(np.array_equal(getattr(results[0], name), getattr(other, name)) for other in results[1:])
    for part in (slice(0, 1), slice(3, 5), slice(38, 41)):
        some = simulate_fixed(design.model, q[part], v[part], tau=np.stack([tau[part]] * 40), **run)
        for name in names:
            assert np.array_equal(getattr(some, name), getattr(results[0], name)[:, part]), (name, part)


def test_no_states():
    motion = simulate_fixed(samples.double_pendulum(), np.zeros((0, 2)), [0, 0], step=0.1, steps=4, design=None)
    assert motion.q.shape == (5, 0, 2)
    assert motion.success
    design = pendulum()
    motion = simulate_fixed(design.model, np.zeros((0, 2)), [0, 0], step=0.1, steps=4, design=design)
    assert motion.dq_dp.shape == (5, 0, 2, 4)


# --- tangents -----------------------------------------------------------------------------------------------------


def puma():
    model = samples.puma560()
    names = [f"{model.link_names[2]}.mass", f"{model.joint_names[1]}.a", f"{model.joint_names[4]}.alpha", "gravity.y"]
    return Design(model, names)


def massless():
    """A link without mass whose mass is a parameter: its motion must be computed all the same."""
    builder = ModelBuilder("bar")
    builder.add("first", None, kg.prismatic("x"), link="bare")
    builder.add("second", "bare", revolute("y"), link="bob", inertia=Inertia.sphere(1.0, 0.2, [0, 0, -0.5]))
    model = builder.build().replace(armature=[0.3, 0.1])
    return Design(model, ["bare.mass", "bob.mass"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("states", [1, 3, 9])
@pytest.mark.parametrize("design", [pendulum(), chain(), puma()], ids=["pendulum", "chain", "puma"])
def test_tangents_are_those_of_the_loop(monkeypatch, design, states, method):
    """Lanes over directions, over states; under loads, with slopes at the start."""
    model = design.model
    q, v, _ = random_state(model, batch=(states,))
    dq, dv = np.random.default_rng(1).normal(size=(2, states, model.n, design.p))
    found, expected = both(
        monkeypatch, model, q, v, step=STEP / 2, steps=STEPS, design=design, dq0_dp=dq, dv0_dp=dv, method=method,
        tau=torques("held by each", model, (states,)), loads=random_loads(model), every=4,
    )  # fmt: skip
    assert_same(found, expected, MOTION + SLOPES[:3], ROUNDING)
    assert not found.dtau_dp.any()
    assert found.dtau_dp.shape == expected.dtau_dp.shape


COMPLEX_STEP = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kinegrad import _engine as engine
from kinegrad._kernels import steps
from kinegrad._kernels.mechanism import Mechanism, Slopes
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad.simulate.explicit import SCHEMES
from tests.conftest import random_loads, random_state
from tests.simulate.test_fixed_compiled import STEP, chain, puma

h = 1e-30
results = {}
for name, design in (("chain", chain()), ("puma", puma())):
    model = design.model
    n, states, count = model.n, 2, 5
    q, v, tau = random_state(model, batch=(states,))
    loads = [x.reshape(1, -1) for x in random_loads(model).arrays(model).values()]
    m, slopes = Mechanism(*engine.mechanism(model)), Slopes(*design._slopes)
    for method, scheme in SCHEMES.items():
        when = np.zeros((count + 1, len(scheme.b)), np.int64)
        columns = []
        for k in range(design.p):
            moved = {
                what: getattr(m, what) + 1j * h * x[k].reshape(getattr(m, what).shape)
                for what, x in slopes._asdict().items()
            }
            found = [np.zeros((count + 1, states, n), complex) for _ in "qva"]
            marks = np.full(states, -1), np.zeros((states, n)), np.full((states, 2), -1)
            scratch = np.zeros((steps.slots(n, len(scheme.b)), WIDTH), complex)
            steps.along_states(
                tuple(m._replace(**moved)), q, v, tau[None], when, *loads, tuple(scheme), STEP, 1, *found, *marks,
                scratch, 0, states,
            )
            assert (marks[0] == -1).all() and (marks[2] == -1).all()
            columns.append([x.imag / h for x in found])
        results[f"{name} {method}"] = np.moveaxis(np.array(columns), 0, -1)
np.savez(sys.argv[2], **results)
"""


def test_tangents_by_complex_step(tmp_path):
    """Of the whole discrete motion: the same source on complex numbers, in plain Python; exact but for rounding."""
    output(child(COMPLEX_STEP, ROOT, tmp_path / "slopes.npz", NUMBA_DISABLE_JIT="1"))
    expected = np.load(tmp_path / "slopes.npz")
    for name, design in (("chain", chain()), ("puma", puma())):
        q, v, tau = random_state(design.model, batch=(2,))
        for method in METHODS:
            motion = simulate_fixed(
                design.model, q, v, step=STEP, steps=5, tau=np.stack([tau] * 5), design=design, method=method,
                loads=random_loads(design.model),
            )  # fmt: skip
            for x, y in zip((motion.dq_dp, motion.dv_dp, motion.da_dp), expected[f"{name} {method}"], strict=True):
                assert np.abs(y).max() > 0
                np.testing.assert_allclose(x, y, rtol=0, atol=ROUNDING * np.abs(y).max())


def test_tangent_of_a_massless_link(monkeypatch):
    design = massless()
    found, expected = both(monkeypatch, design.model, [0.3, 0.2], [1, 2], step=STEP, steps=STEPS, design=design)
    assert_same(found, expected, SLOPES[:3], ROUNDING)
    assert np.abs(found.da_dp[-1]).max() > 0


# --- many designs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("design", [pendulum(), chain(), puma()], ids=["pendulum", "chain", "puma"])
def test_designs_at_once_are_each_design_alone(design, method):
    """Nine designs under loads and torques of their own.

    The compiler may contract a product with a constant of one model otherwise than with one of each lane: roundings.
    """
    model, k = design.model, 9
    change = np.random.default_rng(4).uniform(0.99, 1.01, (k, design.p))
    models = [design.at(design.values * x).model for x in change]
    q, v, _ = random_state(model, batch=(k,))
    tau, loads = torques("held by each", model, (k,)), random_loads(model)
    run = {"step": STEP / 2, "steps": STEPS, "loads": loads, "method": method}
    together = simulate_fixed(models, q, v, tau=tau, **run)
    assert together.q.shape == (STEPS + 1, k, model.n)
    for i, one in enumerate(models):
        alone = simulate_fixed(one, q[i], v[i], tau=tau[:, i], **run)
        for name in MOTION:
            x, y = getattr(together, name)[:, i], getattr(alone, name)
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-14 * np.abs(y).max(), err_msg=name)
    assert np.ptp(together.q[-1] - q, axis=0).max() > 1e-4, "designs differ"


def test_designs_share_an_initial_state_and_may_be_massless():
    """A link that has mass in one design and none in the other."""
    design = massless()
    models = [design.model, design.at([0.5, 1.0]).model]
    together = simulate_fixed(models, [0.3, 0.2], [1, 2], step=STEP, steps=STEPS)
    for i, one in enumerate(models):
        alone = simulate_fixed(one, [0.3, 0.2], [1, 2], step=STEP, steps=STEPS)
        np.testing.assert_allclose(together.a[:, i], alone.a, rtol=0, atol=1e-14 * np.abs(alone.a).max())


def test_one_design_in_a_sequence_has_a_batch_axis():
    model = samples.double_pendulum()
    motion = simulate_fixed([model], [1, 0.5], [0, 0], step=STEP, steps=2)
    assert motion.q.shape == (3, 1, 2)
    with pytest.raises(InputError, match="`simulation` is of several models"):
        objective_value(motion, Objective(end=[KineticEnergy()]))


def other(**changes):
    model = samples.double_pendulum()
    fields = {name: getattr(model, name) for name in ("joints", "parents", "joint_names", "link_names")} | changes
    return kg.Model(name="other", placement=model.placement, tip=model.tip, mass=model.mass, com=model.com,
                    inertia=model.inertia, **fields)  # fmt: skip


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (samples.multi_pendulum(3), r"`model\[1\]` differs from `model\[0\]` in its number of joints, 3 instead of 2"),
        (other(joint_names=("hinge1", "knee")), r"in `joint_names`, 'knee' instead of 'hinge2' at joint 'hinge2'"),
        (other(link_names=("P", "R")), r"in `link_names`, 'R' instead of 'Q' at joint 'hinge2'"),
        (other(parents=(-1, -1)), r"in `parents`, -1 instead of 0 at joint 'hinge2'"),
        (other(joints=(revolute("y"), kg.prismatic("y"))), r"the kind of joint 'hinge2', prismatic instead"),
        (other(joints=(revolute("y"), revolute("x"))), r"the axis of joint 'hinge2', \(1.0, 0.0, 0.0\) instead of"),
        ("pendulum", r"`model\[1\]` is a str; expected a Model"),
    ],
)
def test_designs_of_other_structure_are_refused(second, message):
    with pytest.raises(InputError, match=message):
        simulate_fixed([samples.double_pendulum(), second], [1, 0.5], [0, 0], step=0.1, steps=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": []}, r"`model` is an empty sequence; expected a Model"),
        ({"model": "human43"}, r"`model` is a str; expected a Model"),
        ({"q0": np.zeros((3, 2))}, r"`q0` and `v0` have batch shape \(3,\); expected \(2,\) or \(\), for 2 models"),
        ({"design": pendulum()}, r"`design` is given with several models"),
        ({"tau": lambda t, q, v: q}, r"`tau` is a function and several models are given"),
        (
            {"tau": Feedback(lambda t, q, v: q, lambda t, q, v: np.eye(2), None)},
            r"`tau` is a function and several models are given",
        ),
        ({"tau": np.ones((2, 3, 2))}, r"`tau` gives shape \(3, 2\) at t = 0; expected \(2, 2\), as q"),
    ],
)
def test_what_designs_cannot_have_is_refused(change, message):
    arguments = {"model": [pendulum().model] * 2, "q0": [1, 0.5], "v0": [0, 0], "step": 0.1, "steps": 2} | change
    with pytest.raises(InputError, match=message):
        simulate_fixed(**arguments)


# --- what is lost -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("design", [None, pendulum()], ids=["states", "tangents"])
def test_lost_states_are_those_of_the_loop(monkeypatch, design, every):
    """Torques of 1e200 N·m, squares of whose speeds overflow, for two of six states, at steps 3 and 5."""
    model = pendulum().model if design is None else design.model
    q, v, _ = random_state(model, batch=(2, 3))
    tau = np.zeros((10, 2, 3, 2))
    tau[5, 0, 1, 0], tau[3, 1, 2, 1] = 1e200, 1e200
    found, expected = both(monkeypatch, model, q, v, step=0.01, steps=10, tau=tau, design=design, every=every)
    assert found.message == expected.message
    assert found.message.startswith("2 of 6 states diverged; the first: state (1, 2) diverged at t = 0.04 s in joint ")
    assert (found.success, found.status, found.steps, found.nfev) == (False, -1, 10, 41)
    for name in MOTION if design is None else MOTION + SLOPES:
        x, y = getattr(found, name), getattr(expected, name)
        assert np.array_equal(np.isfinite(x), np.isfinite(y)), name
        gone = ~np.isfinite(x)
        assert gone[4 // every :, 1, 2].all()
        assert gone[6 // every :, 0, 1].all()
        assert gone.sum() == gone[4 // every :, 1, 2].size + gone[6 // every :, 0, 1].size
    np.testing.assert_allclose(found.q, expected.q, rtol=1e-12)


@pytest.mark.parametrize("states", [1, 3, 9])
def test_when_all_are_lost_there_is_what_came_before(monkeypatch, states):
    """The last of them at step 4, or 3 if there is but one; the first state is the first."""
    model = samples.double_pendulum()
    tau = np.zeros((10, states, 2))
    tau[3, :, 0] = 1e200
    tau[2, 0, 0] = 1e200
    q = np.full((states, 2), 0.5)
    found, expected = both(monkeypatch, model, q, [0, 0], step=0.01, steps=10, tau=tau)
    assert found.steps == expected.steps == (3 if states == 1 else 4)
    assert len(found.q) == len(found.t) == found.steps
    assert found.message == expected.message
    assert "diverged at t = 0.03 s in joint 'hinge2'" in found.message
    np.testing.assert_allclose(found.q, expected.q, rtol=1e-12)


def test_a_lost_design_leaves_the_others():
    """A spring of 1e9 N·m/rad is too stiff for the step."""
    model = samples.double_pendulum()
    models = [model, model.replace(stiffness=[1e9, 0.0]), model]
    motion = simulate_fixed(models, [0.5, 0.2], [0, 0], step=0.01, steps=200)
    alone = simulate_fixed(model, [0.5, 0.2], [0, 0], step=0.01, steps=200)
    assert motion.message.startswith("1 of 3 states diverged; the first: state 1 diverged at t = ")
    np.testing.assert_allclose(motion.q[:, 0], alone.q, rtol=1e-12)
    assert np.array_equal(motion.q[:, 0], motion.q[:, 2])
    assert np.isnan(motion.q[-1, 1]).all()


def ball():
    """z-y-z angles of a ball: where the second is zero, the first and the third are about one axis."""
    builder = ModelBuilder("ball", gravity=(0.0, 0.0, 0.0))
    builder.add("first", None, revolute("z"), link="a")
    builder.add("second", "a", revolute("y"), link="b")
    builder.add("third", "b", revolute("z"), link="ball", inertia=Inertia.sphere(1.0, 0.2))
    return builder.build()


@pytest.mark.parametrize("design", [None, Design(ball(), ["ball.mass"])], ids=["states", "tangents"])
def test_singular_on_the_way_names_time_joint_and_state(monkeypatch, design):
    """A ball turns about its second axis at 1 rad/s: after 0.5 s it is in gimbal lock, exactly; the others are not."""
    model = ball() if design is None else design.model
    q = np.array([[0.0, 2.0, 0.0]] * 5 + [[0.0, 0.5, 0.0]])
    message = r"at t = 0.5 s nothing resists joint 'first' of model 'ball' in state 5: "
    with pytest.raises(SingularError, match=message):
        simulate_fixed(model, q, [0, -1, 0], step=0.125, steps=8, design=design)
    with monkeypatch.context() as patch:
        patch.setattr(integrators, "compiled_run", integrators.loop_run)
        with pytest.raises(SingularError, match=message):
            simulate_fixed(model, q, [0, -1, 0], step=0.125, steps=8, design=design)


def test_singular_design_is_named():
    model = samples.double_pendulum()
    models = [model] * 5 + [model.replace(mass=[1.0, 0.0], com={"Q": [0, 0, 0]})]
    with pytest.raises(SingularError, match=r"at t = 0 s nothing resists joint 'hinge2' of model .* in state 5"):
        simulate_fixed(models, [1.0, 0.5], [0, 0], step=0.1, steps=2)


def test_a_spline_that_ends_too_early_is_refused():
    """Whether it extrapolates or not; but not for the rounding of many steps."""
    spline = make_interp_spline([0, 0.1, 0.2, 0.3], np.ones((4, 2)))
    for short in (spline, BSpline(spline.t, spline.c, spline.k, extrapolate=False)):
        with pytest.raises(InputError, match=r"`tau` is a spline from 0 to 0.3 s; the simulation goes from 0 to 0.4"):
            simulate_fixed(samples.double_pendulum(), [1, 0], [0, 0], step=0.1, steps=4, tau=short)
        assert 3 * 0.1 > 0.3
        assert simulate_fixed(samples.double_pendulum(), [1, 0], [0, 0], step=0.1, steps=3, tau=short).success


@pytest.mark.parametrize("core", [(), (1,), (3,)])
def test_a_spline_of_the_wrong_shape_is_refused(core):
    spline = make_interp_spline([0, 0.1, 0.2, 0.3], np.ones((4, *core)))
    with pytest.raises(InputError, match=r"`tau` gives shape .* at t = 0"):
        simulate_fixed(samples.double_pendulum(), [1, 0], [0, 0], step=0.1, steps=3, tau=spline)
    with pytest.raises(InputError, match=r"`tau` gives shape .* at t = 0"):
        simulate(samples.double_pendulum(), [1, 0], [0, 0], [0, 0.3], tau=spline)


@pytest.mark.parametrize("states", [1, 3, 9])
@pytest.mark.parametrize(
    "design", [pendulum(), chain(), puma(), massless()], ids=["pendulum", "chain", "puma", "massless"]
)
def test_a_design_run_evaluates_the_motion_once(monkeypatch, design, states):
    """The motion is the values of the duals: equal to that without a design but for rounding, not computed again."""
    model = design.model
    q, v, tau = random_state(model, batch=(states,))
    options = {"step": STEP / 2, "steps": STEPS, "tau": tau[0], "every": 3}
    expected = simulate_fixed(model, q, v, **options)
    monkeypatch.setattr(kg._engine, "march", lambda *_: pytest.fail("the motion was computed apart from its slopes"))
    found = simulate_fixed(model, q, v, design=design, **options)
    assert_same(found, expected, MOTION, ROUNDING)


def test_states_are_lost_with_a_design_as_without():
    """Which states diverge, when, and what is said of them, is found from the values of the duals."""
    design = pendulum()
    q, v = np.zeros((5, 2)), np.zeros((5, 2))
    v[3] = 1e80
    runs = [simulate_fixed(design.model, q, v, step=0.1, steps=30, design=given) for given in (None, design)]
    assert runs[0].message == runs[1].message
    assert not runs[0].success
    assert np.array_equal(np.isfinite(runs[0].q), np.isfinite(runs[1].q))
