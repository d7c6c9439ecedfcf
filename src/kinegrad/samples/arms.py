"""Robot arms: the two-link manipulator of [xiang2008], and the PUMA 560."""

from __future__ import annotations

from math import pi, radians

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.model import DH, Inertia, Model

__all__ = ["puma560", "two_link"]


def two_link(*, gravity: ArrayLike = (0.0, -9.8062, 0.0)) -> Model:
    """The planar two-link manipulator of [xiang2008], Tables 1 and 2.

    Two links of 0.4 m, 0.5 kg and 0.1 kg·m² about the middle of each, turning about z in the vertical x-y
    plane; stretched out along x at q = 0.  Torques are limited to ±10 N·m.

    Parameters
    ----------
    gravity : array_like, shape (3,)
        World, m/s²: 9.8062 along −y in the paper's example 2, zero in its example 1.

    Returns
    -------
    Model

    Notes
    -----
    The pseudo-inertia (47) has I + m(l − L)² in its first entry and nothing across the link: as a body, a rod
    along x with inertia diag(0, I, I).  That is 15 times the inertia of a uniform rod of its length and mass.

    Examples
    --------
    >>> arm = two_link()
    >>> arm.joint_names, arm.link_inertia("forearm").pseudo[0, [0, 3]].round(12).tolist()
    (('shoulder', 'elbow'), [0.12, -0.1])
    """
    L, m, moment = 0.4, 0.5, 0.1
    link = Inertia(m, [-L / 2, 0, 0], np.diag([0, moment, moment]))
    return Model.from_dh(
        [DH(a=L), DH(a=L)],
        name="two_link",
        joint_names=["shoulder", "elbow"],
        link_names=["upper_arm", "forearm"],
        inertias=[link, link],
        gravity=gravity,
        effort_limits=(10, 10),
    )


def puma560() -> Model:
    """The Unimation PUMA 560 with the parameters of Corke's Robotics Toolbox, in standard (distal) DH.

    Six hinges; at q = 0 the upper arm lies along x and the forearm points up.  The world's origin is at the
    shoulder.  Inertias are of the links alone; the motors enter through their gears as armature Jm·G² and
    damping B·G², with gear ratios G = (−62.6111, 107.815, −53.7063, 76.0364, 71.923, 76.686).

    Returns
    -------
    Model

    Notes
    -----
    The values are those of the toolbox's ``mdl_puma560``.  They go back to B. Armstrong, O. Khatib,
    J. Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560 arm" (ICRA 1986), and
    to P. Corke, B. Armstrong-Hélouvry, "A search for consensus among model parameters reported for the PUMA
    560 robot" (ICRA 1994); joint limits to L. Wang, C. Chen (IEEE Trans. Robotics and Automation 7(4), 1991).
    Coulomb friction is left out.  Two values are not taken literally, for no rigid body has them:

    - Link 1 has an inertia of 0.35 kg·m² about its axis, but no mass.  It only turns about that fixed axis,
      so the same 0.35 kg·m² in the armature of joint 1 gives the same dynamics.
    - Link 3 has moments (0.066, 0.086, 0.0125) kg·m², but 0.086 > 0.066 + 0.0125.  The nearest that a body
      can have (least squares) are each 0.0025 away: (0.0685, 0.0835, 0.015).

    Examples
    --------
    >>> arm = puma560()
    >>> arm.joint_names
    ('waist', 'shoulder', 'elbow', 'wrist_roll', 'wrist_bend', 'flange_roll')
    >>> arm.armature.round(3).tolist()
    [1.134, 2.325, 0.577, 0.191, 0.171, 0.194]
    """
    # Angles in rad; lengths in m; kg; centre of mass in m; moments about it in kg·m².
    table = [
        DH(alpha=pi / 2),
        DH(a=0.4318),
        DH(d=0.15005, a=0.0203, alpha=-pi / 2),
        DH(d=0.4318, alpha=pi / 2),
        DH(alpha=-pi / 2),
        DH(),
    ]
    inertias = [
        None,
        Inertia(17.4, [-0.3638, 0.006, 0.2275], np.diag([0.13, 0.524, 0.539])),
        Inertia(4.8, [-0.0203, -0.0141, 0.070], np.diag([0.0685, 0.0835, 0.015])),
        Inertia(0.82, [0, 0.019, 0], np.diag([1.8e-3, 1.3e-3, 1.8e-3])),
        Inertia(0.34, [0, 0, 0], np.diag([0.3e-3, 0.4e-3, 0.3e-3])),
        Inertia(0.09, [0, 0, 0.032], np.diag([0.15e-3, 0.15e-3, 0.04e-3])),
    ]
    Jm = np.array([200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6])  # kg·m², at the motor
    B = np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6])  # N·m·s/rad, at the motor
    G = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])
    limits = [(-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266)]  # degrees
    return Model.from_dh(
        table,
        name="puma560",
        joint_names=["waist", "shoulder", "elbow", "wrist_roll", "wrist_bend", "flange_roll"],
        link_names=["column", "upper_arm", "forearm", "wrist", "hand", "flange"],
        inertias=inertias,
        position_limits=[[radians(lower), radians(upper)] for lower, upper in limits],
        armature=Jm * G**2 + [0.35, 0, 0, 0, 0, 0],
        damping=B * G**2,
    )
