"""The compiled adjoint of fixed steps, against its twin in Python and against direct sensitivities.

Torques of a Feedback that ignores the state take the way through Python, with the n×n derivatives of every stage: the
same gradient, found otherwise.
"""

import tracemalloc

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad import samples
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad.errors import SingularError, SolveError
from kinegrad.simulate import (
    EndPosition,
    Evaluation,
    Feedback,
    KineticEnergy,
    Objective,
    PotentialEnergy,
    TorqueSquared,
    Tracking,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    simulate_fixed,
)

STEPS, H = 11, 0.01
METHODS = ("rk4", "semi_implicit_euler")


def tree(seed: int = 4, n: int = 6) -> kg.Model:
    """Joints of all kinds, massless links, springs and dampers; regular by armature."""
    model = samples.random_tree(n, seed=seed)
    return model.replace(armature=model.armature + 0.3)


def design_of(model: kg.Model, loads: kg.Loads | None = None) -> kg.Design:
    """Constants of every kind."""
    link, joint = model.link_names[int(np.argmax(model.mass))], model.joint_names[-1]
    names = [f"{link}.{x}" for x in ("mass", "com.x", "inertia.yy", "inertia.xz")]
    names += [f"{joint}.{x}" for x in ("placement.y", "placement.rx", "stiffness", "rest", "damping", "armature")]
    names += ["gravity.z"]
    if loads is not None:
        names += [f"{model.link_names[-1]}.load.{x}" for x in ("force.x", "point.y", "torque.z")]
    return kg.Design(model, names, loads=loads)


def pushed(model: kg.Model) -> kg.Loads:
    last = model.link_names[-1]
    return kg.Loads(force={last: [3.0, -2.0, 1.0]}, point={last: [0.1, 0.2, -0.3]}, torque={last: [0.5, 0.1, -0.2]})


def objective_of(model: kg.Model) -> Objective:
    """Terms in q, v, a, τ and p, along the way and at the end."""
    away = UserTerm(lambda at: Evaluation((at.a**2).sum(-1) / 100, da=at.a / 50))
    tip = EndPosition(model.link_names[-1], [0.3, 0.2, -1.0], [0.0, 0.1, -1.0])
    terms = [KineticEnergy(), PotentialEnergy(), TorqueSquared(0.1), Tracking(np.full(model.n, 0.1)), tip, away]
    return Objective(end=terms, integral=terms[::-1])


def start(model: kg.Model, batch: tuple[int, ...] = (), seed: int = 1):
    q, v = 0.5 * np.random.default_rng(seed).normal(size=(2, *batch, model.n))
    return q, v


def torques(model: kg.Model, batch: tuple[int, ...]):
    """By kind: what is given, and the same as a function of time."""
    constant, ends = (x for x in np.random.default_rng(2).normal(size=(2, model.n)))
    each = np.random.default_rng(3).normal(size=(STEPS, *batch, model.n))
    spline = CubicSpline([0.0, STEPS * H], np.stack([constant, ends]))
    return {
        "none": (None, lambda t: np.zeros(model.n)),
        "constant": (constant, lambda t: constant),
        "steps": (each, lambda t: each[min(int(t / H + 1e-9), STEPS - 1)]),
        "spline": (spline, spline),
    }


def assert_same(found, expected, rtol=1e-12):
    for name, x in vars(expected).items():
        if x is None or name == "note":
            assert getattr(found, name) == x
        else:
            np.testing.assert_allclose(getattr(found, name), x, rtol=0, atol=rtol * np.abs(x).max(), err_msg=name)


# the last stage of a step of RK4 holds the torque of that step, where a function of time has the next one's
KINDS = [(kind, method) for kind in ("none", "constant", "steps", "spline") for method in METHODS]
KINDS.remove(("steps", "rk4"))


