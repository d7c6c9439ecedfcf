"""Ranges and strengths of the joints of :func:`~kinegrad.samples.human43`, with where they are from.

Ranges are the averages of the American Academy of Orthopaedic Surgeons, as [norkin2016] prints them (its table A.1, of
shoulder, elbow, forearm and wrist, was read; those of leg and spine were not, and agree with [merck2013] within 15°),
with four changes where the model needs another number than a goniometer gives:

- the ankle bends up by 35°, which is what it does under the body's weight; without weight it is 20°;
- abduction of the shoulder is 120°, the part of the arm's 180° that is not the shoulder girdle's [inman1944]; the rest
  is ``clavicle.y``, whose 30° up, and 30° back and forth in ``clavicle.z``, are those of the clavicle [inman1944];
- adduction of the shoulder is 8°: more takes the elbow through the trunk;
- the three turns about y that share the roll of the whole body have the 10° of an oblique pelvis (``right_pelvis``,
  ``left_pelvis``) and the 35° of a trunk bent to its side (``lumbar``).

Strengths are the largest magnitudes of isometric torques, N·m, of the stronger direction, for a man of average
strength.  Those with a key and "read" stand in the abstract or table that was read for this file: of the wrist
[delp1996], the neck [neck2014], the forearm [osullivan2002], the toes [goldmann2012], inversion of the foot
[dafonseca2025], abduction of the hip 1.29 N·m/kg [sugimoto2014] of the model's 77.5 kg, which was measured at 60°/s.

Those of [chaffin2006] are its table of static strengths of men in manual jobs (measured by T. J. Stobbe, 1982), 50th
percentile, quoted from memory: the book was not at hand, so they count as estimates.  Three of them are beside numbers
that were read: flexion of the shoulder 89.9 N·m of 26 men [shoulderflexion], plantar flexion 136 ± 44 N·m
[dafonseca2025], and extension of the knee, which [sarabon2021] puts at 1.3 to 2.2 N·m/kg near extension and at 2.9 to
3.5 in mid-range, 104 to 267 N·m here.  The rest, marked "estimate", is ours, of the size that these joints have in
models of the whole body.  The pelvis moves in space without motors, so it has neither ranges nor strengths there.

Where q = 0, the arms hang with the palms to the thighs: then a turn of the wrist about x is radial or ulnar deviation,
about y flexion or extension.  All is for the right side; on the left, y and z change their sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, radians
from typing import NamedTuple

__all__ = ["LIMITS", "JointLimits", "limits_of"]


class JointLimits(NamedTuple):
    """Range in degrees, in the sign of the right joint's q, and strength, N·m."""

    lower: float
    upper: float
    strength: float


# joint of the right side                lower, upper        N·m
LIMITS = {
    "pelvis": JointLimits(-10, 10, 159),  # roll of half a pelvis: lateral flexion of the torso [chaffin2006]
    "hip.z": JointLimits(-45, 45, 60),  # lateral, medial rotation; estimate
    "hip.y": JointLimits(-45, 30, 100),  # abduction [sugimoto2014], read; adduction
    "hip.x": JointLimits(-120, 30, 190),  # flexion, extension [chaffin2006]
    "knee": JointLimits(0, 135, 168),  # extension, flexion [chaffin2006]
    "ankle.x": JointLimits(-35, 50, 126),  # dorsiflexion, plantar flexion [chaffin2006]
    "ankle.y": JointLimits(-15, 35, 34.6),  # eversion, inversion [dafonseca2025], read
    "toes": JointLimits(-70, 45, 14.2),  # extension, flexion [goldmann2012], read
    "lumbar": JointLimits(-35, 35, 159),  # trunk to the side [chaffin2006]
    "clavicle.y": JointLimits(-30, 10, 100),  # elevation, depression; estimate
    "clavicle.z": JointLimits(-30, 30, 60),  # backwards, forwards; estimate
    "shoulder.z": JointLimits(-90, 70, 52),  # lateral, medial rotation [chaffin2006]
    "shoulder.y": JointLimits(-120, 8, 71),  # abduction, adduction [chaffin2006]
    "shoulder.x": JointLimits(-180, 60, 92),  # flexion, extension [chaffin2006]
    "elbow.x": JointLimits(-150, 0, 77),  # flexion, extension [chaffin2006]
    "elbow.z": JointLimits(-80, 80, 16.2),  # pronation, supination [osullivan2002], read
    "wrist.x": JointLimits(-20, 30, 11.0),  # radial, ulnar deviation [delp1996], read
    "wrist.y": JointLimits(-70, 80, 12.2),  # extension, flexion [delp1996], read
    "neck.y": JointLimits(-45, 45, 32),  # to the sides [neck2014], read
    "neck.z": JointLimits(-60, 60, 13),  # turns [neck2014], read
    "neck.x": JointLimits(-45, 45, 51),  # extension, flexion [neck2014], read
}
MIRRORED = (".y", ".z", "_pelvis")  # a positive turn about y or z of the left side is a negative one of the right


def limits_of(joints: Sequence[str]) -> tuple[list[tuple[float, float]], list[float]]:
    """`position_limits`, rad, and `effort_limits`, N·m, of joints by name.

    >>> ranges, strengths = limits_of(["left_knee", "pelvis.rx"])
    >>> round(ranges[0][1], 4), strengths
    (2.3562, [168, inf])
    """
    ranges, strengths = [], []
    for joint in joints:
        if joint.startswith("pelvis."):
            ranges.append((-inf, inf))
            strengths.append(inf)
            continue
        left = joint.startswith("left_")
        lower, upper, strength = LIMITS[joint.removeprefix("right_").removeprefix("left_")]
        if left and joint.endswith(MIRRORED):
            lower, upper = -upper, -lower
        ranges.append((radians(lower), radians(upper)))
        strengths.append(strength)
    return ranges, strengths
