"""How a solution is judged between its nodes: every row by its own size, points at all times, the objective too."""

from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import (
    Above,
    Acceleration,
    Apart,
    Boundary,
    Effort,
    Follow,
    Guided,
    Held,
    Limits,
    MotionProblem,
    Phase,
    Posture,
    Power,
    Time,
    UserTerm,
)
from kinegrad.motion.problem import Kept
from kinegrad.motion.problem.between import BETWEEN, OwnSizes, bounds_at, excesses, fine_grid, fine_instants
from kinegrad.motion.problem.clearances import path_of, points_between
from kinegrad.motion.problem.functions import Linear
from kinegrad.motion.problem.nodes import Block
from kinegrad.motion.problem.row_sizes import row_sizes, size_at_rest
from kinegrad.simulate import simulate
from tests.motion.problem import problems

G = 9.81


def value(found, family):
    return next(one.value for one in found.between if one.family == family)


# --- rows without motors -----------------------------------------------------------------------------------------


def crane(cart, load=0.1, length=0.5, far=None):
    """A load that hangs on a cart; a body without anything to do with it, far away, if asked for."""
    builder = kg.ModelBuilder("crane")
    builder.add("x", None, kg.prismatic("x"), link="cart", inertia=kg.Inertia.point(cart, [0, 0, 0]))
    hanging = kg.Inertia.point(load, [0, 0, -length])
    builder.add("th", "cart", kg.revolute("y"), link="load", inertia=hanging, effort_limits=0.0)
    if far is not None:
        body = kg.Inertia.point(far, [0, 0, 0])
        builder.add("far", None, kg.prismatic("x"), link="far", placement=[0, 50, 0], inertia=body)
    return builder.build()


def swing_up(model, cart, **phase):
    names = model.coordinate_names
    end = {"x": (-5, 5), "th": np.pi} | dict.fromkeys(names[2:], 0.0)
    ends = [Boundary("start", q=0, v=0), Boundary("end", q=end, v=0)]
    return MotionProblem(model, Phase(**{"duration": 2.0, "segments": 10} | phase), ends, Effort(1 / cart**2))


@pytest.mark.parametrize(("cart", "far"), [(1.0, None), (1000.0, None), (1.0, 1e5)])
def test_a_light_pendulum_is_not_judged_by_what_is_heavy(cart, far):
    """Neither by the cart, as it once was with success, nor by a body far away: by its own torques, of some m g L."""
    model = crane(cart, far=far)
    coarse = swing_up(model, cart).solve()
    assert coarse.nonlinear.success
    assert coarse.status == "between-nodes"
    motion = coarse.motion(np.linspace(0, 2, 401))
    left = np.abs(kg.inverse_dynamics(model, motion.q, motion.v, motion.a)[:, 1]).max()
    assert left > 0.3 * 0.1 * G * 0.5
    assert 0.2 < value(coarse, "dynamics") < 1.0
    fine = swing_up(model, cart, segments=40, degree=5).solve()
    assert fine.success, fine.message
    motion = fine.motion(np.linspace(0, 2, 401))
    left = np.abs(kg.inverse_dynamics(model, motion.q, motion.v, motion.a)[:, 1]).max()
    assert left < 0.005 * 0.1 * G * 0.5


