"""Designs whose models are built by a function, and loads that are parameters: slopes, derivatives, what is refused."""

import math
import re

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad import Design, Inertia, InputError, Loads, Model, ModelBuilder, samples
from kinegrad.compare import numerical_jacobian
from tests.conftest import assert_close, random_loads, random_state, tree

XYZ = "xyz"


def differences(f, x):
    """Central differences by steps h, h/2, …, h/16, extrapolated (Romberg): good to some 1e-11 of the largest."""
    columns = []
    for k, x_k in enumerate(x):
        table = []
        for h in 0.02 * max(abs(x_k), 0.1) / 2.0 ** np.arange(5):
            row = [(np.asarray(f(x + h * np.eye(len(x))[k])) - f(x - h * np.eye(len(x))[k])) / (2 * h)]
            for j, before in enumerate(table[-1] if table else ()):
                row.append(row[j] + (row[j] - before) / (4 ** (j + 1) - 1))
            table.append(row)
        columns.append(table[-1][-1])
    return np.stack(columns, axis=-1)


def machine(p):
    """Everything that can be computed about a model depends on p, in ways that are not linear."""
    L, m, r, k, angle = p
    builder = ModelBuilder("machine", gravity=[0.1 * m, 0, -9.81 * np.cos(angle)])
    builder.add(
        "slide", None, kg.prismatic("x"), link="cart", inertia=Inertia.box(m**2, [L, r, 0.3], com=[L, 0, m]),
        placement=kg.rotate([1, angle, 0.2], angle) @ kg.translate(L, r * m, np.sin(k)), damping=k**2,
    )  # fmt: skip
    body = Inertia.frustum(m, r, 2 * r, [0, 0, 0], [L, 0, r]) + Inertia.sphere(1 + m, r, [0, L, 0])
    builder.add(
        "turn", "cart", kg.screw([0, 1, 1], pitch=0.1 * L * k), link="arm",
        inertia=body.moved(kg.rotate("y", angle * L)), tip=[0, L / m, 0], stiffness=np.exp(k), rest=np.sqrt(L),
    )  # fmt: skip
    pseudo = Inertia.about_frame(m, [0, 0, L], np.diag([2 + m * L**2, 2.0 + m * L**2, 1.0])).pseudo
    builder.add(
        "end", "arm", kg.spherical("zyx"), link="hand", inertia=Inertia.from_pseudo(pseudo * k),
        placement=kg.rotate("z", np.pi / 2 + 0 * angle), armature=[k, L, m],
    )  # fmt: skip
    return builder.build()


VALUES = np.array([0.7, 1.3, 0.2, 0.9, 0.4])


def geared(follow, r):
    builder = ModelBuilder("geared")
    body = Inertia.rod(1.0, [0, 0, 0], [0.4, 0, 0])
    builder.add("motor", None, kg.revolute("y"), link="upper", inertia=body)
    builder.add("elbow", "upper", kg.revolute("y"), placement=[0.4, 0, 0], inertia=body)
    builder.couple("motor", {"motor": 1.0, "elbow": follow(r)})
    return builder.build()


@pytest.mark.parametrize(
    ("follow", "named"),
    [
        (lambda r: r, "`multiplier` of a LinearFunction"),
        (lambda r: kg.LinearFunction(r, 0.1), "`multiplier` of a LinearFunction"),
        (lambda r: kg.LinearFunction(2.0, r), "`offset` of a LinearFunction"),
        (lambda r: kg.PolynomialFunction([0.1, 1.0, r]), "`coefficients` of a PolynomialFunction"),
        (lambda r: kg.SplineFunction([0.0, 1.0, 2.0], [0.0, r, 1.0]), "`values` of a SplineFunction"),
        (lambda r: kg.SplineFunction([0.0, 1.0, 1.0 + r], [0.0, 0.1, 1.0]), "`knots` of a SplineFunction"),
        (lambda r: CubicSpline([0.0, 1.0, 2.0], np.array([0.0, r, 1.0])), "a spline of SciPy"),
    ],
)
def test_constants_of_couplings_cannot_vary(follow, named):
    """The message says why, and what to do instead."""
    why = "constant of the map from coordinates to joints, which is not differentiated with respect to parameters"
    found = rf"by 'r': {re.escape(named)} varies with the parameters; .*{why}.*numerical_jacobian.*model\.primitive"
    with pytest.raises(InputError, match=found) as error:
        Design.from_function(lambda r: geared(follow, r), {"r": 2.0})
    assert "analytic" not in str(error.value)


