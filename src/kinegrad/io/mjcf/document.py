"""Whole files of MJCF: the model, its equality constraints, and a report."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import FileError, shown
from kinegrad.io.mjcf.bodies import BALL, FREE, Names, Tree
from kinegrad.io.mjcf.compiling import compiled, mujoco
from kinegrad.io.mjcf.equalities import equalities
from kinegrad.io.mjcf.left_out import actuation, left_out, switches
from kinegrad.io.mjcf.shapes import add_shapes
from kinegrad.io.model_file import ModelFile, Note, Report
from kinegrad.io.moving_bodies import Bodies, check_flag
from kinegrad.io.whole_file import checked_path
from kinegrad.model import ModelBuilder
from kinegrad.model.names import check_name

__all__ = ["read"]


def read(
    path: str | os.PathLike[str], *, quaternion: bool = True, inertia: str = "close", strict: bool = False
) -> ModelFile:
    """Read a file of MJCF, compiled by MuJoCo (``pip install 'kinegrad[mjcf]'``).

    Coordinates and speeds are MuJoCo's qpos and qvel, in the same order.

    Parameters
    ----------
    path : path
    quaternion : bool
        Whether ball and free joints have unit quaternions, as in MuJoCo; otherwise they are turns about z, y and x.
    inertia : {"close", "project", "refuse"}
        What to do if a body with everything that is fixed to it has an inertia that no body has: take the nearest
        possible one, if that changes the moment of inertia about no axis by more than 1 %; take it however far it is,
        without a warning; or refuse each body whose inertia is impossible.
    strict : bool
        Whether to refuse every impossible inertia, as MuJoCo does, unless `inertia` accepts it.

    Returns
    -------
    ModelFile
        Its constraints are the active equality constraints (connect, weld, joint).

    Raises
    ------
    FileError
        What is wrong with the file, as we or MuJoCo say.
    """
    turned = check_flag("quaternion", quaternion)
    bodies = Bodies("body", inertia=inertia, strict=strict)
    place = checked_path(path)
    package = mujoco()
    m, warned, stated = compiled(place, strict=bodies.inertia == "refuse")
    names = Names(m)
    if not m.njnt:
        raise FileError(place, ("has no joint, so that nothing moves; expected at least one",))
    flags = switches(package, m)
    gravity = np.array(m.opt.gravity) * flags["gravity"]
    try:
        builder = ModelBuilder(_model_name(m, place.stem), gravity=gravity)
        tree = Tree(m, builder, names, turned, flags, bodies, stated)
        if bodies.problems:
            problems = [f"body {shown(part.name)}: {text}" for part, text in bodies.problems]
            raise FileError(place, problems)
        tree.add_sites()
        add_shapes(package, tree, place)
        columns, notes = actuation(package, m, names, _speeds(m, names))
        if columns:
            builder.actuate(columns)
        model = builder.build()
        constraints = ConstraintSet(model, equalities(package, tree))
    except FileError:
        raise
    except ValueError as error:  # what MuJoCo takes and no model can have
        raise FileError(place, (str(error),)) from None
    switched = [
        Note("switched off", f"{what} is switched off by <flag>", matters=False) for what in flags if not flags[what]
    ]
    warnings = [Note("MuJoCo's warning", f"MuJoCo warns: {text}", matters=False) for text in warned]
    notes = [*warnings, *switched, *bodies.notes, *tree.notes, *left_out(package, m, names, flags), *notes]
    return ModelFile(model, constraints, Report(os.fspath(path), "MJCF", tuple(notes), tuple(bodies.repairs())))


def _model_name(m: Any, default: str) -> str:
    """The name of the whole, which is the first of all names."""
    text = bytes(m.names[: m.names.index(b"\0")]).decode("utf-8", "replace").strip()
    return check_name("`model`", text) if text and text.isprintable() else default


def _speeds(m: Any, names: Names) -> dict[int, str]:
    """Names of the speeds of hinges and slides, by degrees of freedom."""
    single = [j for j in range(m.njnt) if int(m.jnt_type[j]) not in (FREE, BALL)]
    return {int(m.jnt_dofadr[j]): names.joints[j] for j in single}