def test_the_size_of_a_row_is_what_its_equation_is_made_of():
    """By hand: a rod on a cart, of which inertia, weight, a damper and a spring make the torque of the hinge."""
    model = kg.samples.cart_pendulum().replace(damping={"hinge": 0.3}, stiffness={"hinge": 2.0})
    problem = MotionProblem(model, Phase(duration=1.3, segments=3), [], Effort())
    x = problem.guess(noise=0.4, seed=1)
    grid = fine_grid(problem.program, 0)
    z = grid.z(x).reshape(-1, 3, 2)
    q, v, a = z.swapaxes(0, 1)
    m, c, I = model.mass[1], -model.com[1, 2], model.inertia[1, 1, 1]
    along = np.stack([np.cos(q[:, 1]), -np.sin(q[:, 1])], axis=1) * -1  # of the centre of mass by the angle, (x, z)
    across = np.stack([np.sin(q[:, 1]), np.cos(q[:, 1])], axis=1)
    at = a[:, :1] * [1, 0] + c * (a[:, 1:] * along + v[:, 1:] ** 2 * across)
    turned = np.abs(m * c * (at * along).sum(axis=1) + I * a[:, 1])
    passive = np.abs(0.3 * v[:, 1] + 2.0 * q[:, 1])
    found = row_sizes(grid, x, np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(found[:, 0], turned + m * G * c * np.abs(np.sin(q[:, 1])) + passive, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], model.mass[0] * np.abs(a[:, 0]) + m * np.abs(at[:, 0]), rtol=1e-12)
    tau = kg.inverse_dynamics(model, q, v, a)
    assert (found[:, ::-1] >= np.abs(tau)).all()


def test_sizes_of_forces_and_moments_of_contacts_and_loads():
    """The torque of a row is never larger than its size, whatever acts; it is a sum of some of its terms."""
    problem = problems.two_phases()
    x = problem.guess(noise=0.2, seed=2)
    for p in range(2):
        grid = fine_grid(problem.program, p)
        rows = problem.parts.actuators.N
        size = row_sizes(grid, x, rows)
        left = grid.y(x)[:, grid.layout.tau] @ rows.T
        assert (np.abs(left) <= size).all()
        assert (size < 50 * np.abs(left).max()).all()


def test_rows_without_terms_have_the_size_of_their_bodies():
    """A balanced wheel has no weight to turn it: its mass, and how far it is from the axis; without gravity 1 m/s²."""
    for g, acceleration in ((G, G), (0.0, 1.0)):
        builder = kg.ModelBuilder("wheel", gravity=(0, 0, -g))
        builder.add("axle", None, kg.revolute("z"), link="wheel", inertia=kg.Inertia(2.0, (0, 0, 0), 0.08 * np.eye(3)))
        (size,) = size_at_rest(builder.build(), np.eye(1))
        assert size == pytest.approx(2.0 * acceleration * np.sqrt(0.08 / 2.0))


# --- limits with two sides ---------------------------------------------------------------------------------------


def arm(requirements, segments=6, duration=0.8, objective=None, nodes=1):
    builder = kg.ModelBuilder("pendulum", gravity=(0, -G, 0))
    builder.add("s", None, kg.revolute("z"), link="u", inertia=kg.Inertia.point(1.0, [1.0, 0, 0]))
    ends = [Boundary("start", q=0.0, v=0), Boundary("end", q=1.2, v=0)]
    phase = Phase(duration=duration, segments=segments, nodes=nodes)
    return MotionProblem(builder.build(), phase, [*ends, *requirements], objective or [Effort()])


def least_torque(found):
    motion = found.motion(fine_instants(found.problem.phases[0]) * found.duration)
    return float(kg.inverse_dynamics(motion.model, motion.q, motion.v, motion.a).min())


@pytest.mark.parametrize("lower", [-0.5, -0.1])
def test_each_side_of_a_limit_is_judged_by_itself(lower):
    """±200 N·m on one side said nothing of 0.1 N·m on the other."""
    found = arm([Limits(tau={"s": (lower, 200.0)})]).solve()
    assert found.nonlinear.success
    over = least_torque(found) / lower - 1
    assert over > 0.1
    assert value(found, "torque") == pytest.approx(over, rel=1e-6)
    assert not found.success
    assert arm([Limits(tau={"s": (lower, 200.0)})]).solve(refine=6).success


def test_a_limit_of_zero_is_judged_by_what_the_row_is_made_of():
    """A cable that only pulls: (0, 200) N·m and (0, ∞), by weight and inertia of what it moves."""
    for most in (200.0, np.inf):
        problem = arm([Limits(tau={"s": (0.0, most)})])
        found = problem.solve()
        rows = np.eye(1)
        size = OwnSizes(found.problem.program, found.x).of_rows(rows)[0]
        assert 0.5 * G < size < 3 * G
        assert value(found, "torque") == pytest.approx(-least_torque(found) / size, rel=1e-9)