def test_couplings_and_axes_that_follow_real_parts_alone_are_refused():
    """Their slopes were cut off, and derivatives with respect to them were zero without a word."""
    with pytest.raises(InputError, match="gives other coordinates when 'r' varies; expected the same couplings"):
        Design.from_function(lambda r: geared(np.real, r), {"r": 2.0})

    def tilted(angle):
        angle = np.real(angle)
        axis = [np.sin(angle), 0, np.cos(angle)]
        return tree(3).replace(joints=[kg.revolute(axis), *tree(3).joints[1:]])

    with pytest.raises(InputError, match="gives another joint when 'angle' varies"):
        Design.from_function(tilted, {"angle": 0.3})


def test_slopes_equal_differences():
    design = Design.from_function(machine, VALUES)
    for what in ("placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature"):
        expected = differences(lambda p, what=what: getattr(machine(p), what), VALUES)
        assert_close(np.moveaxis(expected, -1, 0), design._variation[what], 1e-9)
    pitch = differences(lambda p: np.array([j.pitch for j in machine(p).joints]), VALUES)
    assert_close(np.moveaxis(pitch, -1, 0), design._variation["pitch"], 1e-9)


def test_torques_and_accelerations_equal_differences():
    design = Design.from_function(machine, VALUES)
    q, v, a = random_state(design.model, 1, (3,))
    for exact, f in (
        (kg.inverse_dynamics_design_derivatives(design, q, v, a), lambda p: kg.inverse_dynamics(machine(p), q, v, a)),
        (kg.forward_dynamics_design_derivatives(design, q, v, a), lambda p: kg.forward_dynamics(machine(p), q, v, a)),
    ):
        assert_close(differences(f, VALUES), exact, 1e-8)  # limited by the differences


def test_pendulum_by_function_equals_its_constants():
    values = {"L1": 0.8, "L2": 1.1, "MP": 1.0, "MQ": 2.0}
    built = Design.from_function(samples.double_pendulum, values)
    lengths = {"L1": {"P.com.z": -1, "hinge2.placement.z": -1}, "L2": {"Q.com.z": -1}}
    named = Design(samples.double_pendulum(**values), lengths | {"MP": "P.mass", "MQ": "Q.mass"})
    for x, y in zip(built._slopes, named._slopes, strict=True):
        assert np.array_equal(x, y)
    assert built.names == tuple(values)
    assert built.values.tolist() == list(values.values())
    assert built.at([1, 1, 1, 1]).model == samples.double_pendulum()
    assert built.at(built.values).model == built.model


def test_human_by_lengths_and_masses():
    def human(thigh, shank, mass):
        return samples.human43(lengths={"thigh": thigh, "shank": shank}, masses={"thigh": mass}, thickness=0.1)

    values = {"thigh": 0.42, "shank": 0.4, "mass": 8.0}
    design = Design.from_function(human, values)
    q, v, a = random_state(design.model, 2, (2,))
    exact = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    assert_close(differences(lambda p: kg.inverse_dynamics(human(*p.tolist()), q, v, a), design.values), exact, 1e-9)


def test_function_may_leave_reals_untouched_and_skip_parameters():
    design = Design.from_function(lambda used, unused: samples.double_pendulum(L1=used), {"used": 1.0, "unused": 3.0})
    assert not kg.mass_matrix_design_derivatives(design, [0.1, 0.2])[..., 1].any()


def test_comparisons_are_welcome():
    def arm(L):
        if L <= 0:
            raise kg.ModelError("no such arm")
        return samples.double_pendulum(L1=min(L, 5.0), MQ=1.0 if L < 2 else 3.0)

    assert Design.from_function(arm, {"L": 1.0})._variation["com"][0, 0, 2] == -1


def test_at_the_border_of_what_can_exist():
    """A spring that may not be negative damping: only one side can be compared, the slope is exact all the same."""
    base = samples.double_pendulum()
    design = Design.from_function(lambda d: base.replace(damping=[d, 0]), {"d": 0.0})
    assert design._variation["damping"].tolist() == [[1.0, 0.0]]


def _axis(L):
    builder = ModelBuilder("bent")
    builder.add("hinge", None, kg.revolute([0, L, 1]), inertia=Inertia.sphere(1, 0.1))
    return builder.build()


