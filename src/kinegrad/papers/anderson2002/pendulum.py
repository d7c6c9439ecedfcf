"""The double pendulum of :mod:`kinegrad.papers.anderson2002`: how its kinetic energy depends on lengths and masses.

Three ways to the same curves over 20 s, as in figures 4 to 7 of the paper:

fully recursive   :func:`kinegrad.simulate.simulate` with a design
conventional      (4) and (5) integrated with dq̈/dp of equation (9), each element of it a sum over bodies
differences       the motion again with a parameter moved by a little, and a quotient

The text of the paper gives neither lengths, masses nor the initial state: those below are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from kinegrad import samples
from kinegrad.design import Design
from kinegrad.energy import kinetic_energy
from kinegrad.motion import Motion
from kinegrad.papers.anderson2002.chain import chain_of
from kinegrad.papers.anderson2002.methods import METHODS
from kinegrad.papers.report.page import Progress
from kinegrad.simulate import KineticEnergy, simulate

__all__ = ["Deviation", "Pendulum", "Perturbation", "Wild", "deviations", "pendulum", "perturbations", "wild_swing"]

Array = NDArray[np.float64]
VALUES = {"L1": 1.0, "L2": 1.0, "MP": 1.0, "MQ": 1.0}  # m, kg
START = (pi / 6, 0.0)  # rad, both bars in line, at rest
WILD = (pi / 2, 0.0)  # rad: chaotic
DURATION, INSTANTS = 20.0, 401
STEPS = {"L1": 1e-5, "L2": 1e-5, "MP": 5e-4, "MQ": 1e-5}  # of the paper, section 5
UNITS = {"L1": "J/m", "L2": "J/m", "MP": "J/kg", "MQ": "J/kg"}
TIGHT, LOOSE = 1e-11, 1e-6  # relative tolerance of the integrator; the absolute one is a tenth
REFERENCE = 1e-13  # of what errors are taken against
PARAMETERS: dict[str, str | dict[str, float]] = {
    "L1": {"P.com.z": -1.0, "hinge2.placement.z": -1.0},
    "L2": {"Q.com.z": -1.0},
    "MP": "P.mass",
    "MQ": "Q.mass",
}


@dataclass(frozen=True, eq=False)
class Pendulum:
    """The motion at times t, (m,), its kinetic energy, (m,), and dT/dp by method, (m, 4).

    `reference` is dT/dp with the tightest integrator, which tells the error of integration.
    """

    t: Array
    q: Array
    kinetic: Array
    sensitivity: dict[str, Array]
    reference: Array

    @property
    def integration_error(self) -> float:
        """The largest one of the fully recursive method over all parameters, each relative to its largest value."""
        error = np.abs(self.sensitivity["fully recursive"] - self.reference).max(axis=0)
        return float((error / np.abs(self.reference).max(axis=0)).max())


@dataclass(frozen=True)
class Deviation:
    """How far a method is from the fully recursive one over 20 s.

    Attributes
    ----------
    parameter, method : str
    largest_value : float
        Of the fully recursive one, J/m or J/kg.
    largest : float
        Deviation.
    at : float
        When, s.
    """

    parameter: str
    method: str
    largest_value: float
    largest: float
    at: float

    @property
    def relative(self) -> float:
        """Relative to the largest value."""
        return self.largest / self.largest_value


@dataclass(frozen=True)
class Perturbation:
    """The largest error of a difference over 20 s, relative to the largest value; of no step: of the exact method."""

    parameter: str
    method: str
    tolerance: float
    step: float
    error: float


@dataclass(frozen=True)
class Wild:
    """What becomes of dT/dL1 in a chaotic motion, released from the horizontal.

    Attributes
    ----------
    largest_value : float
        Within 20 s, J/m.
    methods : float
        The largest difference of the two exact methods, relative to it.
    differences : float
        The largest error of forward differences, relative to it.
    sound_until : float
        Until when they are within 1 % of what the sensitivity has reached by then, s.
    """

    largest_value: float
    methods: float
    differences: float
    sound_until: float


# --- motions ------------------------------------------------------------------------------------------------------


def pendulum(say: Progress) -> Pendulum:
    """The motion and its sensitivities by all methods, at tight tolerance."""
    t, design = _instants(), _design()
    say("double pendulum", 0, 6)
    motion = simulate(design.model, START, [0, 0], t, design=design, rtol=TIGHT, atol=TIGHT / 10)
    exact = _sensitivity(design, t, motion.q, motion.v, motion.dq_dp, motion.dv_dp)
    say("double pendulum", 1, 6)
    q, v, dq, dv = _integrate(design, "conventional", START, TIGHT)
    found = {"fully recursive": exact, "conventional": _sensitivity(design, t, q, v, dq, dv)}
    base = _energy({}, START, TIGHT)
    forward, central = np.empty((2, INSTANTS, len(STEPS)))
    for k, (name, step) in enumerate(STEPS.items()):
        say("double pendulum", 2 + k, 6)
        above, below = (_energy({name: VALUES[name] + h}, START, TIGHT) for h in (step, -step))
        forward[:, k], central[:, k] = (above - base) / step, (above - below) / (2 * step)
    say("double pendulum", 6, 6)
    kinetic = kinetic_energy(design.model, motion.q, motion.v)
    found |= {"forward differences": forward, "central differences": central}
    reference = _sensitivity(design, t, *_integrate(design, "fully recursive", START, REFERENCE))
    return Pendulum(t, motion.q, kinetic, found, reference)


def deviations(x: Pendulum) -> list[Deviation]:
    """Of every other method, parameter by parameter."""
    exact = x.sensitivity["fully recursive"]
    rows = []
    for k, name in enumerate(STEPS):
        for method, values in x.sensitivity.items():
            away = np.abs(values[:, k] - exact[:, k])
            worst, size = int(away.argmax()), float(np.abs(exact[:, k]).max())
            if method != "fully recursive":
                rows.append(Deviation(name, method, size, float(away[worst]), float(x.t[worst])))
    return rows


def perturbations(x: Pendulum, names: Sequence[str], steps: Sequence[float], say: Progress) -> list[Perturbation]:
    """Errors of differences by step, with a tight and a loose integrator, and of the exact method with each.

    The paper's perturbation is among the steps, exactly, whether it is given or not.
    """
    rows: list[Perturbation] = []
    tried = {name: _with_papers(steps, STEPS[name]) for name in names}
    total = 2 * sum(map(len, tried.values()))
    for name in names:
        k = list(STEPS).index(name)
        exact = x.reference[:, k]
        size = float(np.abs(exact).max())

        def error(values: Array, exact: Array = exact, size: float = size) -> float:
            return float(np.abs(values - exact).max()) / size

        for tolerance in (TIGHT, LOOSE):
            base = _energy({}, START, tolerance)
            same = _sensitivity(_design(), x.t, *_integrate(_design(), "fully recursive", START, tolerance))
            rows.append(Perturbation(name, "fully recursive", tolerance, 0.0, error(same[:, k])))
            for step in tried[name]:
                say("perturbations", len([row for row in rows if row.method == "forward"]), total)
                above, below = (_energy({name: VALUES[name] + h}, START, tolerance) for h in (step, -step))
                rows.append(Perturbation(name, "forward", tolerance, step, error((above - base) / step)))
                rows.append(Perturbation(name, "central", tolerance, step, error((above - below) / (2 * step))))
    say("perturbations", total, total)
    return rows


def _with_papers(steps: Sequence[float], paper: float) -> list[float]:
    """All steps, falling, the paper's among them and none that is the same but for rounding.

    >>> _with_papers([10**-1.5, 10**-5.0], 1e-5), _with_papers([1e-2], 5e-4)
    ([0.03162277660168379, 1e-05], [0.01, 0.0005])
    """
    return sorted([*(float(step) for step in steps if abs(step / paper - 1) > 1e-9), paper], reverse=True)


def wild_swing(say: Progress) -> Wild:
    """dT/dL1 of the pendulum released from the horizontal."""
    say("a wild swing", 0, 1)
    t, design = _instants(), _design()
    exact, other = (
        _sensitivity(design, t, *_integrate(design, method, WILD, TIGHT))[:, 0]
        for method in ("fully recursive", "conventional")
    )
    step = STEPS["L1"]
    moved, base = _energy({"L1": VALUES["L1"] + step}, WILD, TIGHT), _energy({}, WILD, TIGHT)
    error = np.abs((moved - base) / step - exact)
    size = float(np.abs(exact).max())
    unsound = error[1:] > 0.01 * np.maximum.accumulate(np.abs(exact[1:]))
    until = float(t[int(unsound.argmax())]) if unsound.any() else DURATION
    say("a wild swing", 1, 1)
    return Wild(size, float(np.abs(other - exact).max()) / size, float(error.max()) / size, until)


def _instants() -> Array:
    return np.linspace(0, DURATION, INSTANTS)


def _design(**changes: float) -> Design:
    return Design(samples.double_pendulum(**(VALUES | changes)), PARAMETERS)


def _sensitivity(design: Design, t: Array, q: Array, v: Array, dq: Any, dv: Any) -> Array:
    """dT/dp = T,p + T,q dq/dp + T,v dv/dp, (m, p).  [anderson2002] (2) and (71)"""
    rest = np.zeros_like(q)
    T: Any = KineticEnergy().evaluate(Motion(design.model, t, q, v, rest, rest, design=design))
    total: Array = T.dp + np.einsum("mi,mip->mp", T.dq, dq) + np.einsum("mi,mip->mp", T.dv, dv)
    return total


def _energy(changes: dict[str, float], start: tuple[float, float], tolerance: float) -> Array:
    """Kinetic energy over time with some values changed, (m,)."""
    design = _design(**changes)
    q, v, _, _ = _integrate(design, "fully recursive", start, tolerance, sensitive=False)
    return kinetic_energy(design.model, q, v)


def _integrate(
    design: Design, method: str, start: tuple[float, float], tolerance: float, sensitive: bool = True
) -> tuple[Array, Array, Array, Array]:
    """q, v (m, n) and dq/dp, dv/dp (m, n, p), p = 0 if not sensitive.  [anderson2002] (4), (5)"""
    chain, n = chain_of(design), design.model.n
    p = design.p if sensitive else 0
    chain = chain._replace(ds=chain.ds[:p], dr=chain.dr[:p], dm=chain.dm[:p], dinertia=chain.dinertia[:p])
    accelerations = METHODS[method]

    def rate(t: float, y: Array) -> Array:
        q, v, dq, dv = _parts(y, n, p)
        a, da = accelerations(chain, q, v, dq, dv)
        return np.concatenate([v, a, dv.ravel(), da.ravel()])

    y0 = np.concatenate([start, np.zeros(n + 2 * n * p)])
    times = _instants()
    found = solve_ivp(rate, (0, DURATION), y0, "DOP853", times, rtol=tolerance, atol=tolerance / 10)
    q, v, dq, dv = _parts(found.y, n, p)
    return q.T, v.T, np.ascontiguousarray(dq.transpose(2, 1, 0)), np.ascontiguousarray(dv.transpose(2, 1, 0))


def _parts(y: Array, n: int, p: int) -> tuple[Array, Array, Array, Array]:
    """q, v, (n, ...), and their slopes, (p, n, ...)."""
    end = 2 * n + n * p
    return y[:n], y[n : 2 * n], y[2 * n : end].reshape(p, n, *y.shape[1:]), y[end:].reshape(p, n, *y.shape[1:])