def test_power_of_zero_is_judged_by_torques_and_speeds():
    """A motor that cannot brake."""
    found = arm([Limits(power={"s": (0.0, 500.0)})], segments=4).solve()
    fine = found.motion(fine_instants(found.problem.phases[0]) * found.duration)
    power = fine.tau[:, 0] * fine.v[:, 0]
    assert 0 < value(found, "power") < -power.min() / (0.1 * G)


def test_limits_that_vary_in_time_are_read_at_their_own_instants():
    """Between the nodes of a row they are linear; sensitivities to such limits are refused."""
    s = np.linspace(0, 1, 5)
    lower = np.stack([s**2, 0 * s], axis=1)
    block = Block(Linear(("a", "b"), [0, 1], [0, 1], [1.0, 1.0]), lower, lower + 1, np.ones(2), s=s)
    low, high = bounds_at(block, np.array([0.125, 0.25]))
    np.testing.assert_allclose(low, [[0.03125, 0.0], [0.0625, 0.0]])
    np.testing.assert_allclose(high, low + 1)
    problem = arm([Limits(tau=200.0)])
    found = problem.solve()
    block = next(b for _, _, b in problem.program.blocks() if b.label == "torque")
    object.__setattr__(block, "upper", np.linspace(100, 200, block.upper.size)[:, None])
    with pytest.raises(kg.InputError, match="limits of torque of s vary in time"):
        found.sensitivity()


def test_a_small_foot_is_judged_by_its_own_size():
    """The centre of pressure of a sole of 2 cm may be 2 % of it outside, not 2 % of 10 cm."""
    foot = kg.motion.Foot("foot", (0.05, 0, 0), size=(0.02, 0.04), friction=0.01)
    parts = MotionProblem(kg.samples.human_sagittal(), Phase(segments=3), [foot]).parts
    (block,) = [b for grid in parts.grids for b in grid.rows if b.label == "cone"]
    half = 0.5 * parts.model.total_mass * G
    sizes = dict(zip(block.function.names, block.sizes[0] / half, strict=True))
    along = next(x for name, x in sizes.items() if "pressure along x" in name)
    face = next(x for name, x in sizes.items() if "face 0" in name)
    assert (along, face) == pytest.approx((0.01, 0.01 * np.cos(np.pi / 4)), rel=1e-3)


# --- points at all times -----------------------------------------------------------------------------------------


def plane():
    builder = kg.ModelBuilder("xy", gravity=(0, 0, 0))
    builder.add("x", None, kg.prismatic("x"), link="a")
    builder.add("y", "a", kg.prismatic("y"), link="c", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    return builder.build()


ENDS = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[2, 0], v=0)]


@pytest.mark.parametrize(("segments", "tenth"), [(4, 15), (3, 16), (2, 8)])
def test_a_point_does_not_pass_an_obstacle_between_two_instants(segments, tenth):
    """Thinner than what the point goes in a tenth of a segment; refinement leads around it."""
    phase = Phase(duration=1.0, segments=segments)
    free = MotionProblem(plane(), phase, ENDS, Effort()).solve()
    x = free.motion(np.linspace(0, 1, 10 * segments + 1)).q[:, 0]
    center, radius = (x[tenth] + x[tenth + 1]) / 2, 0.45 * (x[tenth + 1] - x[tenth])
    problem = MotionProblem(plane(), phase, [*ENDS, Apart("c", radius, center=(center, 1e-3, 0))], Effort())
    through = problem.solve()
    assert through.nonlinear.success
    assert through.status == "between-nodes"
    around = problem.solve(refine=True)
    assert around.success, around.message
    assert len(around.problem.phases[0].clear_at)
    q = around.motion(np.linspace(0, 1, 5001)).q
    assert np.hypot(q[:, 0] - center, q[:, 1] - 1e-3).min() > 0.998 * radius


