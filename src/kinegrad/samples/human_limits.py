"""Ranges and strengths of the joints of :func:`~kinegrad.samples.human43`, with where they are from.

Every number below has the key of a source that was read, with its place in docs/references.md, or is called an
estimate.

Ranges of legs are the normal values of [merck2013], of neck and trunk those of [cfr471a], of shoulder, elbow, forearm
and wrist the averages of the American Academy of Orthopaedic Surgeons in [norkin2016], table A.1, except:

- adduction of the hip is 30°, the most of the 20° to 30° of [fpnotebook]; in [merck2013] it is the way back from
  abduction;
- the ankle bends up by 35°, which is what it does under the body's weight, 30° to 38° [podiatryfaq]; without weight it
  is 20° [merck2013];
- abduction of the shoulder is 120°, the part of the arm's 180° that is not the shoulder girdle's [scapulohumeral]; the
  rest is ``clavicle.y``, whose range, and that of ``clavicle.z``, is the clavicle's [sternoclavicular];
- adduction of the shoulder is 8°, an estimate: more takes the elbow of this model through its trunk;
- ``right_pelvis`` and ``left_pelvis``, which share the roll of the whole body with ``lumbar``, have 10°, an estimate:
  twice what a pelvis drops in walking.

Strengths are magnitudes of torques, N·m, of the stronger direction, for a man of average strength, and hold at all
angles and speeds.

- Hip, knee, ankle, shoulder and elbow bend and stretch with the torques of [robert2013].  They are beside others that
  were read: [anderson2007] has 0.161, 0.163 and 0.095 of weight times height for extension of hip and knee and plantar
  flexion of young men where they are strongest, 209, 212 and 124 N·m for 77.5 kg and 1.71 m; [sarabon2021] 2.9 to
  3.5 N·m/kg for the knee in mid-range; [shoulderflexion] 89.9 N·m; [lategan2003] 0.78 N·m/kg for the elbow, 60 N·m, in
  motion.
- The hip abducts with 1.29 N·m/kg at 60°/s [sugimoto2014], and turns outwards with 0.46 N·m/kg [freire2022].
- The shoulder adducts with 67.9 N·m, the mean of ten young women and men [holzbaur2007], and turns inwards with
  50.5 N·m [millard2019], measured of a tennis player and scaled to a gymnast of 69.6 kg.
- The shoulder girdle is raised with 1101 N and pushed forwards with 1117 N, both sides together, means of nineteen
  women and men [garner2008]: 94 and 95 N·m for each side, at the 0.17 m of this model's clavicle.
- Wrist [delp1996], neck [neck2014], forearm [osullivan2002], toes [goldmann2012] and inversion of the foot
  [dafonseca2025] are as printed there.
- The trunk bends to its side with 143 N·m, an estimate: with as much as it bends forwards [robert2013], the weaker of
  the two directions (backwards 234 N·m).  No measured torque to the side was found.  The two joints of the pelvis carry
  the same trunk and have the same number.
- ``lumbar.x``, the low back of bodies that bend there, has the flexion and extension of the whole lumbar spine of the
  youngest group of [troke2001] in one joint, and the torque of the trunk backwards [robert2013].

The pelvis moves in space without motors, so it has neither ranges nor strengths there.

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
    "pelvis": JointLimits(-10, 10, 143),  # roll of half a pelvis; estimates
    "hip.z": JointLimits(-45, 45, 35.7),  # lateral, medial rotation [merck2013]; [freire2022]
    "hip.y": JointLimits(-45, 30, 100),  # abduction [merck2013], adduction [fpnotebook]; [sugimoto2014]
    "hip.x": JointLimits(-125, 15, 190),  # flexion, extension [merck2013]; [robert2013]
    "knee": JointLimits(0, 130, 168),  # extension, flexion [merck2013]; [robert2013]
    "ankle.x": JointLimits(-35, 50, 126),  # dorsiflexion [podiatryfaq], plantar flexion [merck2013]; [robert2013]
    "ankle.y": JointLimits(-25, 35, 34.6),  # eversion, inversion [merck2013]; [dafonseca2025]
    "toes": JointLimits(-80, 30, 14.2),  # extension, flexion [merck2013]; [goldmann2012]
    "lumbar": JointLimits(-30, 30, 143),  # trunk to the side [cfr471a]; estimate
    "lumbar.x": JointLimits(-29, 72, 234),  # extension, flexion [troke2001]; [robert2013]
    "clavicle.y": JointLimits(-45, 10, 94),  # elevation, depression [sternoclavicular]; [garner2008]
    "clavicle.z": JointLimits(-30, 30, 95),  # backwards, forwards [sternoclavicular]; [garner2008]
    "shoulder.z": JointLimits(-90, 70, 50.5),  # lateral, medial rotation [norkin2016]; [millard2019]
    "shoulder.y": JointLimits(-120, 8, 67.9),  # abduction [scapulohumeral], adduction, an estimate; [holzbaur2007]
    "shoulder.x": JointLimits(-180, 60, 92),  # flexion, extension [norkin2016]; [robert2013]
    "elbow.x": JointLimits(-150, 0, 77),  # flexion, extension [norkin2016]; [robert2013]
    "elbow.z": JointLimits(-80, 80, 16.2),  # pronation, supination [norkin2016]; [osullivan2002]
    "wrist.x": JointLimits(-20, 30, 11.0),  # radial, ulnar deviation [norkin2016]; [delp1996]
    "wrist.y": JointLimits(-70, 80, 12.2),  # extension, flexion [norkin2016]; [delp1996]
    "neck.y": JointLimits(-45, 45, 32),  # to the sides [cfr471a]; [neck2014]
    "neck.z": JointLimits(-80, 80, 13),  # turns [cfr471a]; [neck2014]
    "neck.x": JointLimits(-45, 45, 51),  # extension, flexion [cfr471a]; [neck2014]
}
MIRRORED = (".y", ".z", "_pelvis")  # a positive turn about y or z of the left side is a negative one of the right


def limits_of(joints: Sequence[str]) -> tuple[list[tuple[float, float]], list[float]]:
    """`position_limits`, rad, and `effort_limits`, N·m, of joints by name.

    >>> ranges, strengths = limits_of(["left_knee", "pelvis.rx"])
    >>> round(ranges[0][1], 4), strengths
    (2.2689, [168, inf])
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