def _written(L):
    T = np.eye(4)
    T[2, 3] = L
    return samples.double_pendulum().replace(placement={"hinge2": T})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda L: samples.double_pendulum(L1=abs(L)), "is not analytic in 'L' at 2.*slope of `placement`"),
        (lambda L: samples.double_pendulum(L1=np.linalg.norm([L, 1])), "is not analytic in 'L'"),
        (lambda L: samples.double_pendulum(L1=np.real(L)), "is not analytic in 'L'"),
        (lambda L: samples.double_pendulum(L1=max(L, 2.0)), "is not analytic in 'L'"),
        (lambda L: samples.double_pendulum(L1=float(L)), "by 'L': it makes a plain number"),
        (lambda L: samples.double_pendulum(L1=math.sqrt(L)), "by 'L': it makes a plain number"),
        (_written, "by 'L': it makes a plain number"),
        (_axis, "`axis` of a joint varies"),
        (lambda L: samples.multi_pendulum(2 if np.imag(L) else 3), "another `joint_names` when 'L' varies"),
        (lambda L: "model", "returns a str; expected a Model"),
        (lambda L: (samples.two_link(), 3), "returns a tuple; expected a Model"),
        (lambda L: samples.double_pendulum(L1=np.random.default_rng().random()), "different models for the same"),
        (lambda L: samples.double_pendulum(L1=L if np.real(L) == 2 else np.inf), "fails on both sides of 'L' = 2"),
        (lambda L: kg.mass_matrix(samples.double_pendulum(L1=L), [0, 0]) and None, "returns a|ambiguous|real numbers"),
    ],
)
def test_functions_that_do_not_qualify(function, message):
    with pytest.raises((InputError, ValueError), match=re.compile(message, re.DOTALL)):
        Design.from_function(function, {"L": 2.0})


def test_functions_that_qualify_here_but_not_there():
    design = Design.from_function(
        lambda L: samples.double_pendulum(L1=L if L > 0.5 else np.linalg.norm([L])), {"L": 1.0}
    )
    moved = design.at([0.4])
    with pytest.raises(InputError, match=r"is not analytic in 'L' at 0.4"):
        kg.mass_matrix_design_derivatives(moved, [0, 0])
    grows = Design.from_function(lambda p: samples.multi_pendulum(2 if p[0] < 1.5 else 3, length=p[0]), [1.0])
    with pytest.raises(InputError, match=r"another `joint_names` at \[2.0\]; expected the same tree"):
        grows.at([2.0])


def _asks_for_torques(L):
    model = samples.double_pendulum(L1=L)
    tau = kg.inverse_dynamics(model, [0.1, 0.2], [0, 0], [0, 0])
    return model.replace(rest=tau)


@pytest.mark.parametrize(
    "function",
    [
        _asks_for_torques,
        lambda L: samples.double_pendulum(L1=kg.forward_dynamics(samples.double_pendulum(L1=L), *np.ones((3, 2)))[0]),
        lambda L: samples.double_pendulum(L1=kg.mass_matrix(samples.double_pendulum(L1=L), np.ones((5, 2)))[0, 0, 0]),
        lambda L: samples.double_pendulum(L1=kg.center_of_mass(samples.double_pendulum(L1=L), [0, 0])[2]),
        lambda L: samples.double_pendulum(L1=kg.inverse_dynamics(samples.double_pendulum(), [L, 0], [0, 0], [0, 0])[0]),
        lambda L: samples.double_pendulum(L1=Design(samples.double_pendulum(L1=L), ["Q.mass"])._slopes[0][0, 0] + 1),
        lambda L: samples.double_pendulum(L1=np.interp(L, [0, 3], [0, 3])),
    ],
)
def test_functions_that_ask_for_dynamics_are_refused(function):
    """Kernels take plain numbers only; they say so, instead of failing to compile."""
    with pytest.raises(InputError, match="cannot be differentiated by 'L'"):
        Design.from_function(function, {"L": 2.0})


def test_models_with_slopes_are_refused_by_name():
    """Those that a function puts aside, too."""
    kept = []

    def keeping(L):
        kept.append(samples.double_pendulum(L1=L))
        return kept[-1]

    Design.from_function(keeping, {"L": 2.0})
    carrying = next(model for model in kept if model.carries_slopes)
    with pytest.raises(InputError, match="'double_pendulum' is made of numbers that carry slopes"):
        kg.inverse_dynamics(carrying, *np.zeros((3, 2)))


