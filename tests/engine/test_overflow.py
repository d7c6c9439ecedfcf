"""Finite numbers whose results overflow: an error that names the state, never NaN or infinity without a word."""

import warnings

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, KinegradError, samples
from kinegrad import _engine as engine
from kinegrad._kernels.lanes.finite import LARGEST
from kinegrad.simulate import Feedback, KineticEnergy, Objective, adjoint_gradient, simulate_fixed
from tests.conftest import random_loads, random_state

TREE = samples.random_tree(5, seed=3, roots=2).replace(armature=np.full(5, 0.3))  # hinges, sliders, screws
N = TREE.n


def design_of(model):
    return kg.Design(model, ["link2.mass", "joint1.placement.x", "gravity.z"])


# every public function of states: (model, q, v, a, w) → a result
FUNCTIONS = {
    "inverse_dynamics": lambda m, q, v, a, w: kg.inverse_dynamics(m, q, v, a),
    "loads": lambda m, q, v, a, w: kg.inverse_dynamics(m, q, v, a, loads=random_loads(m)),
    "lagrange": lambda m, q, v, a, w: kg.inverse_dynamics(m, q, v, a, method="lagrange"),
    "bias_forces": lambda m, q, v, a, w: kg.bias_forces(m, q, v),
    "gravity_forces": lambda m, q, v, a, w: kg.gravity_forces(m, q),
    "mass_matrix": lambda m, q, v, a, w: kg.mass_matrix(m, q),
    "forward_dynamics": lambda m, q, v, a, w: kg.forward_dynamics(m, q, v, a),
    "forward_dynamics_crba": lambda m, q, v, a, w: kg.forward_dynamics(m, q, v, a, method="crba"),
    "hybrid_dynamics": lambda m, q, v, a, w: kg.hybrid_dynamics(m, q, v, a, w, prescribed=m.joint_names[::2]),
    "forward_kinematics": lambda m, q, v, a, w: kg.forward_kinematics(m, q, v, a),
    "velocities": lambda m, q, v, a, w: kg.forward_kinematics(m, q, v),
    "transforms": lambda m, q, v, a, w: kg.forward_kinematics(m, q),
    "point_motion": lambda m, q, v, a, w: kg.point_motion(m, q, v, a, link=["link2", "link4"]),
    "jacobian": lambda m, q, v, a, w: kg.jacobian(m, q, link="link4"),
    "kinetic_energy": lambda m, q, v, a, w: kg.kinetic_energy(m, q, v),
    "potential_energy": lambda m, q, v, a, w: kg.potential_energy(m, q),
    "center_of_mass": lambda m, q, v, a, w: kg.center_of_mass(m, q),
    "momentum": lambda m, q, v, a, w: kg.momentum(m, q, v),
    "inverse_dynamics_regressor": lambda m, q, v, a, w: kg.inverse_dynamics_regressor(m, q, v, a),
    "inverse_dynamics_derivatives": lambda m, q, v, a, w: kg.inverse_dynamics_derivatives(m, q, v, a),
    "lagrange_derivatives": lambda m, q, v, a, w: kg.inverse_dynamics_derivatives(m, q, v, a, method="lagrange"),
    "packed": lambda m, q, v, a, w: kg.inverse_dynamics_derivatives(m, q, v, a, packed=True),
    "forward_dynamics_derivatives": lambda m, q, v, a, w: kg.forward_dynamics_derivatives(m, q, v, a),
    "jvp": lambda m, q, v, a, w: kg.inverse_dynamics_jvp(m, q, v, a, w, v, a),
    "vjp": lambda m, q, v, a, w: kg.inverse_dynamics_vjp(m, q, v, a, w),
    "load_derivatives": lambda m, q, v, a, w: kg.inverse_dynamics_load_derivatives(m, q, loads=random_loads(m)),
    "forward_kinematics_derivatives": lambda m, q, v, a, w: kg.forward_kinematics_derivatives(m, q, v, a),
    "point_motion_derivatives": lambda m, q, v, a, w: kg.point_motion_derivatives(m, q, v, a, link="link4"),
    "center_of_mass_derivatives": lambda m, q, v, a, w: kg.center_of_mass_derivatives(m, q),
    "momentum_derivatives": lambda m, q, v, a, w: kg.momentum_derivatives(m, q, v),
    "design tau": lambda m, q, v, a, w: kg.inverse_dynamics_design_derivatives(design_of(m), q, v, a),
    "design vjp": lambda m, q, v, a, w: kg.inverse_dynamics_design_vjp(design_of(m), q, v, a, w),
    "design a": lambda m, q, v, a, w: kg.forward_dynamics_design_derivatives(design_of(m), q, v, a),
    "design hybrid": lambda m, q, v, a, w: kg.hybrid_dynamics_design_derivatives(
        design_of(m), q, v, a, w, prescribed=m.joint_names[::2]
    ),
    "design M": lambda m, q, v, a, w: kg.mass_matrix_design_derivatives(design_of(m), q),
    "design T": lambda m, q, v, a, w: kg.transform_design_derivatives(design_of(m), q),
    "design points": lambda m, q, v, a, w: kg.point_motion_design_derivatives(design_of(m), q, v, a, link="link4"),
    "design energy": lambda m, q, v, a, w: kg.energy_design_derivatives(design_of(m), q, v),
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def arrays_of(result):
    fields = [result] if isinstance(result, np.ndarray) else vars(result).values()
    return [getattr(x, "values", x) for x in fields if x is not None]


def finite_or_refused(function, *arguments):
    """Without a warning either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = function(*arguments)
        except KinegradError as error:
            return error
    for x in arrays_of(result):
        assert np.isfinite(x).all()
    return None


@every_function
@pytest.mark.parametrize("size", [1e60, 1e100, 1e154, 1e200, 1e300, 1.7e308])
@pytest.mark.parametrize("which", range(4))
def test_large_numbers(function, size, which):
    """In each argument in turn, alone and in the middle of a batch."""
    for batch in ((), (7,)):
        state = list(np.random.default_rng(1).uniform(-1.0, 1.0, size=(4, *batch, N)))
        state[which][(3,) if batch else ()] *= size
        error = finite_or_refused(function, TREE, *state)
        if error is not None and batch:
            assert "state 3" in str(error)


@every_function
@pytest.mark.parametrize(
    "change",
    [
        {"mass": {"link2": 1e99}},
        {"mass": {"link2": 1e-300}},
        {"armature": {"joint1": 1e98}},
        {"stiffness": {"joint1": 1e99}},
        {"gravity": [0.0, 1e99, -1e99]},
        {"placement": {"joint1": kg.translate(x=1e99)}},
    ],
    ids=lambda change: f"{next(iter(change))}",
)
def test_extreme_constants(function, change):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = TREE.replace(**change)
        except KinegradError:
            return
    for batch in ((), (7,)):
        finite_or_refused(function, model, *np.random.default_rng(1).normal(size=(4, *batch, N)))


def test_inertial_parameters():
    """The largest constants that a model may have: products of three of them are finite."""
    model = TREE.replace(mass={"link2": 1e100}, com={"link2": [1e100, -1e100, 1e100]})
    assert finite_or_refused(kg.inertial_parameters, model) is None


def test_the_first_state_is_named_whatever_the_threads(monkeypatch):
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)
    q, v, a = random_state(TREE, batch=(6, 50))
    v[4, 30], v[2, 10], v[5, 0] = 1e250, -1e200, 1e300
    for threads in (1, 2, 7):
        for function in (kg.inverse_dynamics, kg.forward_dynamics, kg.inverse_dynamics_derivatives):
            with pytest.raises(InputError, match=r"of state \(2, 10\) are not finite: .* `v` has numbers of up to"):
                function(TREE, q, v, a, threads=threads)


def test_one_state_has_no_number():
    with pytest.raises(InputError, match="the results are not finite: they overflow float64, where `v` has"):
        kg.inverse_dynamics(TREE, np.zeros(N), np.full(N, 1e200), np.zeros(N))


def test_large_numbers_with_finite_results_are_not_refused():
    q, v, a = random_state(TREE, batch=(3,))
    assert np.isfinite(kg.inverse_dynamics(TREE, q, v, 1e200 * a)).all()
    assert np.isfinite(kg.forward_dynamics(TREE, q, v, 1e200 * a)).all()
    assert np.isfinite(kg.kinetic_energy(TREE, q, 1e100 * v)).all()


def test_only_what_is_returned_must_be_finite():
    """Velocities are, where accelerations, which go with their squares, are not."""
    q, v, _ = random_state(TREE)
    assert np.isfinite(kg.forward_kinematics(TREE, q, 1e200 * v).linear_velocity).all()
    assert np.isfinite(kg.point_motion(TREE, q, 1e200 * v, link="link4").velocity).all()
    assert np.isfinite(kg.momentum(TREE, q, 1e200 * v).linear).all()


def test_a_pivot_that_overflows_is_not_called_free():
    """Far out on a slider inertias overflow; that nothing resists a joint would be another trouble."""
    slider = samples.cart_pendulum()
    for function in (kg.forward_dynamics, kg.forward_dynamics_derivatives):
        error = finite_or_refused(function, slider, np.array([1e200, 0.1]), np.zeros(2), np.zeros(2))
        assert error is None or isinstance(error, InputError)
    with pytest.raises(kg.SingularError):  # and this is that trouble
        kg.forward_dynamics(samples.human43(), np.zeros(43), np.full(43, 1e100), np.zeros(43))


def test_slopes_that_overflow():
    design = design_of(TREE)
    q, v, a = random_state(TREE, batch=(4,))
    huge = np.zeros((4, N, design.p))
    huge[2] = 1.7e308
    with pytest.raises(InputError, match="of state 2 are not finite"):
        kg.forward_dynamics_design_derivatives(design, q, v, a, dq_dp=huge, dv_dp=huge)


def test_fixed_steps_say_that_a_motion_diverges():
    """There it is not the arguments' fault: states are NaN from then on, and the message says which and when."""
    q, v, _ = random_state(TREE, batch=(3,))
    v[1] = 1e200
    for tau in (None, lambda t, q, v: np.zeros_like(q)):
        motion = simulate_fixed(TREE, q, v, step=0.01, steps=5, tau=tau)
        assert not motion.success
        assert "1 of 3 states diverged; the first: state 1 diverged" in motion.message
        assert np.isfinite(motion.q[:, [0, 2]]).all()


@pytest.mark.parametrize("tau", [None, Feedback(lambda t, q, v: np.zeros_like(q), None, None)])
def test_fixed_steps_say_that_derivatives_overflow(tau):
    q, v, _ = random_state(TREE, batch=(3,))
    slope = np.zeros((3, N, 1))
    slope[1] = 1.7e308
    design = kg.Design(TREE, ["gravity.z"])
    motion = simulate_fixed(TREE, q, v, step=0.01, steps=4, every=2, tau=tau, design=design, dq0_dp=slope)
    assert np.isfinite(motion.q).all()
    assert not motion.success
    assert "the derivatives of state 1 diverged at t = 0" in motion.message


@pytest.mark.parametrize("speed", [1e40, 1e76, 1e120, 1e153, 1e200])
@pytest.mark.parametrize("design", [None, kg.Design(TREE, ["gravity.z"])], ids=["states", "design"])
def test_the_adjoint_overflows(speed, design):
    """Of a motion that does, or of one that does not quite: neither is an argument's fault."""
    objective = Objective(integral=[KineticEnergy()], end=[KineticEnergy()])

    def gradient(model, q, v):
        return adjoint_gradient(model, q, v, objective, step=1e-3, steps=3, design=design)

    error = finite_or_refused(gradient, TREE, np.zeros(N), np.full(N, speed))
    assert error is None or isinstance(error, kg.SolveError | kg.SingularError)
    assert error is not None or speed < 1e100


@pytest.mark.parametrize("size", [0.999, 1.001])
def test_the_bound_of_ordinary_numbers(size):
    """On either side of it, where results are looked at and where they may not be: finite, the same bits as alone."""
    model = samples.random_tree(5, seed=3, kinds=("revolute",))
    q, v, a = (size * LARGEST * np.sign(x) for x in random_state(model, batch=(9,)))
    for function in (kg.inverse_dynamics, kg.forward_dynamics, kg.inverse_dynamics_derivatives):
        together = arrays_of(function(model, q, v, a))
        alone = arrays_of(function(model, q[4], v[4], a[4]))
        for x, y in zip(together, alone, strict=True):
            assert np.isfinite(x).all()
            assert x[4].tobytes() == y.tobytes()


def test_nearly_everything_large_at_once_is_finite_below_the_bound():
    """The bound leaves room for the highest products there are: seven numbers of a state.

    Forward dynamics of hinges only: that far out on a slider, the inertia of a link is noise in that of the whole.
    """
    rng = np.random.default_rng(4)
    state = LARGEST * rng.uniform(0.1, 0.99, size=(4, 5, N)) * rng.choice([-1.0, 1.0], size=(4, 5, N)) / 20
    hinges = samples.random_tree(5, seed=3, kinds=("revolute",))
    for name, function in FUNCTIONS.items():
        divides = any(word in name for word in ("forward_dynamics", "hybrid", "design a"))
        assert finite_or_refused(function, hinges if divides else TREE, *state) is None, name


POINTS = {
    "point_motion": lambda v, **point: kg.point_motion(TREE, np.ones(N), v, v, **point),
    "jacobian": lambda v, **point: kg.jacobian(TREE, np.ones(N), **point),
    "point_motion_derivatives": lambda v, **point: kg.point_motion_derivatives(TREE, np.ones(N), v, v, **point),
    "design": lambda v, **point: kg.point_motion_design_derivatives(design_of(TREE), np.ones(N), v, v, **point),
}


@pytest.mark.parametrize("function", POINTS.values(), ids=POINTS.keys())
def test_points_so_far_away_that_their_motion_overflows(function):
    """Kernels look at states; points are looked at here."""
    with pytest.raises(InputError, match=r"not finite: they overflow.*where `point` has numbers of up to 1\.7e\+308"):
        function(np.full(N, 10.0), link="link4", point=[1.7e308, 1.7e308, 0.0])
    for x in vars(function(np.full(N, 10.0), link="link4", point=[1e100, 0, 0])).values():
        assert np.isfinite(x).all()


@pytest.mark.parametrize("states", [(), (100,)])
@pytest.mark.parametrize(
    "function",
    [
        lambda *x, **point: kg.jacobian(TREE, x[0], **point),
        lambda *x, **point: kg.point_motion(TREE, *x, **point),
        lambda *x, **point: kg.point_motion_derivatives(TREE, *x, **point),
    ],
    ids=["jacobian", "point_motion", "point_motion_derivatives"],
)
def test_points_that_overflow_at_ordinary_states(function, states):
    state = np.random.default_rng(0).normal(size=(3, *states, N))
    with pytest.raises(InputError, match=r"the results.* are not finite: they overflow float64"):
        function(*state, link="link4", point=[1.7e308, 1.7e308, -1.7e308])


def test_results_that_were_not_written_are_not_looked_at(monkeypatch):
    """Those of the other lanes, where a pivot overflows: memory is not always fresh, and may hold anything."""
    monkeypatch.setattr(np, "empty", lambda shape: np.full(shape, np.nan))
    q, v, tau = np.zeros((3, 7, N))
    q[3] = 1.7e308
    for function in (kg.forward_dynamics, kg.forward_dynamics_derivatives):
        with pytest.raises(InputError, match="the results of state 3 are not finite"):
            function(TREE, q, v, tau)
