"""The human of 43 degrees of freedom lifts a box, straight ahead or to one side, and walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kinegrad.model import Model
from kinegrad.motion.problem import (
    Above,
    Acceleration,
    Boundary,
    Effort,
    Fixed,
    Foot,
    Held,
    Limits,
    MotionProblem,
    Periodic,
    Phase,
    Posture,
    Reach,
    Requirement,
    Symmetric,
    Time,
)
from kinegrad.samples import human43

__all__ = ["BOX", "human43_lift", "human43_step", "mirrored", "step_postures"]

BOX, HALF = 10.0, 0.17  # kg, and m from the middle of the box to each hand
GRIP = (-0.095, 0.0, 0.0)  # the middle of the hand, in its frame, which is at the finger tips
FLOOR, SHELF = (0.35, -0.55), (0.38, 0.45)  # y and z of the hands, m; the ground is at z = −0.87 m
ASIDE = 0.30  # m to the left, where the shelf is at the side
SOLE, SIZE = (0.09, 0.085, -0.87), (0.08, 0.27)  # the middle of the right sole while standing, and its size, m
CLEAR = 0.18  # m: the hands stay in front of knees, hip and neck by this much, so that the box does
AHEAD = (0.0, 1.0, 0.0)
THICKNESS = 0.1  # of limbs by their length: rods have no inertia about their axes, and could not be simulated
STEP = 0.55  # m
PELVIS = {"pelvis.tx": (-0.4, 0.4), "pelvis.ty": (-0.6, 0.6), "pelvis.tz": (-0.8, 0.1), "pelvis.rx": (-0.5, 1.9),
          "pelvis.rz": (-0.8, 0.8)}  # fmt: skip


def mirrored(model: Model) -> dict[str, tuple[str, float]]:
    """Each coordinate with the one that it is in the mirror, x to −x, and a sign.

    >>> mirrored(human43())["left_hip.z"], mirrored(human43())["pelvis.tx"]
    (('right_hip.z', -1.0), ('pelvis.tx', -1.0))
    """
    pairs = {}
    for name in model.coordinate_names:
        other = name.replace("right_", "@").replace("left_", "right_").replace("@", "left_")
        across = name.endswith((".y", ".z", "_pelvis")) or name in ("lumbar", "pelvis.rz", "pelvis.tx")
        pairs[name] = (other, -1.0 if across else 1.0)
    return pairs


def human43_lift(
    *, aside: bool = False, box: float = BOX, segments: int = 16, nodes: int = 2, duration: Any = (0.5, 3.0)
) -> MotionProblem:
    """The human lifts a box from the floor to a shelf, both feet planted, both hands on the box.

    Parameters
    ----------
    aside : bool
        Whether the shelf is 0.3 m to the left; else the motion is symmetric, with half the unknowns.
    box : float
        kg, half of it in each hand.
    segments, nodes : int
        Of the cubic splines, and in each segment.
    duration : float, or (float, float)
        s.
    """
    human = human43(thickness=THICKNESS)
    phase = Phase(
        "lift", duration=duration, segments=segments, nodes=nodes,
        attached={"right_hand": (box / 2, GRIP), "left_hand": (box / 2, GRIP)},
    )  # fmt: skip
    requirements: list[Requirement] = [
        *_standing(human, aside),
        Boundary("start", v=0.0),
        Boundary("end", v=0.0),
        Reach("right_hand", (HALF, *FLOOR), "start", point=GRIP),
        Reach("right_hand", (HALF - ASIDE * aside, *SHELF), "end", point=GRIP),
    ]
    sides = ("right", "left") if aside else ("right",)
    if aside:
        requirements.append(Held("right_hand", (2 * HALF, 0.0, 0.0), point=GRIP, other="left_hand", other_point=GRIP))
    else:
        requirements.append(Held("right_hand", (HALF, 0.0, 0.0), point=GRIP, directions="x"))
    for side in sides:
        requirements.append(Above(f"{side}_hand", CLEAR, GRIP, AHEAD, other=f"{side}_thigh"))  # in front of the knee
    for other in ("right_pelvis", "trunk"):  # and of the hip and the neck
        requirements.append(Above("right_hand", CLEAR, GRIP, AHEAD, other=other))
    objective = [Effort(relative=True), Time(0.1), Acceleration(1e-5), Posture(1e-2)]
    return MotionProblem(human, phase, requirements, objective)


def human43_step(
    *, step: float = STEP, segments: int = 16, nodes: int = 2, duration: Any = (0.35, 0.9)
) -> MotionProblem:
    """The human walks: one step of a periodic gait, the right foot planted while the left one swings.

    It ends as the mirror image of how it began, one step ahead: then the left foot is planted, and so on.  Soles stay
    flat while they stand, and toes are stiff.

    Parameters
    ----------
    step : float
        Its length, m.
    segments, nodes : int
        Of the cubic splines, and in each segment.
    duration : float, or (float, float)
        s.
    """
    human = human43(thickness=THICKNESS)
    pairs = mirrored(human)
    for name in ("right_toes", "left_toes"):
        del pairs[name]
    requirements: list[Requirement] = [
        Fixed({"right_toes": 0.0, "left_toes": 0.0}),
        Foot("right_foot", SOLE, size=SIZE),
        Periodic(advance={"pelvis.ty": step}, mirror=pairs, orders=1),  # forces pass from foot to foot, so a jumps
        Above("left_foot", -0.87 + 0.03, during=(0.2, 0.8)),
        Above("left_foot", -0.87 + 0.03, point=(0.0, 0.16, 0.0), during=(0.2, 0.8)),
        Above("left_foot", 0.06, normal=(-1.0, 0.0, 0.0), other="right_foot"),  # legs do not cross
        Limits(q={**PELVIS, "pelvis.ty": (-1.0, 1.5), "pelvis.rx": (-0.2, 0.5)}),
    ]
    objective = [Effort(relative=True), Time(1.0), Acceleration(1e-4), Posture(5e-2, by={
        name: 1.0 for name in human.coordinate_names if not name.startswith("pelvis.t")})]  # fmt: skip
    phase = Phase("step", duration=duration, segments=segments, nodes=nodes)
    return MotionProblem(human, phase, requirements, objective)


def step_postures(step: float = STEP) -> dict[str, dict[str, float]]:
    """Where to look for postures: the right leg in front with the pelvis behind it, and half a stride later.

    >>> step_postures()["end"]["pelvis.ty"]
    0.275
    """
    spread = step / 2 / 0.87
    start = {
        "pelvis.ty": -step / 2, "pelvis.tz": -0.06, "right_hip.x": -spread - 0.2, "right_knee": 0.3,
        "right_ankle.x": spread - 0.1, "left_hip.x": spread - 0.2, "left_knee": 0.4, "left_ankle.x": -spread - 0.2,
    }  # fmt: skip
    swapped = {"right_": "left_", "left_": "right_"}
    end = {swapped.get(name[: name.find("_") + 1], "") + name.removeprefix("right_").removeprefix("left_"): angle
           for name, angle in start.items()}  # fmt: skip
    return {"start": start, "end": end | {"pelvis.ty": step / 2}}


def _standing(human: Model, both: bool) -> Sequence[Requirement]:
    """Both feet planted; or, of a symmetric motion, the right one, which the left one follows."""
    pelvis = Limits(q=PELVIS)
    toes = Fixed({"right_toes": 0.0, "left_toes": 0.0})
    right = Foot("right_foot", SOLE, size=SIZE)
    left = Foot("left_foot", (-SOLE[0], *SOLE[1:]), size=SIZE)
    if both:
        return [pelvis, toes, right, left]
    follow = {}
    across = []
    for name, (other, sign) in mirrored(human).items():
        if name.startswith("left_") and "toes" not in name:
            follow[name] = (other, sign)
        elif name == other and sign < 0:
            across.append(name)
    still = Fixed(dict.fromkeys((*across, "right_toes", "left_toes"), 0.0))
    return [pelvis_without(across), still, Symmetric(follow), right, left]


def pelvis_without(names: Sequence[str]) -> Limits:
    """Ranges of the pelvis in space, but for coordinates that do not move."""
    return Limits(q={name: range_ for name, range_ in PELVIS.items() if name not in names})
