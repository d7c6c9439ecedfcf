"""What was measured, as motions of a model: positions smoothed and differentiated, gaps filled.

==========================  =========================================================================================
:func:`read_motion`         a CSV, NPZ or NetCDF file of positions, in any of the usual spellings, as a motion
:func:`motion_from_positions`  the same from arrays: q alone → q, v, a, and what was done in words
:func:`low_pass`            the zero-phase Butterworth filter itself, for any record
:func:`smoothing_spline`    the smoothing spline of degree 5 itself
:func:`inverse_kinematics`  coordinates of every frame from the positions of markers
==========================  =========================================================================================
"""

from kinegrad.recordings.filtering import low_pass
from kinegrad.recordings.inverse_kinematics import InverseKinematics, inverse_kinematics
from kinegrad.recordings.motion_file import read_motion
from kinegrad.recordings.motion_from_positions import RecordedMotion, motion_from_positions
from kinegrad.recordings.smoothing_spline import smoothing_spline

__all__ = [
    "InverseKinematics",
    "RecordedMotion",
    "inverse_kinematics",
    "low_pass",
    "motion_from_positions",
    "read_motion",
    "smoothing_spline",
]