def test_functions_that_do_not_take_the_values():
    for values in ({"L9": 1.0}, {"L1": 1.0, 3: 2.0}, [1.0]):
        with pytest.raises(InputError, match=r"`function` does not take (one array|arguments called)"):
            Design.from_function(samples.double_pendulum, values)


def test_values_cannot_be_written():
    for design in (Design(samples.two_link(), ["forearm.mass"]), Design.from_function(machine, VALUES)):
        with pytest.raises(ValueError, match="read-only"):
            design.values[0] = 9.0


@pytest.mark.parametrize("values", [{}, [], [[1.0]], {"L1": np.nan}, {"L1": "long"}, 1.0, None, {"L1": [1.0, 2.0]}])
def test_values_that_are_none(values):
    with pytest.raises(InputError, match="values"):
        Design.from_function(samples.double_pendulum, values)


def test_not_a_function():
    with pytest.raises(InputError, match="`function` is a Model"):
        Design.from_function(samples.two_link(), [1.0])


def test_models_with_slopes_do_not_leak():
    with pytest.raises(kg.ModelError, match="`L1` is a complex; expected a finite number"):
        samples.double_pendulum(L1=1 + 1e-30j)
    assert isinstance(Design.from_function(samples.double_pendulum, {"L1": 1.0}).model, Model)
    assert Design.from_function(samples.double_pendulum, {"L1": 1.0}).model.com.dtype == float


# --- loads ----------------------------------------------------------------------------------------------------


def load_names(link):
    return [f"{link}.load.{what}.{x}" for what in ("force", "point", "torque") for x in XYZ]


@pytest.mark.parametrize("seed", range(20))
def test_loads_as_parameters(seed):
    """Their derivatives are those that inverse_dynamics_load_derivatives has in closed form."""
    rng = np.random.default_rng(seed)
    model = tree(seed)
    loads = random_loads(model, seed)
    states = 3 if seed % 2 else 40  # fewer and more than parameters
    q, v, a = random_state(model, seed, (states,))
    link = model.link_names[int(rng.integers(model.n))]
    design = Design(model, load_names(link), loads)
    found = kg.inverse_dynamics_design_derivatives(design, q, v, a)
    i = model.link_index(link)
    parts = kg.inverse_dynamics_load_derivatives(model, q, loads=loads)
    expected = np.concatenate([x[..., i, :] for x in (parts.dtau_dforce, parts.dtau_dpoint, parts.dtau_dtorque)], -1)
    assert_close(expected, found, 1e-12)


def test_accelerations_by_loads():
    model = samples.puma560()
    loads = random_loads(model, 5)
    q, v, tau = random_state(model, 5, (4,))
    design = Design(model, [*load_names("hand"), "hand.mass"], loads)
    exact = kg.forward_dynamics_design_derivatives(design, q, v, tau)

    def a(p):
        moved = design.at(p)
        return kg.forward_dynamics(moved.model, q, v, tau, loads=moved.loads)

    assert_close(differences(a, design.values), exact, 1e-8)
    fixed = Design(model, ["hand.mass"])
    assert_close(kg.forward_dynamics_design_derivatives(fixed, q, v, tau, loads=loads), exact[..., 9:], 1e-14)


def test_loads_that_a_function_returns():
    def with_tool(length, push):
        return samples.two_link(), Loads(force={"forearm": [0, push, 0]}, point={"forearm": [length, 0, 0]})

    design = Design.from_function(with_tool, {"length": 0.3, "push": -5.0})
    named = Design(samples.two_link(), ["forearm.load.point.x", "forearm.load.force.y"], design.loads)
    q, v, a = random_state(design.model, 0, (5,))
    one, two = (kg.inverse_dynamics_design_derivatives(x, q, v, a) for x in (design, named))
    assert np.array_equal(one, two)
    assert design.at([0.4, -6]).loads.arrays(design.model)["point"][1].tolist() == [0.4, 0, 0]
    assert named.at([0.4, -6]).loads.arrays(design.model)["force"][1].tolist() == [0, -6, 0]


