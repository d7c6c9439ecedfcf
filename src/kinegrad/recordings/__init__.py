"""What was measured, as motions of a model: positions smoothed and differentiated, gaps filled.

==========================  =========================================================================================
:func:`read_motion`         a CSV, NPZ or NetCDF file of positions, in any of the usual spellings, as a motion
:func:`motion_from_positions`  the same from arrays: q alone → q, v, a, and what was done in words
:func:`low_pass`            the zero-phase Butterworth filter itself, for any record
:func:`smoothing_spline`    the smoothing spline of degree 5 itself
:func:`inverse_kinematics`  coordinates of every frame from the positions of markers
:func:`fit_design`          bone lengths and marker offsets with them, over the whole recording
:class:`ForcePlate`         force, centre of pressure and free moment; plates_of, read_external_loads, plate_loads
:func:`analyze_recording`   torques with residuals, powers and error bars
:func:`fit_masses`          masses from the forces of plates
:func:`motion_as_opensim`   positions smoothed exactly as OpenSim does it
:func:`read_c3d`            markers and force plates of C3D files
:func:`turn_upright`        markers and plates of a world whose vertical axis is another
==========================  =========================================================================================
"""

from kinegrad.recordings.analysis import Analysis, analyze_recording
from kinegrad.recordings.c3d_file import read_c3d
from kinegrad.recordings.filtering import low_pass
from kinegrad.recordings.force_plates import ForcePlate, assign_links, plate_loads, plates_of, read_external_loads
from kinegrad.recordings.inverse_kinematics import InverseKinematics, inverse_kinematics
from kinegrad.recordings.masses import FittedMasses, fit_masses
from kinegrad.recordings.motion_file import read_motion
from kinegrad.recordings.motion_from_positions import RecordedMotion, motion_from_positions
from kinegrad.recordings.opensim_filter import motion_as_opensim
from kinegrad.recordings.scaling import Scaled, fit_design
from kinegrad.recordings.smoothing_spline import smoothing_spline
from kinegrad.recordings.torque_errors import TorqueErrors
from kinegrad.recordings.upright import turn_upright

__all__ = [
    "Analysis",
    "FittedMasses",
    "ForcePlate",
    "InverseKinematics",
    "RecordedMotion",
    "Scaled",
    "TorqueErrors",
    "analyze_recording",
    "assign_links",
    "fit_design",
    "fit_masses",
    "inverse_kinematics",
    "low_pass",
    "motion_as_opensim",
    "motion_from_positions",
    "plate_loads",
    "plates_of",
    "read_c3d",
    "read_external_loads",
    "read_motion",
    "smoothing_spline",
    "turn_upright",
]
