"""A human in the sagittal plane, after the one of [kudruss2019], section 4.3: 8 degrees of freedom, both sides one."""

from __future__ import annotations

from math import radians
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import InputError
from kinegrad.model import Inertia, Model, ModelBuilder, planar, revolute
from kinegrad.model.model import STANDARD_GRAVITY
from kinegrad.model.numbers import flag, real_number
from kinegrad.model.placement import translate
from kinegrad.samples.human_limits import LIMITS

__all__ = ["human_sagittal"]

# [winter2009] Table 4.1: mass of one segment by that of the body; centre of mass from the joint nearer to the trunk,
# and radius of gyration about it, by the length of the segment.
SEGMENTS = {
    "foot": (0.0145, 0.5, 0.475),
    "shank": (0.0465, 0.433, 0.302),
    "thigh": (0.100, 0.433, 0.323),
    "trunk": (0.578, 0.66, 0.503),  # with head and neck; from the hip to the shoulder
    "upper_arm": (0.028, 0.436, 0.322),
    "forearm": (0.022, 0.682, 0.468),  # with the hand; from the elbow to the wrist
}
# [winter2009] Fig. 4.1: lengths by the height of the body.
LENGTHS = {"shank": 0.246, "thigh": 0.245, "trunk": 0.288, "upper_arm": 0.186, "forearm": 0.146}
FOOT, ANKLE, HAND, HEAD = 0.152, 0.039, 0.108, 0.182  # length of the foot, height of the ankle, the hand, head and neck
# [dumas2018], men: the lumbosacral joint (L5/S1) is 24.0 % of the pelvis's width behind the hips and 33.8 % above them
# (−33.5 + 9.5 and −3.2 + 37.0); that width, between the anterior spines, is 0.13 of the height: an estimate.
WIDTH, BEHIND, ABOVE = 0.13, 0.240, 0.338
# [winter2009] Table 4.1: mass of the pelvis, and its centre from the hip by the way to L4/L5, here to L5/S1; its radius
# of gyration by the height of the body is an estimate.
PELVIS = (0.142, 0.895, 0.046)
HEEL, BALL = 0.25, 0.73  # of the foot's length: from the heel to the ankle, and to the head of the second metatarsal
# The y axis points to the left: a positive turn about y bends the trunk forwards and the knee, about −y the others.
FLEXION = {"hip": "-y", "knee": "y", "ankle": "-y", "shoulder": "-y", "elbow": "-y"}
RANGES = {  # degrees, flexion (of the ankle dorsiflexion) positive, from the table of human43
    "hip": (-LIMITS["hip.x"].upper, -LIMITS["hip.x"].lower),
    "knee": (LIMITS["knee"].lower, LIMITS["knee"].upper),
    "ankle": (-LIMITS["ankle.x"].upper, -LIMITS["ankle.x"].lower),
    "shoulder": (-LIMITS["shoulder.x"].upper, -LIMITS["shoulder.x"].lower),
    "elbow": (-LIMITS["elbow.x"].upper, -LIMITS["elbow.x"].lower),
}
BACK = LIMITS["lumbar.x"]
STRENGTHS = {name: LIMITS[name if name == "knee" else f"{name}.x"].strength for name in RANGES}


