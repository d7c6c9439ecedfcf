"""Small problems that between them have every feature."""

import numpy as np

import kinegrad as kg
from kinegrad.motion import (
    Above,
    Acceleration,
    Apart,
    Boundary,
    Effort,
    Fixed,
    Follow,
    Foot,
    Guided,
    Held,
    Jerk,
    Kept,
    Limits,
    Motion,
    MotionProblem,
    Periodic,
    Phase,
    Posture,
    Power,
    Reach,
    Symmetric,
    Time,
    UserTerm,
)


def two_phases(**changes):
    """A person bends down, takes a box and lifts it: contacts, unknown forces, clearances, limits, all common terms."""
    human = kg.samples.human_sagittal()
    phases = [
        Phase("bend", duration=(0.3, 2), segments=3),
        Phase("lift", duration=(0.3, 2), segments=[0, 0.2, 0.5, 1], degree=4, attached={"grip": 10.0}, continuity=1),
    ]
    requirements = [
        Foot("foot", (0.05, 0, 0), size=(0.25, 0.2), faces=6),
        Boundary("start", v=0, a=0),
        Boundary("end", v={"hip": 0.1, "knee": (-0.2, 0.2)}, phase="bend"),
        Boundary("end", v=0),
        Reach("grip", (0.45, 0, 0.3), "end", phase="bend", directions="xz"),
        Reach("grip", (0.4, 0, 1.2), "end", directions="xz"),
        Above("grip", 0.1, normal=(1, 0, 0), other="shank"),
        Apart("grip", 0.1, center=(0.3, 0, 0.7)),
        Apart("crown", 0.1, center=(0, 0, 0.1), axis=(0, 1, 0), other="grip", phase="lift"),
        Limits(v=8.0, a=200.0, power={"knee": 900.0}),
    ]
    objective = [
        Time(0.1),
        Effort(1.0, relative=True),
        Acceleration(1e-4),
        Jerk(1e-7),
        Power(1e-3, smoothing=30.0),
        Power(1e-4, smoothing=None, phase="lift"),
        Posture(0.01, q={"hip": 0.2}),
    ]
    return MotionProblem(human, phases, requirements, objective, **changes)


def user_term(s, q, v, a, tau, **others):
    """sin(q₀) τ₁ + ½ v₀² a₁ s, with its gradients."""
    zero = np.zeros_like(q)
    dq, dv, da, dt = zero.copy(), zero.copy(), zero.copy(), zero.copy()
    dq[:, 0] = np.cos(q[:, 0]) * tau[:, 1]
    dt[:, 1] = np.sin(q[:, 0])
    dv[:, 0] = v[:, 0] * a[:, 1] * s
    da[:, 1] = 0.5 * v[:, 0] ** 2 * s
    value = np.sin(q[:, 0]) * tau[:, 1] + 0.5 * v[:, 0] ** 2 * a[:, 1] * s
    return value, {"q": dq, "v": dv, "a": da, "tau": dt}


def arm_with_a_term_of_the_user():
    """The arm of [xiang2008] that follows a path and a measured motion."""
    arm, t = kg.samples.two_link(), np.linspace(0, 1, 7)
    q = np.stack([np.sin(t), -1 - t], axis=-1)
    measured = Motion(arm, t, q, np.gradient(q, t, axis=0), np.zeros_like(q))
    requirements = [
        Boundary("start", q=[0, -1], v=[0.1, -0.2]),
        Guided("forearm", [[0.616, -0.337, 0], [0.5, 0.3, 0]], tolerance=0.3, during=(0.2, 0.8), directions="xy"),
    ]
    objective = [Time(), Follow(measured, 0.3, by={"elbow": 2.0}), UserTerm(user_term, 0.01)]
    return MotionProblem(arm, Phase(segments=4, duration=(0.2, 3), degree=5), requirements, objective)