def test_clearances_can_be_asked_for_at_instants_of_ones_own():
    phase = Phase(duration=1.0, segments=2, clear_at=[0.43])
    problem = MotionProblem(plane(), phase, [*ENDS, Above("c", 0.01, normal=(0, 1, 0), during=(0.3, 0.45))], Effort())
    grid = next(grid for grid in problem.parts.grids if grid.name == "clearance")
    np.testing.assert_allclose(grid.s, [0.3, 0.43, 0.45])
    for wrong in ([1.2], [[0.5]], ["a"], 0.5, [np.nan]):
        with pytest.raises(kg.InputError, match="clear_at"):
            Phase(clear_at=wrong)


def test_a_clearance_at_one_instant():
    """It is looked at, though there is no interval."""
    above = Above("c", 0.1, normal=(0, 1, 0), during=(0.45, 0.45))
    found = MotionProblem(plane(), Phase(duration=1.0, segments=3), [*ENDS, above], Effort()).solve()
    (one,) = (one for one in found.between if one.family == "clearance")
    assert (one.s, one.within) == (0.45, True)


def machine():
    """Hinges, sliders, a screw, a coupling by a spline, frames: whatever can be on the way to a point."""
    builder = kg.ModelBuilder("machine")
    body = kg.Inertia(1.0, (0.1, 0, 0), 0.1 * np.eye(3))
    builder.add("turn", None, kg.revolute("z"), link="column", placement=[0.1, 0.2, 0], tip=[0, 0, 0.4], inertia=body)
    builder.add("lift", "column", kg.prismatic([0, 0.6, 0.8]), link="carriage", inertia=body)
    builder.add(
        "arm", "carriage", kg.revolute("y"), link="upper", placement=[0.1, 0, 0.1], tip=[0.5, 0, 0], inertia=body
    )
    builder.add("bolt", "upper", kg.screw("x", pitch=0.05), link="nut", inertia=body)
    builder.add("finger", "nut", kg.revolute([0.6, 0.8, 0]), link="tip", placement=[0.1, 0.1, 0], inertia=body)
    builder.add("other", "column", kg.revolute("x"), link="side", placement=[0, 0.3, 0], inertia=body)
    curve = kg.SplineFunction([-2.0, -0.5, 0.7, 2.0], [0.3, -0.2, 0.5, 0.1])
    builder.couple("arm", {"arm": 1.0, "finger": curve, "lift": 0.2})
    builder.add_frame("grip", "tip", [0.2, 0, 0.1])
    return builder.build()


