"""Problems by name, each with a title, a few sentences, a guess, and what to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.motion.problem import MotionProblem
from kinegrad.predictions.five_bar import five_bar_reach
from kinegrad.predictions.human import GRIP, HALF, human43_lift, human43_step, step_postures
from kinegrad.predictions.sagittal import sagittal_lift
from kinegrad.predictions.two_link import lifting, time_optimal

__all__ = ["PREDICTIONS", "Drawing", "Prediction", "prediction"]


@dataclass(frozen=True)
class Drawing:
    """How a motion is shown.

    Attributes
    ----------
    up : str
        The world's axis that is up on the page.
    azimuth, elevation : float
        Where the viewer is, degrees.
    ground : float, optional
        Its height, m.
    hands : tuple of str
        Links or frames that hold a box: it is drawn in their middle.
    grip : (float, float, float)
        Where in them, m.
    box : (float, float, float)
        Its size, m.
    head : str, optional
        A link or frame that is a head.
    trail : tuple of str
        Links or frames whose ways are drawn.
    mirror : bool
        Whether the motion is half of a stride, and is shown with its mirror image after it.
    """

    up: str = "z"
    azimuth: float = 40.0
    elevation: float = 10.0
    ground: float | None = None
    hands: tuple[str, ...] = ()
    grip: tuple[float, float, float] = (0.0, 0.0, 0.0)
    box: tuple[float, float, float] = (0.3, 0.25, 0.22)
    head: str | None = None
    trail: tuple[str, ...] = ()
    mirror: bool = False


@dataclass(frozen=True)
class Prediction:
    """A problem with its name and what a page says about it.

    Attributes
    ----------
    name, title, text : str
    make : callable
        Makes the :class:`~kinegrad.motion.problem.MotionProblem`; its keyword arguments can be changed.
    guess : mapping
        Arguments of :meth:`MotionProblem.guess`.
    options : mapping
        Arguments of :meth:`MotionProblem.solve`.
    drawing : Drawing
    """

    name: str
    title: str
    text: str
    make: Callable[..., MotionProblem]
    guess: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    drawing: Drawing = field(default_factory=Drawing)


def prediction(name: str) -> Prediction:
    """The prediction of this name.

    >>> prediction("two-link-lifting").title
    'Two-link arm: lifting with a load'
    """
    if not isinstance(name, str) or name not in PREDICTIONS:
        raise InputError(f"`name` is {shown(name)}; expected one of {', '.join(PREDICTIONS)}")
    return PREDICTIONS[name]


_ARM = Drawing(up="y", azimuth=-90.0, elevation=0.0, trail=("forearm",))
_HUMAN = Drawing(
    azimuth=35.0, elevation=9.0, ground=-0.87, hands=("right_hand", "left_hand"), grip=GRIP,
    box=(2 * HALF - 0.02, 0.30, 0.24), head="head",
)  # fmt: skip

PREDICTIONS: dict[str, Prediction] = {
    each.name: each
    for each in (
        Prediction(
            "two-link-time-optimal",
            "Two-link arm: least time",
            "The planar arm of xiang2008, example 1: from (0, −2) to (1, −1) rad in the least time with torques "
            "of at most 10 N·m, without gravity. Published T = 0.3934 s.",
            time_optimal,
            guess={"durations": [0.5]},
            drawing=_ARM,
        ),
        Prediction(
            "two-link-lifting",
            "Two-link arm: lifting with a load",
            "The planar arm of xiang2008, example 2: 10 N hang at its tip, torques are at most 10 N·m, and time and "
            "squared torques count, (67) with u = 0.01. Published T = 0.520 s.",
            lifting,
            guess={"durations": [0.5]},
            drawing=_ARM,
        ),
        Prediction(
            "sagittal-lift",
            "Bend and lift in the sagittal plane",
            "A human of 8 degrees of freedom stands, bends to a box of 10 kg, and lifts it: two phases, after "
            "kudruss2019, section 4.3. The feet stay flat on the ground, their forces are unknown.",
            sagittal_lift,
            options={"refine": True, "between": {"dynamics": 0.01}},
            drawing=Drawing(
                azimuth=-90.0,
                elevation=0.0,
                ground=0.0,
                hands=("grip",),
                box=(0.30, 0.30, 0.24),
                head="crown",
            ),
        ),
        Prediction(
            "human43-lift",
            "A human lifts a box",
            "The human of zhakatayev2023 with 43 degrees of freedom lifts 10 kg from the floor to a shelf: a "
            "floating pelvis without motors, both feet planted with unknown forces inside friction cones, both "
            "hands on the box, joints within anatomical ranges and strengths. Left and right move symmetrically.",
            human43_lift,
            drawing=_HUMAN,
        ),
        Prediction(
            "human43-lift-aside",
            "A human lifts a box to one side",
            "The human of zhakatayev2023 with 43 degrees of freedom lifts 10 kg from the floor to a shelf 0.3 m to the "
            "left, both feet planted with unknown forces inside friction cones, both hands on the box, joints within "
            "anatomical ranges and strengths. Nothing is symmetric: all 41 moving coordinates are unknown.",
            lambda **changes: human43_lift(aside=True, **changes),
            drawing=_HUMAN,
        ),
        Prediction(
            "human43-step",
            "A human takes a step",
            "One step of a periodic gait: the right foot is planted, the left one swings, and the motion ends as "
            "the mirror image of how it began, one step ahead. Speeds go on from step to step, so that the foot lands "
            "without speed, and without an impact. The page shows both steps of a stride.",
            human43_step,
            guess={"postures": step_postures(), "durations": [0.6]},
            options={"refine": True},
            drawing=Drawing(azimuth=20.0, elevation=9.0, ground=-0.87, head="head", mirror=True),
        ),
        Prediction(
            "five-bar",
            "A five-bar arm",
            "A closed loop by cut joint: two motors in the ground carry a payload of 1 kg from one side to the "
            "other; the force in the cut joint is unknown, and the elbows have no motors.",
            five_bar_reach,
            options={"refine": True},
            drawing=Drawing(azimuth=-90.0, elevation=0.0, trail=("left_elbow",)),
        ),
    )
}
