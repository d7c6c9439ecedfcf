"""From a file of MJCF to MuJoCo's compiled model.

MuJoCo knows what its files mean (defaults, includes, angles in degrees, bodies made of geoms), so it compiles them.
What it would take silently is refused before (:mod:`kinegrad.io.mjcf.before`).

MuJoCo refuses an inertia that no body has, also of a body that is fixed to another one.  It compiles such a file if it
may replace the inertia by its mean (``balanceinertia``).  Then the inertias that the file states are returned, too:
:mod:`kinegrad.io.moving_bodies` judges what moves.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import FileError, InputError, said
from kinegrad.io.mjcf.before import check_before
from kinegrad.io.moving_bodies import MassProperties

__all__ = ["compiled", "mujoco"]

_one_at_a_time = threading.Lock()
_LINE = re.compile(r"line (\d+)")
_BALANCE = "balanceinertia"  # what MuJoCo recommends for inertias that no body has

Array = NDArray[np.float64]


def mujoco() -> Any:
    """The package, or an InputError that says how to install it."""
    try:
        return import_module("mujoco")
    except ImportError as error:
        found = f"MJCF is compiled by MuJoCo, which cannot be imported ({said(error)})"
        raise InputError(f"{found}; install it with: pip install 'kinegrad[mjcf]'") from None


@contextmanager
def _warnings_kept(package: Any) -> Iterator[list[str]]:
    """What MuJoCo warns of meanwhile; by itself it would print it, and write a file into the current folder."""
    said_so: list[str] = []
    with _one_at_a_time:
        package.set_mju_user_warning(lambda text: said_so.append(" ".join(str(text).split())))
        try:
            yield said_so
        finally:
            package.set_mju_user_warning(None)


def compiled(path: Path, *, strict: bool = False) -> tuple[Any, list[str], dict[int, Array]]:
    """Compile a file.

    Parameters
    ----------
    path : Path
    strict : bool
        Whether MuJoCo refuses inertias that no body has.

    Returns
    -------
    model : mujoco.MjModel
    warned : list of str
        What MuJoCo warns of.
    stated : dict from int to (3, 3) array
        Impossible inertias as the file states them, by numbers of bodies: about the centre of mass, in the body's axes,
        kg·m².

    Raises
    ------
    FileError
        What is wrong with the file, as MuJoCo says.
    """
    check_before(path)
    package = mujoco()
    try:
        with _warnings_kept(package) as warned:
            try:
                return package.MjModel.from_xml_path(str(path)), warned, {}
            except ValueError as error:
                if strict or _BALANCE not in str(error):
                    raise
                warned.clear()
                try:
                    return _balanced(package, path, warned)
                except AttributeError:  # MuJoCo before 3.3, whose specifications are none or have other names
                    raise error from None
    except (ValueError, RuntimeError, MemoryError, package.FatalError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        line = _LINE.search(text)
        sentence = f"MuJoCo refuses it: {text}; correct it there"
        raise FileError(path, (f"line {line[1]}: {sentence}" if line and int(line[1]) else sentence,)) from None


def _balanced(package: Any, path: Path, warned: list[str]) -> tuple[Any, list[str], dict[int, Array]]:
    """Compile a file with balanced inertias, and find those that it states instead."""
    spec = package.MjSpec.from_file(str(path))
    spec.compiler.balanceinertia = True
    spec.compiler.fusestatic = False  # bodies keep their numbers
    model, stated = spec.compile(), {}
    for body in spec.bodies:
        if not body.explicitinertial:
            continue
        xx, yy, zz, xy, xz, yz = body.fullinertia
        if np.isnan(xx):
            R = np.zeros(9)
            package.mju_quat2Mat(R, model.body_iquat[body.id])
            given = R.reshape(3, 3) @ np.diag(body.inertia) @ R.reshape(3, 3).T
        else:
            given = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if MassProperties(float(body.mass), np.zeros(3), given).wrong:
            stated[int(body.id)] = given
    return model, warned, stated
