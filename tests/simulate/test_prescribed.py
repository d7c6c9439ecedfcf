"""Joints that follow a prescribed motion: the others move as they must, and the forces it takes are returned.

Against equations on paper, integrated by themselves; energy; whole simulations of changed designs; then motions of
every kind, what is refused, and the bar that shows progress.
"""

import threading

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import BPoly, CubicSpline, PPoly, make_interp_spline

import kinegrad as kg
from kinegrad import Design, InputError, SingularError, samples
from kinegrad.simulate import Objective, TorqueSquared, objective_gradient, objective_value, simulate
from kinegrad.simulate.law import Law
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.track import jacobian_of, rate_of
from tests.limits import LIMIT
from tests.simulate.models import feedback

T = np.linspace(0, 2, 21)
SHORT = T[:11]
METHODS = ["DOP853", "RK45", "Radau", "BDF", "LSODA"]
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def wave(size, speed, phase=0.0):
    """A motion t → (q, v, a)."""

    def motion(t):
        x = speed * t + phase
        return size * np.sin(x), size * speed * np.cos(x), -size * speed**2 * np.sin(x)

    return motion


SHAKE = wave(0.2, 5.0, 0.3)
CART = {"cart_mass": 1.4, "rod_mass": 0.3, "length": 0.8}


def chain():
    """Four bars with springs, dampers and rotors; two of the hinges are driven, one by a spline."""
    model = samples.spatial_chain(4).replace(
        stiffness=[0.0, 2.0, 1.0, 0.0], damping=[0.1, 0.2, 0.3, 0.1], armature=[0.0, 0.2, 0.3, 0.1]
    )
    curve = make_interp_spline(np.linspace(0, 2, 6), np.sin(np.linspace(0, 5, 6)), k=5)  # one piece: any order
    return model, {"hinge4": SHAKE, "hinge2": curve}


DESIGN = {
    "L1": {"bar1.com.z": -0.5, "hinge2.placement.z": -1.0},
    "I": "bar2.inertia.xx",
    "m": "bar4.mass",
    "rotor": "hinge4.armature",
    "g": "gravity.z",
    "spring": "hinge2.stiffness",
}
LOADS = kg.Loads(force={"bar3": [1.0, 2.0, 3.0]}, point={"bar3": [0.0, 0.1, -0.5]}, torque={"bar4": [0.3, 0.1, 0.2]})
START = [0.4, np.nan, 0.3, np.nan], [0.1, np.nan, -0.2, np.nan]


# --- the motion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [("DOP853", 1e-10), ("RK45", 1e-8), ("Radau", 1e-8), ("BDF", 3e-6), ("LSODA", 1e-6)],  # of lower orders
)
def test_pendulum_on_a_shaken_cart(method, tolerance):
    """m L²/3 q̈ = m L/2 (ẍ cos q − g sin q), integrated by SciPy alone; F = (M + m) ẍ − m L/2 (q̈ cos q − q̇² sin q)."""
    M, m, L = CART.values()
    g = 9.81

    def swing(t, q):
        return (SHAKE(t)[2] * np.cos(q) - g * np.sin(q)) * 1.5 / L

    paper = solve_ivp(lambda t, y: [y[1], swing(t, y[0])], (0, 2), [0.5, 0.7], "DOP853", T, rtol=1e-13, atol=1e-14)
    q, v = paper.y
    x, dx, ddx = SHAKE(T)
    force = (M + m) * ddx - m * L / 2 * (swing(T, q) * np.cos(q) - v**2 * np.sin(q))
    run = TIGHT if method in ("DOP853", "LSODA") else {"rtol": 1e-9, "atol": 1e-10}
    motion = simulate(
        samples.cart_pendulum(**CART), [x[0], 0.5], [dx[0], 0.7], T, prescribed={"track": SHAKE}, method=method, **run
    )
    assert motion.success
    assert np.ptp(q) > 0.5, "it moves"
    np.testing.assert_allclose(motion.q[:, 1], q, atol=tolerance)
    np.testing.assert_allclose(motion.v[:, 1], v, atol=10 * tolerance)
    np.testing.assert_allclose(motion.tau[:, 0], force, atol=100 * tolerance)
    assert np.array_equal(motion.tau[:, 1], np.zeros(21))
    for found, given in zip((motion.q, motion.v, motion.a), (x, dx, ddx), strict=True):
        np.testing.assert_allclose(found[:, 0], given, rtol=1e-14)  # sines of one time, or of many at once


