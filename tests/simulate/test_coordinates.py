"""Motion through time with quaternions and couplings: tumbling bodies, exact tangents, the adjoint, what is refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, InputError, ModelBuilder
from kinegrad.simulate import (
    EndPosition,
    Feedback,
    KineticEnergy,
    Objective,
    PotentialEnergy,
    TorqueSquared,
    Tracking,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from tests.conftest import assert_close
from tests.mixed import mixed_state, mixed_tree


def racket():
    """A free body with three different moments, without weight."""
    builder = ModelBuilder("racket", gravity=(0, 0, 0))
    body = Inertia(1.0, [0, 0, 0], np.diag([0.3, 0.2, 0.1]))
    builder.add("base", None, kg.free(quaternion=True), link="body", inertia=body)
    return builder.build()


SPIN = np.array([0.1, -0.2, 0.3, 1e-3, 5.0, 1e-3])  # about the axis of the middle moment, almost
AT_REST = np.r_[np.zeros(3), 1.0, np.zeros(3)]


def momenta(model, q, v):
    """Energy, linear momentum, angular momentum in the world."""
    momentum = kg.momentum(model, q, v)
    return kg.kinetic_energy(model, q, v), momentum.linear, momentum.angular


def test_a_body_that_tumbles_keeps_energy_and_momentum():
    """Dzhanibekov: it flips over again and again, and whatever must stay stays, to the tolerance of the integrator."""
    model = racket()
    motion = simulate(model, AT_REST, SPIN, np.linspace(0, 20, 401), rtol=1e-11, atol=1e-12)
    assert motion.success
    assert motion.v[:, 4].min() < -4.9  # it does flip,
    assert motion.v[:, 4].max() > 4.9  # and back
    assert_close(np.linalg.norm(motion.q[:, 3:], axis=1), np.ones(401), 1e-15)
    for now in momenta(model, motion.q, motion.v):
        assert np.abs(now - now[0]).max() < 2e-9 * np.abs(now[0]).max()
    assert_close(motion.q[:, :3], motion.t[:, None] * SPIN[:3], 1e-12)


def test_fixed_steps_of_a_tumbling_body_converge_with_order_four():
    model = racket()
    exact = simulate(model, AT_REST, SPIN, [0, 2], rtol=1e-12, atol=1e-13)
    errors = []
    for steps in (200, 400):
        found = simulate_fixed(model, AT_REST, SPIN, step=2 / steps, steps=steps, every=steps)
        errors.append(np.abs(kg.difference(model, exact.q[-1], found.q[-1])).max())
        assert_close(np.linalg.norm(found.q[..., 3:], axis=-1), np.ones(2), 1e-15)
    assert 12 < errors[0] / errors[1] < 20


@pytest.mark.parametrize("seed", [2, 6])
def test_adaptive_and_fixed_steps_agree_and_conserve_energy(seed):
    model = mixed_tree(seed, joints=4)
    model = model.replace(damping=np.zeros(model.n))
    q, v, _ = mixed_state(model, seed)
    motion = simulate(model, q, 0.3 * v, np.linspace(0, 0.2, 3), rtol=1e-10, atol=1e-12)
    energy = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    assert np.abs(energy - energy[0]).max() < 1e-7 * max(1.0, np.abs(energy).max())
    steps = simulate_fixed(model, q, 0.3 * v, step=1e-3, steps=200, every=100)
    assert_close(kg.difference(model, motion.q, steps.q), np.zeros_like(motion.v), 1e-6)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("seed", [1, 3])
def test_tangents_of_fixed_steps_are_exact(method, seed):
    """Derivatives of the discrete motion itself, initial states that follow the parameters and feedback included."""
    model = mixed_tree(seed, joints=4)
    q, v, _ = mixed_state(model, seed, (2,))
    v = 0.3 * v
    solid = [name for name, mass in zip(model.link_names, model.mass, strict=True) if mass > 0]
    design = Design(model, [f"{solid[0]}.mass", f"{solid[-1]}.com.x"])
    dq, dv = 0.1 * np.random.default_rng(seed).normal(size=(2, 2, model.nv, design.p))
    hold = Feedback(lambda t, q, v: -0.5 * v, None, lambda t, q, v: -0.5 * np.eye(model.nv))
    options = {"step": 0.01, "steps": 10, "every": 5, "method": method, "tau": hold}
    found = simulate_fixed(model, q, v, design=design, dq0_dp=dq, dv0_dp=dv, **options)
    for k, e in enumerate(np.eye(design.p)):
        numerical = {x: [] for x in ("q", "v", "a", "tau")}
        for h in (2e-4, 1e-4):
            ends = [
                simulate_fixed(
                    design.at(design.values + s * h * e).model, kg.integrate(model, q, s * h * dq[..., k]),
                    v + s * h * dv[..., k], **options,
                )
                for s in (1, -1)
            ]  # fmt: skip
            numerical["q"].append(kg.difference(model, ends[1].q, ends[0].q) / (2 * h))
            for x in ("v", "a", "tau"):
                numerical[x].append((getattr(ends[0], x) - getattr(ends[1], x)) / (2 * h))
        for x, (one, two) in numerical.items():
            assert_close(getattr(found, f"d{x}_dp")[..., k], (4 * two - one) / 3, 1e-7)


def test_sensitivities_of_error_controlled_motion():
    """The variational equations of the tangent, against differences of whole motions."""
    model = mixed_tree(3, joints=3)
    q, v, _ = mixed_state(model, 3)
    solid = [name for name, mass in zip(model.link_names, model.mass, strict=True) if mass > 0]
    design, t = Design(model, [f"{solid[0]}.mass"]), np.linspace(0, 0.3, 4)
    options = {"rtol": 1e-10, "atol": 1e-12}
    found = simulate(model, q, 0.3 * v, t, design=design, **options)
    h = 1e-4
    ends = [simulate(design.at(design.values + s * h).model, q, 0.3 * v, t, **options) for s in (1, -1)]
    assert_close(found.dq_dp[..., 0], kg.difference(model, ends[1].q, ends[0].q) / (2 * h), 1e-5)
    assert_close(found.dv_dp[..., 0], (ends[0].v - ends[1].v) / (2 * h), 1e-5)


def arm():
    """Joints moved by splines, one in another branch: couplings alone, so that q and v have the same length."""
    return mixed_tree(5, joints=4, kinds="rcp")


def test_objectives_with_quaternions():
    model = mixed_tree(3, joints=3)
    q, v, _ = mixed_state(model, 3)
    solid = [name for name, mass in zip(model.link_names, model.mass, strict=True) if mass > 0]
    design = Design(model, [f"{solid[0]}.mass", f"{solid[-1]}.com.x"])
    weights = np.arange(1.0, model.nv + 1)
    objective = Objective(
        end=[EndPosition(solid[-1], [1, 0, 0]), Tracking(kg.neutral(model), weights)],
        integral=[KineticEnergy(), PotentialEnergy(), TorqueSquared()],
    )
    options = {"step": 0.01, "steps": 10, "tau": np.ones(model.nv)}
    found = objective_gradient(simulate_fixed(model, q, 0.3 * v, design=design, **options), objective)
    for k, e in enumerate(np.eye(design.p)):
        values = []
        for h in (2e-4, 1e-4):
            one, two = (
                objective_value(
                    simulate_fixed(design.at(design.values + s * h * e).model, q, 0.3 * v, **options), objective
                )
                for s in (1, -1)
            )
            values.append((one - two) / (2 * h))
        assert abs(found.dvalue_dp[k] - (4 * values[1] - values[0]) / 3) < 1e-7 * abs(found.dvalue_dp[k])


@pytest.mark.parametrize(
    ("method", "kind"),
    [("rk4", "coupled"), ("semi_implicit_euler", "coupled"), ("implicit_midpoint", "coupled"), ("rk4", "quaternion"),
     ("semi_implicit_euler", "quaternion")],
)  # fmt: skip
def test_the_adjoint_goes_through_couplings_and_quaternions(method, kind):
    """Against exact tangents of the same steps, by parameters and by the initial state."""
    model = arm() if kind == "coupled" else mixed_tree(3, joints=3)
    assert (model.nq != model.nv) == (kind == "quaternion")
    if method == "implicit_midpoint":
        model = model.replace(damping=np.zeros(model.n))
    q, v, _ = mixed_state(model, 5)
    design = Design(model, [f"{model.link_names[-1]}.mass", "gravity.z"])
    objective = Objective(end=[KineticEnergy()], integral=[PotentialEnergy(), Tracking(kg.neutral(model))])
    options: dict = {"step": 0.01, "steps": 12, "method": method}
    if kind == "quaternion":  # with feedback, too
        hold = Feedback(lambda t, q, v: -0.5 * v, None, lambda t, q, v: -0.5 * np.eye(model.nv))
        objective = Objective(end=objective.end, integral=[*objective.integral, TorqueSquared()])
        options["tau"] = hold
    found = adjoint_gradient(model, q, 0.3 * v, objective, design=design, **options)
    direct = objective_gradient(simulate_fixed(model, q, 0.3 * v, design=design, **options), objective)
    assert_close(found.value, direct.value, 1e-12)
    assert_close(found.dvalue_dp, direct.dvalue_dp, 1e-9)
    gravity = Design(model, ["gravity.z"])
    e = np.eye(model.nv)
    for k in range(model.nv):
        both = {"dq0_dp": e[:, k : k + 1], "dv0_dp": 0 * e[:, k : k + 1]}
        moved = objective_gradient(simulate_fixed(model, q, 0.3 * v, design=gravity, **both, **options), objective)
        still = objective_gradient(simulate_fixed(model, q, 0.3 * v, design=gravity, **options), objective)
        assert (
            abs(moved.dvalue_dp[0] - still.dvalue_dp[0] - found.dvalue_dq0[k]) < 1e-9 * np.abs(found.dvalue_dq0).max()
        )


def test_coupled_coordinates_can_be_prescribed():
    """A coordinate that moves three joints follows a motion; the torque that takes is that of inverse dynamics."""
    model = mixed_tree(2, joints=4)
    name = next(entry.name for entry in model.coordinates if hasattr(entry, "functions"))
    q, v, _ = mixed_state(model, 2)
    k, s = model.coordinate_index(name), model.speed_index(name)
    drive = {name: lambda t: (0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t))}
    q[k], v = np.nan, 0.3 * v
    v[s] = np.nan
    motion = simulate(model, q, v, np.linspace(0, 0.2, 3), prescribed=drive)
    assert motion.success
    assert_close(motion.q[:, k], 0.2 * np.sin(3 * motion.t), 1e-14)
    assert_close(kg.inverse_dynamics(model, motion.q, motion.v, motion.a), motion.tau, 1e-9)
    with pytest.raises(InputError, match="which is part of a quaternion"):
        simulate(racket(), AT_REST, SPIN, [0, 1], prescribed={"base.w": drive[name]})


def ball_and_chain():
    """A ball on the world, and a hinge on the ball."""
    builder = ModelBuilder("chain")
    ball = builder.add("ball", None, kg.spherical(quaternion=True), link="a", inertia=Inertia.box(2.0, [0.1, 0.2, 0.3]))
    builder.add("hinge", ball, kg.revolute("x"), placement=[0, 0.3, 0], inertia=Inertia.box(1.0, [0.1, 0.1, 0.4]))
    return builder.build()


def nod(t):
    """A turn about z and back, with speed and acceleration."""
    turn = 0.7 * np.sin(2 * t)
    axis = np.array([0.0, 0.0, 1.0])
    return [np.cos(turn / 2), 0, 0, np.sin(turn / 2)], 1.4 * np.cos(2 * t) * axis, -2.8 * np.sin(2 * t) * axis


def test_balls_can_be_prescribed():
    """The free hinge moves as on a hinge with the same prescribed angle; torques are those of inverse dynamics."""
    model, t = ball_and_chain(), np.linspace(0, 1, 5)
    gone = np.full(4, np.nan)
    design = Design(model, ["a.mass", "gravity.z"])
    motion = simulate(model, [*gone, 0.3], [*gone[:3], 0.1], t, prescribed={"ball": nod}, design=design)
    assert motion.success
    assert_close(motion.q[:, :4], np.array([nod(x)[0] for x in t]), 1e-15)
    assert_close(kg.inverse_dynamics(model, motion.q, motion.v, motion.a), motion.tau, 1e-12)
    assert not motion.dq_dp[:, :3].any()
    builder = ModelBuilder("hinges")
    one = builder.add("ball", None, kg.revolute("z"), link="a", inertia=Inertia.box(2.0, [0.1, 0.2, 0.3]))
    builder.add("hinge", one, kg.revolute("x"), placement=[0, 0.3, 0], inertia=Inertia.box(1.0, [0.1, 0.1, 0.4]))
    plain = builder.build()
    drive = {"ball": lambda t: (0.7 * np.sin(2 * t), 1.4 * np.cos(2 * t), -2.8 * np.sin(2 * t))}
    same = simulate(plain, [np.nan, 0.3], [np.nan, 0.1], t, prescribed=drive, design=Design(plain, design.names))
    assert_close(motion.q[:, 4], same.q[:, 1], 1e-7)
    assert_close(motion.dq_dp[:, 3], same.dq_dp[:, 1], 1e-6)
    other = simulate(model, [-1, 0, 0, 0, 0.3], [0, 0, 1.4, 0.1], t, prescribed={"ball": nod})  # q and −q are one
    assert_close(other.q, motion.q, 1e-7)  # integrated in other steps


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ball": lambda t: 0.0}, "gives a float at t = 0 s; expected a quaternion"),
        ({"ball": lambda t: (0.0, 1.0, 2.0)}, r"gives shapes \[\(\), \(\), \(\)\] at t = 0 s; expected a quaternion"),
        ({"ball": lambda t: ([2, 0, 0, 0], [0] * 3, [0] * 3)}, "gives a quaternion of length 2 at t = 0 s"),
        ({"ball": lambda t: ([1, 0, 0, np.nan], [0] * 3, [0] * 3)}, "expected finite numbers"),
        ({"ball": 3.0}, "is a float, and the joint a ball with a quaternion; expected a function"),
        ({"ball.wx": nod}, "which is part of a quaternion: .* expected the whole ball, 'ball'"),
        ({"ball": nod, "hinge": lambda t: (0, 0, 0)}, "names all joints"),
    ],
)
def test_wrong_motions_of_balls_are_named(given, message):
    with pytest.raises(InputError, match=message):
        simulate(ball_and_chain(), [1, 0, 0, 0, 0], [0, 0, 1.4, 0], [0, 1], prescribed=given)


@pytest.mark.parametrize("kind", ["coupled", "quaternion"])
def test_several_models_are_each_as_alone(kind):
    one = arm() if kind == "coupled" else mixed_tree(3, joints=3)
    models = [one, one.replace(gravity=(0, 1, 2)), one.replace(mass=1.5 * one.mass)]
    q, v, a = mixed_state(one, 4, (3,))
    options = {"step": 0.01, "steps": 6, "every": 2}
    torques = np.broadcast_to(a, (6, *a.shape))
    found = simulate_fixed(models, q, 0.2 * v, tau=torques, **options)
    for k, model in enumerate(models):
        alone = simulate_fixed(model, q[k], 0.2 * v[k], tau=torques[:, k], **options)
        for x in ("q", "v", "a", "tau"):
            assert np.array_equal(getattr(found, x)[:, k], getattr(alone, x))


@pytest.mark.parametrize("method", ["Radau", "LSODA"])
def test_implicit_integrators_take_quaternions(method):
    model = racket()
    exact = simulate(model, AT_REST, SPIN, [0, 0.5])
    found = simulate(model, AT_REST, SPIN, [0, 0.5], method=method)
    assert_close(kg.difference(model, exact.q, found.q), np.zeros((2, 6)), 1e-5)


def test_what_cannot_be_done_says_why():
    model = racket()
    with pytest.raises(InputError, match="has a quaternion, which has no middle of two places"):
        simulate_fixed(model, AT_REST, SPIN, step=0.1, steps=2, method="implicit_midpoint")
    with pytest.raises(InputError, match="coupled joints with dampers"):
        simulate_fixed(arm(), np.zeros(arm().nq), np.zeros(arm().nv), step=0.1, steps=2, method="implicit_midpoint")
    with pytest.raises(InputError, match="has a quaternion of length 2 at joint 'base'"):
        simulate(model, 2 * AT_REST, SPIN, [0, 1])


def test_labels():
    model = racket()
    data = simulate(model, AT_REST, SPIN, [0, 0.1], design=Design(model, ["body.mass"])).to_xarray()
    assert data["q"].dims == ("time", "coordinate")
    assert data["dq_dp"].dims == ("time", "speed", "parameter")
    assert data["q"].sel(coordinate="base.w").values[0] == 1.0
    assert data["q"].attrs["units"] == "m or 1"