def human_sagittal(
    *, height: float = 1.75, mass: float = 75.0, lumbar_flexion: bool = False, gravity: ArrayLike = STANDARD_GRAVITY
) -> Model:  # fmt: skip
    """A human who moves in the x-z plane with both legs and both arms alike: 8 degrees of freedom.

    The body is free in the plane (``trunk.tz``, ``trunk.tx``, ``trunk.ry``, of the hip), with ``hip``, ``knee``,
    ``ankle``, ``shoulder`` and ``elbow``, each for both sides at once.  At q = 0 it stands upright with the arms down,
    facing +x, the soles on the ground z = 0 and the ankles above the origin.  Positive angles bend: the trunk forwards,
    hip, knee, shoulder and elbow as people do, the ankle upwards.  Link frames are at the joints, z up while standing.

    [kudruss2019] has such a model and prints no numbers of it; these are the standard fractions of mass and height in
    [winter2009].  Ranges and strengths are those of :func:`human43`, the latter doubled, for two sides act together.

    Parameters
    ----------
    height : float
        m.
    mass : float
        kg.
    lumbar_flexion : bool
        Whether the low back bends: a hinge ``lumbar``, positive forwards, at L5/S1 between ``pelvis`` and ``trunk``.
        The body is then free by ``pelvis.tz``, ``pelvis.tx``, ``pelvis.ry``, and the same as without it where
        ``lumbar`` = 0.  9 degrees of freedom; ``human_sagittal_lumbar``.
    gravity : array_like, shape (3,)
        World, m/s².

    Returns
    -------
    Model
        With frames ``heel``, ``ball`` and ``toe`` at the sole, ``grip`` in the middle of the hand, and ``crown`` on
        the head.

    Notes
    -----
    Our assumptions, where the source has none: the ankle is a quarter of the foot's length in front of the heel, the
    ball of the foot at 73 %; the forearm goes on straight into the hand.  Of the low back: the width of the pelvis by
    the height, its radius of gyration, that it stands level, and that all of the lumbar spine bends at L5/S1.

    Examples
    --------
    >>> human = human_sagittal()
    >>> human.n, round(human.total_mass, 9), human.joint_names[3:]
    (8, 75.0, ('hip', 'knee', 'ankle', 'shoulder', 'elbow'))

    Ten kilograms held in front by straight arms, and the torque of the low back, N·m:

    >>> from kinegrad import Loads, inverse_dynamics, neutral
    >>> human = human_sagittal(lumbar_flexion=True)
    >>> q = neutral(human)
    >>> q[human.coordinate_index("shoulder")] = np.pi / 2
    >>> reach = human.frames["grip"].placement[:3, 3]
    >>> box = Loads(force={"forearm": [0, 0, -98.1]}, point={"forearm": reach})
    >>> tau = [inverse_dynamics(human, q, 0 * q, 0 * q, loads=x) for x in (None, box)]
    >>> [x[human.speed_index("lumbar")].round(1).item() for x in tau]
    [-48.7, -120.3]
    """
    size, kilograms = real_number("`height`", height), real_number("`mass`", mass)
    for name, value, unit in (("height", size, "m"), ("mass", kilograms, "kg")):
        if not np.real(value) > 0:
            raise InputError(f"`{name}` is {np.real(value):g} {unit}; expected more than zero")
    L = {name: share * size for name, share in LENGTHS.items()}
    down: dict[str, ArrayLike] = {name: [0, 0, -length] for name, length in L.items()}
    sole, foot = -ANKLE * size, FOOT * size
    body = {name: _segment(name, kilograms, L.get(name, 0)) for name in L}
    share, middle, gyration = SEGMENTS["foot"]
    reach = np.array([(BALL - HEEL) * foot, 0, sole])
    body["foot"] = _rod_like(2 * share * kilograms, middle * reach, gyration * np.sqrt(reach @ reach), reach)
    standing = L["thigh"] + L["shank"] - sole
    bends = flag("`lumbar_flexion`", lumbar_flexion)
    builder = ModelBuilder("human_sagittal_lumbar" if bends else "human_sagittal", gravity=gravity)
    low_back = np.array([-BEHIND, 0.0, ABOVE]) * (WIDTH * size) if bends else np.zeros(3)
    if bends:
        share, middle, gyration = PELVIS
        pelvis = _rod_like(share * kilograms, middle * low_back, gyration * size, low_back)
        builder.add("pelvis", None, planar("y"), link="pelvis", placement=[0, 0, standing], inertia=pelvis)
        builder.add(
            "lumbar", "pelvis", revolute("y"), link="trunk", placement=low_back,
            inertia=_without(body["trunk"], pelvis).moved(translate(*(-low_back))),
            position_limits=(radians(BACK.lower), radians(BACK.upper)), effort_limits=BACK.strength,
        )  # fmt: skip
    else:
        builder.add("trunk", None, planar("y"), link="trunk", placement=[0, 0, standing], inertia=body["trunk"])
    parents = {"hip": "pelvis" if bends else "trunk", "knee": "thigh", "ankle": "shank", "shoulder": "trunk",
               "elbow": "upper_arm"}  # fmt: skip
    links = {"hip": "thigh", "knee": "shank", "ankle": "foot", "shoulder": "upper_arm", "elbow": "forearm"}
    at: dict[str, ArrayLike] = {"hip": [0, 0, 0], "shoulder": np.array([0, 0, L["trunk"]]) - low_back}
    for joint, axis in FLEXION.items():
        link, parent = links[joint], parents[joint]
        builder.add(
            joint, parent, revolute(axis), link=link, placement=at.get(joint, down.get(parent)), inertia=body[link],
            position_limits=tuple(map(radians, RANGES[joint])), effort_limits=2 * STRENGTHS[joint],
        )  # fmt: skip
    builder.add_frame("heel", "foot", [-HEEL * foot, 0, sole])
    builder.add_frame("ball", "foot", reach)
    builder.add_frame("toe", "foot", [(1 - HEEL) * foot, 0, sole])
    builder.add_frame("grip", "forearm", [0, 0, -(L["forearm"] + HAND * size / 2)])
    builder.add_frame("crown", "trunk", np.array([0, 0, L["trunk"] + HEAD * size]) - low_back)
    return builder.build()


def _segment(name: str, kilograms: float, length: float) -> Inertia:
    """A segment of both sides (the trunk is one) along z, from its joint down; the trunk from the hip up."""
    share, middle, gyration = SEGMENTS[name]
    up = name == "trunk"
    com = np.array([0, 0, (middle if up else -middle) * length])
    return _rod_like((1 if up else 2) * share * kilograms, com, gyration * length, np.array([0, 0, 1.0]))


def _without(whole: Inertia, part: Inertia) -> Inertia:
    """What is left of a slender body without a part of it, for motion in the x-z plane."""
    mass = whole.mass - part.mass
    com = (whole.mass * whole.com - part.mass * part.com) / mass

    def across(body: Inertia) -> Any:
        """About the y axis of the frame."""
        return body.inertia[1, 1] + body.mass * (body.com @ body.com)

    moment = across(whole) - across(part) - mass * (com @ com)
    return Inertia(mass, com, moment * np.diag([1.0, 1.0, 0.0]))


def _rod_like(mass: float, com: ArrayLike, gyration: float, along: ArrayLike) -> Inertia:
    """A body whose radius of gyration across its long axis is known, and which is slender."""
    u = np.asarray(along) / np.sqrt(np.dot(along, along))
    return Inertia(mass, com, mass * gyration**2 * (np.eye(3) - np.outer(u, u)))