def test_motion_is_held_exactly_and_torques_are_those_it_takes():
    model, prescribed = chain()
    motion = simulate(model, *START, T, prescribed=prescribed, tau=feedback(4), loads=LOADS)
    curve = prescribed["hinge2"]
    for k, given in ((3, SHAKE), (1, lambda t: (curve(t), curve(t, 1), curve(t, 2)))):
        found = np.stack([motion.q[:, k], motion.v[:, k], motion.a[:, k]], axis=1)
        np.testing.assert_allclose(found, [given(t) for t in T], rtol=1e-12, atol=1e-14)
    tau = kg.inverse_dynamics(model, motion.q, motion.v, motion.a, loads=LOADS)
    np.testing.assert_allclose(motion.tau, tau, atol=1e-12 * np.abs(tau).max())  # rounding of the largest torques
    pull = np.array([feedback(4).function(t, q, v) for t, q, v in zip(T, motion.q, motion.v, strict=True)])
    assert np.array_equal(motion.tau[:, [0, 2]], pull[:, [0, 2]]), "feedback sees the whole state"
    assert np.abs(motion.tau[:, [1, 3]] - pull[:, [1, 3]]).min() > 1e-3, "feedback of driven joints is ignored"


def test_power_balance():
    """What driven joints put in is what energy gains: nothing else does work on this chain."""
    model, prescribed = chain()
    model = model.replace(damping=np.zeros(4))
    motion = simulate(model, *START, T, prescribed=prescribed, **TIGHT)
    E = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    nodes, weights = motion.quadrature()
    work = weights @ (nodes.tau * nodes.v).sum(axis=1)
    assert abs(E[-1] - E[0]) > 1.0, "energy does change"
    assert E[-1] - E[0] == pytest.approx(work, abs=1e-9 * np.abs(E).max())
    h = 1e-3  # dE/dt by differences of fourth order, at one time: error h⁴
    near = motion.interpolate(0.7 + h * np.array([-2, -1, 0, 1, 2]))
    E = kg.kinetic_energy(model, near.q, near.v) + kg.potential_energy(model, near.q)
    power = near.tau[2, [1, 3]] @ near.v[2, [1, 3]]
    assert E @ [1, -8, 0, 8, -1] / (12 * h) == pytest.approx(power, abs=1e-7 * max(1, abs(power)))


def test_nothing_prescribed_is_plain_simulation():
    model = samples.double_pendulum()
    plain, empty = (simulate(model, [1, 0.5], [0, 0], T, prescribed=x) for x in (None, {}))
    np.testing.assert_allclose(empty.q, plain.q, rtol=1e-12, atol=1e-13)


def test_a_held_joint_is_as_good_as_welded():
    """The lower bar of a double pendulum held still: one pendulum of both."""
    model = samples.double_pendulum()
    held = simulate(model, [1.0, 0.0], [0, 0], T, prescribed={"hinge2": lambda t: (0, 0, 0)}, **TIGHT)
    builder = kg.ModelBuilder("welded")
    both = [model.link_inertia(name) for name in ("P", "Q")]
    mass = both[0].mass + both[1].mass
    ends = both[0].com, model.placement[1, :3, 3] + both[1].com
    com = (both[0].mass * ends[0] + both[1].mass * ends[1]) / mass
    about = sum(
        b.inertia + b.mass * ((x - com) @ (x - com) * np.eye(3) - np.outer(x - com, x - com))
        for b, x in zip(both, ends, strict=True)
    )
    builder.add("hinge", None, model.joints[0], inertia=kg.Inertia(mass, com, about), placement=model.placement[0])
    welded = simulate(builder.build(), [1.0], [0.0], T, **TIGHT)
    np.testing.assert_allclose(held.q[:, 0], welded.q[:, 0], atol=1e-10)
    assert np.abs(held.tau[:, 1]).max() > 0.1, "which takes a torque"


