"""Bad problems are refused before anything is solved, with a sentence that names what is wrong."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.motion import (
    Above,
    Apart,
    Boundary,
    Effort,
    Fixed,
    Follow,
    Foot,
    Guided,
    Held,
    Kept,
    Limits,
    MotionProblem,
    Periodic,
    Phase,
    Reach,
    Symmetric,
    Time,
    UserTerm,
)

ARM = kg.samples.two_link()
ENDS = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]


def problem(*requirements, model=ARM, phases=None, objective=(), **more):
    return MotionProblem(model, phases or Phase(segments=4), requirements, objective, **more)


DESCRIPTIONS = {
    "T bounds crossed": (lambda: Phase(duration=(2.0, 1.0)), "its bounds are crossed"),
    "T not above zero": (lambda: Phase(duration=0.0), "above 0"),
    "T of text": (lambda: Phase(duration="long"), "`duration of phase 'motion'` is 'long'"),
    "T not finite": (lambda: Phase(duration=(1.0, np.inf)), "finite times"),
    "T NaN": (lambda: Phase(duration=np.nan), "finite number"),
    "segments": (lambda: Phase(segments=0), "`segments` is 0"),
    "breakpoints": (lambda: Phase(segments=[0, 0.7, 0.3, 1]), "increase from 0 to 1"),
    "degree": (lambda: Phase(degree=2), "expected 3, 4 or 5"),
    "nodes": (lambda: Phase(nodes=0), "`nodes` of phase 'motion' is 0"),
    "mass": (lambda: Phase(attached={"hand": -1.0}), "from 0 on"),
    "when": (lambda: Boundary("middle", v=0), "expected 'start' or 'end'"),
    "nothing": (lambda: Boundary("start"), "none of `q`, `v`, `a`"),
    "during": (lambda: Held("hand", (0, 0, 0), during=(0.5, 1.5)), "expected a part of (0, 1)"),
    "directions": (lambda: Reach("hand", (0, 0, 0), directions="xw"), "some of 'xyz'"),
    "at": (lambda: Held("hand", (0, 0)), "expected 3 numbers"),
    "normal": (lambda: Above("hand", normal=(0, 0, 0)), "not zero"),
    "distance": (lambda: Apart("hand", 0.0), "above 0"),
    "sole": (lambda: Foot("foot", np.ones((4, 4))), "`sole of Foot('foot')`"),
    "size": (lambda: Foot("foot", (0, 0, 0), size=(0.1, 0.0)), "two lengths above 0"),
    "friction": (lambda: Foot("foot", (0, 0, 0), friction=-1), "above 0"),
    "constraint": (lambda: Kept("loop"), "expected Contact, Loop"),
    "path": (lambda: Guided("hand", [[0, 0, 0]]), "expected finite places (k, 3)"),
    "weight": (lambda: Time(np.nan), "`weight of Time` is nan"),
    "pairs": (lambda: Symmetric({"a": ("b", 2)}), "one and ±1"),
    "motion": (lambda: Follow("walk.csv"), "expected a Motion"),
    "function": (lambda: UserTerm(3), "expected a function"),
}


@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_descriptions(case):
    make, words = DESCRIPTIONS[case]
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)


def lone_foot():
    return problem(Foot("hand", (0, 0, 0)))


PROBLEMS = {
    "inconsistent ends": (
        lambda: problem(*ENDS, Boundary("start", q={"elbow": 1.0})),
        "boundary conditions contradict",
    ),
    "end outside limits": (
        lambda: problem(Boundary("start", q={"elbow": 3.0}), Limits(q={"elbow": 1.0})),
        "q of 'elbow' at the start",
    ),
    "end faster than limits": (
        lambda: problem(*ENDS[:1], Boundary("end", v={"elbow": 3.0}), Limits(v=2.0)),
        "v of 'elbow' is asked to be 3 at the end of phase 'motion', and its limits are from -2 to 2",
    ),
    "start that speeds up too much": (
        lambda: problem(Boundary("start", a={"elbow": (-9.0, -3.0)}), Limits(a={"elbow": 2.0})),
        "a of 'elbow' is asked to be from -9 to -3 at the start",
    ),
    "start that leaves the range": (
        lambda: problem(Boundary("start", q={"elbow": -2.0}, v={"elbow": -0.1}), Limits(q={"elbow": (-2.0, 0.0)})),
        "q = -2 there is a limit of its range, from -2 to 0, which it would leave",
    ),
    "end that comes from beyond the range": (
        lambda: problem(Boundary("end", q={"elbow": -2.0}, v={"elbow": 0.1}), Limits(q={"elbow": (-2.0, 0.0)})),
        "which it would leave",
    ),
    "crossed limits": (lambda: problem(Limits(q=(np.ones((2, 1)) * [2, 3])), Limits(q=1.0)), "are crossed"),
    "unknown coordinate": (lambda: problem(Boundary("start", q={"knee": 0.0})), "'knee' does not exist"),
    "unknown link": (lambda: problem(Reach("hand", (0, 0, 0))), "'hand' does not exist"),
    "unknown phase": (lambda: problem(Limits(v=1.0, phase="jump")), "the phases are 'motion'"),
    "unknown actuator": (lambda: problem(Limits(tau={"knee": 1.0})), "actuator 'knee' does not exist"),
    "wrong size": (lambda: problem(Boundary("start", q=[0, 0, 0])), "has shape (3,)"),
    "not finite": (lambda: problem(Boundary("start", q=[np.nan, 0])), "finite number"),
    "out of reach": (lambda: problem(ENDS[0], Reach("forearm", (2.0, 0, 0))), "is out of reach"),
    "start does not hold": (lambda: problem(*ENDS, Held("forearm", (0.1, 0.2, 0))), "cannot be met at the start"),
    "out of the plane": (lambda: problem(Reach("forearm", (0.2, 0.2, 0.3))), "cannot be met at the end"),
    "two places at once": (
        lambda: problem(Held("forearm", (0.3, 0.3, 0)), Held("forearm", (0.3, 0.4, 0), phase="motion")),
        "is out of reach",
    ),
    "too few control points": (
        lambda: problem(*ENDS, Boundary("start", a=1.0), Boundary("end", a=1.0), phases=Phase(segments=1)),
        "control points",
    ),
    "nothing to choose": (
        lambda: problem(*ENDS, phases=Phase(segments=1, duration=1.0)),
        "nothing to choose",
    ),
    "fixed and moved": (lambda: problem(Fixed({"elbow": 0.5}), *ENDS), "which is Fixed at 0.5"),
    "all fixed": (lambda: problem(Fixed({"elbow": 0.5, "shoulder": 0.0})), "all coordinates are Fixed"),
    "follows itself": (lambda: problem(Symmetric({"elbow": "elbow"})), "follow itself"),
    "two names": (lambda: problem(phases=[Phase(), Phase()]), "expected different names"),
    "no requirement": (lambda: problem(Time()), "`requirements` at 0"),
    "no term": (lambda: problem(*ENDS, objective=[Limits(v=1.0)]), "`objective` at 0"),
    "no model": (lambda: problem(model="arm"), "expected a Model"),
    "no limit": (
        lambda: problem(model=kg.samples.double_pendulum(), objective=Effort(relative=True)),
        "needs a limit for every actuator",
    ),
    "loads of another": (
        lambda: problem(*ENDS, phases=Phase(loads=kg.Loads(force={"hand": [0, 0, 1]}))),
        "'hand' does not exist",
    ),
    "bounds without design": (lambda: problem(*ENDS, design_bounds={"a": (0, 1)}), "without a `design`"),
    "design bounds crossed": (
        lambda: problem(*ENDS, design=kg.Design(ARM, ["forearm.mass"]), design_bounds={"forearm.mass": (2, 1)}),
        "are crossed",
    ),
    "design of another": (
        lambda: problem(*ENDS, design=kg.Design(kg.samples.two_link(gravity=(0, 0, 0)), ["forearm.mass"])),
        "expected that of `model`",
    ),
    "actuated": (lambda: problem(*ENDS, actuated="elbow"), "expected a list of coordinates"),
    "advance": (lambda: problem(Periodic(advance={"knee": 1.0})), "'knee' does not exist"),
    "user term": (
        lambda: problem(*ENDS, objective=UserTerm(lambda s, q, **others: (q, {}))).program,
        "the function of user term returns shape",
    ),
    "foot": (lone_foot, "'hand' does not exist"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_problems(case):
    make, words = PROBLEMS[case]
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)


def test_speeds_into_the_range_are_none_of_these():
    """At a limit of q, the motion may begin inwards and end outwards."""
    inside = Limits(q={"elbow": (-2.0, 0.0)}, v=2.0)
    problem(Boundary("start", q={"elbow": -2.0}, v={"elbow": 2.0}), inside)
    problem(Boundary("end", q={"elbow": 0.0}, v={"elbow": (0.5, 3.0)}), inside)


def test_quaternions_are_refused():
    """Splines of their components are no rotations."""
    builder = kg.ModelBuilder("ball")
    builder.add("ball", None, kg.spherical(quaternion=True), inertia=kg.Inertia.sphere(1.0, 0.1))
    with pytest.raises(InputError, match="quaternions"):
        MotionProblem(builder.build())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"guess": np.zeros(3)}, "unknowns"),
        ({"guess": np.full(7, np.nan)}, "nan"),
        ({"between": {"effort": 1.0}}, "`between` is"),
        ({"between": {"torque": -1.0}}, "from 0 on"),
        ({"refine": -1}, "`refine` is -1"),
        ({"solver": "newton"}, "newton"),
    ],
)
def test_arguments_of_solve(how, words):
    with pytest.raises(InputError) as error:
        problem(*ENDS).solve(**how)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"postures": {"middle": 0}}, "`postures` is"),
        ({"postures": {"start": {"knee": 0}}}, "'knee' does not exist"),
        ({"durations": [1, 2]}, "expected 1 times"),
        ({"durations": -1.0}, "above zero"),
        ({"noise": -1.0}, "`noise` is -1.0"),
        ({"motion": 3}, "expected a Motion"),
    ],
)
def test_arguments_of_guess(how, words):
    with pytest.raises(InputError) as error:
        problem(*ENDS).guess(**how)
    assert words in str(error.value)


def test_arrays_that_are_given_are_copied():
    """What is done to them afterwards is not seen."""
    q = np.array([0.0, -2.0])
    start = Boundary("start", q=q)
    q[:] = 99
    assert problem(start, ENDS[1]).solve().motion.q[0].tolist() == [0, -2]


def test_a_posture_in_which_weight_exceeds_torques():
    """Passed through, it is a note, also of a solution that fails; stayed in, it is refused."""
    weak = kg.samples.two_link().replace(effort_limits=(0.5, 0.5))
    ends = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[0.1, 0], v=0)]
    phase = Phase(duration=(0.05, 0.2), segments=4)
    takes = np.abs(kg.inverse_dynamics(weak, [0, 0], [0, 0], [0, 0])).max()
    poor = problem(*ends, model=weak, phases=phase, objective=Time())
    said = f"to rest at the start of phase 'motion' takes {takes:.4g} N·m of shoulder, and its limit is 0.5 N·m"
    assert poor.notes[0].startswith(said)
    assert "to rest at the end of phase" in poor.notes[1]
    with pytest.warns(kg.KinegradWarning, match="to rest at the"):
        found = poor.solve(max_iterations=20)
    assert not found.success
    assert said in found.message
    with pytest.raises(InputError, match=r"to rest at the end of phase 'motion' takes .* v = 0 and a = 0"):
        problem(*ends, Boundary("end", a=0), model=weak, phases=phase)
    assert not problem(*ends).notes  # 10 N·m hold it
    hanging = kg.Loads(force={"forearm": [0, -100, 0]})
    assert "shoulder" in problem(*ends, phases=Phase(segments=4, loads=hanging)).notes[0]
    lift = kg.ModelBuilder("lift")
    lift.add("rail", None, kg.prismatic("z"), inertia=kg.Inertia(2.0, [0, 0, 0], np.eye(3)), effort_limits=10.0)
    (note,) = problem(Boundary("start", q=0, v=0), model=lift.build()).notes
    assert note.startswith("to rest at the start of phase 'motion' takes 19.6")
    assert "N of rail, and its limit is 10 N: " in note
