"""Motions from files of measured positions."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.io import read_positions
from kinegrad.io.whole_file import checked_path
from kinegrad.model import Model
from kinegrad.recordings.motion_from_positions import LONGEST_GAP, RecordedMotion, motion_from_positions

__all__ = ["read_motion"]

NAMED = 4  # coordinates that are named where they are held


def read_motion(
    path: str | os.PathLike[str],
    model: Model,
    *,
    lowpass: float | None = None,
    order: int = 4,
    smoothing: str | float | ArrayLike | Mapping[str, float] | None = None,
    units: str | None = None,
    missing: str = "refuse",
    rate: float | None = None,
    longest_gap: float = LONGEST_GAP,
) -> RecordedMotion:
    """Read measured positions from a file and compute speeds and accelerations: see :func:`motion_from_positions`.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file with q, or a .mot or .sto file of OpenSim.  In CSV the columns are ``q.JOINT`` or
        ``JOINT``, and ``t``, ``time``, …; separated by commas, semicolons or tabs; empty where nothing was measured.
    model : Model
    lowpass, order, smoothing, longest_gap
        As in :func:`motion_from_positions`.
    units : "deg" or "rad", optional
        Unit of angles if the file does not state it, as a header ``elbow [deg]`` or ``inDegrees=yes`` does; by default
        rad.
    missing : "refuse" or "neutral"
        What to do if a CSV or .mot file has no column for a coordinate: raise an error, or hold its neutral value.
    rate : float, optional
        Samples per second, for a file without times.

    Returns
    -------
    RecordedMotion

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kinegrad.samples import two_link
    >>> lines = [f"{k / 100};{20 * np.sin(k / 20)};{k}" for k in range(100)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reach.csv")
    ...     _ = file.write_text("\\n".join(["time [s];shoulder [deg];elbow [deg]", *lines]))
    ...     motion = read_motion(file, two_link(), lowpass=8)
    >>> motion.v[50].round(2)  # of the elbow: a degree in each hundredth of a second
    array([-1.4 ,  1.75])
    """
    found = read_positions(path, model, units=units, missing=missing)
    t, made = found.t, list[str]()
    if t is None:
        if rate is None:
            raise InputError(
                f"{checked_path(path)}: has no times; expected a column t, or `rate` in samples per second"
            )
        frequency = engine.positive("rate", rate)
        t = np.arange(len(found.q)) / frequency
        made.append(f"t: {frequency:g} samples per second, as given")
    elif rate is not None:
        raise InputError(f"`rate` is {shown(rate)}, and {checked_path(path)} has times; expected one of them")
    if found.held:
        names = ", ".join(found.held[:NAMED]) + (", …" if len(found.held) > NAMED else "")
        made.append(f"q: {len(found.held)} of {model.nq} coordinates are not in the file, and neutral: {names}")
    motion = motion_from_positions(
        model, t, found.q, lowpass=lowpass, order=order, smoothing=smoothing, longest_gap=longest_gap
    )
    return dataclasses.replace(motion, made=(*made, *motion.made))