# --- sensitivities ------------------------------------------------------------------------------------------


def extrapolated(f, p):
    """Central differences with steps 2e-4 and 1e-4, extrapolated: error about 1e-12 / 1e-4."""
    columns = []
    for direction in np.eye(p):
        coarse, fine = ((f(h * direction) - f(-h * direction)) / (2 * h) for h in (2e-4, 1e-4))
        columns.append((4 * fine - coarse) / 3)
    return np.stack(columns, axis=-1)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [None, feedback(4)], ids=["free", "feedback"])
def test_sensitivities_are_those_of_whole_simulations(tau):
    model, prescribed = chain()
    design = Design(model, DESIGN)
    slope = np.zeros((4, design.p))
    slope[[0, 2]] = np.arange(2.0 * design.p).reshape(2, -1) / 10
    run = {"prescribed": prescribed, "tau": tau, "loads": LOADS}
    follow = {"dq0_dp": slope, "dv0_dp": slope / 2}
    motion = simulate(model, *START, SHORT, design=design, **follow, **run, rtol=1e-11, atol=1e-12)

    def at(change):
        start = START[0] + slope @ change, START[1] + slope @ change / 2
        moved = simulate(design.at(design.values + change).model, *start, SHORT, **run, **TIGHT)
        return np.stack([moved.q, moved.v, moved.a, moved.tau])

    expected = extrapolated(at, design.p)
    found = np.stack([motion.dq_dp, motion.dv_dp, motion.da_dp, motion.dtau_dp])
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True) + 1e-3
    assert (np.abs(found - expected) / scale).max() < 3e-7
    assert not found[:3, :, [1, 3]].any(), "prescribed motion does not follow the design"
    assert np.abs(found[3][:, [1, 3]]).max(axis=(0, 1)).min() > 1e-3, "the torques that it takes do, all parameters"


def test_gradient_of_the_effort_of_a_drive():
    """∫ F² dt of the force that shakes the cart."""
    model = samples.cart_pendulum(**CART).replace(damping={"hinge": 0.1})
    design = Design(model, ["rod.mass", "cart.mass", "rod.com.z", "hinge.damping"])
    effort = Objective(end=[TorqueSquared()], integral=[TorqueSquared([1.0, 0.0])])
    run = {"prescribed": {"track": SHAKE}, **TIGHT}
    start = [np.nan, 0.5], [np.nan, 0.0]
    found = objective_gradient(simulate(model, *start, [0, 1], design=design, **run), effort)

    def value(change):
        moved = simulate(design.at(design.values + change).model, *start, [0, 1], **run)
        return objective_value(moved, effort)

    np.testing.assert_allclose(found.dvalue_dp, extrapolated(value, design.p), rtol=1e-7)


def test_the_jacobian_of_implicit_methods_is_exact():
    """Of free joints, against central differences of the right-hand side."""
    model, prescribed = chain()
    law = Law(model, feedback(4), None, (0.0, 2.0), LOADS, None, Prescribed(model, prescribed, 0.0, 2.0))
    y, h = np.array([0.4, -0.3, 1.2, 0.7]), 1e-5
    expected = [(rate_of(law, 0.3, y + h * e) - rate_of(law, 0.3, y - h * e)) / (2 * h) for e in np.eye(4)]
    found = jacobian_of(law, 0.3, y, sparse=True)
    assert found.shape == (4, 4)
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree_on_sensitivities(method):
    model, prescribed = chain()
    design = Design(model, DESIGN)
    run = {"prescribed": prescribed, "tau": feedback(4), "design": design}
    exact = simulate(model, *START, T, **run)
    motion = simulate(model, *START, T, **run, method=method, rtol=1e-6, atol=1e-8)
    assert motion.njev > 0 or method not in ("Radau", "BDF")
    for name in ("q", "dq_dp"):
        np.testing.assert_allclose(getattr(motion, name), getattr(exact, name), atol=5e-4)