def test_simulation_takes_the_loads_of_its_design():
    model = samples.two_link()
    loads = Loads(force={"forearm": [0, 3, 0]}, point={"forearm": [0.1, 0, 0]})
    design = Design(model, ["forearm.load.point.x"], loads)
    end = [0.0, 0.2]
    motion = kg.simulate.simulate(model, [0.1, 0.2], [0, 0], end, design=design, rtol=1e-12, atol=1e-13)

    def last(p):
        return kg.simulate.simulate(model, [0.1, 0.2], [0, 0], end, loads=design.at(p).loads, rtol=1e-12, atol=1e-13).q[
            -1
        ]

    assert_close(numerical_jacobian(last, design.values), motion.dq_dp[-1], 1e-7)  # central differences of 1e-12


def test_refused_loads():
    model = samples.two_link()
    loads = Loads(force={"forearm": [0, 3, 0]})
    with pytest.raises(InputError, match=r"'forearm.load.point.x' is of a load, and there are none"):
        Design(model, ["forearm.load.point.x"])
    with pytest.raises(InputError, match="batch axes"):
        Design(model, ["forearm.load.force.x"], Loads(force=np.zeros((4, 2, 3))))
    with pytest.raises(InputError, match="`loads` is a dict"):
        Design(model, ["forearm.mass"], {"force": 1})
    design = Design(model, ["forearm.load.force.x"], loads)
    with pytest.raises(InputError, match="has loads of its own"):
        kg.inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0], loads=Loads())
    with pytest.raises(InputError, match=r"did you mean 'forearm.load.point.x'"):
        Design(model, ["forearm.load.points.x"], loads)


@pytest.mark.parametrize("starts", [1, 6])
def test_fixed_steps_and_adjoint_take_the_loads_of_their_design(starts):
    """Lanes over directions, and over states; by the loop in Python, compiled, and backwards: the same gradient."""
    model = samples.two_link()
    loads = Loads(force={"forearm": [1, 3, 0]}, point={"forearm": [0.1, 0, 0]})
    names = ["forearm.load.point.x", "forearm.load.force.y", "forearm.mass", "forearm.load.torque.z"]
    design = Design(model, names, loads)
    q0, v0 = random_state(model, 8, (starts,))[:2]
    objective = kg.simulate.Objective(end=[kg.simulate.Tracking([0.3, 0.1])])
    options = {"step": 0.01, "steps": 30, "design": design}
    still = kg.simulate.Feedback(lambda t, q, v: np.zeros_like(q), None, None)
    compiled, loop = (kg.simulate.simulate_fixed(model, q0, v0, tau=tau, **options) for tau in (None, still))
    assert_close(compiled.dq_dp, loop.dq_dp, 1e-13)
    assert np.abs(loop.dq_dp[-1]).max(axis=(0, 1)).min() > 1e-3  # all four matter
    direct = kg.simulate.objective_gradient(compiled, objective).dvalue_dp
    adjoint = kg.simulate.adjoint_gradient(model, q0, v0, objective, **options).dvalue_dp
    assert_close(adjoint, direct, 1e-12)


@pytest.mark.parametrize("what", ["placement", "tip"])
def test_turns_of_placements(what):
    """As constants by name, and by a function: the same slopes, the same moved models."""
    model = tree(3, largest=9)
    joint = model.joint_names[-1]
    frame = getattr(model, what)[-1]
    q, v, a = random_state(model, 3, (4,))
    for x in XYZ:
        named = Design(model, [f"{joint}.{what}.r{x}"])
        built = Design.from_function(
            lambda angle, x=x: model.replace(**{what: {joint: frame @ kg.rotate(x, angle)}}), {"angle": 0.0}
        )
        one, two = (kg.inverse_dynamics_design_derivatives(design, q, v, a) for design in (named, built))
        assert_close(one, two, 1e-14)
        assert named.values.tolist() == [0.0]
        assert np.array_equal(getattr(named.at([0.3]).model, what), getattr(built.at([0.3]).model, what))


@pytest.mark.parametrize("digits", [6, 9, 12])
def test_models_looked_up_by_rounded_values_are_refused(digits):
    """Around the present value such a function is constant, and so its slopes, zero, are those of an analytic one."""
    models = {}

    def build(p):
        key = round(float(np.real(p)), digits)
        if key not in models:
            models[key] = samples.double_pendulum(L1=p * p)
        return models[key]

    with pytest.raises(InputError, match="is not analytic in 'p' at 1"):
        Design.from_function(build, {"p": 1.0})