@pytest.mark.parametrize(("kind", "method"), KINDS)
@pytest.mark.parametrize("loaded", [False, True], ids=["free", "loaded"])
def test_compiled_is_python(kind, method, loaded):
    """Everything a gradient has, to rounding."""
    model = tree()
    design = design_of(model, pushed(model) if loaded else None)
    given, as_function = torques(model, (5,))[kind]
    run = {"step": H, "steps": STEPS, "method": method, "design": design}
    call = (model, *start(model, (5,)), objective_of(model))
    feedback = Feedback(lambda t, q, v: np.broadcast_to(as_function(min(t, STEPS * H)), q.shape), None, None)
    assert_same(adjoint_gradient(*call, tau=given, **run), adjoint_gradient(*call, tau=feedback, **run))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_compiled_is_direct(method, seed):
    """Against the tangents of the steps themselves, duals: nothing in common but forward dynamics."""
    model = tree(seed, n=7)
    design = design_of(model, pushed(model))
    q, v = start(model, (2, 2), seed)
    run = {"step": H, "steps": STEPS, "method": method, "design": design, "tau": torques(model, (2, 2))["steps"][0]}
    objective = objective_of(model)
    direct = objective_gradient(simulate_fixed(model, q, v, **run), objective)
    found = adjoint_gradient(model, q, v, objective, **run)
    np.testing.assert_allclose(found.value, direct.value, rtol=1e-12)
    scale = np.abs(direct.dvalue_dp).max()
    np.testing.assert_allclose(found.dvalue_dp, direct.dvalue_dp, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("method", METHODS)
def test_state_and_torques(method):
    """∂J/∂q0, ∂J/∂v0 and ∂J/∂τ of each step against differences; J has no design then."""
    model = tree()
    q, v = start(model)
    tau = torques(model, ())["steps"][0]
    objective, run = objective_of(model), {"step": H, "steps": STEPS, "method": method}
    found = adjoint_gradient(model, q, v, objective, tau=tau, **run)
    assert found.dvalue_dp is None

    def slope(dq, dv, dtau):
        sides = [(h, adjoint_gradient(model, q + h * dq, v + h * dv, objective, tau=tau + h * dtau, **run).value)
                 for h in (2e-4, 1e-4, -1e-4, -2e-4)]  # fmt: skip
        (_, a), (_, b), (_, c), (_, d) = sides
        return (8 * (b - c) - (a - d)) / 12e-4

    for dq, dv, dtau in zip(*(np.random.default_rng(7).normal(size=(3, *x.shape)) for x in (q, v, tau)), strict=True):
        expected = (found.dvalue_dq0 * dq).sum() + (found.dvalue_dv0 * dv).sum() + (found.dvalue_dtau * dtau).sum()
        assert slope(dq, dv, dtau) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("segment", [1, 2, 5, STEPS, 100])
def test_segments_do_not_matter(segment):
    """To rounding: a segment begins with bits from the first way forward."""
    model = tree()
    run = {"step": H, "steps": STEPS, "design": design_of(model)}
    call = (model, *start(model, (3,)), objective_of(model))
    assert_same(adjoint_gradient(*call, segment=segment, **run), adjoint_gradient(*call, **run))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_wherever_a_state_is(threads, monkeypatch):
    """Alone, in a batch, backwards, on any number of threads."""
    model = tree()
    run = {"step": H, "steps": STEPS, "design": design_of(model)}
    count = 2 * WIDTH + 3
    q, v = start(model, (count,))
    objective = Objective(end=[KineticEnergy()], integral=[KineticEnergy(), Tracking(np.full(model.n, 0.1))])
    monkeypatch.setattr(kg._engine.threads, "_GRAIN", 1)
    before = kg.get_threads()
    try:
        kg.set_threads(threads)
        together = adjoint_gradient(model, q, v, objective, **run)
        backwards = adjoint_gradient(model, q[::-1], v[::-1], objective, **run)
        for k in (0, 1, WIDTH, count - 1):
            alone = adjoint_gradient(model, q[k], v[k], objective, **run)
            for name, x in vars(alone).items():
                if name == "note":
                    continue
                rows = (getattr(result, name) for result in (together, backwards))
                first, second = (x.swapaxes(0, 1) if name == "dvalue_dtau" else x for x in rows)
                assert first[k].tobytes() == x.tobytes(), name
                assert second[count - 1 - k].tobytes() == x.tobytes(), name
    finally:
        kg.set_threads(before)


def test_a_chain_whose_factors_matter():
    """w = M⁻¹ μ comes from articulated bodies: a factored M loses all digits on a chain of a hundred bars."""
    chain = samples.spatial_chain(100)
    design = kg.Design(chain, ["bar1.mass", "bar100.mass", "hinge50.damping", "gravity.x"])
    q, v = (0.3 * x for x in start(chain, (2,)))
    run = {"step": 1e-3, "steps": 6, "design": design}
    objective = Objective(end=[Tracking(np.full(100, 0.1))], integral=[KineticEnergy()])
    direct = objective_gradient(simulate_fixed(chain, q, v, **run), objective).dvalue_dp
    found = adjoint_gradient(chain, q, v, objective, **run).dvalue_dp
    np.testing.assert_allclose(found, direct, rtol=1e-9, atol=1e-11 * np.abs(direct).max())


def test_a_motion_that_diverges_says_where():
    model = tree()
    q, v = start(model, (3,))
    tau = np.zeros((STEPS, 3, model.n))
    tau[6, 1, 2] = 1e305
    with pytest.raises(SolveError, match=r"state 1 diverged at t = 0\.07 s in joint"):
        adjoint_gradient(model, q, v, objective_of(model), tau=tau, step=H, steps=STEPS)


def test_an_acceleration_at_the_end_that_overflows():
    """The last state is finite, and the square of its speed is not."""
    run = {"tau": [0.0, 1e157], "step": 0.01, "steps": 1, "method": "semi_implicit_euler"}
    model, objective = samples.cart_pendulum(), Objective(end=[TorqueSquared(0.0)])
    assert np.isfinite(simulate_fixed(model, [0, 0.5], [0, 0], **run).v).all()
    with pytest.raises(SolveError, match=r"diverged at t = 0\.01 s in joint"):
        adjoint_gradient(model, [0, 0.5], [0, 0], objective, **run)


def test_a_joint_that_nothing_resists():
    """At its time, as in the simulation."""
    builder = kg.ModelBuilder("gyroscope", gravity=(0, 0, 0))
    builder.add("ball", None, kg.spherical(), link="top", inertia=kg.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)))
    speed = [0, np.pi / 2 / 0.01 / 7, 0]  # locked after seven steps
    with pytest.raises(SingularError, match=r"at t = 0\.07 s"):
        adjoint_gradient(builder.build(), np.zeros(3), speed, Objective(end=[KineticEnergy()]), step=0.01, steps=9)


def test_memory_grows_as_the_root_of_the_steps():
    """Sixteen times the steps, about four times the memory, less dJ/dτ and what says which torque a stage has."""
    chain = samples.spatial_chain(6)
    q, v = (0.1 * x for x in start(chain))
    objective = Objective(integral=[Tracking(np.zeros(6))])
    peaks = []
    for steps in (100, 100, 1600):  # twice the first, so that nothing made once counts
        tracemalloc.start()
        found = adjoint_gradient(chain, q, v, objective, step=1e-4, steps=steps)
        stages = 4 * 8 * (steps + 1)
        peaks.append(tracemalloc.get_traced_memory()[1] - found.dvalue_dtau.nbytes - stages)
        tracemalloc.stop()
    assert peaks[2] < 6 * peaks[1]