def test_bounds_of_points_are_bounds():
    """Of accelerations in each segment, and of clearances at all times, of points of any two links."""
    model = machine()
    rng = np.random.default_rng(5)
    inside = {"during": (0.1, 0.9)}
    watches = [
        Above("grip", 0.3, point=(0.1, 0, 0)), Above("grip", 0.1, other="side", normal=(1, 2, 0)),
        Apart("side", 0.5, point=(0, 0.1, 0), center=(0.2, 0.2, 0.5)),
        Apart("nut", 0.4, other="side", center=(0, 0, 0.1), axis=(0, 0, 1)),
        Held("grip", (0.2, 0.1, 0.3), directions="xz", **inside),
        Guided("nut", [[0.3, 0, 0.4], [0.2, 0.3, 0.8], [0.5, 0.1, 0.1]], directions="yz", tolerance=0.1, **inside),
        Held("grip", (0.1, 0, 0), other="side", directions="y", **inside),
        kg.motion.Foot("side", (0.1, 0.5, 0.4), size=(0.1, 0.1)),
    ]  # fmt: skip
    for degree in (3, 5):
        phase = Phase(duration=0.7, segments=[0, 0.4, 0.5, 1], degree=degree)
        problem = MotionProblem(model, phase, watches, [Acceleration()])
        program = problem.program
        x = problem.program.x_scale * 0 + rng.uniform(-1, 1, program.n)
        s = np.linspace(0, 1, 3001)
        dense = {one.name: one.over.max() for one in points_between(program, 0, x, s, dict.fromkeys(BETWEEN, -1e9))}
        for tolerance in (0.3, 0.01, 1e-4):
            seen = list(points_between(program, 0, x, fine_instants(phase), dict.fromkeys(BETWEEN, tolerance)))
            assert len(seen) == 4 + 2 + 2 + 1 + 3
            for one in seen:
                assert one.bound >= dense[one.name] - 1e-9
                assert one.over.max() <= dense[one.name] + 1e-9 or len(one.s) > 31
                assert one.bound <= tolerance or one.over.max() > tolerance  # one or the other is known
        path = path_of(program, 0, x)
        t = np.linspace(1e-6, 1 - 1e-6, 400)
        q, v = path.state(t)
        a = (path.state(np.minimum(t + 1e-6, 1))[1] - path.state(t - 1e-6)[1]) / (2e-6 * 0.7)
        segment = np.searchsorted([0.4, 0.5], t, side="right")
        for one in watches[:4]:
            place = one.other_point if isinstance(one, Above) else one.center
            contact = kg.Contact(one.link, one.point, "xyz", one.other, place)
            found = np.linalg.norm(kg.ConstraintSet(model, [contact]).acceleration(q, v, a), axis=1)
            assert (found <= path.acceleration(contact)[segment] * (1 + 1e-6)).all()


def test_a_path_with_corners_is_followed_between_instants():
    """A guided point that cuts a corner between two instants: the corner itself is looked at."""
    corner = [[0, 0, 0], [1.0, 0.3, 0], [2, 0, 0]]
    guided = Guided("c", corner, directions="y", tolerance=1e-4)
    straight = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[2, 0], v=0)]
    problem = MotionProblem(plane(), Phase(duration=1.0, segments=3), [*straight, guided], Effort())
    found = problem.solve()
    y = found.motion([0.5]).q[0, 1]
    assert value(found, "kept") >= abs(0.3 - y) - 1e-4 - 1e-9


# --- the objective -----------------------------------------------------------------------------------------------


def pendulum():
    builder = kg.ModelBuilder("pendulum")
    builder.add("h", None, kg.revolute("y"), link="rod", inertia=kg.Inertia.point(1.0, [0, 0, -1.0]))
    return builder.build()


def swing(T=8.0, segments=12, terms=None, **options):
    ends = [Boundary("start", q=0, v=0), Boundary("end", q=np.pi, v=0)]
    return MotionProblem(pendulum(), Phase(duration=T, segments=segments, **options), ends, terms or Effort())


def test_the_objective_is_that_of_the_motion_itself():
    """Effort that the nodes do not see: 8 % of it, with success before; refinement finds a motion that has it."""
    coarse = swing().solve()
    t = np.linspace(0, 8, 20001)
    itself = np.trapezoid(coarse.motion(t).tau[:, 0] ** 2, t)
    assert coarse.nonlinear.success
    assert value(coarse, "objective") == pytest.approx(itself / coarse.objective - 1, rel=0.12)
    assert coarse.status == "between-nodes"
    assert "objective by 0.08" in coarse.message
    assert swing().solve(between={"objective": 0.1}).success
    fine = swing().solve(refine=True)
    assert fine.success
    assert fine.objective == pytest.approx(np.trapezoid(fine.motion(t).tau[:, 0] ** 2, t), rel=0.01)