def arm_and_its_design():
    """Length, mass, load and a turn of an axis are chosen with the motion."""
    arm, loads = kg.samples.two_link(), kg.Loads(force={"forearm": [0, -10, 0]}, point={"forearm": [0.02, 0.01, 0]})
    design = kg.Design(
        arm,
        {
            "L2": {"elbow.a": 1.0, "forearm.com.x": -0.5},
            "m2": "forearm.mass",
            "f": "forearm.load.force.x",
            "theta": {"elbow.alpha": 1.0},
        },
        loads,
    )
    bounds = {"L2": (-0.1, 0.2), "m2": (0.2, 0.9), "f": (-3, 3), "theta": (-0.3, 0.3)}
    requirements = [
        Boundary("start", q=[0, -1], v=0),
        Boundary("end", v=0),
        Reach("forearm", (0.2, 0.5, 0), directions="xy"),
        Above("forearm", -0.8, normal=(0, 1, 0)),
        Apart("forearm", 0.05, center=(0.3, -0.2, 0)),
    ]
    phase = Phase(segments=4, duration=(0.2, 2))
    return MotionProblem(arm, phase, requirements, [Time(), Effort(0.01)], design=design, design_bounds=bounds)


def five_bar(design=False):
    """A closed loop by a cut joint, whose forces are unknown; two motors."""
    model, constraints = kg.samples.five_bar()
    loops = [Kept(one, forces=True) for one in constraints]
    start = np.zeros(model.nq)
    name = model.coordinate_names[0]
    requirements = [*loops, Boundary("start", q=start, v=0), Boundary("end", q={name: 0.4}, v=0)]
    extra = {}
    if design:
        lengths = kg.Design(model, {"L": {f"{model.joint_names[1]}.placement.x": 1.0}})
        extra = {"design": lengths, "design_bounds": {"L": (-0.05, 0.05)}}
    phase = Phase(segments=5, duration=(0.2, 2))
    return MotionProblem(model, phase, requirements, [Time(), Effort(0.01)], **extra)


def crouching_pair():
    """A floating body with two feet at different places, symmetric, periodic, with a frame held and a distance kept."""
    human = kg.samples.human43()
    names = human.coordinate_names
    follow = {}
    for name in names:
        if name.startswith("left"):
            odd = name.endswith((".y", ".z", "_pelvis"))
            follow[name] = (name.replace("left", "right"), -1 if odd else 1)
    still = dict.fromkeys(("lumbar", "pelvis.rz", "pelvis.tx", "neck.y", "neck.z", "right_toes", "right_pelvis"), 0.0)
    follow = {a: b for a, b in follow.items() if a not in ("left_toes", "left_pelvis")}
    still |= {"left_toes": 0.0, "left_pelvis": 0.0}
    feet = [Foot(f"{s}_foot", (x, 0.085, -0.87), size=(0.08, 0.27)) for s, x in (("right", 0.09), ("left", -0.09))]
    requirements = [
        *feet,
        Fixed(still),
        Symmetric(follow),
        Periodic(orders=2),
        Held("right_hand", (0.2, 0.0, 0.0), directions="x", during=(0.2, 0.7)),
    ]
    return MotionProblem(
        human, Phase(segments=3, nodes=1, duration=1.2), requirements, [Effort(1e-3), Acceleration(1e-4)]
    )


def actuated_by_a_belt():
    """Controls through a matrix, one coordinate without a motor; both powers depend on one torque and one speed."""
    arm = kg.samples.multi_pendulum(3)
    belt = kg.Actuation(["motor", "belt"], [[1, 1], [0, 2], [0, 0]])
    model = arm.replace(actuation=belt)
    limits = Limits(tau={"motor": 30.0}, power={"belt": (-50.0, 20.0), "motor": 90.0})
    requirements = [Boundary("start", q=0, v=0), limits]
    objective = [Effort(0.1, by={"belt": 2.0}), Power(0.1)]
    return MotionProblem(model, Phase(segments=6, nodes=1, duration=(0.3, 1.5)), requirements, objective)


def cart_without_a_hinge_motor():
    """Nothing supplies the torque of the hinge: rows at instants of their own."""
    model = kg.samples.cart_pendulum()
    requirements = [Boundary("start", q=0, v=0), Boundary("end", q={"hinge": 1.0}), Limits(tau=20.0)]
    objective = [Time(), Effort(0.1), Jerk(1e-6)]
    phase = Phase(segments=[0, 0.2, 0.5, 0.6, 1], degree=5, duration=(0.3, 2))
    return MotionProblem(model, phase, requirements, objective, actuated=["track"])