def test_a_stiff_motion_needs_few_steps():
    """A driven bar on hard springs and dampers: with the Jacobian, an implicit method takes long steps."""
    model = samples.spatial_chain(3).replace(stiffness=np.full(3, 1e5), damping=np.full(3, 1e4))
    run = {"prescribed": {"hinge2": wave(0.3, 2.0)}}
    start = [0.01, np.nan, 0.02], [0.0, np.nan, 0.0]
    motion = simulate(model, *start, T, method="Radau", rtol=1e-6, **run)
    assert motion.success
    assert motion.steps < 300  # RK45 takes tens of thousands: stability alone limits them to 0.1 ms
    np.testing.assert_allclose(motion.q, simulate(model, *start, T, method="BDF", rtol=1e-6, **run).q, atol=1e-6)


def test_interpolation_is_as_good_as_the_samples():
    model, prescribed = chain()
    design = Design(model, DESIGN)
    few, many = (simulate(model, *START, t, prescribed=prescribed, design=design) for t in ([0, 2], T))
    between = few.interpolate(T)
    for name in ("q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp"):
        np.testing.assert_allclose(getattr(between, name), getattr(many, name), atol=1e-11)


# --- motions of every kind ----------------------------------------------------------------------------------


def test_motions_of_every_kind_agree():
    """The cubic 0.1 + 0.3 t − 0.2 t² + 0.05 t³, as SciPy's splines know it."""
    cubic = np.polynomial.Polynomial([0.1, 0.3, -0.2, 0.05])
    knots = np.linspace(0, 2, 5)
    kinds = {
        "function": lambda t: [cubic(t), cubic.deriv()(t), cubic.deriv(2)(t)],
        "PPoly": PPoly(np.array([cubic.coef[::-1]]).T, [0.0, 2.5]),
        "CubicSpline": CubicSpline(knots, cubic(knots)),
        "BSpline": make_interp_spline(knots, cubic(knots), k=3),
        "quintic": make_interp_spline(np.linspace(0, 2, 9), cubic(np.linspace(0, 2, 9)), k=5),
        "BPoly": BPoly.from_derivatives(knots, np.stack([cubic(knots), cubic.deriv()(knots)], axis=1)),
    }
    model = samples.cart_pendulum()
    motions = [simulate(model, [0.1, 0.5], [0.3, 0], T, prescribed={"track": x}) for x in kinds.values()]
    for name, motion in zip(kinds, motions, strict=True):
        np.testing.assert_allclose(motion.q, motions[0].q, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(motion.tau, motions[0].tau, atol=1e-9, err_msg=name)


def test_periodic_motion():
    """A spline of one period, for three of them; from a time before its knots, too."""
    knots = np.linspace(0, 2 * np.pi, 30)
    curve = CubicSpline(knots, np.append(np.sin(knots[:-1]), 0.0), bc_type="periodic")
    model, t = samples.cart_pendulum(), np.linspace(-1, 18, 40)
    motion = simulate(model, [np.nan, 0.2], [np.nan, 0.0], t, prescribed={"track": curve})
    assert motion.success
    np.testing.assert_allclose(motion.q[:, 0], np.sin(t), atol=1e-4)  # as well as the spline follows the sine
    jump = PPoly(np.array([[1.0], [0.0]]), [0.0, 1.0], extrapolate="periodic")  # a saw
    with pytest.raises(InputError, match=r"whose coordinate jumps by 1 at t = 1 s"):
        simulate(model, [0, 0], [1, 0], [0, 2], prescribed={"track": jump})
    simulate(model, [0, 0], [1, 0], [0, 0.9], prescribed={"track": jump})


def test_the_start_is_that_of_the_motion():
    """NaN stands for it, and what agrees to 1e-9 is replaced by it."""
    model = samples.cart_pendulum()
    x, dx, _ = SHAKE(0.0)
    starts = [([np.nan, 0.5], [np.nan, 0]), ([x, 0.5], [dx, 0]), ([x + 5e-10, 0.5], [dx - 5e-10, 0])]
    one, *others = (simulate(model, *start, T, prescribed={"track": SHAKE}) for start in starts)
    for other in others:
        assert np.array_equal(one.q, other.q)
    assert one.q[0, 0] == x


# --- what is refused ----------------------------------------------------------------------------------------


def still(t):
    return 0.0, 0.0, 0.0


CORNER = PPoly(np.array([[1.0, -1.0], [0.0, 1.0]]), [0.0, 1.0, 2.0])  # up and down again
STEP = PPoly(np.array([[0.0, 1.0]]), [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prescribed": {"trak": still}}, r"joint 'trak' does not exist in model .*; did you mean 'track'"),
        ({"prescribed": ["track"]}, r"`prescribed` is a list; expected a dictionary from names of joints"),
        ({"prescribed": {"track": still, "hinge": still}}, r"names all joints of model 'cart_pendulum'.*inverse_dyn"),
        ({"prescribed": {"track": 3.0}}, r"`prescribed\['track'\]` is a float; expected a SciPy spline"),
        ({"prescribed": {"track": lambda t: 0.0}}, r"`prescribed\['track'\]` gives shape \(\) at t = 0 s"),
        ({"prescribed": {"track": lambda t: np.zeros((3, 1))}}, r"gives shape \(3, 1\) at t = 0 s; expected three"),
        ({"prescribed": {"track": lambda t: None}}, r"`prescribed\['track'\]` holds NoneType"),
        ({"prescribed": {"track": lambda t: (0, 0, 1j)}}, r"`prescribed\['track'\]` holds complex numbers"),
        ({"prescribed": {"track": lambda t: (0, 0, np.nan)}}, r"gives q, v, a = \[0.0, 0.0, nan\] at t = 0 s"),
        ({"prescribed": {"track": lambda t: (0, 0, np.inf if t > 1 else 0)}}, r"gives q, v, a = .*inf\] at t = 1\."),
        ({"prescribed": {"track": CubicSpline([0, 1, 2], np.zeros((3, 2)))}}, r"spline of arrays of shape \(2,\)"),
        ({"prescribed": {"track": PPoly(np.zeros((4, 1), complex), [0, 2])}}, r"spline of complex numbers"),
        ({"prescribed": {"track": make_interp_spline([0, 1, 2], [0, 0, 0], k=1)}}, r"degree 1, whose speed jumps"),
        ({"prescribed": {"track": CubicSpline([0, 1, 1.5], [0, 0, 0])}}, r"from 0 to 1.5 s; the simulation .* to 2"),
        ({"prescribed": {"track": make_interp_spline([1, 2, 3, 4], np.zeros(4))}}, r"from 1 to 4 s; .* from 0 to 2"),
        ({"prescribed": {"track": CORNER}}, r"whose speed jumps by 2 at t = 1 s, which takes an infinite force"),
        ({"prescribed": {"track": STEP}}, r"whose coordinate jumps by 1 at t = 1 s"),
        ({"q0": [0.1, 0]}, r"`q0` is 0.1 at joint 'track', whose prescribed motion begins with 0; .* to 1e-09, or NaN"),
        ({"v0": [2e-9, 0]}, r"`v0` is 2e-09 at joint 'track'"),
        ({"v0": [np.inf, 0]}, r"`v0` is inf at joint 'track'"),
        ({"q0": [0, np.nan]}, r"`q0` at index \(1,\) is nan; expected finite numbers"),
        ({"q0": np.zeros((4, 2))}, r"batch shape \(4,\)"),
        ({"q0": np.zeros(3)}, r"`q0` has shape \(3,\)"),
        ({"dq0_dp": [[1.0], [0.0]]}, r"`dq0_dp` is not zero at joint 'track', whose motion is prescribed"),
        ({"dv0_dp": [[1.0], [0.0]]}, r"`dv0_dp` is not zero at joint 'track'"),
        ({"progress": 3}, r"`progress` is 3; expected True, or a function"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(change, message):
    model = samples.cart_pendulum()
    usual = {"q0": [0, 0], "v0": [0, 0], "t": [0, 2], "prescribed": {"track": still}}
    design = Design(model, ["cart.mass"])
    with pytest.raises(InputError, match=message):
        simulate(model, **(usual | change), design=design)


def test_a_corner_that_is_not_met_is_accepted():
    """The motion ends where the corner is: until then the cart moves at 1 m/s."""
    t = np.linspace(0, 1, 5)
    motion = simulate(samples.cart_pendulum(), [0, 0], [1, 0], t, prescribed={"track": CORNER})
    assert motion.success
    np.testing.assert_array_equal(motion.q[:, 0], t)
    np.testing.assert_array_equal(motion.v[:, 0], 1.0)
    np.testing.assert_array_equal(motion.a[:, 0], 0.0)


def test_divergence_names_a_free_joint():
    """Though the driven one is faster."""

    def push(t, q, v):
        return np.array([np.nan, v[1] ** 3])  # what is given for a driven joint is ignored

    race = {"track": lambda t: (1e7 * t, 1e7, 0.0)}
    motion = simulate(samples.cart_pendulum(), [0, 0.5], [1e7, 2.0], T, tau=push, prescribed=race)
    assert not motion.success
    assert "joint 'hinge'" in motion.message


def test_nothing_need_resist_a_driven_joint():
    """A leaf without mass, held; free it is singular, which names the time."""
    model = samples.double_pendulum().replace(mass=[1.0, 0.0], com={"Q": [0, 0, 0]})
    assert simulate(model, [1, 0], [0, 0], T, prescribed={"hinge2": still}).success
    with pytest.raises(SingularError, match=r"at t = 0 s nothing resists joint 'hinge2'"):
        simulate(model, [0, 0], [0, 0], T, prescribed={"hinge1": still})


# --- progress -----------------------------------------------------------------------------------------------


def explode(t, q, v):
    return np.array([0.0, 10 * v[1] ** 3])


def bars():
    """Threads that still draw a bar, though they were told to end."""
    drawing = [thread for thread in threading.enumerate() if "Refresh" in type(thread).__name__]
    for thread in drawing:
        thread.join(LIMIT)
    return [thread for thread in drawing if thread.is_alive()]


@pytest.mark.parametrize("tau", [None, explode], ids=["reaches the end", "diverges"])
def test_a_bar_is_shown_and_closed(capsys, tau):
    """On stderr, here not a terminal: one line when it is over."""
    motion = simulate(samples.double_pendulum(), [1, 0.5], [0, 2], T, tau=tau, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("simulating") == 1
    if motion.success:
        assert "100%" in err
        assert "t = 2 of 2 s" in err
    else:
        assert tau is explode
        assert "100%" not in err
        assert "of 2 s" in err
    assert not bars()


def test_a_bar_closes_after_an_error(capsys, monkeypatch):
    """The cursor of a terminal is given back."""

    def fail(t, q, v):
        if t > 0.5:
            raise RuntimeError("stop")
        return 0 * q

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(RuntimeError, match="stop"):
        simulate(samples.double_pendulum(), [1, 0.5], [0, 0], T, tau=fail, progress=True)
    err = capsys.readouterr().err
    assert err.count("\x1b[?25l") == err.count("\x1b[?25h") == 1
    assert not bars()


def test_no_bar_unless_asked(capsys):
    for progress in (None, False):
        simulate(samples.double_pendulum(), [1, 0.5], [0, 0], [0, 0.1], progress=progress)
    assert capsys.readouterr() == ("", "")
