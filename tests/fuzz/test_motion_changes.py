"""Motion problems that are the same in other words have the same rows and the same results."""

import random

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Above, Acceleration, Boundary, Effort, Foot, MotionProblem, Phase, Reach
from kinegrad.motion.problem.actuators import actuators_of
from kinegrad.motion.problem.upright import axes_with_z
from tests.fuzz.cases import cases
from tests.motion.problem.turned import turned


def body(rng, *, pair=None, far=1000.0):
    """A floating body with some limbs; beside it, if asked for, a coupled pair of joints on the ground far away."""
    builder = kg.ModelBuilder("body")
    sequence = rng.choice(["zyx", "xyz", "zxz"])
    base = rng.choice([kg.free(sequence), kg.free(quaternion=True), kg.planar("z")])
    if pair == "first":
        _pair(rng, builder, far)
    builder.add("root", None, base, link="trunk", inertia=kg.Inertia.box(5.0, (0.3, 0.2, 0.5)))
    links = ["trunk"]
    for k in range(rng.randint(1, 3)):
        place = [0.1 * (1 + k), 0.05 * k, rng.uniform(-0.4, 0.4)]
        limb = kg.Inertia.box(rng.uniform(0.5, 2.0), (0.1, 0.05, 0.3), com=(0, 0, -0.15))
        axis = "z" if len(base) == 3 else rng.choice("xyz")
        on = rng.choice(links)
        builder.add(f"joint{k}", on, kg.revolute(axis), link=f"limb{k}", placement=place, inertia=limb)
        links.append(f"limb{k}")
    if pair == "last":
        _pair(rng, builder, far)
    return builder.build()


def _pair(rng, builder, far):
    rod = kg.Inertia.rod(1.0, (0, 0, 0), (0.3, 0, 0))
    builder.add("one", None, kg.revolute("y"), link="One", placement=[far, 0, 0], inertia=rod)
    builder.add("two", "One", kg.revolute("y"), link="Two", placement=[0.3, 0, 0], inertia=rod)
    builder.mimic("two", "one", multiplier=-0.5)


@pytest.mark.parametrize("seed", range(cases(8, cost=5)))
def test_a_coupled_pair_far_away_changes_no_row_without_motors(seed):
    """The same body with other joints in the world has the same floating base."""
    pair = random.Random(seed).choice(["first", "last"])
    alone, beside = (body(random.Random(f"body {seed}"), pair=p) for p in (None, pair))
    one, other = actuators_of(alone), actuators_of(beside)
    assert len(one.row_names) in (3, 6)
    assert other.row_names == one.row_names
    columns = [beside.speed_index(name) for name in alone.speed_names]
    np.testing.assert_allclose(other.N[:, columns], one.N, atol=1e-12)
    assert set(other.names) == {*one.names, "one"}


UPS = {"y": (0, 1, 0), "x": (1, 0, 0), "-z": (0, 0, -1), "any": None}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(cases(2, cost=10)))
@pytest.mark.parametrize("up", UPS)
def test_a_world_with_another_axis_up_gives_the_same_motion(up, seed):
    """A person crouches and reaches: soles, heights and places turn with gravity, and nothing else changes."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3) if UPS[up] is None else np.array(UPS[up], dtype=float)
    place, height = [rng.uniform(0.3, 0.45), 0.0, rng.uniform(0.7, 1.1)], rng.uniform(0.0, 0.3)
    objective = found = None
    for R in (np.eye(3), axes_with_z(direction / np.linalg.norm(direction))):
        problem = MotionProblem(
            turned(kg.samples.human_sagittal(), R),
            Phase(segments=4, duration=0.8),
            [
                Foot("foot", R @ [0.05, 0, 0], size=(0.25, 0.2)),
                Boundary("start", v=0),
                Reach("grip", R @ place),
                Boundary("end", v=0),
                Above("grip", height),
            ],
            [Effort(relative=True), Acceleration(1e-4)],
        )  # fmt: skip
        solution = problem.solve(tolerance=1e-8)
        assert solution.nonlinear.success, solution.message
        if found is not None:
            np.testing.assert_allclose(solution.objective, objective, rtol=1e-7)
            np.testing.assert_allclose(solution.motion.q, found.q, atol=1e-5)
            np.testing.assert_allclose(solution.motion.tau, found.tau, atol=2e-2)
        objective, found = solution.objective, solution.motion