def test_differences_of_phases_and_terms_do_not_cancel():
    """Two phases, of which one is integrated too low and the other too high: each is spoken of."""
    phases = [Phase("up", duration=4.0, segments=4), Phase("down", duration=4.0, segments=4)]
    ends = [Boundary("start", q=0, v=0), Boundary("end", q=np.pi, v=0, phase="up"), Boundary("end", q=0, v=0)]
    problem = MotionProblem(pendulum(), phases, ends, [Effort(), Time(1e-3), Acceleration(1e-3)])
    found = problem.solve()
    program = found.problem.program
    parts = []
    for p in range(2):
        grid = fine_grid(program, p)
        fine = [4.0 * block.function.value(grid.y(found.x))[:, 0] @ block.weights for block in grid.terms]
        own = next(one.grid for one in program.grids if one.grid.terms and one.grid.variables is grid.variables)
        coarse = [4.0 * block.function.value(own.y(found.x))[:, 0] @ block.weights for block in own.terms]
        parts.append((fine, coarse))
    fine, coarse = np.array(parts).swapaxes(0, 1)
    expected = np.abs(fine - coarse).sum() / (fine.sum() + 8e-3)
    assert value(found, "objective") == pytest.approx(expected, rel=1e-3)  # but for a hundredth of its torques, squared
    assert found.objective == pytest.approx(coarse.sum() + 8e-3)


def test_an_objective_that_is_nearly_zero():
    """A motion that needs no torque, one that is followed exactly, net work that cancels: rounding is no difference."""
    free = pendulum().replace(gravity=(0, 0, 0))
    coast = [Boundary("start", q=0, v=1.0), Boundary("end", q=1.0, v=1.0)]
    for terms in (Effort(), Effort(1e6), [Effort(), Acceleration()], Power(smoothing=1.0)):
        found = MotionProblem(free, Phase(duration=1.0, segments=4), coast, terms).solve()
        assert found.objective < 1e-8
        assert found.success, found.message
    motion = MotionProblem(free, Phase(duration=1.0, segments=4), coast, Effort()).solve().motion
    exact = MotionProblem(free, Phase(duration=1.0, segments=4), coast, Follow(motion)).solve()
    assert exact.success, exact.message
    there_and_back = [Boundary("start", q=0.3, v=0), Boundary("end", q=0.3, v=0)]
    objective = [Power(1.0, smoothing=None), Posture(1.0, q=1.0)]
    back = MotionProblem(pendulum(), Phase(duration=1.0, segments=12), there_and_back, objective).solve()
    assert back.success, back.message
    falling = pendulum()  # its own torque is m g L, and it falls freely: an effort of 1e-12 of that
    t = np.linspace(0, 0.4, 9)
    fall = simulate(falling, [1.0], [0.0], t, rtol=1e-11, atol=1e-12)
    ends = [Boundary("start", q=1.0, v=0.0), Boundary("end", q=fall.q[-1], v=fall.v[-1])]
    found = MotionProblem(falling, Phase(duration=0.4, segments=8), ends, Effort()).solve()
    assert found.objective < 1e-4
    assert found.success, found.message


def test_functions_of_users_are_called_between_the_nodes_before_a_solve():
    """One that knows the number of nodes fails at once, and not when the solver has ended."""
    factors = np.linspace(0, 1, 13)

    def fixed(s, q, **others):
        return factors * q[:, 0], {"q": factors[:, None] * np.ones_like(q)}

    calls = []
    problem = arm([], objective=[UserTerm(fixed)], nodes=2)
    with pytest.raises(kg.InputError, match="the function of user term fails"):
        problem.solve(progress=calls.append)
    assert not calls


def test_families_have_tolerances_of_their_own():
    with pytest.raises(kg.InputError, match="objective"):
        arm([]).solve(between={"effort": 1.0})
    found = arm([]).solve()
    (one,) = excesses(found.problem.program, found.x, dict(BETWEEN) | {"objective": 0.5})
    assert (one.family, one.tolerance) == ("objective", 0.5)
    assert replace(one, value=0.6).within is False


def test_constraints_of_other_kinds_are_looked_at_instants():
    """Turns of loops and rods have no bound: they are in the family all the same."""
    model, constraints = kg.samples.five_bar()
    kept = [Kept(one, forces=True) for one in constraints]
    phase = Phase(duration=0.5, segments=6)
    found = MotionProblem(model, phase, [*kept, Boundary("start", v=0), Boundary("end", v=0)], Effort()).solve()
    assert value(found, "kept") >= 0
