"""Force plates: force, centre of pressure and free moment, as loads on the links that stand on them.

A plate measures a force F, the point c of the world where it acts, and the free moment T about it.  The point moves
under the foot, and is measured in the world, not in the foot.  So the load on a link whose frame has its origin at o(q)
is the force F there and the torque

    N(q) = T + (c − o(q)) × F,

exactly, at each instant.  Where torques are differentiated by q, N changes with it: ∂N/∂q_j = −∂o/∂q_j × F.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import LeftOutWarning
from kinegrad.io.storage_file import StorageTable, read_storage
from kinegrad.io.strict_xml import Element, XmlFile, read_xml
from kinegrad.io.whole_file import checked_path
from kinegrad.kinematics import forward_kinematics
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.recordings.force_columns import (
    QUANTITIES,
    PlateColumns,
    check_apart,
    check_unused,
    columns_of_identifier,
    listed,
    mapped_plates,
    named_plates,
)
from kinegrad.recordings.opensim_filter import natural_spline
from kinegrad.results import Result

__all__ = ["ForcePlate", "assign_links", "plate_loads", "plates_of", "read_external_loads"]

Array = NDArray[np.float64]
FOOT = re.compile("calcn|foot|feet", re.IGNORECASE)  # links that stand, by their names
STANDING = 20.0  # N: below, nobody stands on a plate


@dataclass(frozen=True, eq=False)
class ForcePlate(Result):
    """What one plate measured at N instants, in the world.

    Parameters
    ----------
    t : array_like, shape (N,)
        s, increasing.
    force : array_like, shape (N, 3)
        On the foot, N.
    point : array_like, shape (N, 3)
        The centre of pressure, m; NaN is allowed where there is no force.
    torque : array_like, shape (N, 3), optional
        The free moment about it, N·m.
    link : str
        The link or frame that stands on it; empty if that is not known yet.
    name : str

    Examples
    --------
    >>> plate = ForcePlate([0.0, 0.1], [[0, 0, 700], [0, 0, 690]], [[0.1, 0, 0], [0.12, 0, 0]], link="foot")
    >>> plate.at([0.05]).force
    array([[  0.,   0., 695.]])
    """

    t: Array
    force: Array
    point: Array
    torque: Array = None  # type: ignore[assignment]  # None: none; set below
    link: str = ""
    name: str = "plate"

    def __post_init__(self) -> None:
        set_field = object.__setattr__.__get__(self)
        t = engine.real("t", self.t)
        if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
            raise InputError(f"`t` of plate {shown(self.name)} does not increase; expected finite increasing times")
        set_field("t", t)
        given = {
            "force": self.force,
            "point": self.point,
            "torque": np.zeros((len(t), 3)) if self.torque is None else self.torque,
        }
        for what, value in given.items():
            x = engine.real(what, value)
            if x.shape != (len(t), 3):
                raise InputError(f"`{what}` of plate {shown(self.name)} has shape {x.shape}; expected ({len(t)}, 3)")
            set_field(what, x)
        loaded = (self.force != 0).any(axis=1)
        for what in given:
            x = getattr(self, what)
            lost = ~np.isfinite(x).all(axis=1)
            if what == "point":
                x = np.where((lost & ~loaded)[:, None], 0.0, x)
                lost &= loaded
                set_field(what, x)
            if lost.any():
                k = int(np.argmax(lost))
                found = f"`{what}` of plate {shown(self.name)} is missing at t = {t[k]:g} s"
                raise InputError(f"{found}; expected numbers wherever there is a force")

    def at(self, t: ArrayLike) -> ForcePlate:
        """The plate at other times within its own: by natural cubic splines, as OpenSim does."""
        times = engine.real("t", t)
        first, last = self.t[0], self.t[-1]
        if not len(times) or times[0] < first - 1e-9 or times[-1] > last + 1e-9:
            span = f"from {times[0]:g} to {times[-1]:g} s" if len(times) else "nowhere"
            raise InputError(f"plate {shown(self.name)} measured from {first:g} to {last:g} s; asked for is {span}")
        if np.array_equal(times, self.t):
            return self
        if len(self.t) < 4:
            parts = (self.force, self.point, self.torque)
            lines = [np.stack([np.interp(times, self.t, x[:, i]) for i in range(3)], axis=-1) for x in parts]
            return replace(self, t=times, force=lines[0], point=lines[1], torque=lines[2])
        columns = np.concatenate([self.force, self.point, self.torque], axis=1)
        found = np.asarray(natural_spline(self.t, columns, 3)(np.clip(times, first, last)))
        return replace(self, t=times, force=found[:, :3], point=found[:, 3:6], torque=found[:, 6:])


def plate_loads(model: Model, q: ArrayLike, plates: Sequence[ForcePlate]) -> Loads | None:
    """The loads of plates on their links, at instants of which q are the coordinates.

    Parameters
    ----------
    model : Model
    q : array_like, shape (N, nq)
        Coordinates at the times of the plates.
    plates : sequence of ForcePlate
        Each with a link, and N instants; several may be on one link.

    Returns
    -------
    Loads or None
        Force at the origin of each link, and torque about it, exactly those of the plates; None without plates.

    Examples
    --------
    >>> from kinegrad import inverse_dynamics, samples
    >>> arm, q = samples.two_link(), np.zeros((1, 2))
    >>> push = ForcePlate([0.0], [[0, 10.0, 0]], [[0.8, 0, 0]], link="forearm")
    >>> inverse_dynamics(arm.replace(gravity=(0, 0, 0)), q, 0 * q, 0 * q, loads=plate_loads(arm, q, [push]))
    array([[-8., -4.]])
    """
    x = np.atleast_2d(engine.real("q", q))
    if not plates:
        return None
    transform = forward_kinematics(model, x).transform
    force, torque = (np.zeros((len(x), model.n, 3)) for _ in range(2))
    for plate in plates:
        i = _link_of(model, plate)
        if len(plate.t) != len(x):
            found = f"plate {shown(plate.name)} has {len(plate.t)} instants"
            raise InputError(f"{found}, and `q` has {len(x)}; expected as many: see ForcePlate.at")
        force[:, i] += plate.force
        torque[:, i] += plate.torque + np.cross(plate.point - transform[:, i, :3, 3], plate.force)
    return Loads(force=force, torque=torque)


def _link_of(model: Model, plate: Any) -> int:
    if not isinstance(plate, ForcePlate):
        raise InputError(f"`plates` holds a {type(plate).__name__}; expected ForcePlate objects")
    if not plate.link:
        raise InputError(f"plate {shown(plate.name)} has no link; expected one, or assign_links(model, q, plates)")
    return model.locate(plate.link)[0]


def assign_links(
    model: Model, t: ArrayLike, q: ArrayLike, plates: Sequence[ForcePlate], candidates: Sequence[str] | None = None
) -> list[ForcePlate]:
    """Plates with the links that stand on them: those that the centre of pressure is nearest to while there is a force.

    Parameters
    ----------
    model : Model
    t, q : array_like, shapes (N,) and (N, nq)
        The motion; its times within those of the plates.
    plates : sequence of ForcePlate
        Those that have a link already keep it.
    candidates : sequence of str, optional
        Links that may stand; without it, links called foot or calcn (OpenSim), or else all that have mass.

    Returns
    -------
    list of ForcePlate
    """
    engine.check_model(model)
    usual = [name for name in model.link_names if FOOT.search(name)]
    names = (
        list(candidates)
        if candidates is not None
        else (usual or [name for name, m in zip(model.link_names, model.mass, strict=True) if m > 0])
    )
    links = [model.locate(name)[0] for name in names]
    origin = forward_kinematics(model, np.asarray(q)).transform[..., :3, 3][:, links]
    found = []
    for plate in plates:
        if plate.link:
            _link_of(model, plate)
            found.append(plate)
            continue
        at = plate.at(t)
        standing = np.sqrt((at.force**2).sum(axis=1)) > STANDING
        if not standing.any():
            raise InputError(
                f"plate {shown(plate.name)} bears no more than {STANDING:g} N; expected its link, or no plate"
            )
        away = np.sqrt(((origin - at.point[:, None]) ** 2).sum(axis=-1))[standing].mean(axis=0)
        found.append(replace(plate, link=names[int(np.argmin(away))]))
    return found


# --- files ------------------------------------------------------------------------------------------------------------


def plates_of(
    table: StorageTable, links: Mapping[str, str] | None = None, *, columns: Mapping[str, Any] | None = None
) -> list[ForcePlate]:
    """Return the plates in a table of forces, by the names of its columns.

    Parameters
    ----------
    table : StorageTable
        As read by :func:`kinegrad.io.read_storage` with ``missing=True``.  Names are recognised in the usual spellings:
        ``ground_force_vx``, ``1_ground_force_px``, ``R_ground_torque_y``, ``ground_force_1_vz``, ``FP1_Fx``, ``COPx1``.
        A plate needs three columns of its force (v, f) and three of its point (p, cop); of the free moment (torque,
        moment, m), columns that are missing count as zero.
    links : dict of str to str, optional
        Links of plates, by what the names of their force columns begin with.
    columns : dict, optional
        Plates that are not recognised, by any name: ``{"left": {"force": "l_F", "point": "l_C", "torque": "l_T"}}``,
        where each text is what the names of three columns begin with; or three names, None for zero.

    Returns
    -------
    list of ForcePlate

    Raises
    ------
    InputError
        If six or more columns, or columns of a force, belong to no plate.  With `columns`, even ``{}``, that is only a
        warning.

    Warns
    -----
    LeftOutWarning
        If columns are not used, with their names.

    Examples
    --------
    >>> names = tuple(f"ground_force_{what}{x}" for what in "vp" for x in "xyz")
    >>> plates = plates_of(StorageTable([0.0], names, [[0, 700, 0, 0.1, 0, 0.2]]), {"ground_force_": "calcn_r"})
    >>> plates[0].name, plates[0].link
    ('ground_force_', 'calcn_r')
    >>> other = tuple(f"{what}.{x}" for what in "FC" for x in "abc")
    >>> table = StorageTable([0.0], other, [[0, 700, 0, 0.1, 0, 0.2]])
    >>> plates_of(table, columns={"left": {"force": "F", "point": "C"}})[0].force
    array([[  0., 700.,   0.]])
    """
    if not isinstance(table, StorageTable):
        raise InputError(f"`table` is a {type(table).__name__}; expected a StorageTable")
    by_hand = [] if columns is None else mapped_plates(table.names, columns)
    taken = set[str]().union(*(plate.used for plate in by_hand))
    found = [*named_plates([name for name in table.names if name not in taken]), *by_hand]
    check_apart(found)
    unused = check_unused(table.names, found, columns is not None)
    _warn_of_unused(unused)
    names = [plate.name for plate in found]
    for name in links or {}:
        if name not in names:
            raise InputError(f"`links` names plate {shown(name)}; expected one of {listed(names)}")
    return [_plate(table, plate, (links or {}).get(plate.name, "")) for plate in found]


def _plate(table: StorageTable, columns: PlateColumns, link: str) -> ForcePlate:
    zero = np.zeros(len(table.t))
    force, point, moment = (
        np.stack([zero if name is None else table.column(name) for name in three], axis=-1)
        for three in (columns.force, columns.point, columns.torque)
    )
    moment = np.where(np.isnan(moment) & (force == 0).all(axis=1, keepdims=True), 0.0, moment)
    return ForcePlate(table.t, force, point, moment, link, columns.name)


def _warn_of_unused(unused: Sequence[str]) -> None:
    if unused:
        text = f"columns of the forces that no plate uses: {listed(unused)}"
        warnings.warn(text, LeftOutWarning, stacklevel=3)


def read_external_loads(path: str | os.PathLike[str], table: StorageTable | None = None) -> list[ForcePlate]:
    """The plates of an ``ExternalLoads`` file of OpenSim, with the links it names.

    Parameters
    ----------
    path : path
        An ``.xml`` file; its ``datafile`` is looked for beside it.
    table : StorageTable, optional
        The forces, instead of its datafile.

    Returns
    -------
    list of ForcePlate

    Raises
    ------
    FileError
        With all problems of the file.
    """
    place = checked_path(path)
    file = read_xml(place, "OpenSimDocument")
    loads = file.only(file.root, "ExternalLoads", required=True)
    file.check()
    assert loads is not None
    if table is None:
        data = loads.find("datafile")
        if data is None or not data.text:
            file.problem(loads, "has no <datafile>; add it")
            file.check()
        assert data is not None
        table = read_storage(place.parent / data.text, missing=True)
    objects = loads.find("objects")
    found, used = list[ForcePlate](), set[str]()
    for element in [] if objects is None else objects.all("ExternalForce"):
        if _says(element, "isDisabled", "false") == "true" or _says(element, "appliesForce", "true") == "false":
            starts = [_says(element, f"{what}_identifier", "") for what in QUANTITIES]
            used |= {name for name in table.names for start in starts if start and name.startswith(start)}
            continue
        columns = _external_force(file, element, table)
        if columns is None:
            continue
        used |= columns.used
        body = _says(element, "applied_to_body", "").rsplit("/", 1)[-1]
        plate: ForcePlate | None = file.guard(element, partial(_plate, table, columns, body))
        found += [] if plate is None else [plate]
    file.check()
    _warn_of_unused([name for name in table.names if name not in used])
    return found


def _external_force(file: XmlFile, element: Element, table: StorageTable) -> PlateColumns | None:
    """The columns that an ExternalForce names; None with a problem of the file."""
    for what in ("force_expressed_in_body", "point_expressed_in_body"):
        if _says(element, what, "ground") != "ground":
            file.problem(element, f"{what} is {shown(_says(element, what, ''))}; expected ground")
            return None
    columns = dict.fromkeys(QUANTITIES, PlateColumns.torque)
    for what in QUANTITIES:
        start = _says(element, f"{what}_identifier", "")
        if not start or start.lower() == "unassigned":
            continue
        three = columns_of_identifier(table.names, start)
        if three is None:
            begun = [name for name in table.names if name.startswith(start)]
            names = f"{len(begun)} columns that begin with {shown(start)} ({listed(begun)})" if begun else (
                f"no columns {', '.join(shown(start + x) for x in 'xyz')}"
            )  # fmt: skip
            file.problem(element, f"the forces have {names}; expected three, or those: {listed(table.names)}")
            return None
        columns[what] = three
    if any(columns["force"]) and not any(columns["point"]):
        file.problem(element, "has a force and no point_identifier; expected the columns of its centre of pressure")
        return None
    return PlateColumns(element.get("name") or "force", **columns)


def _says(element: Element, tag: str, default: str) -> str:
    child = element.find(tag)
    return default if child is None or not child.text else child.text
