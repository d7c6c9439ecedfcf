"""The same skeleton in OpenSim: mass matrix, inverse dynamics and places of bodies, in kinegrad's coordinates.

OpenSim keeps dependent coordinates beside those that they follow, so with q_full = f(q), G = ∂f/∂q,

    M = Gᵀ M_full G,    τ = Gᵀ τ_full(f(q), G v, G a + Ġ v),

and its ball and free joints have speeds u that are angular velocities, with q̇ = N u; the joints of kinegrad have q̇.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import opensim as osim

from kinegrad.io.nearest_inertia import nearest_inertia
from kinegrad.io.opensim import OpenSimFile
from kinegrad.io.opensim.document import read_document
from kinegrad.io.strict_xml import read_xml

osim.Logger.setLevelString("Off")
osim.Logger.removeFileSink()  # which writes into the working directory


def vector(x: Any) -> Any:
    found = osim.Vector(len(x), 0.0)
    for i, value in enumerate(x):
        found[i] = float(value)
    return found


class OpenSimTwin:
    def __init__(self, path: Path, file: OpenSimFile, functions: dict[str, Any]) -> None:
        """`functions`: of each dependent coordinate, (leading coordinate, function)."""
        self.file, self.functions = file, functions
        self.model = osim.Model(str(path))
        self._same_inertias(path)
        self.state = self.model.initSystem()
        forces = self.model.getForceSet()
        for i in range(forces.getSize()):
            forces.get(i).setAppliesForce(self.state, False)
        self.solver = osim.InverseDynamicsSolver(self.model)
        names = self.model.getCoordinateSet()
        self.coordinates = [names.get(i) for i in range(names.getSize())]
        for c in self.coordinates:
            c.setLocked(self.state, False)
            c.setClamped(self.state, False)
        self.names = [c.getName() for c in self.coordinates]
        self.slots = self._slots()

    def _same_inertias(self, path: Path) -> None:
        """The same numbers in both: OpenSim rounds those of files of version 3 to six digits, and takes inertias that
        no body can have, of which kinegrad takes the nearest possible ones, if what moves with them is impossible."""
        projected = {note.line for note in self.file.report if note.what == "inertia projected"}
        for name, body in read_document(read_xml(Path(path), "OpenSimDocument")).bodies.items():
            near = body.inertia
            if body.element.line in projected:
                near = nearest_inertia(body.mass, body.com, body.inertia).inertia
            six = (float(near[i]) for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
            self.model.updBodySet().get(name).setInertia(osim.Inertia(*six))

    def _slots(self) -> list[int]:
        """Where each coordinate is in OpenSim's q."""
        found = []
        for c in self.coordinates:
            before = self.state.getQ().to_numpy().copy()
            c.setValue(self.state, 0.1234567 + c.getValue(self.state), False)
            after = self.state.getQ().to_numpy()
            found.append(int(np.argmax(np.abs(after - before))))
        return found

    def _full(self, q: Any, v: Any, a: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, q̇, q̈ and G, rows in the order of OpenSim's q."""
        model, n = self.file.model, self.state.getNQ()
        full, G = np.zeros((3, n)), np.zeros((n, model.nv))
        index = {name: i for i, name in enumerate(model.coordinate_names)}
        for name, slot in zip(self.names, self.slots, strict=True):
            if name in index:
                i = index[name]
                full[:, slot], G[slot, i] = (q[i], v[i], a[i]), 1.0
            elif name in self.file.locked:
                full[0, slot] = self.file.locked[name]
            else:
                leader, f = self.functions[name]
                if leader in self.file.locked:
                    full[0, slot] = f.derivatives(np.array([self.file.locked[leader]]), 0)[0][0]
                    continue
                i = index[leader]
                y, dy, ddy = (float(x[0]) for x in f.derivatives(np.array([q[i]]), 2))
                full[:, slot], G[slot, i] = (y, dy * v[i], dy * a[i] + ddy * v[i] ** 2), dy
        return full[0], full[1], full[2], G

    def _n(self) -> np.ndarray:
        """N of q̇ = N u at the state's q, (nq, nu): of a ball Simbody keeps a fourth q that Euler angles do not use."""
        matter, nq, nu = self.model.getMatterSubsystem(), self.state.getNQ(), self.state.getNU()
        N = np.zeros((nq, nu))
        for k in range(nu):
            out = osim.Vector(nq, 0.0)
            matter.multiplyByN(self.state, False, vector(np.eye(nu)[k]), out)
            N[:, k] = out.to_numpy()
        return N

    def _set(self, q: np.ndarray) -> None:
        self.state.setQ(vector(q))

    def mass_matrix(self, q: Any) -> np.ndarray:
        zero = np.zeros(self.file.model.nv)
        full, _, _, G = self._full(q, zero, zero)
        self._set(full)
        self.model.realizePosition(self.state)
        matrix = osim.Matrix()
        self.model.getMatterSubsystem().calcM(self.state, matrix)
        G = np.linalg.pinv(self._n()) @ G
        return G.T @ matrix.to_numpy() @ G

    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> np.ndarray:
        full, dq, ddq, G = self._full(q, v, a)
        self._set(full)
        self.model.realizePosition(self.state)
        N = self._n()
        back = np.linalg.pinv(N)
        u, du = back @ dq, back @ ddq
        if N.shape[0] != N.shape[1] or not np.array_equal(N, np.eye(len(N))):
            h = 1e-4  # Ṅ by differences of fourth order: q moves along q̇
            around = []
            for step in (h, -h, 2 * h, -2 * h):
                self._set(full + step * dq)
                self.model.realizePosition(self.state)
                around.append(self._n())
            self._set(full)
            N_dot = (8 * (around[0] - around[1]) - (around[2] - around[3])) / (12 * h)
            du = back @ (ddq - N_dot @ u)
        self.state.setU(vector(u))
        self.model.realizeVelocity(self.state)
        tau = self.solver.solve(self.state, vector(du)).to_numpy()
        return (back @ G).T @ tau

    def transform(self, q: Any, body: str) -> np.ndarray:
        zero = np.zeros(self.file.model.nv)
        self._set(self._full(q, zero, zero)[0])
        self.model.realizePosition(self.state)
        X = self.model.getBodySet().get(body).getTransformInGround(self.state)
        T, R, p = np.eye(4), X.R(), X.p()
        for i in range(3):
            T[i, 3] = p.get(i)
            for j in range(3):
                T[i, j] = R.get(i, j)
        return T
