"""What a viewer shows, put together and checked before any server starts: a model, and what happens to it in time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import difference, integrate, neutral
from kinegrad.constraints import ConstraintSet, Contact
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import forward_kinematics
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.plot.connections import Connection, attachments, coil, connections, places
from kinegrad.plot.given import check_constraints, finite
from kinegrad.view.parts import reach

__all__ = ["Shown"]

Array = NDArray[np.float64]
FULL_TURN = np.pi
COIL = 0.02  # radius of the coil of a spring, of the reach of the model
SEEN = 50  # postures that decide where the ground is


class Shown:
    """A model with a posture or a motion, and the forces on it.

    Between its times a motion is evaluated as :class:`~kinegrad.Motion` does.  Sliders move the tangent x of
    q = integrate(neutral, x), which is q itself except for unit quaternions.
    """

    def __init__(
        self,
        model: Model,
        motion: Motion | None = None,
        *,
        q: ArrayLike | None = None,
        loads: Loads | None = None,
        constraints: ConstraintSet | None = None,
    ) -> None:
        engine.check_model(model)
        _check("motion", motion, Motion, "a Motion, as of simulate() or Motion.from_spline()")
        _check("loads", loads, Loads, "Loads")
        check_constraints(model, constraints)
        if motion is not None:
            self._check_motion(model, motion)
        self.model, self.motion, self.loads, self.constraints = model, motion, loads, constraints
        self.home = neutral(model)
        given = self.home if motion is None else motion.q[0]
        self.q = finite("q", q, (model.nq,)) if q is not None else np.array(given)
        self._arrays = loads.arrays(model) if loads is not None else None
        if self._arrays is not None:
            times = {x.shape[:-2] for x in self._arrays.values()} - {()}
            if times and (motion is None or times != {(len(motion.t),)}):
                expected = "one load, or one for each time of the motion"
                raise InputError(f"`loads` have batch shape {' and '.join(map(str, times))}; expected {expected}")

    @staticmethod
    def _check_motion(model: Model, motion: Motion) -> None:
        if motion.model.coordinate_names != model.coordinate_names:
            raise InputError("`motion` is of a model with other coordinates than the one shown")
        if motion.q.ndim != 2:
            expected = "one motion, such as motion of one state or `Motion(model, t, q[:, k], …)`"
            raise InputError(f"`motion` is of {motion.q.shape[1:-1]} motions at once; expected {expected}")
        if len(motion.t) < 2:
            raise InputError("`motion` has one time; expected two or more to play, or a posture, `q=motion.q[0]`")
        if not all(np.isfinite(x).all() for x in (motion.q, motion.v, motion.a)):
            raise InputError("`motion` has numbers that are not finite; expected finite ones to draw")

    # --- what connects links ------------------------------------------------------------------------------------

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """Force elements and constraints between points."""
        return connections(self.model, self.constraints)

    @cached_property
    def attached(self) -> list[tuple[int, Array]]:
        """Links and points that links are drawn to, m."""
        return attachments(self.connections)

    def wires(self, q: Array) -> list[Array]:
        """Lines, (k, 3), m, of what connects links in a posture: coils of springs, rods, and gaps of loops."""
        radius = COIL * reach(self.model)
        found = []
        for each, (start, end) in zip(self.connections, places(self.model, self.connections, q), strict=True):
            if each.kind != "contact":
                found.append(coil(start, end, radius) if each.kind == "spring" else np.array([start, end]))
        return found

    # --- in time ------------------------------------------------------------------------------------------------

    @property
    def duration(self) -> float:
        """s; 0 without a motion."""
        return 0.0 if self.motion is None else float(self.motion.t[-1] - self.motion.t[0])

    def state(self, t: float) -> tuple[Array, Array, Array]:
        """q, v, a at a time of the motion."""
        assert self.motion is not None
        at = self.motion([float(np.clip(t, self.motion.t[0], self.motion.t[-1]))])
        return at.q[0], at.v[0], at.a[0]

    def postures(self) -> Array:
        """Some postures of the motion, (k, nq), or the one there is."""
        if self.motion is None:
            return self.q[None]
        return np.asarray(self.motion.q[:: max(1, len(self.motion.t) // SEEN)])

    @cached_property
    def tau(self) -> Array:
        """Torques at the times of the motion, as it has them or by inverse dynamics, (m, nv)."""
        assert self.motion is not None
        if self.motion.tau is not None:
            return np.asarray(self.motion.tau)
        return inverse_dynamics(self.model, self.motion.q, self.motion.v, self.motion.a, loads=self.loads)

    def strongest(self) -> Array:
        """Speeds by their largest torque, those of hinges that move one part of the body against another first."""
        model = self.model
        carried = np.array([model.mass[list(model.topology.subtree(i))].sum() for i in range(model.n)])
        base = carried >= (1 - 1e-12) * model.total_mass  # joints that move all there is
        floats = any(base[i] and joint.kind == "prismatic" for i, joint in enumerate(model.joints))
        speeds = np.array(model.layout.speed_of)
        second = {k for k, kind in enumerate(model.layout.speed_kinds) if kind == "prismatic"}
        second |= {int(s) for i, s in enumerate(speeds) if s >= 0 and floats and base[i]}
        largest = np.abs(self.tau).max(axis=0)
        return np.array(sorted(range(model.nv), key=lambda k: (k in second, -largest[k])))

    def sensitivity(self, q: Array, v: Array, a: Array, speed: int) -> Array:
        """The column of ∂τ/∂q of one speed, (..., nv): what all torques feel of it."""
        loads = self.loads if self._arrays is None or q.ndim > 1 or not self._timed else None
        return np.asarray(inverse_dynamics_derivatives(self.model, q, v, a, loads=loads).dtau_dq)[..., speed]

    @property
    def _timed(self) -> bool:
        return self._arrays is not None and any(x.ndim > 2 for x in self._arrays.values())

    # --- sliders ------------------------------------------------------------------------------------------------

    def slider_ranges(self) -> Array:
        """Lower and upper end of each slider, (nv, 2): limits of the joints where they have them."""
        layout, model = self.model.layout, self.model
        ranges = np.tile([-FULL_TURN, FULL_TURN], (model.nv, 1))
        coupled = {speed for i, speed in enumerate(layout.speed_of) if list(layout.speed_of).count(speed) > 1}
        ranges[[kind == "prismatic" for kind in layout.speed_kinds]] = reach(model) * np.array([-1.0, 1.0])
        for i, speed in enumerate(layout.speed_of):
            limits = model.position_limits[i]
            if speed not in coupled:
                ranges[speed] = np.where(np.isfinite(limits), limits, ranges[speed])
        start = self.tangent(self.q)
        ranges[:, 0], ranges[:, 1] = np.minimum(ranges[:, 0], start), np.maximum(ranges[:, 1], start)
        if self.motion is not None:
            seen = difference(self.model, self.home, self.motion.q)
            ranges[:, 0], ranges[:, 1] = np.minimum(ranges[:, 0], seen.min(0)), np.maximum(ranges[:, 1], seen.max(0))
        ranges[:, 1] = np.maximum(ranges[:, 1], ranges[:, 0] + 1e-6)
        return np.asarray(ranges)

    def tangent(self, q: Array) -> Array:
        """Where the sliders are at a posture."""
        return np.asarray(difference(self.model, self.home, q))

    def posture(self, x: Array) -> Array:
        """The posture of sliders."""
        return np.asarray(integrate(self.model, self.home, x))

    # --- forces -------------------------------------------------------------------------------------------------

    def arrows(self, q: Array, t: float | None = None) -> Array:
        """Where forces act and what they are, (k, 2, 3): m and N, in the world."""
        found = [self._load_arrows(q, t), self._contact_arrows(q, t)]
        return np.concatenate([np.zeros((0, 2, 3)), *(x for x in found if x is not None)])

    def largest_force(self) -> float:
        """N, over the motion."""
        largest = [0.0]
        if self._arrays is not None:
            largest.append(float(np.linalg.norm(self._arrays["force"], axis=-1).max()))
        if self._contacts:
            assert self.motion is not None
            assert self.motion.forces is not None
            largest.append(float(np.abs(self.motion.forces).max()))
        return max(largest)

    @cached_property
    def _contacts(self) -> list[tuple[Contact, slice]]:
        if self.constraints is None or self.motion is None or self.motion.forces is None:
            return []
        if self.motion.forces.shape[-1] != self.constraints.m:
            return []
        return [(each, self.constraints.rows(each.name)) for each in self.constraints if isinstance(each, Contact)]

    def _load_arrows(self, q: Array, t: float | None) -> Array | None:
        if self._arrays is None:
            return None
        k = 0 if t is None or self.motion is None else int(np.abs(self.motion.t - t).argmin())
        force, point = (x[k] if (x := self._arrays[name]).ndim > 2 else x for name in ("force", "point"))
        pulled = np.flatnonzero(np.linalg.norm(force, axis=-1) > 0)
        pose = forward_kinematics(self.model, q).transform[pulled]
        where = np.einsum("kij,kj->ki", pose[:, :3, :3], point[pulled]) + pose[:, :3, 3]
        return np.stack([where, force[pulled]], axis=1)

    def _contact_arrows(self, q: Array, t: float | None) -> Array | None:
        if not self._contacts or t is None:
            return None
        assert self.motion is not None
        assert self.motion.forces is not None
        k = int(np.abs(self.motion.t - t).argmin())
        transforms = forward_kinematics(self.model, q).transform
        lines = []
        for contact, rows in self._contacts:
            link, frame = self.model.locate(contact.link)
            point = np.append(contact.point, 1.0)
            where = transforms[link] @ (point if frame is None else frame @ point)
            lines.append([where[:3], self.motion.forces[k, rows] @ contact.units])
        return np.array(lines)


def _check(name: str, value: Any, kind: type, expected: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InputError(f"`{name}` is {shown(value)}; expected {expected}")
