"""Hostile arguments of motion problems: every one is taken, or refused with an InputError that says why."""

import inspect
import math

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import motion
from kinegrad.errors import KinegradError

ARM = kg.samples.two_link()
T = np.linspace(0, 1, 4)
WALK = motion.Motion(ARM, T, *np.zeros((3, 4, 2)))
GOOD = {
    motion.Phase: {},
    motion.Boundary: {"when": "start", "q": [0.0, -1.0]},
    motion.Limits: {"tau": 5.0},
    motion.Fixed: {"q": {"elbow": -1.0}},
    motion.Symmetric: {"pairs": {"elbow": "shoulder"}},
    motion.Periodic: {},
    motion.Held: {"link": "forearm", "at": (0.3, 0.3, 0.0)},
    motion.Reach: {"link": "forearm", "at": (0.3, 0.3, 0.0)},
    motion.Guided: {"link": "forearm", "path": [[0.3, 0.3, 0], [0.4, 0.3, 0]]},
    motion.Above: {"link": "forearm"},
    motion.Apart: {"link": "forearm", "distance": 0.1},
    motion.Kept: {"constraint": kg.Contact("forearm", directions="x", other_point=(0.3, 0, 0))},
    motion.Foot: {"link": "forearm", "sole": (0.8, 0, 0)},
    motion.Rests: {"link": "forearm", "at": (0.3, 0.3, 0.0), "phase": "motion"},
    motion.Time: {},
    motion.Effort: {},
    motion.Power: {},
    motion.Acceleration: {},
    motion.Jerk: {},
    motion.Posture: {},
    motion.Follow: {"motion": WALK},
    motion.UserTerm: {"function": lambda s, q, **others: (q[:, 0], {"q": np.stack([1 + 0 * s, 0 * s], 1)})},
}
HOSTILE = [
    None, True, False, 0, -1, 1e300, 1e-300, math.nan, math.inf, -math.inf, 1 + 2j, 10**400,
    "", "elbow", "motion", b"elbow", [], (), {}, [1], [1, 2], (2.0, 1.0), [math.nan, 1.0], [[1, 2], [3]], range(3),
    np.zeros(0), np.zeros((2, 2)), np.zeros((4, 4)), np.eye(4), np.zeros((2, 2, 2)), np.array(["a", "b"]),
    np.ma.masked_array([1.0, 2.0], [True, False]), ARM, int, object(), lambda *a, **k: None,
    {"elbow": None}, {"elbow": "x"}, {"elbow": (1, 2, 3)}, {"elbow": math.nan}, {3: 4}, {"elbow": 0.5},
]  # fmt: skip


def one_case(kind, argument, value):
    """Make it, and a problem of it, and evaluate that once."""
    with np.errstate(all="ignore"):
        try:
            made = kind(**GOOD[kind] | {argument: value})
            if isinstance(made, motion.Phase):
                if np.ndim(made.segments) == 0 and made.segments > 50:
                    return
                problem = motion.MotionProblem(ARM, made)
            elif isinstance(made, motion.problem.Term):
                problem = motion.MotionProblem(ARM, motion.Phase(segments=3), (), made)
            else:
                problem = motion.MotionProblem(ARM, motion.Phase(segments=3), [made])
            x = problem.guess()
            problem.program.constraints(x)
            problem.program.gradient(x)
        except KinegradError:
            pass


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_every_argument_of_every_description(kind):
    for argument in inspect.signature(kind).parameters:
        for value in HOSTILE:
            try:
                one_case(kind, argument, value)
            except Exception as error:
                raise AssertionError(f"one_case({kind.__name__}, {argument!r}, {value!r}): {error!r}") from error


@pytest.mark.parametrize(
    "argument", ["model", "phases", "requirements", "objective", "design", "design_bounds", "actuated"]
)
def test_every_argument_of_a_problem(argument):
    for value in HOSTILE:
        given = {"model": ARM, "phases": motion.Phase(segments=3)} | {argument: value}
        try:
            motion.MotionProblem(**given)
        except KinegradError:
            pass
        except Exception as error:
            raise AssertionError(f"MotionProblem({argument}={value!r}): {error!r}") from error


def test_every_argument_of_solving_and_guessing():
    ends = [motion.Boundary("start", q=[0, -2], v=0), motion.Boundary("end", q=[1, -1], v=0)]
    problem = motion.MotionProblem(ARM, motion.Phase(segments=3), ends)
    found = problem.solve()
    calls = [
        (problem.guess, ("postures", "durations", "motion", "noise", "seed")),
        (problem.solve, ("guess", "between", "refine", "tolerance", "max_iterations", "solver", "hessian", "gradient")),
        (problem.check_derivatives, ("x",)),
        (found.verify, ("segments", "mujoco")),
        (found.sensitivity, ("parameters", "limits")),
    ]
    for call, arguments in calls:
        for argument in arguments:
            for value in HOSTILE:
                more = {"mujoco": False} if call == found.verify and argument != "mujoco" else {}
                try:
                    call(**{argument: value} | more)
                except KinegradError:
                    pass
                except Exception as error:
                    raise AssertionError(f"{call.__name__}({argument}={value!r}): {error!r}") from error
